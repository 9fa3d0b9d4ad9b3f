//! The short path for the usual segment: the next data of its sender, or an ACK of new data without any.
//! Any other takes the general path ([`PacketShard::take_any`]), which gives the same result for usual
//! ones (`tests` compare them). Data of which the application's protocol still wants to see more, as of
//! HTTP, is never usual. What both paths call is inlined into each: calls are 3 % more instructions.

use airmile_model::flow::PacketRow;
use airmile_model::packet::{Packet, TcpFlags, TcpHeader};

use super::flow::{Closing, FlowState};
use super::options::StudyOptions;
use super::route::Route;
use super::shard::PacketShard;

impl PacketShard {
    /// Takes a usual segment; returns false, and has changed nothing, if it is of another kind.
    #[inline(never)]
    pub(super) fn take_usual(
        &mut self,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        route: Route,
    ) -> bool {
        let sender = route.sender();
        let Self { flows, users, of_one_packet, recent, options, scratch, counts, found, .. } =
            self;
        let flow = flows.get_mut(route.flow as usize).and_then(Option::as_deref_mut);
        let partition = recent.get_mut(usize::from(route.partition));
        let (Some(flow), Some(recent)) = (flow, partition) else { return false };
        if !flow.is_usual(packet, tcp, sender) {
            return false;
        }
        recent.record(flow.stream_number(sender), packet, tcp);
        flow.ingest_usual(packet, tcp, sender, options, scratch);
        let receiver = &flow.ends[1 - sender];
        counts.super_segments += u64::from(receiver.is_exceeded_by(packet));
        let waits = receiver.has_waiting();
        let mut user = of_one_packet.user_mut(users, flow.user, &options.radio);
        if waits {
            flow.bandwidth_rows(user.as_deref_mut(), sender, false, options, scratch);
        }
        if let Some(user) = user {
            user.push(&options.radio, Self::radio_packet(flow, packet, sender == 0, false));
        }
        if !scratch.is_empty() {
            Self::take_rows(found, scratch, false);
        }
        true
    }
}

impl FlowState {
    /// Whether a segment is a usual one.
    #[inline]
    fn is_usual(&self, packet: &Packet<'_>, tcp: &TcpHeader, sender: usize) -> bool {
        let plain = tcp.flags.0 & !TcpFlags::PSH.0 == TcpFlags::ACK.0
            && tcp.window != 0
            && tcp.sack.is_empty();
        let settled = self.awake
            && self.closing == Closing::Open
            && !(sender == 0 && self.handshake.awaits_ack())
            && !(self.traced || self.is_aside());
        let is_data = packet.payload_bytes > 0;
        // The user counts the first packet of a second at which the flow receives.
        let begins_second =
            self.receives(sender, is_data) && self.new_second(packet.at_ns).is_some();
        let is_looked_at = is_data && self.app.looks();
        if !plain || !settled || begins_second || is_looked_at {
            return false;
        }
        let (own, other) = (&self.ends[sender].stream, &self.ends[1 - sender].stream);
        match packet.payload_bytes {
            0 => own.is_next(tcp) && other.is_advanced_by(tcp),
            1 => false,
            _ => own.is_continued_by(tcp) && (other.is_advanced_by(tcp) || other.is_acked_to(tcp)),
        }
    }

    /// As [`ingest`](Self::ingest), for a usual segment.
    #[inline]
    fn ingest_usual(
        &mut self,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        sender: usize,
        options: &StudyOptions,
        rows: &mut Vec<PacketRow>,
    ) {
        let now = packet.at_ns;
        self.only_syns = false;
        self.options_cut |= tcp.options_cut;
        self.touch(packet, false);
        let window = self.window_of(sender, tcp);
        let end = &mut self.ends[sender];
        if let Some((value, _)) = tcp.timestamps {
            end.clock.push(now, value);
        }
        end.advertise(window, tcp.window);
        if packet.payload_bytes == 0 {
            end.stream.count(packet);
        } else {
            let was_idle = end.stream.is_idle(now);
            end.stream.continued(packet);
            self.sent(now, packet, sender, was_idle, options, rows);
        }
        if let Some(advance) = self.ends[1 - sender].stream.acknowledge_usual(now, tcp, window) {
            self.advanced(now, tcp, 1 - sender, &advance, options, rows);
        }
        self.check_window(now, 1 - sender, rows);
    }
}
