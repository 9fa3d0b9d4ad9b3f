//! Assigns the PRBs of a TTI to users.

use crate::scenario::SchedulerKind;

/// A user that could be served in a TTI.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) user: usize,
    /// PRB pairs of a HARQ retransmission that is due: it goes first, with the size of the
    /// first transmission.
    pub(crate) retx_prb: Option<u16>,
    /// PRB pairs that new data needs, in whole groups: a grant is trimmed to
    /// the queue.
    pub(crate) need_prb: u16,
    /// Bytes that a whole TTI would carry.
    pub(crate) rate_bytes: f64,
    /// The same for each resource block group's quality; empty if only the carrier's is
    /// known.
    pub(crate) group_rates: &'a [f64],
}

/// PRB pairs of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrbAllocation {
    pub(crate) user: usize,
    pub(crate) n_prb: u16,
    pub(crate) retx: bool,
    /// The resource block groups, if they matter.
    pub(crate) groups: Vec<u16>,
}

impl PrbAllocation {
    const fn new(user: usize, n_prb: u16, retx: bool) -> Self {
        Self { user, n_prb, retx, groups: Vec::new() }
    }
}

/// Weight of a millisecond in the average throughput of proportional fairness
/// (chosen here: a memory of 100 ms).
const AVERAGE_WEIGHT: f64 = 0.01;

/// PRB pairs of a resource block group, the unit of an allocation of type 0 (TS 36.213,
/// table 7.1.6.1-1). The last group of a cell may be smaller.
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
    /// Weight of a TTI in the averages.
    weight: f64,
    /// User whose turn is first: in round robin, and among equals.
    turn: usize,
}

impl Scheduler {
    pub(crate) fn new(kind: SchedulerKind, n_prb: u16, users: usize, slots_per_ms: i64) -> Self {
        let weight = AVERAGE_WEIGHT / slots_per_ms as f64;
        Self { kind, n_prb, rbg_prb: rbg_prb(n_prb), averages: vec![1.0; users], weight, turn: 0 }
    }

    /// Shares a TTI among the candidates, in order of user.
    pub(crate) fn allocate(&mut self, candidates: &[Candidate]) -> Vec<PrbAllocation> {
        match self.kind {
            SchedulerKind::RoundRobin => self.round_robin(candidates),
            SchedulerKind::PfFrequency => self.by_group(candidates),
            SchedulerKind::WholeTti | SchedulerKind::MaxCi | SchedulerKind::BlindEqual => {
                self.whole_tti(candidates).into_iter().collect()
            }
        }
    }

    /// Accounts for the bytes of each user in the TTI.
    pub(crate) fn account(&mut self, served: &[(usize, u32)]) {
        for average in &mut self.averages {
            *average -= self.weight * *average;
        }
        for &(user, bytes) in served {
            self.averages[user] += self.weight * f64::from(bytes);
        }
    }

    /// Metric of a user whose TTI would carry `rate` bytes.
    fn metric(&self, user: usize, rate: f64) -> f64 {
        let average = self.averages[user].max(1e-3);
        match self.kind {
            SchedulerKind::MaxCi => rate,
            SchedulerKind::BlindEqual => 1.0 / average,
            _ => rate / average,
        }
    }

    /// The candidate with the highest metric; among equals, the first one after the last
    /// winner, so that none is always last.
    fn best<'c, 'r>(
        &self,
        candidates: impl Iterator<Item = &'c Candidate<'r>>,
        rate: impl Fn(&Candidate) -> f64,
    ) -> Option<&'c Candidate<'r>>
    where
        'r: 'c,
    {
        let users = self.averages.len();
        let waits = |c: &Candidate| (c.user + users - self.turn) % users.max(1);
        let metric = |c: &Candidate| self.metric(c.user, rate(c));
        candidates
            .max_by(|a, b| metric(a).total_cmp(&metric(b)).then_with(|| waits(b).cmp(&waits(a))))
    }

    /// The turn passes to the user after this one.
    fn pass_turn(&mut self, user: usize) {
        self.turn = (user + 1) % self.averages.len().max(1);
    }

    /// The user with the highest metric gets the TTI; PRBs that it does not need stay
    /// empty. Retransmissions go first.
    fn whole_tti(&mut self, candidates: &[Candidate]) -> Option<PrbAllocation> {
        let rate = |c: &Candidate| c.rate_bytes;
        let waiting = candidates.iter().filter(|c| c.retx_prb.is_some());
        if let Some(Candidate { user, retx_prb: Some(n_prb), .. }) = self.best(waiting, rate) {
            return Some(PrbAllocation::new(*user, *n_prb, true));
        }
        let chosen = self.best(candidates.iter().filter(|c| c.need_prb > 0), rate)?;
        self.pass_turn(chosen.user);
        Some(PrbAllocation::new(chosen.user, chosen.need_prb, false))
    }

