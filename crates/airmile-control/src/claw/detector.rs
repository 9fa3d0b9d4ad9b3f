//! The client's side: cell or wireline (MobiSys 2017, 4.4, figure 9).

use std::collections::VecDeque;

use super::Bottleneck;

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
        }
    }

    /// Starts from the verdict of an earlier session with the same server (4.4: cached by
    /// its address).
    #[must_use]
    pub fn remembering(mut self, verdict: Bottleneck) -> Self {
        self.now = verdict;
        self
    }

    /// Updates the verdict with one round trip: the PRB pairs allocated to the client (U),
    /// those free for it (N_f: its own and idle ones), and whether the sender had data to
    /// send throughout. Returns the verdict.
    pub fn on_round_trip(&mut self, used_prb: f64, free_prb: f64, busy: bool) -> Bottleneck {
        let before = self.free_prb.replace(free_prb).filter(|_| busy);
        let Some(before) = before.filter(|prb| *prb > 0.0) else {
            // Without data to send, the round trip carries no information.
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

    /// The current verdict.
    #[must_use]
    pub const fn verdict(&self) -> Bottleneck {
        self.now
    }
}
