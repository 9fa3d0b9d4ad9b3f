//! Packets of chosen flows, one by one: for time-sequence graphs (tcptrace's, and the
//! paper's figures 15, 16 and 23).
//!
//! Off unless flows are chosen: other flows cost one test of a flag.

use airmile_model::packet::{Packet, SeqNum, TcpFlags, TcpHeader};
use airmile_model::{Direction, TcpEventKind};

use super::flow::FlowState;
use super::rows::event_of;
use super::side::Side;
use super::stream::{ByteStream, SegmentReport};

/// One packet of a traced flow, without duplicates of the capture. Offsets count from the
/// first sequence number of the stream in the capture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracedPacket {
    /// Number of the flow.
    pub flow: u64,
    /// Number of its user session.
    pub user: u64,
    /// When it passed, in nanoseconds since the Unix epoch.
    pub at_ns: i64,
    /// Who sent it: `ul` the client, `dl` the server.
    pub dir: Direction,
    /// Sequence number of its first byte, as sent.
    pub seq: SeqNum,
    /// Its control bits.
    pub flags: TcpFlags,
    /// TSval and TSecr (RFC 7323, 3).
    pub timestamps: Option<(u32, u32)>,
    /// The `tcp_events` kind of its data, if it is out of the ordinary.
    pub event: Option<TcpEventKind>,
    /// Offset of its first byte of payload.
    pub offset_bytes: i64,
    /// Payload in bytes.
    pub payload_bytes: u32,
    /// Of them, bytes that had not passed before.
    pub new_bytes: u64,
    /// Bytes of its sender in flight after it.
    pub flight_bytes: u64,
    /// Its acknowledgement of the other side's data.
    pub ack: Option<TracedAck>,
}

/// The acknowledgement in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedAck {
    /// Offset after the last byte acknowledged so far.
    pub offset_bytes: i64,
    /// The receive window in bytes, if its scale is known.
    pub rwnd_bytes: Option<u64>,
    /// Whether it is a duplicate (RFC 5681, 2; RFC 6675).
    pub duplicate: bool,
    /// Bytes of the other side in flight after it.
    pub flight_bytes: u64,
    /// SACK blocks, from and to; unused ones are empty.
    pub sack: [(i64, i64); 4],
}

impl TracedPacket {
    /// An ACK at time 0, without payload, time stamps and what it acknowledges: what tests change.
    pub const EXAMPLE: Self = Self {
        flow: 1,
        user: 1,
        at_ns: 0,
        dir: Direction::Ul,
        seq: SeqNum(0),
        flags: TcpFlags::ACK,
        timestamps: None,
        event: None,
        offset_bytes: 0,
        payload_bytes: 0,
        new_bytes: 0,
        flight_bytes: 0,
        ack: None,
    };
}

#[cfg(test)]
impl TracedAck {
    /// An acknowledgement of all data up to an offset.
    pub(crate) const fn up_to(offset_bytes: i64) -> Self {
        let sack = [(0, 0); 4];
        Self { offset_bytes, rwnd_bytes: None, duplicate: false, flight_bytes: 0, sack }
    }
}

/// The state that a packet may change, before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    dup_acks: u64,
}

impl FlowState {
    pub(super) fn before(&self, sender: Side) -> Option<Before> {
        if !self.traced {
            return None;
        }
        let acked = &self.ends[sender.other()];
        Some(Before { dup_acks: acked.stream.losses().dup_acks })
    }

    /// The packet as [`FlowState::ingest`] left it.
    pub(super) fn traced(
        &self,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        (sender, user): (Side, u64),
        seen: SegmentReport,
        before: Before,
    ) -> TracedPacket {
        let (own, other) = (&self.ends[sender].stream, &self.ends[sender.other()].stream);
        let acks = tcp.flags.has(TcpFlags::ACK) && !tcp.flags.has(TcpFlags::RST);
        TracedPacket {
            flow: self.number,
            user,
            at_ns: packet.at_ns,
            dir: sender.dir(),
            seq: tcp.seq,
            flags: tcp.flags,
            timestamps: tcp.timestamps,
            event: event_of(seen.kind),
            offset_bytes: seen.start,
            payload_bytes: packet.payload_bytes,
            new_bytes: seen.new_bytes,
            flight_bytes: own.flight().unsigned_abs(),
            ack: acks.then(|| TracedAck {
                offset_bytes: other.acked(),
                rwnd_bytes: other.rwnd(),
                duplicate: other.losses().dup_acks > before.dup_acks,
                flight_bytes: other.flight().unsigned_abs(),
                sack: other.sack_offsets(tcp),
            }),
        }
    }
}

impl ByteStream {
    /// SACK blocks as offsets; those below the cumulative acknowledgement (RFC 2883) are
    /// left out.
    fn sack_offsets(&self, tcp: &TcpHeader) -> [(i64, i64); 4] {
        let mut out = [(0, 0); 4];
        let blocks = tcp.sack.as_slice().iter().filter_map(|&(left, right)| {
            let near = self.acked();
            let block = (self.offset_of(left, near)?, self.offset_of(right, near)?);
            (block.0 < block.1 && block.1 > near).then_some(block)
        });
        for (slot, block) in out.iter_mut().zip(blocks) {
            *slot = block;
        }
        out
    }
}
