//! Who gets the PRBs of a TTI.

use crate::scenario::SchedulerKind;

/// A user that could be served in a TTI.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) user: usize,
    /// PRB pairs of a HARQ retransmission that is due: it goes first, and has
    /// the size of the first transmission.
    pub(crate) retx_prb: Option<u16>,
    /// PRB pairs that new data needs, in whole groups: a grant is trimmed to
    /// the queue.
    pub(crate) need_prb: u16,
    /// Bytes that a whole TTI would carry.
    pub(crate) rate_bytes: f64,
}

/// PRB pairs for a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allocation {
    pub(crate) user: usize,
    pub(crate) n_prb: u16,
    pub(crate) retx: bool,
}

/// Weight of a TTI in the average throughput of proportional fairness (chosen
/// here: a memory of 100 ms).
const AVERAGE_WEIGHT: f64 = 0.01;

/// PRB pairs of a resource block group: what an allocation of type 0 is made of
/// (TS 36.213, table 7.1.6.1-1). The last group of a cell may be smaller.
pub(crate) const fn rbg_prb(n_prb_cell: u16) -> u16 {
    match n_prb_cell {
        0..=10 => 1,
        11..=26 => 2,
        27..=63 => 3,
        _ => 4,
    }
}

/// A downlink scheduler.
#[derive(Debug, Clone)]
pub(crate) struct Scheduler {
    kind: SchedulerKind,
    n_prb: u16,
    rbg_prb: u16,
    /// Average bytes per TTI of each user.
    averages: Vec<f64>,
    /// User whose turn is first (round robin).
    turn: usize,
}

impl Scheduler {
    pub(crate) fn new(kind: SchedulerKind, n_prb: u16, users: usize) -> Self {
        Self { kind, n_prb, rbg_prb: rbg_prb(n_prb), averages: vec![1.0; users], turn: 0 }
    }

    /// Shares a TTI among the candidates.
    pub(crate) fn allocate(&mut self, candidates: &[Candidate]) -> Vec<Allocation> {
        match self.kind {
            SchedulerKind::WholeTti => self.whole_tti(candidates).into_iter().collect(),
            SchedulerKind::RoundRobin => self.round_robin(candidates),
        }
    }

    /// Tells the bytes that each user got in the TTI.
    pub(crate) fn account(&mut self, served_bytes: impl Fn(usize) -> u32) {
        for (user, average) in self.averages.iter_mut().enumerate() {
            let served = f64::from(served_bytes(user));
            *average += AVERAGE_WEIGHT * (served - *average);
        }
    }

    /// Proportional fair: the user whose rate is highest over its average has
    /// the TTI; what it does not need stays empty. Retransmissions go first.
    fn whole_tti(&self, candidates: &[Candidate]) -> Option<Allocation> {
        let metric = |c: &&Candidate| c.rate_bytes / self.averages[c.user].max(1e-3);
        let better = |a: &&Candidate, b: &&Candidate| metric(a).total_cmp(&metric(b));
        let waiting = candidates.iter().filter(|c| c.retx_prb.is_some());
        if let Some(Candidate { user, retx_prb: Some(n_prb), .. }) = waiting.max_by(better) {
            return Some(Allocation { user: *user, n_prb: *n_prb, retx: true });
        }
        let chosen = candidates.iter().filter(|c| c.need_prb > 0).max_by(better)?;
        Some(Allocation { user: chosen.user, n_prb: chosen.need_prb, retx: false })
    }

    /// Equal shares; what one does not need passes to the next.
    fn round_robin(&mut self, candidates: &[Candidate]) -> Vec<Allocation> {
        let mut free = self.n_prb;
        let mut allocations = Vec::new();
        for c in candidates {
            if let Some(n_prb) = c.retx_prb.filter(|&n_prb| n_prb <= free) {
                free -= n_prb;
                allocations.push(Allocation { user: c.user, n_prb, retx: true });
            }
        }
        let mut waiting: Vec<_> =
            candidates.iter().filter(|c| c.retx_prb.is_none() && c.need_prb > 0).collect();
        let first = waiting.iter().position(|c| c.user >= self.turn).unwrap_or(0);
        waiting.rotate_left(first);
        self.turn = waiting.first().map_or(0, |c| c.user + 1);
        let mut left = waiting.len() as u16;
        for c in waiting {
            let share = (free / left / self.rbg_prb).max(1) * self.rbg_prb;
            let n_prb = c.need_prb.min(share).min(free);
            left -= 1;
            free -= n_prb;
            if n_prb > 0 {
                allocations.push(Allocation { user: c.user, n_prb, retx: false });
            }
        }
        allocations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(user: usize, retx_prb: Option<u16>, need_prb: u16) -> Candidate {
        Candidate { user, retx_prb, need_prb, rate_bytes: 1_000.0 }
    }

    fn check(kind: SchedulerKind, candidates: &[Candidate], expected: &[(usize, u16, bool)]) {
        let mut scheduler = Scheduler::new(kind, 50, 4);
        let got: Vec<_> =
            scheduler.allocate(candidates).iter().map(|a| (a.user, a.n_prb, a.retx)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn one_user_holds_a_tti() {
        let kind = SchedulerKind::WholeTti;
        check(kind, &[candidate(0, None, 7)], &[(0, 7, false)]);
        check(kind, &[candidate(0, None, 50), candidate(1, Some(20), 50)], &[(1, 20, true)]);
        check(kind, &[candidate(0, None, 0)], &[]);
    }

    #[test]
    fn round_robin_hands_on_what_is_not_needed() {
        let kind = SchedulerKind::RoundRobin;
        let three = [candidate(0, None, 6), candidate(1, None, 50), candidate(2, None, 50)];
        check(kind, &three, &[(0, 6, false), (1, 21, false), (2, 21, false)]);
        let retx = [candidate(0, Some(30), 50), candidate(1, None, 50)];
        check(kind, &retx, &[(0, 30, true), (1, 18, false)]);
    }

    #[test]
    fn the_starved_user_comes_next() {
        let mut scheduler = Scheduler::new(SchedulerKind::WholeTti, 50, 2);
        let both = [candidate(0, None, 50), candidate(1, None, 50)];
        let mut turns = [0; 2];
        for _ in 0..1_000 {
            let user = scheduler.allocate(&both)[0].user;
            turns[user] += 1;
            scheduler.account(|u| if u == user { 1_000 } else { 0 });
        }
        assert_eq!(turns, [500, 500]);
    }
}
