//! What passed in chosen flows, packet by packet: for time-sequence graphs
//! (tcptrace's, and the paper's figures 15, 16 and 23).
//!
//! Off unless flows are chosen: a flow that is not pays one test of a flag.

use airmile_model::packet::{Packet, SeqNum, TcpFlags, TcpHeader};
use airmile_model::{Direction, TcpEventKind};

use super::flow::FlowState;
use super::rows::{direction, event_of};
use super::stream::{ByteStream, SegmentReport};

/// One packet of a traced flow, copies of the capture left out. Offsets are from
/// the first sequence number of the stream that was seen.
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
    /// What is out of the ordinary about its data, in the words of `tcp_events`.
    pub event: Option<TcpEventKind>,
    /// Offset of its first byte of payload.
    pub offset_bytes: i64,
    /// Payload in bytes.
    pub payload_bytes: u32,
    /// Of them, bytes that had not passed before.
    pub new_bytes: u64,
    /// Bytes of its sender in flight behind it.
    pub flight_bytes: u64,
    /// What it says of the other side's data.
    pub ack: Option<TracedAck>,
}

/// The acknowledgement in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedAck {
    /// Behind the last byte acknowledged so far.
    pub offset_bytes: i64,
    /// The receive window in bytes, where its scale is known.
    pub rwnd_bytes: Option<u64>,
    /// Whether it is a duplicate (RFC 5681, 2; RFC 6675).
    pub duplicate: bool,
    /// Bytes of the other side in flight behind it.
    pub flight_bytes: u64,
    /// SACK blocks, from and to; unused ones are empty.
    pub sack: [(i64, i64); 4],
}

/// What a packet may change, before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    dup_acks: u64,
}

impl FlowState {
    pub(super) fn before(&self, sender: usize) -> Option<Before> {
        if !self.traced {
            return None;
        }
        let acked = self.ends.get(1 - sender)?;
        Some(Before { dup_acks: acked.stream.losses().dup_acks })
    }

    /// The packet as [`FlowState::ingest`] left it.
    pub(super) fn traced(
        &self,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        (sender, user): (usize, u64),
        seen: SegmentReport,
        before: Before,
    ) -> TracedPacket {
        let (own, other) = (&self.ends[sender].stream, &self.ends[1 - sender].stream);
        let acks = tcp.flags.has(TcpFlags::ACK) && !tcp.flags.has(TcpFlags::RST);
        TracedPacket {
            flow: self.number,
            user,
            at_ns: packet.at_ns,
            dir: direction(sender),
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
                rwnd_bytes: other.rwnd,
                duplicate: other.losses().dup_acks > before.dup_acks,
                flight_bytes: other.flight().unsigned_abs(),
                sack: other.sack_offsets(tcp),
            }),
        }
    }
}

impl ByteStream {
    /// SACK blocks as offsets; those below what is acknowledged (RFC 2883) left out.
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
