//! The phone in one capture: its connections, and when data passed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use airmile_model::Direction;
use airmile_model::packet::{Address, Packet, TcpFlags, Transport};
use airmile_wire::attribute::{
    ByteBins, CaptureSite, Datagrams, EcnBits, FollowedDatagram, Passage, PathQueue, PayloadBegin,
    QuicSenders, SenderModel, Sides, UploadQueue, Uploads, UserEcn, WaitSpan, WaitTimeline,
    ends_inside, payload_begin,
};
use airmile_wire::clocks::{Arrivals, PointPair, may_be_split};
use airmile_wire::tcp::TracedPacket;

use super::server_side::{Ends, Index, ServerSide};
use super::user::{ANSWER_BYTES, HANDSHAKES, OF_QUIC, User, are_of_uploads};

/// Number of addresses whose bytes outside of TCP are kept, with half as many again as slack: those
/// that received the most (chosen here).
const MOST_OTHERS: usize = 256;

/// A capture during reading.
#[derive(Debug, Default)]
pub(super) struct Capture {
    users: BTreeMap<u64, User>,
    /// Ends of the current packet.
    ends: Option<Ends>,
    ecn: EcnBits,
    /// Of its payload.
    begin: PayloadBegin,
    held: Vec<WaitSpan>,
    /// Bytes other than TCP's.
    others: ByteBins,
    /// The same, by destination.
    others_to: BTreeMap<Address, Arrivals>,
    /// Datagrams by their first bytes.
    datagrams: Datagrams,
    quic: QuicSenders,
    /// Payload of QUIC whose senders are followed, and all other payload, in both directions.
    quic_bytes: u64,
    other_bytes: u64,
    /// The user of each address, including users of QUIC that the engine does not know.
    by_address: HashMap<Address, u64>,
    unknown_users: u64,
    /// Sequence numbers of servers from earlier captures.
    known: HashSet<u32>,
    /// A pause of this length separates exchanges, where these and uploads are followed.
    pause_ns: Option<i64>,
}

/// Number of users that a capture keeps, with half as many again as slack: the known ones and those
/// who received the most (chosen here: a server has thousands, each with its spans).
const MOST_USERS: usize = 64;
/// A QUIC server responds within this time plus a quarter of the round trip to the client (chosen
/// here: its encryption before a first response).
const QUIC_SERVER_NS: i64 = 20_000_000;

impl Capture {
    /// With known servers; follows the phone's exchanges and uploads if a pause is given.
    pub(super) fn new(known: HashSet<u32>, pause_ns: Option<i64>) -> Self {
        Self { known, pause_ns, ..Self::default() }
    }

    /// The known servers of this capture and earlier ones.
    pub(super) fn isns(&self) -> HashSet<u32> {
        let connections = self.users.values().flat_map(|user| user.connections.values());
        let own = connections.filter_map(|connection| connection.server_isn);
        self.known.iter().copied().chain(own).collect()
    }

    /// Forgets users who are neither known nor received much.
    fn forget(&mut self) {
        let rank = |(number, user): (&u64, &User)| (user.known, user.dl_bytes, *number);
        let mut ranks: Vec<_> = self.users.iter().map(rank).collect();
        ranks.sort_unstable();
        ranks.truncate(ranks.len().saturating_sub(MOST_USERS));
        for (.., number) in ranks {
            self.users.remove(&number);
        }
        self.by_address.retain(|_, number| self.users.contains_key(number));
    }

    /// Forgets the addresses that received the least outside of TCP.
    fn forget_others(&mut self) {
        if self.others_to.len() < MOST_OTHERS + MOST_OTHERS / 2 {
            return;
        }
        let mut sizes: Vec<usize> = self.others_to.values().map(|to| to.points().len()).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let least = sizes.get(MOST_OTHERS).copied().unwrap_or(0);
        self.others_to.retain(|_, to| to.points().len() > least);
    }

