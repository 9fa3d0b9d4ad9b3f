//! The downlink of one user of a capture, over all its connections.

use std::collections::BTreeMap;

use airmile_model::Direction;
use airmile_model::packet::Address;

use super::phone::{FlowDownlink, OpenResponse, add};
use airmile_wire::attribute::{ByteBins, WaitSpan, WaitTimeline};
use airmile_wire::tcp::TracedPacket;

/// From this many connections of a user on, those without an answer are forgotten, but for the
/// newest (chosen here: a page has tens, a phone's hour some thousand, a scan any number).
const MAX_UNANSWERED: usize = 8_192;

/// One user of a capture.
#[derive(Debug, Default)]
pub(super) struct UserDownlink {
    pub(super) address: Option<Address>,
    pub(super) waits: WaitTimeline,
    pub(super) uplink: ByteBins,
    pub(super) arrivals: Vec<(i64, u32)>,
    /// Time and bytes of the client's acknowledgements.
    pub(super) acked: Vec<(i64, u32)>,
    pub(super) again_ns: Vec<i64>,
    pub(super) answers: Vec<(Option<Address>, OpenResponse)>,
    pub(super) requests_ns: Vec<(i64, i64)>,
    pub(super) bytes: u64,
    /// TCP packets to the phone, and from it.
    pub(super) packets: [u64; 2],
    pub(super) connections: BTreeMap<u64, FlowDownlink>,
    /// How many of them `forget_unanswered` left.
    answered: usize,
}

impl UserDownlink {
    /// Removes connections without an answer, such as those of a scan: they show nothing.
    fn forget_unanswered(&mut self) {
        let newest = self.connections.last_key_value().map_or(0, |(flow, _)| *flow);
        self.connections.retain(|flow, one| {
            let is_answered = one.bytes > 0 || one.model.upstream_rtt_ns().is_some();
            is_answered || newest.saturating_sub(*flow) < MAX_UNANSWERED as u64 / 8
        });
        self.answered = self.connections.len();
    }

    pub(super) fn push(
        &mut self,
        packet: &TracedPacket,
        (begin, pause_ns): (&[u8], i64),
        server: Option<Address>,
        held: &mut Vec<WaitSpan>,
    ) {
        if self.connections.len() >= MAX_UNANSWERED.max(2 * self.answered) {
            self.forget_unanswered();
        }
        let connection = self.connections.entry(packet.flow).or_default();
        connection.begun_ns.get_or_insert(packet.at_ns);
        connection.server = connection.server.or(server);
        let [down, up] = &mut self.packets;
        *(if packet.dir == Direction::Dl { down } else { up }) += 1;
        if packet.dir == Direction::Dl {
            connection.bytes = connection.bytes.saturating_add(packet.new_bytes);
            self.bytes = self.bytes.saturating_add(packet.new_bytes);
            add(&mut self.arrivals, packet.at_ns, packet.payload_bytes);
            if packet.payload_bytes > 0 {
                connection.pauses.push(packet.at_ns);
            }
            if packet.event.is_some_and(|event| event.is_retransmission()) {
                self.again_ns.push(packet.at_ns);
            }
            if let Some(rtt) = connection.round_trip(packet) {
                connection.rtts.push((packet.at_ns, rtt));
            }
            if packet.new_bytes > 0 {
                let wait = |at: i64| (at, packet.at_ns.saturating_sub(at));
                self.requests_ns.extend(connection.asked(packet).map(wait));
                let done = connection.data(packet, pause_ns).map(|done| (connection.server, done));
                self.answers.extend(done);
            }
        } else {
            self.uplink.add(packet.at_ns, packet.new_bytes);
            connection.model.begins_as(begin);
            let acked = connection.up(packet);
            add(&mut self.acked, packet.at_ns, acked);
            if acked > 0 {
                connection.acked_pauses.push(packet.at_ns);
            }
        }
        connection.model.push(packet, held);
        self.waits.push(held, packet.dir == Direction::Dl);
    }
}
