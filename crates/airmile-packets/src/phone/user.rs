//! A user of a capture while it is read.

use std::collections::BTreeMap;

use airmile_model::packet::Address;
use airmile_wire::attribute::{ByteBins, UserEcn, WaitTimeline};
use airmile_wire::clocks::Arrivals;

use super::connection::{Ends, PhoneConnection};

/// Numbers of users first seen with QUIC, separate from the engine's.
pub(super) const OF_QUIC: u64 = 1 << 63;
/// Connections over TCP whose round trips a new one to the same port of the same server takes, the newest ones, and the time
/// since their last packet (chosen here: a path stays the same for that long).
const MOST_PARALLEL: usize = 16;
const PARALLEL_NS: i64 = 10_000_000_000;

/// One user of a capture.
#[derive(Debug, Default)]
pub(super) struct User {
    pub(super) waits: WaitTimeline,
    pub(super) uplink: ByteBins,
    /// What its own uploads over TCP waited for, and their payload.
    pub(super) sends: WaitTimeline,
    pub(super) sent: ByteBins,
    pub(super) followed: ByteBins,
    /// The same, by server.
    pub(super) hosts: BTreeMap<Address, ByteBins>,
    pub(super) dl_bytes: u64,
    /// It has a connection that is also in another capture.
    pub(super) known: bool,
    pub(super) connections: BTreeMap<u64, PhoneConnection>,
    pub(super) ecn: UserEcn,
    pub(super) arrivals: Arrivals,
    /// All packets that came, until there is much data among them.
    pub(super) answers: Arrivals,
}

/// Size of an acknowledgement: headers of IPv4 and TCP, and time stamps.
pub(super) const ANSWER_BYTES: u32 = 52;
/// Arrivals of data of handshakes and the like, which are no download (chosen here).
pub(super) const HANDSHAKES: usize = 16;

/// Whether all that came is of uploads: acknowledgements, and their answers. Four or more for each
/// arrival of data (chosen here), but for some.
pub(super) fn are_of_uploads(all: &Arrivals, data: &Arrivals, but: usize) -> bool {
    4 * data.points().len().saturating_sub(but) <= all.points().len()
}

impl User {
    /// A new connection between two ends. A queue that stands when it begins is in all of its round
    /// trips, but not in the least one of a connection in parallel.
    pub(super) fn connection_to(&self, ends: Option<Ends>, at_ns: i64) -> PhoneConnection {
        let mut new = PhoneConnection { ends, ..PhoneConnection::default() };
        let latest = self.connections.range(..OF_QUIC).rev().take(MOST_PARALLEL);
        let server = |ends: Option<Ends>| ends.map(|ends| ends[1]);
        let same_port = latest.map(|(_, one)| one).filter(|one| server(one.ends) == server(ends));
        let recent = same_port.filter(|one| {
            one.sender.latest_ns().is_some_and(|ns| at_ns.saturating_sub(ns) < PARALLEL_NS)
        });
        if let Some(ns) = recent.filter_map(|one| one.sender.present_upstream_rtt_ns()).min() {
            new.sender.note_upstream_rtt_ns(ns);
        }
        new
    }
}