    /// Records a raw packet, before the engine processes it.
    pub(super) fn note(&mut self, packet: &Packet<'_>) {
        self.ecn = EcnBits::of(packet);
        if !matches!(packet.transport, Transport::Tcp(_)) {
            self.datagrams.note(packet);
            match self.quic.push(packet) {
                Some(datagram) => self.push_datagram(&datagram),
                None => {
                    self.others.add(packet.at_ns, packet.payload_bytes.into());
                    self.other_bytes += u64::from(packet.payload_bytes);
                }
            }
            if packet.payload_bytes > 0 {
                let to = self.others_to.entry(packet.dst).or_default();
                to.add(packet.at_ns, packet.payload_bytes);
                self.forget_others();
            }
        }
        self.ends = Some([(packet.src, packet.src_port), (packet.dst, packet.dst_port)]);
        self.begin = payload_begin(packet.payload);
    }

    /// Processes a QUIC datagram whose sender can be followed.
    fn push_datagram(&mut self, datagram: &FollowedDatagram) {
        let address = datagram.ends[0].0;
        let unknown_users = &mut self.unknown_users;
        let number = *self.by_address.entry(address).or_insert_with(|| {
            *unknown_users += 1;
            OF_QUIC | *unknown_users
        });
        self.make_room(number);
        let user = self.users.entry(number).or_default();
        let connection = user.connections.entry(datagram.flow).or_insert_with(|| ServerSide {
            story: SenderModel::encrypted(),
            ends: Some(datagram.ends),
            ..ServerSide::default()
        });
        if let Some(packet) = datagram.packets.iter().flatten().next_back() {
            let up = packet.dir == Direction::Ul;
            user.ecn.count(packet.at_ns, up, self.ecn, &mut connection.ecn);
        }
        if let Some(begins) = &datagram.begins {
            connection.story.client_payload(begins);
        }
        if let Some(rtt_ns) = datagram.upstream_rtt_ns {
            connection.story.note_upstream_rtt_ns(rtt_ns);
        }
        for packet in datagram.packets.iter().flatten() {
            let mut held = Vec::new();
            connection.story.push(packet, &mut held);
            if let Some(pause_ns) = self.pause_ns {
                connection.exchanges.push(packet, connection.story.sets_up(packet), pause_ns);
            }
            user.waits.push(&held, packet.dir == Direction::Dl);
            self.quic_bytes += packet.new_bytes;
            match (packet.flags.has(TcpFlags::SYN), packet.dir) {
                (true, _) => {}
                (false, Direction::Dl) => {
                    user.dl_bytes += packet.new_bytes;
                    connection.received.add(packet.at_ns, packet.new_bytes);
                    user.followed.add(packet.at_ns, packet.new_bytes);
                    let (server, _) = datagram.ends[1];
                    user.hosts.entry(server).or_default().add(packet.at_ns, packet.new_bytes);
                }
                _ => user.uplink.add(packet.at_ns, packet.new_bytes),
            }
        }
    }

    /// Makes room for another user by forgetting those who received little.
    fn make_room(&mut self, number: u64) {
        if self.users.len() >= MOST_USERS + MOST_USERS / 2 && !self.users.contains_key(&number) {
            self.forget();
        }
    }

