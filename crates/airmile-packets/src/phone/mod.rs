//! The phone in one capture: its connections, when data passed, and what the senders waited for.
//!
//! [`PhoneReader`] takes a capture's packets and returns each of its users as a [`Phone`]. Two phones are
//! the same one, or a phone and the users of a server's capture, by the connections that both have:
//! [`Paths`] are the queues between two captures, and a [`ServerView`] is what the server's packets show
//! of the phone's transfers.

mod connection;
mod reader;
mod senders;
mod server_view;
#[cfg(test)]
mod tests;
mod user;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use airmile_model::Direction;
use airmile_model::packet::Address;
use airmile_wire::attribute::{
    ByteBins, CaptureSite, Datagrams, Exchange, Passage, PathQueue, SenderModel, Sides,
    UploadQueue, Uploads, UserEcn, WaitTimeline, ends_inside,
};
use airmile_wire::clocks::{Arrivals, ClockLine, PointPair, may_be_split};

pub use reader::PhoneReader;
pub use senders::Opening;
pub use server_view::{Paths, RestartsAtBoth, ServerView};

use connection::{Index, PhoneConnection};
use user::{User, are_of_uploads};

/// Parallel transfers belong to one host if it has this share of their bytes (chosen here: a
/// phone's other traffic is small).
pub const ONE_HOST_SHARE: f64 = 0.9;
/// Fewer equal datagrams may be of two runs: queries and keep-alives are alike (chosen here).
const MANY_DATAGRAMS: usize = 10;
/// A QUIC server responds within this time plus a quarter of the round trip to the client (chosen
/// here: its encryption before a first response).
const QUIC_SERVER_NS: i64 = 20_000_000;

/// The phone in one capture.
#[derive(Debug)]
pub struct Phone {
    /// What the senders of its downloads waited for.
    pub waits: WaitTimeline,
    /// Payload that it sent.
    pub uplink: ByteBins,
    /// What its own uploads over TCP waited for.
    pub sends: WaitTimeline,
    /// The payload of these.
    pub sent: ByteBins,
    /// Payload towards it whose senders are followed.
    pub followed: ByteBins,
    /// The same, by server.
    pub hosts: BTreeMap<Address, ByteBins>,
    /// Bytes other than TCP's whose senders are not followed, if it is the only user.
    pub others: Option<ByteBins>,
    /// Parts of the capture in which it was not: from and to, in nanoseconds.
    pub others_unknown: Vec<(i64, i64)>,
    /// Those of all users of the capture.
    datagrams: Arc<Datagrams>,
    /// A notable part of the data is not QUIC's, or another user's.
    is_mixed: bool,
    /// Congestion marks of its packets.
    pub ecn: UserEcn,
    /// The data that came.
    pub arrivals: Arrivals,
    /// All that came, until there is much data among it.
    pub answers: Arrivals,
    /// Where it was captured.
    pub place: CaptureSite,
    /// The round trip between the monitor and the server; 0 if none was measured.
    pub upstream_ns: i64,
    /// The same between the monitor and the client.
    pub downstream_ns: i64,
    connections: Vec<PhoneConnection>,
    /// Payload towards it.
    pub dl_bytes: u64,
}

impl Phone {
    fn of(mut user: User, without_root: bool) -> Self {
        let uploads = user.connections.values_mut().map(|connection| &mut connection.uploads);
        Uploads::finish(uploads, (&mut user.sends, &mut user.sent));
        let connections: Vec<PhoneConnection> = user.connections.into_values().collect();
        let mut sides = Sides::from_connections(connections.iter().map(|one| &one.sender));
        let own = connections.iter().find_map(|one| one.ends).map(|ends| ends[0].0);
        let each = connections.iter().map(|one| (one.ends.map(|ends| ends[1].0), &one.sender));
        let is_inside = without_root || own.is_some_and(|own| ends_inside(own, each));
        if is_inside {
            // None of these is the network's.
            (sides, user.ecn) = (Sides::default(), UserEcn::default());
            user.waits.end_inside();
        }
        Self {
            waits: user.waits,
            uplink: user.uplink,
            sends: user.sends,
            sent: user.sent,
            followed: user.followed,
            hosts: user.hosts,
            others: None,
            others_unknown: Vec::new(),
            datagrams: Arc::default(),
            is_mixed: false,
            ecn: user.ecn,
            arrivals: user.arrivals,
            answers: user.answers,
            connections,
            // A part of a capture without handshakes is treated as one taken in between.
            place: match sides.place() {
                _ if is_inside => CaptureSite::Inside,
                CaptureSite::Unknown => CaptureSite::Between,
                place => place,
            },
            upstream_ns: sides.upstream_ns.unwrap_or(0),
            downstream_ns: sides.downstream_ns.unwrap_or(0),
            dl_bytes: user.dl_bytes,
        }
    }