    /// Retransmissions, and the remaining groups.
    fn retransmissions(&self, candidates: &[Candidate]) -> (Vec<PrbAllocation>, Groups) {
        let mut free = self.n_prb;
        let mut allocations = Vec::new();
        for c in candidates {
            if let Some(n_prb) = c.retx_prb.filter(|&n_prb| n_prb <= free) {
                free -= n_prb;
                allocations.push(PrbAllocation::new(c.user, n_prb, true));
            }
        }
        (allocations, Groups::from_free_prb(free, self.n_prb, self.rbg_prb))
    }

    /// Equal shares; an unused part passes to the next user.
    fn round_robin(&mut self, candidates: &[Candidate]) -> Vec<PrbAllocation> {
        let (mut allocations, mut free) = self.retransmissions(candidates);
        let mut waiting: Vec<_> =
            candidates.iter().filter(|c| c.retx_prb.is_none() && c.need_prb > 0).collect();
        let first = waiting.iter().position(|c| c.user >= self.turn).unwrap_or(0);
        waiting.rotate_left(first);
        if let Some(c) = waiting.first() {
            self.pass_turn(c.user);
        }
        let mut left = waiting.len() as u16;
        for c in waiting {
            let n_prb = free.claim((free.count() / left).max(1), c.need_prb);
            left -= 1;
            if n_prb > 0 {
                allocations.push(PrbAllocation::new(c.user, n_prb, false));
            }
        }
        allocations
    }

    /// Proportional fair in frequency: each resource block group goes to the user with the
    /// highest ratio of rate to average, until it has enough.
    fn by_group(&mut self, candidates: &[Candidate]) -> Vec<PrbAllocation> {
        let (mut allocations, free) = self.retransmissions(candidates);
        let first_new = allocations.len();
        let mut waiting: Vec<_> =
            candidates.iter().filter(|c| c.retx_prb.is_none() && c.need_prb > 0).collect();
        for (group, prb) in free.each(self.n_prb.div_ceil(self.rbg_prb)) {
            let rate = |c: &Candidate| {
                c.group_rates.get(usize::from(group)).copied().unwrap_or(c.rate_bytes)
            };
            let Some(chosen) = self.best(waiting.iter().copied(), rate) else { break };
            let user = chosen.user;
            let new = &mut allocations[first_new..];
            let n_prb = match new.iter_mut().find(|a| a.user == user) {
                Some(has) => {
                    has.n_prb += prb;
                    has.groups.push(group);
                    has.n_prb
                }
                None => {
                    let mut first = PrbAllocation::new(user, prb, false);
                    first.groups.push(group);
                    allocations.push(first);
                    prb
                }
            };
            if n_prb >= chosen.need_prb {
                waiting.retain(|c| c.user != user);
            }
        }
        if let Some(first) = allocations.get(first_new) {
            self.pass_turn(first.user);
        }
        allocations
    }
}

/// Unassigned resource block groups. The position of retransmissions does not matter: they
/// take whole groups from the end.
#[derive(Debug, Clone, Copy)]
struct Groups {
    /// Groups of full size, and PRB pairs of one.
    full: u16,
    prb: u16,
    /// PRB pairs of the cell's last group if it is smaller and free (TS 36.213, 7.1.6.1); 0
    /// otherwise.
    last_prb: u16,
}

impl Groups {
    const fn from_free_prb(free: u16, n_prb_cell: u16, prb: u16) -> Self {
        let rest = n_prb_cell % prb;
        // The number of free PRB pairs shows whether the last group is among them.
        let last_prb = if free % prb == rest { rest } else { 0 };
        Self { full: free / prb, prb, last_prb }
    }

    const fn count(self) -> u16 {
        self.full + (self.last_prb > 0) as u16
    }

    /// Claims up to `groups` groups with at most `need` PRB pairs; returns their PRB pairs.
    fn claim(&mut self, groups: u16, need: u16) -> u16 {
        let full = groups.min(self.full).min(need.div_ceil(self.prb));
        self.full -= full;
        let mut n_prb = full * self.prb;
        if full < groups && n_prb < need {
            n_prb += std::mem::take(&mut self.last_prb);
        }
        n_prb.min(need)
    }

