//! The client's side: cell or wireline (MobiSys 2017, 4.4, figure 9).

use std::collections::VecDeque;

use super::Bottleneck;

/// Time for the scheduler and HARQ on top of the minimum round trip, in ns (chosen here: two
/// retransmissions). A window for the minimum round trip alone would leave the cell without data
/// whenever a round trip is longer.
const HARQ_NS: i64 = 16_000_000;
/// Time for which RLC holds back what follows a loss, in ns (chosen here: a common t-Reordering,
/// TS 36.331, 6.3.2). In it there are no ACKs, and the cell drains a window that does not cover it.
const REORDERING_NS: i64 = 40_000_000;

/// Parameters of the bottleneck detection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectorOptions {
    /// Delta: the share of the free PRBs that must be used one round trip later (the paper:
    /// 0.8).
    pub used_share: f64,
    /// Round trips that must agree (the paper: 3).
    pub round_trips: usize,
    /// Number of recent verdicts considered.
    pub remembered: usize,
    /// This many changes among them mean that both are comparable (chosen here).
    pub changes: usize,
}

impl Default for DetectorOptions {
    fn default() -> Self {
        Self { used_share: 0.8, round_trips: 3, remembered: 8, changes: 3 }
    }
}

/// Compares, for each round trip, the PRBs that were free with those then used.
#[derive(Debug, Clone)]
pub struct BottleneckDetector {
    options: DetectorOptions,
    /// PRB pairs that were free for the client in the previous round trip (N_f).
    free_prb: Option<f64>,
    /// For each recent round trip, latest last: whether less was used than was free.
    short: VecDeque<bool>,
    /// Verdicts, the latest last.
    verdicts: VecDeque<Bottleneck>,
    now: Bottleneck,
    /// The radio's losses at the start of the current round trip and of the one before.
    losses_before: [u64; 2],
}

impl BottleneckDetector {
    /// No round trip yet: the bottleneck is assumed to be the cell.
    #[must_use]
    pub fn new(options: DetectorOptions) -> Self {
        Self {
            options,
            free_prb: None,
            short: VecDeque::new(),
            verdicts: VecDeque::new(),
            now: Bottleneck::Cellular,
            losses_before: [0; 2],
        }
    }

    /// Updates the verdict with one round trip: the PRB pairs allocated to the client (U),
    /// those free for it (N_f: its own and idle ones), whether the sender had data to send
    /// throughout, and the radio's losses so far. Returns the verdict.
    ///
    /// If the radio lost packets in this or the previous round trip, a cell that was not
    /// filled carries no information: RLC holds back what follows a loss, and without its
    /// ACKs the sender waits.
    pub fn on_round_trip(
        &mut self,
        used_prb: f64,
        free_prb: f64,
        busy: bool,
        radio_losses: u64,
    ) -> Bottleneck {
        let is_lossy = self.is_lossy(radio_losses);
        self.losses_before = [radio_losses, self.losses_before[0]];
        let before = self.free_prb.replace(free_prb).filter(|_| busy);
        let Some(before) = before.filter(|prb| *prb > 0.0) else {
            // Without data to send, the round trip carries no information.
            self.short.clear();
            return self.now;
        };
        let short = used_prb < self.options.used_share * before;
        if short && is_lossy {
            return self.now;
        }
        self.short.push_back(short);
        if self.short.len() > self.options.round_trips.max(1) {
            self.short.pop_front();
        }
        if self.short.len() < self.options.round_trips.max(1) {
            return self.now;
        }
        let verdict = match (self.short.iter().all(|short| *short), self.short.contains(&true)) {
            (true, _) => Bottleneck::Wireline,
            (_, false) => Bottleneck::Cellular,
            _ => return self.now,
        };
        self.judge(verdict)
    }

    /// Whether the radio lost packets in the current round trip or the one before.
    const fn is_lossy(&self, radio_losses: u64) -> bool {
        radio_losses > self.losses_before[1]
    }