    /// Whether it was captured at the server. A QUIC server responds from user space, some
    /// milliseconds late.
    #[must_use]
    pub fn is_at_server(&self) -> bool {
        let quic = || self.connections.iter().all(|connection| connection.sender.is_encrypted());
        let near = self.upstream_ns < QUIC_SERVER_NS.min(self.downstream_ns / 4);
        self.place == CaptureSite::Server || near && quic()
    }

    /// Whether it has TCP connections, and none with time stamps (RFC 7323).
    #[must_use]
    pub fn lacks_timestamps(&self) -> bool {
        let mut tcp = self.connections.iter().map(|one| &one.sender).filter(|s| !s.is_encrypted());
        tcp.clone().next().is_some() && !tcp.any(SenderModel::is_stamped)
    }

    /// The minimum round trip of all connections, in nanoseconds.
    #[must_use]
    pub fn least_round_trip_ns(&self) -> Option<i64> {
        let each = self
            .senders(Direction::Dl)
            .filter_map(|sender| Some(sender.upstream_rtt_ns()? + sender.downstream_rtt_ns()?));
        each.filter(|ns| *ns > 0).min()
    }

    /// Data towards it that also passed at the server: over TCP by its place in the stream, in
    /// datagrams by its first bytes.
    #[must_use]
    pub fn passages(&self, server: &Self) -> Vec<Passage> {
        let same = self.same_connections(server).into_iter();
        let mut passages: Vec<Passage> =
            same.flat_map(|(mine, there)| mine.passages(there)).collect();
        passages.extend(self.datagrams.passages(&server.datagrams));
        passages
    }

    /// What it sent over TCP that also passed at the server; none behind a proxy that splits.
    #[must_use]
    pub fn passages_up(&self, server: &Self) -> Vec<Passage> {
        let same = self.same_connections(server).into_iter();
        let outward = same.flat_map(|(mine, there)| mine.pairs(there)).filter(|pair| pair.outward);
        outward
            .map(|pair| Passage { sent_ns: pair.reference_ns, arrived_ns: pair.other_ns })
            .collect()
    }

    /// The queue of its uploads behind the radio, by its packets alone.
    #[must_use]
    pub fn upload_queue(&self) -> PathQueue {
        UploadQueue::path(self.connections.iter().map(|one| &one.upload))
    }

    /// Whether some of its connections are also in another capture, and not split on the way.
    #[must_use]
    pub fn shares_connections_with(&self, other: &Self) -> bool {
        !self.same_connections(other).is_empty()
    }

