//! The short path for the usual segment: the next data of its sender, or an ACK of new data without any.
//! Any other takes the general path ([`PacketShard::take_any`]), which gives the same result for usual
//! ones (`tests` compare them). Data of which the application's protocol still wants to see more, as of
//! HTTP, is never usual. What both paths call is inlined into each: calls are 3 % more instructions.

use airmile_model::packet::{Packet, TcpFlags, TcpHeader};

use super::flow::{Closing, FlowState};
use super::route::Route;
use super::rows::Sink;
use super::shard::PacketShard;
use super::side::Side;

impl PacketShard {
    /// Takes a usual segment; returns false, and has changed nothing, if it is of another kind.
    #[inline(never)]
    pub(super) fn take_usual(
        &mut self,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        route: Route,
    ) -> bool {
        let sender = route.sender;
        let Self { flows, users, of_one_packet, recent, options, scratch, counts, found, .. } =
            self;
        let flow = flows.get_mut(route.flow as usize).and_then(Option::as_deref_mut);
        let partition = recent.get_mut(usize::from(route.partition));
        let (Some(flow), Some(recent)) = (flow, partition) else { return false };
        if !flow.is_usual(packet, tcp, sender) {
            return false;
        }
        recent.record(flow.stream_number(sender), packet, tcp);
        let mut sink = Sink { options, rows: scratch };
        flow.ingest_usual(packet, tcp, sender, &mut sink);
        let receiver = &flow.ends[sender.other()];
        counts.super_segments += u64::from(receiver.is_exceeded_by(packet));
        let waits = receiver.has_waiting();
        let mut user = of_one_packet.user_mut(users, flow.user, &options.radio);
        if waits {
            flow.bandwidth_rows(user.as_deref_mut(), sender, false, &mut sink);
        }
        if let Some(user) = user {
            user.push(&options.radio, Self::radio_packet(flow, packet, sender));
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
    fn is_usual(&self, packet: &Packet<'_>, tcp: &TcpHeader, sender: Side) -> bool {
        let plain = tcp.flags.0 & !TcpFlags::PSH.0 == TcpFlags::ACK.0
            && tcp.window != 0
            && tcp.sack.is_empty();
        let settled = self.awake
            && self.closing == Closing::Open
            && !(sender.is_client() && self.handshake.awaits_ack())
            && !(self.traced || self.is_aside());
        let is_data = packet.payload_bytes > 0;
        // The user counts the first packet of a second at which the flow receives.
        let begins_second =
            self.receives(sender, is_data) && self.new_second(packet.at_ns).is_some();
        let is_looked_at = is_data && self.app.looks();
        if !plain || !settled || begins_second || is_looked_at {
            return false;
        }
        let (own, other) = (&self.ends[sender].stream, &self.ends[sender.other()].stream);
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
        sender: Side,
        sink: &mut Sink<'_>,
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
            self.sent(now, packet, sender, was_idle, sink);
        }
        if let Some(advance) = self.ends[sender.other()].stream.acknowledge_usual(now, tcp, window)
        {
            self.advanced(now, tcp, sender.other(), &advance, sink);
        }
        self.check_window(now, sender.other(), sink.rows);
    }
}
