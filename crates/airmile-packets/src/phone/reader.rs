//! The users of a capture while it is read, each as if it were the phone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use airmile_model::Direction;
use airmile_model::packet::{Address, Packet, TcpFlags, Transport};
use airmile_wire::attribute::{
    ByteBins, Datagrams, EcnBits, FollowedDatagram, PayloadBegin, QuicSenders, SenderModel,
    WaitSpan, payload_begin,
};
use airmile_wire::clocks::Arrivals;
use airmile_wire::tcp::TracedPacket;

use super::Phone;
use super::connection::{Ends, PhoneConnection};
use super::user::{ANSWER_BYTES, HANDSHAKES, OF_QUIC, User, are_of_uploads};

/// Number of addresses whose bytes outside of TCP are kept, with half as many again as slack: those
/// that received the most (chosen here).
const MOST_OTHERS: usize = 256;

/// A capture during reading.
#[derive(Debug, Default)]
pub struct PhoneReader {
    pub(super) users: BTreeMap<u64, User>,
    /// Ends of the current packet.
    pub(super) ends: Option<Ends>,
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
pub(super) const MOST_USERS: usize = 64;

impl PhoneReader {
    /// With known servers; follows the phone's exchanges and uploads if a pause is given.
    #[must_use]
    pub fn new(known: HashSet<u32>, pause_ns: Option<i64>) -> Self {
        Self { known, pause_ns, ..Self::default() }
    }

    /// The known servers of this capture and earlier ones.
    #[must_use]
    pub fn isns(&self) -> HashSet<u32> {
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
    pub fn note(&mut self, packet: &Packet<'_>) {
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
        let connection = user.connections.entry(datagram.flow).or_insert_with(|| PhoneConnection {
            sender: SenderModel::encrypted(),
            ends: Some(datagram.ends),
            ..PhoneConnection::default()
        });
        if let Some(packet) = datagram.packets.iter().flatten().next_back() {
            let up = packet.dir == Direction::Ul;
            user.ecn.count(packet.at_ns, up, self.ecn, &mut connection.ecn);
        }
        if let Some(begins) = &datagram.begins {
            connection.sender.client_payload(begins);
        }
        if let Some(rtt_ns) = datagram.upstream_rtt_ns {
            connection.sender.note_upstream_rtt_ns(rtt_ns);
        }
        for packet in datagram.packets.iter().flatten() {
            let mut held = Vec::new();
            connection.sender.push(packet, &mut held);
            if let Some(pause_ns) = self.pause_ns {
                connection.exchanges.push(packet, connection.sender.sets_up(packet), pause_ns);
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
    pub fn push(&mut self, packet: &TracedPacket) {
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
            connection.sender.client_payload(&self.begin);
        }
        self.held.clear();
        connection.sender.push(packet, &mut self.held);
        user.waits.push(&self.held, down);
        if let Some(pause_ns) = self.pause_ns {
            connection.exchanges.push(packet, connection.sender.sets_up(packet), pause_ns);
            let into = (&mut user.sends, &mut user.sent);
            connection.send(packet, &self.begin, &mut self.held, into);
        }
    }

    /// Each user as if it were the phone, which may have captured without root; those who received the
    /// most first.
    #[must_use]
    pub fn finish(self, without_root: bool) -> Vec<Phone> {
        let of = |user| Phone::of(user, without_root);
        let mut users: Vec<Phone> = self.users.into_values().map(of).collect();
        for user in &mut users {
            let to = user.address().and_then(|address| self.others_to.get(&address));
            user.arrivals = to.map_or_else(Arrivals::new, Clone::clone).merged(&user.arrivals);
        }
        users.sort_by_key(|user| std::cmp::Reverse(user.dl_bytes));
        if let [phone, other] = users.as_slice()
            && phone.is_other_family_of(other)
            && let Some((other, phone)) = users.pop().zip(users.first_mut())
        {
            phone.unite(other);
        }
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
