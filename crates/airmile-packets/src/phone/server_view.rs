//! A phone's path and waits by captures at both ends. Without time stamps only the server's packets
//! show which acknowledgements it had received; with them, losses that the phone did not see.

use std::collections::HashSet;
use std::ptr;

use airmile_wire::attribute::{ByteBins, LostSegment, PathQueue, WaitTimeline, base_delay_ns};
use airmile_wire::clocks::ClockLine;

use super::connection::{Index, PhoneConnection};
use super::{ONE_HOST_SHARE, Phone};

/// Queueing between phone and server, as captures at both show it.
#[derive(Debug, Default)]
pub struct Paths {
    /// Towards the phone.
    pub down: PathQueue,
    /// Away from it.
    pub up: PathQueue,
    /// Delay of a packet from the server to the phone without a queue, in nanoseconds.
    pub base_ns: i64,
}

impl Paths {
    /// The paths from and to a server whose clock differs by `line`.
    #[must_use]
    pub fn between(phone: &Phone, server: &Phone, line: Option<&ClockLine>) -> Self {
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
pub struct ServerView {
    waits: WaitTimeline,
    /// Segments that it sent again, as of their arrival without a queue.
    pub lost: Vec<LostSegment>,
    /// Their payload that came to the phone.
    shared: ByteBins,
    /// What else the server sent to the same address, as on the other connections, or behind a translation.
    not_at_phone: ByteBins,
}

impl ServerView {
    /// The waits of `phone`'s senders by the capture of a `server`, whose clock differs by `line`
    /// and whose packets take `base_ns` to the phone. By time stamps the phone knows all but what was lost
    /// with all that followed it, so that connections with and without are apart; none if they share no connection.
    #[must_use]
    pub fn of(phone: &Phone, server: &Phone, line: Option<&ClockLine>, base_ns: i64) -> Vec<Self> {
        let by = |losses_alone: bool| {
            let mut pairs = phone.same_connections(server);
            pairs.retain(|(mine, there)| {
                mine.sender.is_stamped() == losses_alone
                    && is_whole(mine, there)
                    && (!losses_alone || is_lost(mine, there))
            });
            let arrival = |ns| on_reference(line, ns).saturating_add(base_ns);
            let lost = pairs.iter().filter(|(mine, there)| is_lost(mine, there));
            let lost = lost.flat_map(|(_, there)| there.sender.lost());
            let lost = lost.map(|one| one.at(arrival)).collect();
            let shared = ByteBins::sum_of(pairs.iter().map(|(mine, _)| &mine.received));
            let known: HashSet<_> = pairs.iter().map(|(_, there)| ptr::from_ref(*there)).collect();
            let others =
                server.connections.iter().filter(|one| !known.contains(&ptr::from_ref(*one)));
            let mut not_at_phone = ByteBins::sum_of(others.map(|one| &one.received));
            line.iter().for_each(|line| not_at_phone.set_clock(line));
            let waits = server.waits_on(line).later(base_ns);
            (shared.total() > 0).then(|| Self {
                waits: phone.waits.with_waits_of(&waits, losses_alone),
                lost,
                shared,
                not_at_phone: not_at_phone.later(base_ns),
            })
        };
        [false, true].into_iter().filter_map(by).collect()
    }

    /// Whether it shows almost all data of the phone, of `all_bytes`.
    #[must_use]
    pub fn has_most(&self, all_bytes: u64) -> bool {
        self.shared.total() as f64 >= ONE_HOST_SHARE * all_bytes as f64
    }

    /// What the senders waited for in a span in which `all_bytes` came to the phone, if the server's
    /// capture has almost all of them, and little else to the same address.
    #[must_use]
    pub fn waits(&self, from_ns: i64, to_ns: i64, all_bytes: u64) -> Option<&WaitTimeline> {
        let shared = self.shared.within(from_ns, to_ns);
        let sent = shared.saturating_add(self.not_at_phone.within(from_ns, to_ns));
        let is_most = shared as f64 >= ONE_HOST_SHARE * all_bytes.max(sent) as f64;
        (shared > 0 && is_most).then_some(&self.waits)
    }

    /// Moves it to the reference clock of the line.
    pub fn set_clock(&mut self, line: &ClockLine) {
        self.waits.set_clock(line);
        self.shared.set_clock(line);
        self.not_at_phone.set_clock(line);
    }
}

/// A time on the reference clock of `line`.
fn on_reference(line: Option<&ClockLine>, ns: i64) -> i64 {
    line.map_or(ns, |line| line.to_reference(ns))
}

/// Whether both captures have almost all of a connection.
fn is_whole(mine: &PhoneConnection, there: &PhoneConnection) -> bool {
    let [mine, there] = [mine, there].map(|one| one.received.total());
    mine.min(there) as f64 >= ONE_HOST_SHARE * mine.max(there) as f64
}

/// Whether what the server sent again had not arrived; what it sends for a late acknowledgement arrives twice.
fn is_lost(mine: &PhoneConnection, there: &PhoneConnection) -> bool {
    2 * mine.down.again_bytes() <= there.down.again_bytes()
}

/// Slow starts after idle time, as the phone sees them and at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestartsAtBoth {
    /// Connections that restart as the phone sees them.
    pub connections: usize,
    /// Of these, those that are in the server's capture, too.
    pub at_server: usize,
    /// Restarts that the phone sees.
    pub seen: usize,
    /// Restarts that the server's own packets show, of all connections.
    pub own: usize,
}

impl Phone {
    /// Its connections that restart slow start after idle time.
    fn restarting(&self) -> impl Iterator<Item = &PhoneConnection> {
        self.connections.iter().filter(|one| !one.sender.restarts_ns().is_empty())
    }

    /// Whether the ports of servers on which its connections restart have other connections in another
    /// capture: something before it ends them.
    #[must_use]
    pub fn restarts_before(&self, other: &Self) -> bool {
        let index = Index::of(other);
        let at: HashSet<_> = self.restarting().filter_map(|one| Some(one.ends?[1])).collect();
        let has_port = |one: &PhoneConnection| one.ends.is_some_and(|ends| at.contains(&ends[1]));
        other.connections.iter().any(has_port)
            && self.restarting().all(|mine| index.same(mine).is_none())
    }

    /// Its restarts, and those in the server's own capture: each port may have another middlebox, or none.
    #[must_use]
    pub fn restarts_at(&self, server: &Self) -> RestartsAtBoth {
        let index = Index::of(server);
        let n = |one: &PhoneConnection| one.sender.restarts_ns().len();
        RestartsAtBoth {
            connections: self.restarting().count(),
            at_server: self.restarting().filter(|mine| index.same(mine).is_some()).count(),
            seen: self.restarting().map(n).sum(),
            own: server.connections.iter().map(n).sum(),
        }
    }
}