    /// Processes a TCP packet as the engine traced it.
    pub(super) fn push(&mut self, packet: &TracedPacket) {
        self.other_bytes += packet.new_bytes;
        let down = packet.dir == Direction::Dl;
        let ends = self.ends.map(|[from, to]| if down { [to, from] } else { [from, to] });
        let known = ends.and_then(|[(client, _), _]| self.by_address.get(&client).copied());
        let number = known.filter(|number| number & OF_QUIC != 0).unwrap_or(packet.user);
        if let Some([(client, _), _]) = ends.filter(|_| known != Some(number)) {
            self.by_address.insert(client, number);
        }
        self.make_room(number);
        let user = self.users.entry(number).or_default();
        if !user.connections.contains_key(&packet.flow) {
            let new = user.connection_to(ends, packet.at_ns);
            user.connections.insert(packet.flow, new);
        }
        let connection = user.connections.entry(packet.flow).or_default();
        if packet.flags.has(TcpFlags::SYN) {
            let isn = if down { &mut connection.server_isn } else { &mut connection.client_isn };
            *isn = Some(packet.seq.0);
            user.known |= down && self.known.contains(&packet.seq.0);
        }
        if down {
            user.dl_bytes += packet.new_bytes;
            connection.received.add(packet.at_ns, packet.new_bytes);
            user.followed.add(packet.at_ns, packet.new_bytes);
            if let Some([_, (server, _)]) = connection.ends {
                user.hosts.entry(server).or_default().add(packet.at_ns, packet.new_bytes);
            }
            user.arrivals.add(packet.at_ns, packet.payload_bytes);
            if are_of_uploads(&user.answers, &user.arrivals, HANDSHAKES) {
                user.answers.add(packet.at_ns, ANSWER_BYTES + packet.payload_bytes);
            }
        } else {
            user.uplink.add(packet.at_ns, packet.new_bytes);
        }
        user.ecn.push(packet, self.ecn, &mut connection.ecn);
        connection.mark(packet);
        connection.upload.push(packet);
        if !down && packet.payload_bytes > 0 {
            connection.story.client_payload(&self.begin);
        }
        self.held.clear();
        connection.story.push(packet, &mut self.held);
        user.waits.push(&self.held, down);
        if let Some(pause_ns) = self.pause_ns {
            connection.exchanges.push(packet, connection.story.sets_up(packet), pause_ns);
            let into = (&mut user.sends, &mut user.sent);
            connection.send(packet, &self.begin, &mut self.held, into);
        }
    }

    /// Each user as if it were the phone, which may have captured without root; those who received the
    /// most first.
    pub(super) fn finish(self, without_root: bool) -> Vec<Phone> {
        let of = |user| Phone::of(user, without_root);
        let mut users: Vec<Phone> = self.users.into_values().map(of).collect();
        for user in &mut users {
            let to = user.address().and_then(|address| self.others_to.get(&address));
            user.arrivals = to.map_or_else(Arrivals::new, Clone::clone).merged(&user.arrivals);
        }
        users.sort_by_key(|user| std::cmp::Reverse(user.dl_bytes));
        // With several users the owner of a packet is unknown.
        let is_alone = users.len() == 1;
        let datagrams = Arc::new(self.datagrams);
        for user in &mut users {
            user.datagrams = Arc::clone(&datagrams);
            // Nine tenths of the data (chosen here).
            user.is_mixed = !is_alone || self.other_bytes > self.quic_bytes / 9;
        }
        if let [only] = users.as_mut_slice() {
            only.others = Some(self.others);
        }
        users
    }
}

/// Fewer equal datagrams may be of two runs: queries and keep-alives are alike (chosen here).
const MANY_DATAGRAMS: usize = 10;

/// The phone in one capture.
#[derive(Debug)]
pub(super) struct Phone {
    pub(super) waits: WaitTimeline,
    pub(super) uplink: ByteBins,
    pub(super) sends: WaitTimeline,
    pub(super) sent: ByteBins,
    pub(super) followed: ByteBins,
    pub(super) hosts: BTreeMap<Address, ByteBins>,
    pub(super) others: Option<ByteBins>,
    /// Those of all users of the capture.
    datagrams: Arc<Datagrams>,
    /// A notable part of the data is not QUIC's, or another user's.
    is_mixed: bool,
    pub(super) ecn: UserEcn,
    pub(super) arrivals: Arrivals,
    /// All that came, until there is much data among it.
    pub(super) answers: Arrivals,
    pub(super) place: CaptureSite,
    pub(super) upstream_ns: i64,
    pub(super) downstream_ns: i64,
    pub(super) connections: Vec<ServerSide>,
    pub(super) dl_bytes: u64,
}

