//! The trackers of one direction of a subscription.

use airmile_model::{Burst, Direction, Transfer};
use airmile_radio::detect::{SmallTransfers, TransferDetector};
use airmile_radio::transfer::Timeline;
use airmile_radio::usage::UsageBins;

use super::radio::RadioOptions;
use airmile_radio::watch::{OpenTransfer, TransferWatch, Until};

/// Which lists of the whole log are kept; findings need none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Findings,
    /// Bursts and windows of load, too.
    Lists,
}

/// One direction's findings.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    pub(super) timeline: Timeline,
    pub(super) usage: UsageBins,
    pub(super) watch: TransferWatch,
    pub(super) detector: TransferDetector,
    /// `None` unless they are kept.
    pub(super) bursts: Option<Vec<Burst>>,
}

/// One direction's findings at the end of the log.
pub(crate) struct TrackDone {
    pub(super) timeline: Timeline,
    pub(super) usage: UsageBins,
    pub(super) watched: Vec<OpenTransfer>,
    pub(super) small: SmallTransfers,
    pub(super) bursts: Vec<Burst>,
}

/// A burst with its times in microseconds since the Unix epoch.
#[derive(Debug, Clone)]
pub(crate) struct TimedBurst {
    pub(crate) burst: Burst,
    pub(crate) start_us: Option<i64>,
    pub(crate) end_us: Option<i64>,
    pub(crate) numerology: u8,
}

impl TimedBurst {
    pub(super) fn of(burst: Burst, timeline: &Timeline) -> Self {
        let start_us = timeline.time_us(burst.start_tti);
        let end_us = timeline.time_us(burst.end_tti);
        Self { burst, start_us, end_us, numerology: timeline.numerology() }
    }
}

impl Track {
    pub(super) fn new(
        dir: Direction,
        options: &RadioOptions,
        given: &[Transfer],
        keep: Keep,
    ) -> Self {
        Self {
            timeline: Timeline::new(dir),
            usage: UsageBins::new(dir),
            watch: TransferWatch::given(given),
            detector: TransferDetector::new(dir, options.detect),
            bursts: (keep == Keep::Lists).then(Vec::new),
        }
    }

    pub(super) fn add_burst(&mut self, burst: Burst) {
        if let Some(bursts) = &mut self.bursts {
            bursts.push(burst.clone());
        }
        self.timeline.add_burst(burst);
    }

    /// Passes new detections to the watch.
    pub(super) fn watch_detected(&mut self) {
        while let Some(found) = self.detector.poll() {
            self.watch.ended(&found);
        }
        self.watch.under_way(self.detector.current().as_ref());
    }

    pub(super) fn gather(&mut self, until: Until) {
        self.watch.gather(&mut self.timeline, &mut self.usage, until);
    }

    pub(super) fn finish(self) -> TrackDone {
        TrackDone {
            timeline: self.timeline,
            usage: self.usage,
            watched: self.watch.finish(),
            small: self.detector.small(),
            bursts: self.bursts.unwrap_or_default(),
        }
    }
}