    /// Index and PRB pairs of each group, in a cell of `groups_cell` groups.
    fn each(self, groups_cell: u16) -> impl Iterator<Item = (u16, u16)> {
        let last = (self.last_prb > 0).then(|| (groups_cell.saturating_sub(1), self.last_prb));
        (0..self.full).map(move |group| (group, self.prb)).chain(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(user: usize, retx_prb: Option<u16>, need_prb: u16) -> Candidate<'static> {
        Candidate { user, retx_prb, need_prb, rate_bytes: 1_000.0, group_rates: &[] }
    }

    fn check(kind: SchedulerKind, candidates: &[Candidate], expected: &[(usize, u16, bool)]) {
        let mut scheduler = Scheduler::new(kind, 50, 4, 1);
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
    fn the_strongest_has_it_all_under_max_ci() {
        let strong = Candidate { rate_bytes: 2_000.0, ..candidate(1, None, 50) };
        check(SchedulerKind::MaxCi, &[candidate(0, None, 50), strong], &[(1, 50, false)]);
    }

    #[test]
    fn round_robin_hands_on_what_is_not_needed() {
        let kind = SchedulerKind::RoundRobin;
        let three = [candidate(0, None, 6), candidate(1, None, 50), candidate(2, None, 50)];
        // 17 groups: 2, then 7 of the 15 left, then 7 and the last one of 2 PRB pairs.
        check(kind, &three, &[(0, 6, false), (1, 21, false), (2, 23, false)]);
        let retx = [candidate(0, Some(30), 50), candidate(1, None, 50)];
        check(kind, &retx, &[(0, 30, true), (1, 20, false)]);
        // A retransmission with the last group leaves only whole ones.
        let retx = [candidate(0, Some(20), 50), candidate(1, None, 50)];
        check(kind, &retx, &[(0, 20, true), (1, 30, false)]);
    }

    #[test]
    fn groups_go_to_who_is_best_on_them() {
        // 16 groups of 3 PRB pairs and one of 2; user 1 is better on every second one.
        let rates: Vec<f64> = (0..17).map(|g| if g % 2 == 0 { 500.0 } else { 1_500.0 }).collect();
        let picky = Candidate { group_rates: &rates, ..candidate(1, None, 50) };
        let kind = SchedulerKind::PfFrequency;
        check(kind, &[candidate(0, None, 50), picky], &[(0, 26, false), (1, 24, false)]);
        check(kind, &[candidate(0, None, 6), picky], &[(0, 6, false), (1, 44, false)]);
        check(kind, &[candidate(0, Some(20), 50), picky], &[(0, 20, true), (1, 30, false)]);
    }

    /// Turns of two users of unequal rates within 1000 TTIs.
    fn turns(kind: SchedulerKind) -> [usize; 2] {
        let mut scheduler = Scheduler::new(kind, 50, 2, 1);
        let weak = Candidate { rate_bytes: 500.0, ..candidate(0, None, 50) };
        let both = [weak, candidate(1, None, 50)];
        let mut turns = [0; 2];
        for _ in 0..1_000 {
            let user = scheduler.allocate(&both)[0].user;
            turns[user] += 1;
            scheduler.account(&[(user, if user == 0 { 500 } else { 1_000 })]);
        }
        turns
    }

    #[test]
    fn equal_time_or_equal_throughput() {
        let near = |got: [usize; 2], expected: [usize; 2]| {
            assert!(got[0].abs_diff(expected[0]) <= 10, "{got:?} {expected:?}");
        };
        near(turns(SchedulerKind::WholeTti), [500, 500]);
        near(turns(SchedulerKind::BlindEqual), [667, 333]);
        near(turns(SchedulerKind::MaxCi), [0, 1_000]);
    }

    /// PRB pairs that a TTI assigns to users who want the whole cell.
    fn used(kind: SchedulerKind, n_prb: u16, users: usize) -> u16 {
        let all: Vec<_> = (0..users).map(|user| candidate(user, None, n_prb)).collect();
        let given = Scheduler::new(kind, n_prb, users, 1).allocate(&all);
        given.iter().map(|allocation| allocation.n_prb).sum()
    }

    #[test]
    fn the_last_smaller_group_is_used() {
        // TS 36.213, 7.1.6.1: the last group has the remaining PRB pairs.
        for kind in [SchedulerKind::RoundRobin, SchedulerKind::PfFrequency] {
            for n_prb in [6, 15, 25, 50, 75, 100] {
                for users in 1..=3 {
                    assert_eq!(used(kind, n_prb, users), n_prb, "{kind:?} {n_prb} {users}");
                }
            }
        }
    }

    #[test]
    fn equals_share_alike() {
        // The metric of max C/I cannot distinguish equals; the others can after a TTI.
        let four: Vec<_> = (0..4).map(|user| candidate(user, None, 50)).collect();
        for kind in [
            SchedulerKind::MaxCi,
            SchedulerKind::WholeTti,
            SchedulerKind::BlindEqual,
            SchedulerKind::PfFrequency,
            SchedulerKind::RoundRobin,
        ] {
            let mut scheduler = Scheduler::new(kind, 50, 4, 1);
            let mut prbs = [0_u32; 4];
            for _ in 0..1_000 {
                let given = scheduler.allocate(&four);
                let served: Vec<_> =
                    given.iter().map(|a| (a.user, 20 * u32::from(a.n_prb))).collect();
                given.iter().for_each(|a| prbs[a.user] += u32::from(a.n_prb));
                scheduler.account(&served);
            }
            assert!(prbs.iter().all(|n| n.abs_diff(12_500) <= 150), "{kind:?}: {prbs:?}");
        }
    }
}
