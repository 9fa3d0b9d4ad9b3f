//! The client's side: cell or wireline (MobiSys 2017, 4.4, figure 9).

use std::collections::VecDeque;

use super::Bottleneck;

/// How the bottleneck is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectorOptions {
    /// Delta: of what was free, so much must be used a round trip later (the paper: 0.8).
    pub used_share: f64,
    /// Round trips that must agree (the paper: 3).
    pub round_trips: usize,
    /// Of so many verdicts ...
    pub remembered: usize,
    /// ... so many changes mean that both are comparable (chosen here).
    pub changes: usize,
}

impl Default for DetectorOptions {
    fn default() -> Self {
        Self { used_share: 0.8, round_trips: 3, remembered: 8, changes: 3 }
    }
}

/// Holds what was free against what was then used, round trip by round trip.
#[derive(Debug, Clone)]
pub struct BottleneckDetector {
    options: DetectorOptions,
    /// PRB pairs that were free for the client in the round trip before (N_f).
    free_prb: Option<f64>,
    /// Whether less was used than was free, the latest last.
    short: VecDeque<bool>,
    /// Verdicts, the latest last.
    verdicts: VecDeque<Bottleneck>,
    now: Bottleneck,
}

impl BottleneckDetector {
    /// Without a round trip yet: the cell is taken for the bottleneck.
    #[must_use]
    pub fn new(options: DetectorOptions) -> Self {
        Self {
            options,
            free_prb: None,
            short: VecDeque::new(),
            verdicts: VecDeque::new(),
            now: Bottleneck::Cellular,
        }
    }

    /// Begins with a verdict from an earlier session with the same server (4.4: cached by
    /// its address).
    #[must_use]
    pub fn remembering(mut self, verdict: Bottleneck) -> Self {
        self.now = verdict;
        self
    }

    /// Takes a round trip: PRB pairs that were allocated to the client in it (U), those
    /// that were free for it (N_f: its own and idle ones), and whether the sender had
    /// something to send in all of it. Gives the verdict.
    pub fn on_round_trip(&mut self, used_prb: f64, free_prb: f64, busy: bool) -> Bottleneck {
        let before = self.free_prb.replace(free_prb).filter(|_| busy);
        let Some(before) = before.filter(|prb| *prb > 0.0) else {
            // A sender that had nothing to send tells nothing.
            self.short.clear();
            return self.now;
        };
        self.short.push_back(used_prb < self.options.used_share * before);
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

    /// The verdict.
    #[must_use]
    pub const fn verdict(&self) -> Bottleneck {
        self.now
    }
}
