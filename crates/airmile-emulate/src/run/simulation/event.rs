//! Scheduled events of a run, in time order.

use crate::net::IpPacket;
use crate::user::UserId;

/// A host of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// The phone.
    Phone,
    /// The box.
    Proxy,
    /// The server.
    Server,
}

/// A scheduled event.
#[derive(Debug, Clone)]
pub(super) enum Happening {
    /// A packet reaches a host.
    Arrival(Node, IpPacket),
    /// A packet leaves a host.
    Departure(Node, IpPacket),
    /// A packet reaches the base station.
    AtBaseStation(IpPacket),
    /// A host's timer.
    Timer(Node),
}

#[derive(Debug, Clone)]
pub(super) struct ScheduledEvent {
    pub(super) at_ns: i64,
    /// Sequence number: of simultaneous events, the first one caused happens first.
    pub(super) number: u64,
    pub(super) user: UserId,
    pub(super) what: Happening,
}

impl PartialEq for ScheduledEvent {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ScheduledEvent {}

impl PartialOrd for ScheduledEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScheduledEvent {
    /// The greatest is the next event.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at_ns, other.number).cmp(&(self.at_ns, self.number))
    }
}
