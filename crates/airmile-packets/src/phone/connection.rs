//! A connection's server side in one capture, and the same one in another.

use std::collections::HashMap;

use airmile_model::Direction;
use airmile_model::packet::{Address, TcpFlags};
use airmile_wire::attribute::{
    ByteBins, EcnFeedback, Exchanges, Marks, Passage, SenderModel, UploadQueue, Uploads,
};
use airmile_wire::clocks::PointPair;
use airmile_wire::tcp::TracedPacket;

use super::Phone;

/// Both ends of a connection, the client's first.
pub(super) type Ends = [(Address, u16); 2];

/// A connection's server side.
#[derive(Debug, Default)]
pub(super) struct PhoneConnection {
    pub(super) sender: SenderModel,
    /// The client's side over TCP, as if the capture were taken at it.
    pub(super) sending: Option<SenderModel>,
    pub(super) uploads: Uploads,
    pub(super) ends: Option<Ends>,
    /// Sequence numbers of the SYN and the SYN-ACK: a proxy that splits has others.
    pub(super) client_isn: Option<u32>,
    pub(super) server_isn: Option<u32>,
    /// The queue of what the phone sends on it.
    pub(super) upload: UploadQueue,
    pub(super) ecn: EcnFeedback,
    pub(super) exchanges: Exchanges,
    /// Payload towards the phone.
    pub(super) received: ByteBins,
    /// When bytes passed, counted from the connection's start.
    pub(super) down: Marks,
    pub(super) up: Marks,
    pub(super) acks: Marks,
    /// Those of the server.
    pub(super) server_acks: Marks,
}

impl PhoneConnection {
    /// Whether both are the same connection. Address translation may have changed the client's end;
    /// a proxy that splits has another sequence number.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.server_isn.is_some()
            && (self.client_isn, self.server_isn) == (other.client_isn, other.server_isn)
            && self.ends.map(|ends| ends[1]) == other.ends.map(|ends| ends[1])
    }

    /// Marks the end of a packet's bytes.
    pub(super) fn mark(&mut self, packet: &TracedPacket) {
        if self.server_isn.is_none() || packet.flags.has(TcpFlags::SYN) {
            return;
        }
        let end = packet.offset_bytes + i64::from(packet.payload_bytes);
        let fresh = packet.new_bytes > 0 && packet.event.is_none();
        if packet.new_bytes == 0 && packet.payload_bytes > 0 {
            let marks = if packet.dir == Direction::Dl { &mut self.down } else { &mut self.up };
            marks.again(packet.offset_bytes, end);
        }
        match (packet.dir, packet.ack) {
            (Direction::Dl, _) if fresh => self.down.add(end, packet.at_ns),
            (Direction::Dl, ack) => {
                if let Some(ack) = ack.filter(|ack| !ack.duplicate) {
                    self.server_acks.add(ack.offset_bytes, packet.at_ns);
                }
            }
            (_, ack) => {
                if fresh {
                    self.up.add(end, packet.at_ns);
                }
                if let Some(ack) = ack.filter(|ack| !ack.duplicate) {
                    self.acks.add(ack.offset_bytes, packet.at_ns);
                }
            }
        }
    }

    /// Data towards the phone that also passed at the server.
    pub(super) fn passages<'a>(&'a self, server: &'a Self) -> impl Iterator<Item = Passage> + 'a {
        self.down
            .pairs(&server.down, false)
            .map(|pair| Passage { sent_ns: pair.other_ns, arrived_ns: pair.reference_ns })
    }

    /// Marks of the stream that also passed at another capture, nearer to the server.
    pub(super) fn pairs<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = PointPair> + 'a {
        // A splitting proxy sends its own acknowledgements.
        let whole = self.is(other);
        let acks = self.acks.pairs(&other.acks, true).filter(move |_| whole);
        // Of an upload nothing else comes back.
        let answers = self.server_acks.pairs(&other.server_acks, false);
        let answers = answers.filter(move |_| whole && self.down.is_empty());
        let down = self.down.pairs(&other.down, false).chain(answers);
        self.up.pairs(&other.up, true).chain(acks).chain(down)
    }
}

/// Connections by their identifying properties.
pub(super) struct Index<'a> {
    by_isn: HashMap<u32, Vec<&'a PhoneConnection>>,
    by_ends: HashMap<Ends, &'a PhoneConnection>,
}

impl<'a> Index<'a> {
    pub(super) fn of(phone: &'a Phone) -> Self {
        let mut index = Self { by_isn: HashMap::new(), by_ends: HashMap::new() };
        for connection in &phone.connections {
            if let Some(isn) = connection.server_isn {
                index.by_isn.entry(isn).or_default().push(connection);
            }
            if let Some(ends) = connection.ends {
                index.by_ends.entry(ends).or_insert(connection);
            }
        }
        index
    }

    /// The same connection, seen at another place: that of the same ends, if sequence numbers of small
    /// stacks start alike; ends may be translated on the way.
    pub(super) fn same(&self, other: &PhoneConnection) -> Option<&'a PhoneConnection> {
        let exact = self.with_ends_of(other).filter(|own| own.is(other));
        let isn = other.server_isn.and_then(|isn| self.by_isn.get(&isn));
        exact.or_else(|| isn?.iter().copied().find(|own| own.is(other)))
    }

    /// The one with the same ends, possibly split by a proxy.
    pub(super) fn with_ends_of(&self, other: &PhoneConnection) -> Option<&'a PhoneConnection> {
        self.by_ends.get(&other.ends?).copied()
    }

    /// The same, or else the one with the same ends.
    pub(super) fn find(&self, other: &PhoneConnection) -> Option<&'a PhoneConnection> {
        self.same(other).or_else(|| self.with_ends_of(other))
    }
}