impl Phone {
    fn of(mut user: User, without_root: bool) -> Self {
        let uploads = user.connections.values_mut().map(|connection| &mut connection.uploads);
        Uploads::finish(uploads, (&mut user.sends, &mut user.sent));
        let connections: Vec<ServerSide> = user.connections.into_values().collect();
        let mut sides = Sides::from_connections(connections.iter().map(|one| &one.story));
        let own = connections.iter().find_map(|one| one.ends).map(|ends| ends[0].0);
        let each = connections.iter().map(|one| (one.ends.map(|ends| ends[1].0), &one.story));
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
    pub(super) fn is_at_server(&self) -> bool {
        let quic = || self.connections.iter().all(|connection| connection.story.is_encrypted());
        let near = self.upstream_ns < QUIC_SERVER_NS.min(self.downstream_ns / 4);
        self.place == CaptureSite::Server || near && quic()
    }

    /// Whether it has TCP connections, and none with time stamps (RFC 7323).
    pub(super) fn lacks_timestamps(&self) -> bool {
        let mut tcp = self.connections.iter().map(|one| &one.story).filter(|s| !s.is_encrypted());
        tcp.clone().next().is_some() && !tcp.any(SenderModel::is_stamped)
    }

    /// The minimum round trip of all connections, in nanoseconds.
    pub(super) fn least_round_trip_ns(&self) -> Option<i64> {
        let each = self
            .senders(Direction::Dl)
            .filter_map(|story| Some(story.upstream_rtt_ns()? + story.downstream_rtt_ns()?));
        each.filter(|ns| *ns > 0).min()
    }

    /// Data towards it that also passed at the server: over TCP by its place in the stream, in
    /// datagrams by its first bytes.
    pub(super) fn passages(&self, server: &Self) -> Vec<Passage> {
        let same = self.same_connections(server).into_iter();
        let mut passages: Vec<Passage> =
            same.flat_map(|(mine, there)| mine.passages(there)).collect();
        passages.extend(self.datagrams.passages(&server.datagrams));
        passages
    }

    /// What it sent over TCP that also passed at the server; none behind a proxy that splits.
    pub(super) fn passages_up(&self, server: &Self) -> Vec<Passage> {
        let same = self.same_connections(server).into_iter();
        let outward = same.flat_map(|(mine, there)| mine.pairs(there)).filter(|pair| pair.outward);
        outward
            .map(|pair| Passage { sent_ns: pair.reference_ns, arrived_ns: pair.other_ns })
            .collect()
    }

    /// The queue of its uploads behind the radio, by its packets alone.
    pub(super) fn upload_queue(&self) -> PathQueue {
        UploadQueue::path(self.connections.iter().map(|one| &one.upload))
    }

    /// Its connections that are also in another capture, and not split on the way.
    pub(super) fn same_connections<'a>(
        &'a self,
        other: &'a Self,
    ) -> Vec<(&'a ServerSide, &'a ServerSide)> {
        let there = Index::of(other);
        let same = self.connections.iter().map(|mine| (mine, there.same(mine)));
        same.filter_map(|(mine, there)| Some((mine, there?))).collect()
    }

