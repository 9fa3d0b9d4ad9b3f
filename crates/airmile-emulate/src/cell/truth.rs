//! Ground truth known only to the base station, TTI by TTI: the queue's state, each user's
//! share of the cell, and its capacity. Run-length coded.

use airmile_model::{Direction, TruthRun, TtiIndex, TtiState};

use crate::rrc::RrcRun;

/// Result of [`Cell::into_truth`](super::Cell::into_truth).
#[derive(Debug, Clone, PartialEq)]
pub struct CellTruth {
    /// The phone's queue at the base station.
    pub dl: Vec<TruthRun>,
    /// The phone's own queue.
    pub ul: Vec<TruthRun>,
    /// The primary carrier's downlink use by all users.
    pub cell_use: Vec<CellUse>,
    /// The secondary carrier's use; empty if there is none.
    pub secondary_use: Vec<CellUse>,
    /// The allocation of each user, on all carriers and in both directions.
    pub allocated: Vec<Allocated>,
    /// The cell's capacity for the phone.
    pub capacity: Vec<Capacity>,
    /// The phone's RRC states.
    pub rrc: Vec<RrcRun>,
    /// The queues of each leg of a split bearer; empty for a single cell. For a split
    /// bearer `dl` and `ul` cover PDCP and both legs, in NR's slots; data by carrier is in
    /// that carrier's own TTIs.
    pub legs: Vec<LegTruth>,
}

/// The queues of a leg of a split bearer.
#[derive(Debug, Clone, PartialEq)]
pub struct LegTruth {
    /// Index of the leg's cell, as in records.
    pub cell: u8,
    /// Numerology of its TTIs.
    pub numerology: u8,
    /// The leg's queue at the base station.
    pub dl: Vec<TruthRun>,
    /// The leg's queue in the phone.
    pub ul: Vec<TruthRun>,
}

/// PRB pairs of a carrier's downlink in use by all users, from a TTI on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellUse {
    /// First TTI.
    pub tti: TtiIndex,
    /// Length in TTIs.
    pub n_tti: u32,
    /// PRB pairs in use.
    pub n_prb: u16,
    /// Number of users that share them.
    pub users: u16,
}

/// PRB pairs of a user, from a TTI on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocated {
    /// First TTI.
    pub tti: TtiIndex,
    /// Length in TTIs.
    pub n_tti: u32,
    /// The direction.
    pub dir: Direction,
    /// Carrier; 0 is the primary.
    pub carrier: u8,
    /// The user: 0 is the measured phone, then users with transports, then users with byte
    /// traffic, carrier by carrier.
    pub user: u16,
    /// PRB pairs.
    pub n_prb: u16,
}

/// The cell's capacity for the measured phone, from a TTI on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// First TTI.
    pub tti: TtiIndex,
    /// Length in TTIs.
    pub n_tti: u32,
    /// The direction.
    pub dir: Direction,
    /// Carrier; 0 is the primary.
    pub carrier: u8,
    /// Size of a transport block on all PRB pairs that the phone can be given, at its first
    /// transmission with the MCS of link adaptation, whichever user has those PRB pairs; 0 in a
    /// TTI that carries none in this direction.
    pub bytes: u32,
}

/// Records the allocation of PRB pairs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allocations {
    runs: Vec<Allocated>,
    /// Indices in `runs` of those that extend to the previous TTI, and to this one.
    before: Vec<usize>,
    now: Vec<usize>,
}

impl Allocations {
    /// Starts a TTI.
    pub(crate) fn begin(&mut self) {
        std::mem::swap(&mut self.before, &mut self.now);
        self.now.clear();
    }

    /// Adds a user's PRB pairs in this TTI.
    pub(crate) fn observe(
        &mut self,
        tti: i64,
        dir: Direction,
        (carrier, user): (u8, usize),
        n_prb: u16,
    ) {
        let user = u16::try_from(user).unwrap_or(u16::MAX);
        let one = Allocated { tti: TtiIndex(tti), n_tti: 1, dir, carrier, user, n_prb };
        let goes_on = |&&at: &&usize| {
            let run = &self.runs[at];
            (run.dir, run.carrier, run.user, run.n_prb) == (dir, carrier, user, n_prb)
        };
        if let Some(&at) = self.before.iter().find(goes_on) {
            self.runs[at].n_tti += 1;
            self.now.push(at);
        } else {
            self.now.push(self.runs.len());
            self.runs.push(one);
        }
    }

