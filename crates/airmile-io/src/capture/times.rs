//! The times of a capture's frames.

use airmile_capture::packet::Unread;

use super::order::USUAL_NS;
use super::ticks::{ClockTicks, SLOT_NS};
use crate::file_report::FileReport;

/// The times of a file's frames, and those that are not read.
pub(super) struct FrameTimes {
    pub(super) earliest_ns: i64,
    pub(super) latest_ns: i64,
    /// Frames after one that is later by more than [`USUAL_NS`].
    pub(super) moved: u64,
    /// Maximum time that a frame was late.
    pub(super) late_ns: i64,
    /// The first frame of each kind that is not read, and its offset.
    pub(super) first_unread: Vec<(u64, Unread)>,
    pub(super) ticks: ClockTicks,
}

impl Default for FrameTimes {
    fn default() -> Self {
        Self {
            earliest_ns: i64::MAX,
            latest_ns: i64::MIN,
            moved: 0,
            late_ns: 0,
            first_unread: Vec::new(),
            ticks: ClockTicks::default(),
        }
    }
}

impl FrameTimes {
    #[inline]
    pub(super) fn push(&mut self, at_ns: i64) {
        self.ticks.push(at_ns);
        self.earliest_ns = self.earliest_ns.min(at_ns);
        if at_ns < self.latest_ns {
            self.note_late(self.latest_ns.saturating_sub(at_ns));
        } else {
            self.latest_ns = at_ns;
        }
    }

    /// Warns of a coarse clock.
    pub(super) fn note_clock(&self, report: &mut FileReport) {
        report.clock_ticks_ns = self.ticks.coarse_ns();
        report.coarse_clock(SLOT_NS).into_iter().for_each(|what| report.warn(what));
    }

    #[cold]
    fn note_late(&mut self, late_ns: i64) {
        self.moved += u64::from(late_ns > USUAL_NS);
        self.late_ns = self.late_ns.max(late_ns);
    }
}
