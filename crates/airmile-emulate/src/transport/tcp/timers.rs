//! The sending half's timers.

use super::sender::Sender;
use super::stats::Limit;

impl Sender {
    /// When to call [`on_timeout`](Self::on_timeout).
    pub(crate) fn poll_timeout(&self) -> Option<i64> {
        let timers = &self.timers;
        let paced = timers.pace_ns.filter(|_| self.limit() == Limit::Pacing);
        [timers.rto_ns, timers.probe_ns, timers.reorder_ns, timers.persist_ns, paced]
            .into_iter()
            .flatten()
            .min()
    }

    /// Processes expired timers. Returns false if the peer is given up.
    pub(crate) fn on_timeout(&mut self, now_ns: i64) -> bool {
        let due = |at_ns: Option<i64>| at_ns.is_some_and(|at_ns| at_ns <= now_ns);
        if due(self.timers.reorder_ns) {
            self.timers.reorder_ns = None;
            if self.find_lost_by_time(now_ns) > 0 && !self.in_recovery() {
                self.begin_recovery(now_ns, 0);
            }
        }
        if due(self.timers.probe_ns) {
            self.timers.probe_ns = None;
            self.probe_due = true;
            // RFC 8985, 7.3: the timeout counts from the probe.
            self.timers.rto_ns = Some(now_ns + self.rtt.rto_ns());
        }
        if due(self.timers.rto_ns) {
            if self.board.is_empty() {
                self.timers.rto_ns = None;
            } else if !self.on_rto(now_ns) {
                return false;
            }
        }
        if due(self.timers.persist_ns) {
            self.timers.persist_ns = None;
            self.timers.persist_backoff = (self.timers.persist_backoff + 1).min(30);
            if self.una + self.rwnd_bytes > self.next {
                self.small_due = true;
            } else {
                self.window_probe_due = true;
                self.stats.window_probes += 1;
            }
        }
        if due(self.timers.pace_ns) {
            self.timers.pace_ns = None;
        }
        true
    }

    /// RFC 9293, 3.8.6.1: with nothing in flight only a probe can discover that the window
    /// has opened.
    pub(super) fn arm_persist(&mut self, now_ns: i64) {
        let shut_out = self.limit() == Limit::ReceiveWindow && self.board.is_empty();
        if !shut_out {
            self.timers.persist_ns = None;
            return;
        }
        if self.timers.persist_ns.is_none() {
            let factor = 1i64 << self.timers.persist_backoff;
            let wait_ns = self.rtt.rto_ns().saturating_mul(factor);
            self.timers.persist_ns = Some(now_ns + wait_ns.min(self.config.rto.max_ns));
        }
    }
}