    /// Its connections that are also in another capture, split on the way or not.
    fn common<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'a ServerSide, &'a ServerSide)> {
        let there = Index::of(other);
        self.connections.iter().filter_map(move |mine| Some((mine, there.find(mine)?)))
    }

    /// ECN-capable packets that it sent on connections that are also in another capture: here and there.
    pub(super) fn shared_ecn(&self, other: &Self) -> (u64, u64) {
        let sent =
            self.common(other).map(|(mine, there)| (mine.ecn.capable(), there.ecn.capable()));
        sent.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Payload towards it on connections that are also in another capture.
    pub(super) fn shared_bytes(&self, other: &Self) -> u64 {
        let received = self.common(other).map(|(mine, _)| mine.received.total());
        received.fold(0, u64::saturating_add)
    }

    /// When the server sent datagrams of QUIC that never arrived; none if a notable part of the data
    /// is not QUIC's or another user's, as a loss is not attributed to its connection.
    pub(super) fn lost_datagrams(&self, server: &Self) -> Vec<i64> {
        if self.is_mixed || server.is_mixed {
            return Vec::new();
        }
        self.datagrams.lost(&server.datagrams).collect()
    }

    /// Whether a proxy splits its connections on the way to another capture.
    pub(super) fn is_split_from(&self, other: &Self) -> bool {
        let own = Index::of(self);
        let split = |there: &ServerSide| {
            let mine = own.with_ends_of(there).filter(|mine| mine.server_isn.is_some());
            mine.is_some_and(|mine| there.server_isn.is_some() && !mine.is(there))
        };
        other.connections.iter().any(split)
    }

    /// Whether a proxy may split them on the way to another capture, by most that show it.
    pub(super) fn may_be_split_from(&self, other: &Self) -> bool {
        let each = self.common(other).filter_map(|(mine, there)| {
            let one_end =
                mine.client_isn == there.client_isn || mine.server_isn == there.server_isn;
            let parts_ns = [mine.story.upstream_rtt_ns()?, there.story.downstream_rtt_ns()?];
            Some(may_be_split(&mine.pairs(there).collect::<Vec<_>>(), parts_ns)? || one_end)
        });
        each.map(|may| if may { 1_i64 } else { -1 }).sum::<i64>() >= 0
    }

    /// Its address, by its first connection.
    fn address(&self) -> Option<Address> {
        self.connections.iter().find_map(|connection| connection.ends).map(|ends| ends[0].0)
    }

    /// When its first packet waited for something, in nanoseconds.
    pub(super) fn begun_ns(&self) -> Option<i64> {
        self.waits.spans().first().map(|span| span.from_ns)
    }

    /// Whether one of both has what came alone, and the other what left: neither shows a round trip.
    pub(super) fn is_other_way_of(&self, other: &Self) -> bool {
        let rtt_ns = [self, other].map(|one| one.upstream_ns + one.downstream_ns);
        rtt_ns == [0; 2] && self.arrivals.points().is_empty() != other.arrivals.points().is_empty()
    }

    /// Appends the next part of a capture; returns `false` for another view of the same time, which is
    /// ignored.
    pub(super) fn go_on(&mut self, users: Vec<Self>) -> bool {
        let Some(next) = users.into_iter().next() else { return true };
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
            self.others.iter_mut().zip(&next.others).for_each(|(own, next)| own.append(next));
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
    pub(super) fn among(&self, mut users: Vec<Self>) -> Option<Self> {
        let n = users.len();
        let own = Index::of(self);
        let by = |same: &dyn Fn(&ServerSide) -> bool| {
            users.iter().position(|user| user.connections.iter().any(same))
        };
        let by_connection = by(&|theirs| own.same(theirs).is_some());
        let by_ends = || by(&|theirs| own.with_ends_of(theirs).is_some());
        let at = by_connection.or_else(by_ends).or((n == 1).then_some(0))?;
        Some(users.swap_remove(at))
    }

    /// Data that also passed at a capture nearer to the server.
    pub(super) fn pairs(&self, other: &Self) -> Vec<PointPair> {
        let of_streams = self.common(other).flat_map(|(mine, there)| mine.pairs(there));
        let of_streams: Vec<PointPair> = of_streams.collect();
        match of_streams.is_empty() {
            true => self.datagrams.pairs(&other.datagrams).collect(),
            false => of_streams,
        }
    }

    /// Whether some of its data also passed at another capture.
    pub(super) fn shares_data_with(&self, other: &Self) -> bool {
        let mut connections = self.common(other);
        connections.any(|(mine, there)| mine.pairs(there).next().is_some())
            || self.datagrams.passages(&other.datagrams).count() >= MANY_DATAGRAMS
    }
}

#[cfg(test)]
mod tests;
