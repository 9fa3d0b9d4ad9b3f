//! Whose losses are (MobiSys 2017, 4.3.2).

use super::Feedback;

/// Losses that the client counts, and what of them has been taken into account.
///
/// Counters and not marks: a report that is lost takes nothing with it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Losses {
    radio: u64,
    queue: u64,
    /// What both were when the last loss was judged.
    judged: (u64, u64),
    /// When the radio's count last grew.
    grown_ns: Option<i64>,
}

impl Losses {
    /// Takes a report's counts; those that go back are a new client's. True: the radio
    /// alone has lost something since the last report.
    pub(super) fn told(&mut self, now_ns: i64, said: &Feedback) -> bool {
        let radio_alone = said.radio_losses > self.radio && said.queue_losses == self.queue;
        if said.radio_losses < self.radio || said.queue_losses < self.queue {
            self.judged = (said.radio_losses, said.queue_losses);
        } else if said.radio_losses > self.radio {
            self.grown_ns = Some(now_ns);
        }
        (self.radio, self.queue) = (said.radio_losses, said.queue_losses);
        radio_alone
    }

    /// What was told by now has been taken into account.
    pub(super) const fn judge(&mut self) {
        self.judged = (self.radio, self.queue);
    }

    /// Whether a loss that shows now is the radio's: it lost packets since the last loss,
    /// not longer than two round trips ago, and its queue did not run over.
    pub(super) fn are_the_radios(&mut self, now_ns: i64, srtt_ns: i64) -> bool {
        let (radio, queue) = self.judged;
        let recent = self.grown_ns.is_some_and(|at| now_ns - at <= 2 * srtt_ns.max(1));
        let radios = self.radio > radio && self.queue == queue && recent;
        self.judge();
        radios
    }
}
