//! How complete a capture is, and its anomalies.

use airmile_model::packet::Packet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shard::ShardCounts;

/// Properties of a capture that decide how far to trust the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quality {
    /// IP packets.
    pub packets: u64,
    /// Of them, TCP.
    pub tcp_packets: u64,
    /// Of them, UDP.
    pub udp_packets: u64,
    /// IP bytes.
    pub ip_bytes: u64,
    /// Packets out of GTP-U tunnels.
    pub tunnelled: u64,
    /// Packets of which the capture holds less than the payload.
    pub payload_cut: u64,
    /// Packets with truncated TCP options.
    pub options_cut: u64,
    /// Duplicates in the capture, left out of everything else.
    pub copies: u64,
    /// Connections that also begin in an earlier capture, if several were given. If most
    /// do, the captures are views of the same traffic, and not studied as one.
    pub repeated_connections: u64,
    /// Connections of which the capture holds both legs, as at a split-connection proxy:
    /// the leg towards the server is in the tables, but in no sum.
    pub split_connections: u64,
    /// Packets with a time before the previous packet's.
    pub steps_back: u64,
    /// The largest such step in nanoseconds.
    pub largest_step_back_ns: i64,
    /// TCP flows that had begun before the capture.
    pub mid_flow: u64,
    /// Segments larger than the receiver's MSS: merged by offload (TSO, GRO).
    pub super_segments: u64,
    /// Sequence or acknowledgement numbers far outside the window.
    pub wild_sequences: u64,
    /// Segments captured shortly after their own ACK: the capture is out of order (two
    /// taps, several queues).
    pub late_segments: u64,
    /// First fragments of IP packets.
    pub first_fragments: u64,
    /// Other fragments, whose bytes are counted in no flow.
    pub later_fragments: u64,
    /// Datagrams reassembled from fragments.
    pub reassembled: u64,
    /// Datagrams with a missing fragment, counted as far as they were captured.
    pub incomplete_datagrams: u64,
    /// Fragments that repeat bytes of another one; the first one counts.
    pub overlapping_fragments: u64,
    /// Bytes that were acknowledged but not captured.
    pub unseen_bytes: u64,
    /// Flows whose client was inferred from the ports or the first packet alone.
    pub client_guessed: u64,
    /// Large flows that used more than the estimate of the available bandwidth, counted
    /// as full use: the windows had a lower bandwidth than the rest.
    pub use_above_available: u64,
}

impl Quality {
    /// Adds the shards' counts.
    pub(super) fn with(self, counts: ShardCounts) -> Self {
        let ShardCounts { copies, super_segments, wild_sequences, late_segments } = counts;
        Self { copies, super_segments, wild_sequences, late_segments, ..self }
    }

    /// Whether most packets are TCP, and most of these lack options: time stamps, window scale, SACK.
    #[must_use]
    pub const fn lacks_options(&self) -> bool {
        self.tcp_packets > self.udp_packets && self.options_cut > self.tcp_packets / 2
    }

    /// Records a packet whose time is this much before the previous one's.
    pub const fn stepped_back(&mut self, by_ns: i64) {
        self.steps_back += 1;
        if by_ns > self.largest_step_back_ns {
            self.largest_step_back_ns = by_ns;
        }
    }

    /// Counts a packet.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>) {
        use airmile_model::packet::Transport;
        self.packets += 1;
        self.ip_bytes += u64::from(packet.ip_bytes);
        self.tunnelled += u64::from(packet.tunnelled);
        self.payload_cut += u64::from(packet.payload_cut());
        self.first_fragments += u64::from(packet.fragmented);
        match &packet.transport {
            Transport::Tcp(tcp) => {
                self.tcp_packets += 1;
                self.options_cut += u64::from(tcp.options_cut);
            }
            Transport::Udp => self.udp_packets += 1,
            Transport::Fragment => self.later_fragments += 1,
            Transport::Icmp | Transport::Other => {}
        }
    }
}
