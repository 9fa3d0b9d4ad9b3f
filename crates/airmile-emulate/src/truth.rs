//! What only the base station knows: the queue's state in each TTI.

use airmile_model::{TruthRun, TtiIndex, TtiState};

/// PRB pairs in use by all users, from a TTI on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellUse {
    /// First TTI.
    pub tti: TtiIndex,
    /// TTIs that it holds for.
    pub n_tti: u32,
    /// PRB pairs in use.
    pub n_prb: u16,
    /// Users that have them.
    pub users: u16,
}

/// Writes down a queue's state, run-length coded; every TTI is covered.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueTruth {
    runs: Vec<TruthRun>,
    /// Whether data of the present burst has left.
    departed: bool,
}

impl QueueTruth {
    /// Takes a TTI: bytes at its start and end, and whether data left.
    pub(crate) fn observe(&mut self, tti: i64, before: u64, after: u64, leaves: bool) {
        let state = match (before, after, leaves) {
            (0, ..) => TtiState::Underflow,
            (_, 0, true) => TtiState::LastActive,
            (_, _, true) => TtiState::Active,
            (_, _, false) => TtiState::Contention,
        };
        if state == TtiState::Underflow && self.departed {
            self.end_burst();
        }
        self.departed = (self.departed || leaves) && state != TtiState::Underflow;
        let before_first_tx = Some(state == TtiState::Contention && !self.departed);
        if state == TtiState::LastActive {
            self.departed = false;
        }
        let run =
            TruthRun { tti: TtiIndex(tti), n_tti: 1, queue_bytes: before, state, before_first_tx };
        match self.runs.last_mut() {
            Some(last)
                if (last.state, last.queue_bytes, last.before_first_tx)
                    == (run.state, run.queue_bytes, run.before_first_tx) =>
            {
                last.n_tti += 1;
            }
            _ => self.runs.push(run),
        }
    }

    /// The queue was emptied by an acknowledgement of what was to be sent again:
    /// the burst has ended with its last departure.
    fn end_burst(&mut self) {
        let last = self.runs.iter().rposition(|run| run.state == TtiState::Active);
        let Some(last) = last else { return };
        for run in &mut self.runs[last + 1..] {
            run.before_first_tx = Some(true);
        }
        let run = &mut self.runs[last];
        if run.n_tti == 1 {
            run.state = TtiState::LastActive;
            return;
        }
        run.n_tti -= 1;
        let tti = run.tti.plus(run.n_tti.into());
        let end = TruthRun { tti, n_tti: 1, state: TtiState::LastActive, ..run.clone() };
        self.runs.insert(last + 1, end);
    }

    pub(crate) fn into_runs(self) -> Vec<TruthRun> {
        self.runs
    }
}

/// Throughput time in ms inside `[start, end)`: TTIs with data in the queue
/// from the first departure on, but for the last (spec: BurstTracker, 2.1.1).
#[must_use]
pub fn throughput_time_ms(truth: &[TruthRun], start: TtiIndex, end: TtiIndex) -> f64 {
    let counts = |run: &&TruthRun| match run.state {
        TtiState::Active => true,
        TtiState::Contention => run.before_first_tx != Some(true),
        TtiState::LastActive | TtiState::Underflow => false,
    };
    let overlap = |run: &TruthRun| {
        let run_end = run.tti.plus(run.n_tti.into());
        run_end.min(end).since(run.tti.max(start)).max(0)
    };
    truth.iter().filter(counts).map(overlap).sum::<i64>() as f64
}

/// Appends a TTI to the cell's use.
pub(crate) fn observe_cell(runs: &mut Vec<CellUse>, tti: i64, n_prb: u16, users: u16) {
    match runs.last_mut() {
        Some(last) if (last.n_prb, last.users) == (n_prb, users) => last.n_tti += 1,
        _ => runs.push(CellUse { tti: TtiIndex(tti), n_tti: 1, n_prb, users }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_a_burst_by_hand() {
        let mut truth = QueueTruth::default();
        // Bytes before and after, whether data leaves.
        let ttis = [
            (0, 0, false),   // empty
            (30, 30, false), // waits for the first departure: not counted
            (30, 20, true),  // burst begins
            (20, 20, false), // others are served: counted
            (20, 10, true),
            (10, 0, true), // runs empty: not counted
            (0, 0, false),
            (5, 0, true), // a burst of no length
        ];
        for (tti, (before, after, leaves)) in ttis.into_iter().enumerate() {
            truth.observe(tti as i64, before, after, leaves);
        }
        let runs = truth.into_runs();
        let states: Vec<_> = runs.iter().map(|run| (run.state.as_str(), run.n_tti)).collect();
        let expected = ["UNDERFLOW", "CONTENTION", "ACTIVE", "CONTENTION", "ACTIVE", "LAST_ACTIVE"];
        assert_eq!(states[..6], expected.map(|state| (state, 1)));
        assert_eq!(runs[1].before_first_tx, Some(true));
        assert_eq!(runs[3].before_first_tx, Some(false));
        assert_eq!(throughput_time_ms(&runs, TtiIndex(0), TtiIndex(8)), 3.0);
        assert_eq!(throughput_time_ms(&runs, TtiIndex(3), TtiIndex(4)), 1.0);
    }

    #[test]
    fn a_burst_that_an_acknowledgement_empties_ends_with_its_last_departure() {
        let mut truth = QueueTruth::default();
        let ttis = [(9, 5, true), (9, 5, true), (5, 5, false), (0, 0, false)];
        for (tti, (before, after, leaves)) in ttis.into_iter().enumerate() {
            truth.observe(tti as i64, before, after, leaves);
        }
        let runs = truth.into_runs();
        let got: Vec<_> =
            runs.iter().map(|r| (r.tti.0, r.n_tti, r.state.as_str(), r.before_first_tx)).collect();
        let expected = [
            (0, 1, "ACTIVE", Some(false)),
            (1, 1, "LAST_ACTIVE", Some(false)),
            (2, 1, "CONTENTION", Some(true)),
            (3, 1, "UNDERFLOW", Some(false)),
        ];
        assert_eq!(got, expected);
        assert_eq!(throughput_time_ms(&runs, TtiIndex(0), TtiIndex(4)), 1.0);
    }
}