    pub(crate) fn into_runs(self) -> Vec<Allocated> {
        self.runs
    }
}

/// Records the capacity of a carrier in one direction.
#[derive(Debug, Clone)]
pub(crate) struct Capacities {
    dir: Direction,
    carrier: u8,
    runs: Vec<Capacity>,
}

impl Capacities {
    pub(crate) const fn new(dir: Direction, carrier: u8) -> Self {
        Self { dir, carrier, runs: Vec::new() }
    }

    /// Adds a TTI.
    pub(crate) fn observe(&mut self, tti: i64, bytes: u32) {
        match self.runs.last_mut() {
            Some(last) if last.bytes == bytes => last.n_tti += 1,
            _ => {
                let Self { dir, carrier, .. } = *self;
                self.runs.push(Capacity { tti: TtiIndex(tti), n_tti: 1, dir, carrier, bytes });
            }
        }
    }

    /// Joins all directions and carriers in time order.
    pub(crate) fn join(all: impl Iterator<Item = Self>) -> Vec<Capacity> {
        let mut runs: Vec<Capacity> = all.flat_map(|one| one.runs).collect();
        runs.sort_by_key(|run| run.tti);
        runs
    }
}

/// Records a queue's state, run-length coded; every TTI is covered.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueTruth {
    runs: Vec<TruthRun>,
    /// Whether data of the present burst has left the queue.
    departed: bool,
}

impl QueueTruth {
    /// Adds a TTI: bytes at its start and end, and whether data left.
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

    /// The queue was emptied by an acknowledgement of data due for retransmission: the
    /// burst ends with its last departure.
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

/// Throughput time in ms inside `[start, end)`: TTIs with data in the queue from the first
/// departure on, except for the last (BurstTracker, 2.1.1).
#[must_use]
pub fn throughput_time_ms(truth: &[TruthRun], start: TtiIndex, end: TtiIndex) -> f64 {
    let counts = |run: &&TruthRun| match run.state {
        TtiState::Active => true,
        TtiState::Contention => run.before_first_tx != Some(true),
        TtiState::LastActive | TtiState::Underflow => false,
    };
    let run_end = |run: &TruthRun| run.tti.plus(run.n_tti.into());
    let first = truth.partition_point(|run| run_end(run) <= start);
    let touching = truth.iter().skip(first).take_while(|run| run.tti < end);
    let overlap = |run: &TruthRun| run_end(run).min(end).since(run.tti.max(start));
    touching.filter(counts).map(overlap).sum::<i64>() as f64
}

/// Appends a TTI to a carrier's use.
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
    fn allocations_go_on_while_they_are_the_same() {
        let mut all = Allocations::default();
        let (dl, ul) = (Direction::Dl, Direction::Ul);
        // By TTI: direction, user, PRB pairs.
        let ttis: [&[(Direction, usize, u16)]; 5] = [
            &[(ul, 0, 4), (dl, 0, 50)],
            &[(dl, 0, 50)],
            &[(dl, 1, 20), (dl, 0, 30)],
            &[],
            &[(dl, 0, 30), (dl, 1, 20)],
        ];
        for (tti, served) in ttis.into_iter().enumerate() {
            all.begin();
            for &(dir, user, n_prb) in served {
                all.observe(tti as i64, dir, (0, user), n_prb);
            }
        }
        let runs = all.into_runs();
        let got: Vec<_> = runs.iter().map(|r| (r.tti.0, r.n_tti, r.dir, r.user, r.n_prb)).collect();
        let expected = [
            (0, 1, ul, 0, 4),
            (0, 2, dl, 0, 50),
            (2, 1, dl, 1, 20),
            (2, 1, dl, 0, 30),
            (4, 1, dl, 0, 30),
            (4, 1, dl, 1, 20),
        ];
        assert_eq!(got, expected);
    }

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
