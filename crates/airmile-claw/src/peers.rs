//! Assigns reports to connections.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use airmile_control::claw::feedback::{AuthenticatedReport, FeedbackReport, SessionToken};
use airmile_host::thread::lock;

use crate::controller::Mailbox;
use crate::listener::ReportSink;

/// Live connections of a server.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    connections: Mutex<BTreeMap<u64, ReportedConnection>>,
}

#[derive(Debug)]
struct ReportedConnection {
    address: IpAddr,
    binding: Binding,
    mailbox: Arc<Mailbox>,
}

/// Source of a connection's reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    /// The only session at its address.
    Address,
    /// The session that its client named.
    Token(SessionToken),
    /// The connection itself, in datagrams.
    Itself,
}

impl Peers {
    pub(crate) fn add(&self, id: u64, address: IpAddr, itself: bool, mailbox: Arc<Mailbox>) {
        let binding = if itself { Binding::Itself } else { Binding::Address };
        self.with(|all| all.insert(id, ReportedConnection { address, binding, mailbox }));
    }

    pub(crate) fn remove(&self, id: u64) {
        self.with(|all| all.remove(&id));
    }

    /// Binds a connection to the session that its client named.
    pub(crate) fn bind(&self, id: u64, token: SessionToken) {
        self.with(|all| {
            if let Some(connection) = all.get_mut(&id).filter(|c| c.binding != Binding::Itself) {
                connection.binding = Binding::Token(token);
            }
        });
    }

    /// Processes a report received on the connection itself. A client's connections share
    /// its limit.
    pub(crate) fn on_own_report(&self, id: u64, report: &FeedbackReport) {
        self.with(|all| {
            let Some(address) = all.get(&id).map(|connection| connection.address) else { return };
            // Other connections there may belong to other phones behind the same NAT.
            let cap_share = of_address(all, address);
            if let Some(connection) = all.get(&id) {
                connection.mailbox.put(report, 1, cap_share);
            }
        });
    }

    fn with<T>(&self, of: impl FnOnce(&mut BTreeMap<u64, ReportedConnection>) -> T) -> T {
        of(&mut lock(&self.connections))
    }
}

impl ReportSink for Peers {
    fn on_report(&self, accepted: &AuthenticatedReport, alone: bool) -> usize {
        self.with(|all| {
            let is_meant = |connection: &&ReportedConnection| match connection.binding {
                // If the named session has ended, the only session at the address applies.
                Binding::Token(token) => {
                    (token == accepted.token && is_same_host(connection.address, accepted.address))
                        || (alone && connection.address == accepted.address)
                }
                Binding::Address => alone && connection.address == accepted.address,
                Binding::Itself => false,
            };
            let meant = all.values().filter(is_meant).count();
            let share = u32::try_from(meant).unwrap_or(u32::MAX);
            let cap_share = of_address(all, accepted.address).max(share);
            for connection in all.values().filter(is_meant) {
                connection.mailbox.put(&accepted.report, share, cap_share);
            }
            meant
        })
    }
}

/// Number of connections of an address, which share the operator's limit.
fn of_address(all: &BTreeMap<u64, ReportedConnection>, address: IpAddr) -> u32 {
    let count = all.values().filter(|connection| connection.address == address).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Whether a session at one address may report for a connection from another: a link from
/// someone else may name that person's session. A host has many addresses in its /64 (RFC
/// 8981).
fn is_same_host(one: IpAddr, other: IpAddr) -> bool {
    match (one, other) {
        (IpAddr::V6(one), IpAddr::V6(other)) => one.segments()[..4] == other.segments()[..4],
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn reports_find_their_connections() {
        let at = |last: u8| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        let peers = Peers::default();
        let boxes: Vec<Arc<Mailbox>> = (0..5).map(|_| Arc::default()).collect();
        // Two of one address, one of another, one that reports itself, one bound to a
        // session.
        for (id, (last, itself)) in
            [(1, false), (1, false), (2, false), (1, true), (1, false)].into_iter().enumerate()
        {
            peers.add(id as u64, at(last), itself, boxes[id].clone());
        }
        peers.bind(4, SessionToken([4; 16]));
        peers.bind(3, SessionToken([4; 16]));
        let reports = || boxes.iter().map(|mailbox| mailbox.used().reports).collect::<Vec<_>>();
        let report = |token: u8, last: u8, alone: bool| {
            let (token, address) = (SessionToken([token; 16]), at(last));
            peers.on_report(
                &AuthenticatedReport {
                    token,
                    address,
                    moved: false,
                    report: FeedbackReport::default(),
                },
                alone,
            )
        };
        // The only session at its address: also for those that name a session that has
        // ended.
        assert_eq!((report(1, 1, true), reports()), (3, vec![1, 1, 0, 0, 1]));
        // Two sessions at one address: the connections cannot be assigned.
        assert_eq!((report(1, 1, false), reports()), (0, vec![1, 1, 0, 0, 1]));
        assert_eq!((report(4, 1, false), reports()), (1, vec![1, 1, 0, 0, 2]));
        // A session at another address is not the client's, whichever client named it.
        assert_eq!((report(4, 2, false), reports()), (0, vec![1, 1, 0, 0, 2]));
        peers.on_own_report(3, &FeedbackReport::default());
        assert_eq!(reports(), [1, 1, 0, 1, 2]);
        peers.remove(0);
        assert_eq!((report(1, 1, true), reports()), (2, vec![1, 2, 0, 1, 3]));
    }
}