    /// Its connections that are also in another capture, and not split on the way.
    fn same_connections<'a>(
        &'a self,
        other: &'a Self,
    ) -> Vec<(&'a PhoneConnection, &'a PhoneConnection)> {
        let there = Index::of(other);
        let same = self.connections.iter().map(|mine| (mine, there.same(mine)));
        same.filter_map(|(mine, there)| Some((mine, there?))).collect()
    }

    /// Its connections that are also in another capture, split on the way or not.
    fn common<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'a PhoneConnection, &'a PhoneConnection)> {
        let there = Index::of(other);
        self.connections.iter().filter_map(move |mine| Some((mine, there.find(mine)?)))
    }

    /// ECN-capable packets that it sent on connections that are also in another capture: here and there.
    #[must_use]
    pub fn shared_ecn(&self, other: &Self) -> (u64, u64) {
        let sent =
            self.common(other).map(|(mine, there)| (mine.ecn.capable(), there.ecn.capable()));
        sent.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Payload towards it on connections that are also in another capture.
    #[must_use]
    pub fn shared_bytes(&self, other: &Self) -> u64 {
        let received = self.common(other).map(|(mine, _)| mine.received.total());
        received.fold(0, u64::saturating_add)
    }

    /// When the server sent datagrams of QUIC that never arrived; none if a notable part of the data
    /// is not QUIC's or another user's, as a loss is not attributed to its connection.
    #[must_use]
    pub fn lost_datagrams(&self, server: &Self) -> Vec<i64> {
        if self.is_mixed || server.is_mixed {
            return Vec::new();
        }
        self.datagrams.lost(&server.datagrams).collect()
    }

    /// Whether a proxy splits its connections on the way to another capture.
    #[must_use]
    pub fn is_split_from(&self, other: &Self) -> bool {
        let own = Index::of(self);
        let split = |there: &PhoneConnection| {
            let mine = own.with_ends_of(there).filter(|mine| mine.server_isn.is_some());
            mine.is_some_and(|mine| there.server_isn.is_some() && !mine.is(there))
        };
        other.connections.iter().any(split)
    }

    /// Whether a proxy may split them on the way to another capture, by most that show it.
    #[must_use]
    pub fn may_be_split_from(&self, other: &Self) -> bool {
        let each = self.common(other).filter_map(|(mine, there)| {
            let one_end =
                mine.client_isn == there.client_isn || mine.server_isn == there.server_isn;
            let parts_ns = [mine.sender.upstream_rtt_ns()?, there.sender.downstream_rtt_ns()?];
            Some(may_be_split(&mine.pairs(there).collect::<Vec<_>>(), parts_ns)? || one_end)
        });
        each.map(|may| if may { 1_i64 } else { -1 }).sum::<i64>() >= 0
    }

    /// What the senders waited for, on the reference clock of `line`.
    #[must_use]
    pub fn waits_on(&self, line: Option<&ClockLine>) -> WaitTimeline {
        let mut waits = self.waits.clone();
        if let Some(line) = line {
            waits.set_clock(line);
        }
        waits
    }

    /// The exchanges of its connections, if these were followed.
    pub fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.connections.iter().flat_map(|one| one.exchanges.iter())
    }

    /// When its connections over QUIC began, in nanoseconds.
    #[must_use]
    pub fn quic_begins_ns(&self) -> Vec<i64> {
        let senders = self.connections.iter().map(|one| &one.sender);
        senders.filter(|sender| sender.is_encrypted()).filter_map(SenderModel::begun_ns).collect()
    }

    /// Whether all that came is of uploads: acknowledgements, and their answers.
    #[must_use]
    pub fn has_only_uploads(&self) -> bool {
        are_of_uploads(&self.answers, &self.arrivals, 0)
    }

    /// Whether it and another user are one phone with an address of IPv4 and one of IPv6: both were captured at a
    /// phone, as far as handshakes of TCP show it, and neither has the other's packets, translated (RFC 6877): the same
    /// connections of TCP, or QUIC alone and the other has QUIC, too.
    fn is_other_family_of(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|user| user.address().map(Address::is_v4));
        let is_at_phone = |user: &&Self| user.place == CaptureSite::Phone;
        let is_quic = |one: &PhoneConnection| one.sender.is_encrypted();
        let is_quic_alone = |user: &Self| user.connections.iter().all(is_quic);
        let may_be = |user: &Self| is_at_phone(&user) || is_quic_alone(user);
        let has_quic = [self, other].into_iter().all(|user| user.connections.iter().any(is_quic));
        let may_be_copies = has_quic && [self, other].into_iter().any(is_quic_alone);
        let isns = |user: &Self| {
            let of = user.connections.iter().map(|one| one.client_isn.zip(one.server_isn));
            of.flatten().collect::<BTreeSet<_>>()
        };
        own.zip(others).is_some_and(|(own, others)| own != others)
            && [self, other].iter().any(is_at_phone)
            && [self, other].into_iter().all(may_be)
            && !may_be_copies
            && isns(self).is_disjoint(&isns(other))
    }

    /// Adds what came to its other address, and left from it.
    fn unite(&mut self, other: Self) {
        let sum = |own: &ByteBins, others: &ByteBins| ByteBins::sum_of([own, others].into_iter());
        self.waits = self.waits.merged(&other.waits);
        self.uplink = sum(&self.uplink, &other.uplink);
        self.sends = self.sends.merged(&other.sends);
        self.sent = sum(&self.sent, &other.sent);
        self.followed = sum(&self.followed, &other.followed);
        self.hosts.extend(other.hosts);
        self.ecn.append(&other.ecn);
        self.arrivals = std::mem::take(&mut self.arrivals).merged(&other.arrivals);
        self.answers = std::mem::take(&mut self.answers).merged(&other.answers);
        self.place = self.place.min(other.place);
        for (own, others) in [
            (&mut self.upstream_ns, other.upstream_ns),
            (&mut self.downstream_ns, other.downstream_ns),
        ] {
            *own = if *own == 0 { others } else { *own };
        }
        self.connections.extend(other.connections);
        self.dl_bytes += other.dl_bytes;
    }

    /// Its address, by its first connection.
    fn address(&self) -> Option<Address> {
        self.connections.iter().find_map(|connection| connection.ends).map(|ends| ends[0].0)
    }

    /// When its first packet waited for something, in nanoseconds.
    #[must_use]
    pub fn begun_ns(&self) -> Option<i64> {
        self.waits.spans().first().map(|span| span.from_ns)
    }

    /// Whether one of both has what came alone, and the other what left: neither shows a round trip.
    #[must_use]
    pub fn is_other_way_of(&self, other: &Self) -> bool {
        let rtt_ns = [self, other].map(|one| one.upstream_ns + one.downstream_ns);
        rtt_ns == [0; 2] && self.arrivals.points().is_empty() != other.arrivals.points().is_empty()
    }

    /// From the first wait to the end of the last one, in nanoseconds.
    fn span_ns(&self) -> Option<(i64, i64)> {
        let spans = || [&self.waits, &self.sends].into_iter().flat_map(|waits| waits.spans());
        let from_ns = spans().map(|span| span.from_ns).min()?;
        Some((from_ns, spans().map(|span| span.to_ns).max()?))
    }

    /// Appends the next part of a capture; returns `false` for another view of the same time, which is
    /// ignored.
    pub fn go_on(&mut self, users: Vec<Self>) -> bool {
        let Some(next) = users.into_iter().next() else { return true };
        let [own, later] = [self.span_ns(), next.span_ns()];
        let is_later = self.waits.append(&next.waits);
        if is_later {
            self.uplink.append(&next.uplink);
            if self.sends.append(&next.sends) {
                self.sent.append(&next.sent);
            }
            self.followed.append(&next.followed);
            for (host, bytes) in next.hosts {
                self.hosts.entry(host).or_default().append(&bytes);
            }
            // Unknown in one part, of several users, it stays known in the other.
            match (&mut self.others, next.others) {
                (Some(own), Some(next)) => own.append(&next),
                (others @ None, Some(next)) => {
                    *others = Some(next);
                    self.others_unknown.extend(own);
                }
                (Some(_), None) => self.others_unknown.extend(later),
                (None, None) => {}
            }
            self.ecn.append(&next.ecn);
            self.arrivals.append(&next.arrivals);
            self.answers.append(&next.answers);
            self.connections.extend(next.connections);
            self.dl_bytes += next.dl_bytes;
        }
        is_later
    }

    /// The same phone among the users of another capture: by a common connection, or else, as
    /// behind a proxy that splits, by the same ends; or the only user there.
    #[must_use]
    pub fn among(&self, mut users: Vec<Self>) -> Option<Self> {
        let n = users.len();
        let own = Index::of(self);
        let by = |same: &dyn Fn(&PhoneConnection) -> bool| {
            users.iter().position(|user| user.connections.iter().any(same))
        };
        let by_connection = by(&|theirs| own.same(theirs).is_some());
        let by_ends = || by(&|theirs| own.with_ends_of(theirs).is_some());
        let at = by_connection.or_else(by_ends).or((n == 1).then_some(0))?;
        Some(users.swap_remove(at))
    }

    /// Data that also passed at a capture nearer to the server.
    #[must_use]
    pub fn pairs(&self, other: &Self) -> Vec<PointPair> {
        let of_streams = self.common(other).flat_map(|(mine, there)| mine.pairs(there));
        let of_streams: Vec<PointPair> = of_streams.collect();
        match of_streams.is_empty() {
            true => self.datagrams.pairs(&other.datagrams).collect(),
            false => of_streams,
        }
    }

    /// Whether some of its data also passed at another capture.
    #[must_use]
    pub fn shares_data_with(&self, other: &Self) -> bool {
        let mut connections = self.common(other);
        connections.any(|(mine, there)| mine.pairs(there).next().is_some())
            || self.datagrams.passages(&other.datagrams).count() >= MANY_DATAGRAMS
    }
}
