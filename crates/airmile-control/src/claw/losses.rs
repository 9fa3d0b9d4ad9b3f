//! Whose losses are (MobiSys 2017, 4.3.2).

use super::Feedback;

/// What a report adds to what was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossOrigin {
    /// No loss.
    NoLoss,
    /// The radio alone has lost something.
    Radio,
    /// The queue before the radio ran over, whatever the radio lost.
    Queue,
}

/// Losses that the client counts, and what of them has been taken into account.
///
/// Counters and not marks: a report that is lost takes nothing with it. They run since the
/// client's program began, so that a connection's first report is where they begin.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Losses {
    /// Of the radio and of the queue; `None` before the first report.
    now: Option<(u64, u64)>,
    /// What both were when the last loss was judged.
    judged: (u64, u64),
    /// When the radio's count last grew.
    grown_ns: Option<i64>,
}

impl Losses {
    /// Takes a report's counts; those that go back are a new client's.
    pub(super) fn ingest(&mut self, now_ns: i64, said: &Feedback) -> LossOrigin {
        let counts = (said.radio_losses, said.queue_losses);
        let known = self.now.replace(counts);
        let Some((radio, queue)) = known.filter(|known| known.0 <= counts.0 && known.1 <= counts.1)
        else {
            self.judged = counts;
            return LossOrigin::NoLoss;
        };
        if counts.0 > radio {
            self.grown_ns = Some(now_ns);
        }
        match (counts.0 > radio, counts.1 > queue) {
            (_, true) => LossOrigin::Queue,
            (true, false) => LossOrigin::Radio,
            (false, false) => LossOrigin::NoLoss,
        }
    }

    /// What was told by now has been taken into account.
    pub(super) fn judge(&mut self) {
        self.judged = self.now.unwrap_or(self.judged);
    }

    /// Whether a loss that shows now is the radio's: it lost packets since the last loss,
    /// not longer than two round trips ago, and its queue did not run over.
    pub(super) fn are_the_radios(&mut self, now_ns: i64, srtt_ns: i64) -> bool {
        let ((radio, queue), now) = (self.judged, self.now.unwrap_or(self.judged));
        let recent = self.grown_ns.is_some_and(|at| now_ns - at <= 2 * srtt_ns.max(1));
        let radios = now.0 > radio && now.1 == queue && recent;
        self.judge();
        radios
    }
}
