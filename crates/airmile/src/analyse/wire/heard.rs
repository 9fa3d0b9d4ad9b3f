//! A phone's path and waits by captures at both ends. Without time stamps only the server's packets
//! show which acknowledgements it had received; with them, losses that the phone did not see.

use std::collections::HashSet;
use std::ptr;

use airmile_wire::attribute::{ByteBins, LostSegment, PathQueue, WaitTimeline, base_delay_ns};
use airmile_wire::clocks::ClockLine;

use super::phone::Phone;
use super::server_side::{Index, ServerSide};
use super::{ONE_HOST_SHARE, on_reference, waits_by};
use crate::fact::Restarter;

/// If the server's own packets show less than this share of the slow starts after idle time that
/// the phone sees, another host causes them (chosen here).
const OWN_RESTARTS: f64 = 0.34;

/// Queueing between phone and server, as captures at both show it.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub(super) down: PathQueue,
    pub(super) up: PathQueue,
    /// Delay of a packet from the server to the phone without a queue, in nanoseconds.
    pub(super) base_ns: i64,
}

impl Paths {
    /// The paths from and to a server whose clock differs by `line`.
    pub(super) fn between(phone: &Phone, server: &Phone, line: Option<&ClockLine>) -> Self {
        let set = |ns| on_reference(line, ns);
        let mut passages = phone.passages(server);
        passages.iter_mut().for_each(|one| one.sent_ns = set(one.sent_ns));
        let delays = passages.iter().map(|one| one.arrived_ns.saturating_sub(one.sent_ns));
        let base_ns = base_delay_ns(delays).unwrap_or(0);
        let lost = phone.lost_datagrams(server).into_iter().map(set).collect();
        let arrived = passages.len();
        let down = PathQueue::new(passages).with_lost(base_ns, lost, arrived);
        let mut upward = phone.passages_up(server);
        for one in &mut upward {
            one.arrived_ns = set(one.arrived_ns).saturating_add(base_ns);
        }
        Self { down, up: PathQueue::new(upward), base_ns }
    }
}

/// What a server's packets show of the phone's connections with time stamps, or of those without.
#[derive(Debug)]
pub(super) struct Heard {
    waits: WaitTimeline,
    /// Segments that it sent again, as of their arrival without a queue.
    pub(super) lost: Vec<LostSegment>,
    /// Their payload that came to the phone.
    shared: ByteBins,
    /// What else the server sent to the same address, as on the other connections, or behind a translation.
    not_at_phone: ByteBins,
}

impl Heard {
    /// The waits of `phone`'s senders by the capture of a `server`, whose clock differs by `line`
    /// and whose packets take `base_ns` to the phone. By time stamps the phone knows all but what was lost
    /// with all that followed it, so that connections with and without are apart; none if they share no connection.
    pub(super) fn of(
        phone: &Phone,
        server: &Phone,
        line: Option<&ClockLine>,
        base_ns: i64,
    ) -> Vec<Self> {
        let by = |losses_alone: bool| {
            let mut pairs = phone.same_connections(server);
            pairs.retain(|(mine, there)| {
                mine.story.is_stamped() == losses_alone
                    && is_whole(mine, there)
                    // What was sent again for a late acknowledgement arrived twice.
                    && (!losses_alone || 2 * mine.down.again_bytes() <= there.down.again_bytes())
            });
            let arrival = |ns| on_reference(line, ns).saturating_add(base_ns);
            let lost = pairs.iter().flat_map(|(_, there)| there.story.lost());
            let lost = lost.map(|one| one.at(arrival)).collect();
            let shared = ByteBins::sum_of(pairs.iter().map(|(mine, _)| &mine.received));
            let known: HashSet<_> = pairs.iter().map(|(_, there)| ptr::from_ref(*there)).collect();
            let others =
                server.connections.iter().filter(|one| !known.contains(&ptr::from_ref(*one)));
            let mut not_at_phone = ByteBins::sum_of(others.map(|one| &one.received));
            line.iter().for_each(|line| not_at_phone.set_clock(line));
            (shared.total() > 0).then(|| Self {
                waits: phone.waits.told_by(&waits_by(server, line).later(base_ns), losses_alone),
                lost,
                shared,
                not_at_phone: not_at_phone.later(base_ns),
            })
        };
        [false, true].into_iter().filter_map(by).collect()
    }

    /// Whether it shows almost all data of the phone, of `all_bytes`.
    pub(super) fn has_most(&self, all_bytes: u64) -> bool {
        self.shared.total() as f64 >= ONE_HOST_SHARE * all_bytes as f64
    }

    /// What the senders waited for in a span in which `all_bytes` came to the phone, if the server's
    /// capture has almost all of them, and little else to the same address.
    pub(super) fn waits(&self, from_ns: i64, to_ns: i64, all_bytes: u64) -> Option<&WaitTimeline> {
        let shared = self.shared.within(from_ns, to_ns);
        let sent = shared.saturating_add(self.not_at_phone.within(from_ns, to_ns));
        let is_most = shared as f64 >= ONE_HOST_SHARE * all_bytes.max(sent) as f64;
        (shared > 0 && is_most).then_some(&self.waits)
    }

    /// Moves it to the reference clock of the line.
    pub(super) fn set_clock(&mut self, line: &ClockLine) {
        self.waits.set_clock(line);
        self.shared.set_clock(line);
        self.not_at_phone.set_clock(line);
    }
}

/// Whether both captures have almost all of a connection.
fn is_whole(mine: &ServerSide, there: &ServerSide) -> bool {
    let [mine, there] = [mine, there].map(|one| one.received.total());
    mine.min(there) as f64 >= ONE_HOST_SHARE * mine.max(there) as f64
}

impl Phone {
    /// Whether the ports of servers on which its connections restart have other connections in another
    /// capture: something before it ends them.
    pub(super) fn restarts_before(&self, other: &Self) -> bool {
        let index = Index::of(other);
        let restart = || self.connections.iter().filter(|c| !c.story.restarts_ns().is_empty());
        let at: HashSet<_> = restart().filter_map(|c| Some(c.ends?[1])).collect();
        let has_port = |one: &ServerSide| one.ends.is_some_and(|ends| at.contains(&ends[1]));
        other.connections.iter().any(has_port) && restart().all(|mine| index.same(mine).is_none())
    }

    /// Judged by the connections that restart in the server's own capture: each port may have
    /// another middlebox, or none.
    pub(super) fn who_restarts(&self, server: &Self) -> Restarter {
        let restart: Vec<&ServerSide> =
            self.connections.iter().filter(|c| !c.story.restarts_ns().is_empty()).collect();
        let index = Index::of(server);
        let there = restart.iter().filter(|mine| index.same(mine).is_some()).count();
        let seen: usize = restart.iter().map(|c| c.story.restarts_ns().len()).sum();
        let own: usize = server.connections.iter().map(|c| c.story.restarts_ns().len()).sum();
        match there {
            _ if seen == 0 => Restarter::SenderOrMiddlebox,
            0 if (own as f64) < seen as f64 * OWN_RESTARTS => Restarter::Middlebox,
            n if n == restart.len() => Restarter::Sender,
            _ => Restarter::SenderOrMiddlebox,
        }
    }
}
