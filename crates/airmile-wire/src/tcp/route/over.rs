//! Flows and users that end without another packet: idle ones, and those idle longest when there are too many.

use airmile_model::Termination;

use super::{Change, PacketRouter, RoutedFlow};

/// When there are too many open flows, this share of the maximum ends at once, as finding
/// those idle longest visits all (chosen here).
const CROWD_SHARE: usize = 16;

impl PacketRouter {
    /// Frees entries when too many flows are open: those idle longest end, and users
    /// without flows.
    pub(super) fn make_room(&mut self, changes: &mut Vec<Change>) {
        let Some(most) = self.options.max_flows.filter(|most| self.index.len() >= *most) else {
            return;
        };
        let live = self.flows.iter().enumerate().filter(|(_, flow)| flow.is(RoutedFlow::LIVE));
        let mut by_age: Vec<(i64, u32)> = live.map(|(at, f)| (f.last_ns, at as u32)).collect();
        let over = (self.index.len() - most + 1).max(most / CROWD_SHARE).min(by_age.len());
        if over < by_age.len() {
            by_age.select_nth_unstable(over);
        }
        by_age.truncate(over);
        by_age.sort_unstable();
        for (_, at) in by_age {
            self.end_flow(at, Termination::Crowded, changes);
        }
        for at in 0..self.users.len() {
            let user = self.users.get(at).and_then(Option::as_ref);
            if user.is_some_and(|user| user.open_flows == 0) {
                self.end_user(at as u32, changes);
            }
        }
    }

    /// Ends flows and users that are over, in the order in which they began; returns the
    /// next time at which one may be.
    pub(super) fn sweep(&mut self, now_ns: i64, changes: &mut Vec<Change>) -> i64 {
        let mut soonest = i64::MAX;
        let mut over = Vec::new();
        for (at, flow) in self.flows.iter().enumerate().filter(|(_, f)| f.is(RoutedFlow::LIVE)) {
            let end = flow.last_ns.saturating_add(flow.patience_ns(&self.options));
            if end < now_ns {
                over.push((self.numbers.get(at).copied().unwrap_or(0), at as u32));
            } else {
                soonest = soonest.min(end);
            }
        }
        over.sort_unstable();
        over.iter().for_each(|(_, at)| self.end_flow(*at, Termination::Idle, changes));
        over.clear();
        for (at, user) in self.users.iter().enumerate() {
            let Some(user) = user.as_ref().filter(|user| user.open_flows == 0) else { continue };
            let end = user.last_ns.saturating_add(self.options.user_gap_ns);
            if end < now_ns {
                over.push((user.number, at as u32));
            } else {
                soonest = soonest.min(end);
            }
        }
        over.sort_unstable();
        over.iter().for_each(|(_, at)| self.end_user(*at, changes));
        soonest
    }
}
