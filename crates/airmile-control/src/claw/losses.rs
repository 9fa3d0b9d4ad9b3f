//! Attribution of losses to the radio or the queue before it (MobiSys 2017, 4.3.2).

use super::Feedback;

/// New losses in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossOrigin {
    /// No loss.
    NoLoss,
    /// Only the radio lost packets.
    Radio,
    /// The queue before the radio overflowed, whatever the radio lost.
    Queue,
}

/// Losses counted by the client, and how many of them have been taken into account.
///
/// Cumulative counters, so a lost report loses no information. They start with the client's
/// program; a connection's first report is therefore its baseline.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Losses {
    /// Counts of the radio and of the queue; `None` before the first report.
    now: Option<(u64, u64)>,
    /// Both counts when the last loss was judged.
    judged: (u64, u64),
    /// When the radio's count last grew.
    grown_ns: Option<i64>,
}

impl Losses {
    /// Processes a report's counts; counts that go back belong to a new client.
    pub(super) fn ingest(&mut self, now_ns: i64, feedback: &Feedback) -> LossOrigin {
        let counts = (feedback.radio_losses, feedback.queue_losses);
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

    /// Marks all losses reported so far as taken into account.
    pub(super) fn judge(&mut self) {
        self.judged = self.now.unwrap_or(self.judged);
    }

    /// Whether a loss detected now is the radio's: the radio lost packets since the last
    /// loss, at most two round trips ago, and its queue did not overflow.
    pub(super) fn are_the_radios(&mut self, now_ns: i64, srtt_ns: i64) -> bool {
        let ((radio, queue), now) = (self.judged, self.now.unwrap_or(self.judged));
        let recent = self.grown_ns.is_some_and(|at| now_ns - at <= 2 * srtt_ns.max(1));
        let radios = now.0 > radio && now.1 == queue && recent;
        self.judge();
        radios
    }
}