    /// W_claw in bytes for a rate and the minimum round trip (equation 12), from the radio's
    /// losses so far.
    #[must_use]
    pub fn window_bytes(&self, rate_bps: f64, round_trip_ns: i64, radio_losses: u64) -> f64 {
        // At most 1.5 times the window without losses: more would itself look like a queue.
        let most_ns = (round_trip_ns.saturating_add(HARQ_NS) / 2).max(0);
        let reordering_ns =
            if self.is_lossy(radio_losses) { REORDERING_NS.min(most_ns) } else { 0 };
        (rate_bps * (round_trip_ns + HARQ_NS + reordering_ns) as f64 / 8e9).max(0.0)
    }

    fn judge(&mut self, verdict: Bottleneck) -> Bottleneck {
        self.verdicts.push_back(verdict);
        if self.verdicts.len() > self.options.remembered.max(1) {
            self.verdicts.pop_front();
        }
        let changes =
            self.verdicts.iter().zip(self.verdicts.iter().skip(1)).filter(|(a, b)| a != b).count();
        self.now = if changes >= self.options.changes { Bottleneck::Unclear } else { verdict };
        self.now
    }

    /// The current verdict.
    #[must_use]
    pub const fn verdict(&self) -> Bottleneck {
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn wireline_or_cell() {
        use Bottleneck::{Cellular, Unclear, Wireline};
        let check = |round_trips: &[(f64, f64, bool)], expected: Bottleneck| {
            let mut detector = BottleneckDetector::new(DetectorOptions::default());
            for (used, free, busy) in round_trips {
                detector.on_round_trip(*used, *free, *busy, 0);
            }
            assert_eq!(detector.verdict(), expected, "{round_trips:?}");
        };
        let (short, used) = ((100.0, 1_000.0, true), (900.0, 1_000.0, true));
        check(&[], Cellular);
        check(&[short; 3], Cellular);
        // The first round trip has no predecessor: three comparisons need four round trips.
        check(&[short; 4], Wireline);
        check(&[used; 4], Cellular);
        check(&[short, short, short, used, short], Cellular);
        // A pause carries no information.
        check(&[short, short, (0.0, 1_000.0, false), short, short], Cellular);
        let now_this_now_that = [[short; 4], [used; 4], [short; 4], [used; 4]].concat();
        check(&now_this_now_that, Unclear);
    }

    /// A round trip with a radio loss, and the one after it, are no evidence for the wireline,
    /// and need a larger window.
    #[test]
    fn radio_losses_are_no_evidence_for_the_wireline() {
        let check = |losses: &[u64], expected: Bottleneck| {
            let mut detector = BottleneckDetector::new(DetectorOptions::default());
            for n in losses {
                detector.on_round_trip(100.0, 1_000.0, true, *n);
            }
            assert_eq!(detector.verdict(), expected, "{losses:?}");
        };
        check(&[7, 7, 7, 7, 7], Bottleneck::Wireline);
        check(&[1, 2, 3, 4, 5, 6, 7, 8, 9], Bottleneck::Cellular);
        check(&[0, 0, 1, 1, 1, 1], Bottleneck::Wireline);
        check(&[0, 0, 1, 1, 2, 2, 3, 3], Bottleneck::Cellular);
        let mut detector = BottleneckDetector::new(DetectorOptions::default());
        let window =
            |detector: &BottleneckDetector, losses| detector.window_bytes(8e6, 84 * MS, losses);
        assert!((window(&detector, 0) - 100_000.0).abs() < 1.0);
        assert!((window(&detector, 1) - 140_000.0).abs() < 1.0);
        detector.on_round_trip(1.0, 1.0, true, 1);
        assert!((window(&detector, 1) - 140_000.0).abs() < 1.0);
        detector.on_round_trip(1.0, 1.0, true, 1);
        assert!((window(&detector, 1) - 100_000.0).abs() < 1.0);
    }
}
