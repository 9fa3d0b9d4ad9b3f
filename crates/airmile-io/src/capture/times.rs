//! The times of a capture's frames.

use airmile_capture::packet::Unread;

use super::order::USUAL_NS;
use super::ticks::ClockTicks;

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
    /// The first and last time outside of the limits.
    pub(super) left_out: Option<(i64, i64)>,
    /// Of the clock, if they are asked for.
    ticks: Option<ClockTicks>,
}

impl Default for FrameTimes {
    fn default() -> Self {
        Self {
            earliest_ns: i64::MAX,
            latest_ns: i64::MIN,
            moved: 0,
            late_ns: 0,
            first_unread: Vec::new(),
            left_out: None,
            ticks: None,
        }
    }
}

impl FrameTimes {
    /// The ticks of the clock are asked for, too.
    pub(super) fn with_ticks() -> Self {
        Self { ticks: Some(ClockTicks::default()), ..Self::default() }
    }

    /// Takes the time of a frame outside of the limits.
    pub(super) fn leave_out(&mut self, at_ns: i64) {
        let (first, last) = self.left_out.unwrap_or((at_ns, at_ns));
        self.left_out = Some((first.min(at_ns), last.max(at_ns)));
    }

    #[inline]
    pub(super) fn push(&mut self, at_ns: i64) {
        if let Some(ticks) = &mut self.ticks {
            ticks.push(at_ns);
        }
        self.earliest_ns = self.earliest_ns.min(at_ns);
        if at_ns < self.latest_ns {
            self.note_late(self.latest_ns.saturating_sub(at_ns));
        } else {
            self.latest_ns = at_ns;
        }
    }

    /// The ticks of a clock that hides how data arrived, in nanoseconds.
    pub(super) fn coarse_ns(&self) -> Option<i64> {
        self.ticks.as_ref().and_then(ClockTicks::coarse_ns)
    }

    #[cold]
    fn note_late(&mut self, late_ns: i64) {
        self.moved += u64::from(late_ns > USUAL_NS);
        self.late_ns = self.late_ns.max(late_ns);
    }
}
