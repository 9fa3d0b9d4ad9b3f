//! Processes one TCP packet: both streams of its flow, then the results.

use airmile_model::flow::{InflightSample, PacketRow, RttSample};
use airmile_model::packet::{Packet, TcpFlags, TcpHeader};
use airmile_model::{RttSource, TcpEventKind};

use super::bandwidth::{Acked, Bandwidth};
use super::cwnd::{OwnFlight, SentSegment};
use super::episode::{DupAck, SentAgain};
use super::flow::{Closing, FlowState};
use super::route::Route;
use super::rows::{Sink, event_of};
use super::sender::SendState;
use super::shard::PacketShard;
use super::side::Side;
use super::stream::{AckKind, Advance, SegmentKind, SegmentReport};

/// One second, for concurrency (paper 4.1).
const SECOND_NS: i64 = 1_000_000_000;

impl PacketShard {
    #[inline]
    pub(super) fn tcp(&mut self, packet: &Packet<'_>, tcp: &TcpHeader, route: Route) {
        if !self.take_usual(packet, tcp, route) {
            self.take_any(packet, tcp, route);
        }
    }

    /// Takes any segment.
    #[inline(never)]
    pub(super) fn take_any(&mut self, packet: &Packet<'_>, tcp: &TcpHeader, route: Route) {
        let at = route.flow;
        let Some(mut flow) = self.take_flow(at) else { return };
        if !flow.awake {
            flow.awake = true;
            self.awake.push(at);
        }
        let sender = route.sender;
        let stream = flow.stream_number(sender);
        let fresh = flow.ends[sender].stream.is_beyond(packet, tcp)
            || flow.ends[sender].stream.is_asked_for(packet, tcp)
            || flow.ends[sender.other()].stream.is_advanced_by(tcp);
        let sure = &mut flow.ends[sender].sure_copies;
        let partition = self.recent.get_mut(usize::from(route.partition));
        let is_copy =
            partition.is_some_and(|recent| recent.is_copy(stream, packet, tcp, fresh, sure));
        if is_copy {
            self.counts.copies += 1;
        } else {
            let mut rows = std::mem::take(&mut self.scratch);
            let before = flow.before(sender);
            let mut sink = Sink { options: &self.options, rows: &mut rows };
            let seen = flow.ingest(packet, tcp, sender, &mut sink);
            if let Some(before) = before {
                let user = self.user_number(flow.user);
                self.trace.push_back(flow.traced(packet, tcp, (sender, user), seen, before));
            }
            self.counts.wild_sequences += u64::from(seen.kind == SegmentKind::OutOfWindow);
            self.around(&mut flow, packet, tcp, (at, sender), seen, &mut rows);
            if !rows.is_empty() {
                Self::take_rows(&mut self.found, &mut rows, flow.is_aside());
            }
            self.scratch = rows;
        }
        self.put_flow(at, flow, packet, sender.is_client() && !is_copy);
    }

    /// Updates the user and the application.
    #[inline]
    fn around(
        &mut self,
        flow: &mut FlowState,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        (at, sender): (u32, Side),
        seen: SegmentReport,
        rows: &mut Vec<PacketRow>,
    ) {
        let up = sender.is_client();
        self.counts.super_segments += u64::from(flow.ends[sender.other()].is_exceeded_by(packet));
        if up
            && tcp.flags.has(TcpFlags::SYN)
            && flow.handshake.syn_ns.get() == Some(packet.at_ns)
            && let Some(user) = self.user_mut(flow.user)
        {
            // A user without an earlier packet has no known idle time.
            let silent = packet.at_ns.saturating_sub(user.last_ns);
            flow.handshake.from_idle = silent >= self.options.promotion_idle_ns;
        }
        let is_data = seen.new_bytes > 0;
        if flow.receives(sender, is_data) && !flow.is_aside() {
            self.concurrency(flow, at, packet.at_ns);
        }
        if is_data && packet.payload_bytes > 0 && flow.app.looks() {
            let place = flow.place(self.user_number(flow.user), up);
            flow.app.push(place, packet, rows);
        }
        if flow.ends[sender.other()].has_waiting() {
            // One with data, so of more than a packet.
            let user = self.users.get_mut(flow.user as usize).and_then(Option::as_mut);
            let mut sink = Sink { options: &self.options, rows: &mut *rows };
            flow.bandwidth_rows(user.map(AsMut::as_mut), sender, false, &mut sink);
        }
        if !flow.is_aside() {
            self.radio(flow, packet, sender);
        }
    }

    /// Notes that a flow receives, and which others do in the same second.
    #[inline]
    pub(super) fn concurrency(&mut self, flow: &mut FlowState, at: u32, now: i64) {
        if let Some(second) = flow.new_second(now) {
            self.receives_in(flow, at, second);
        }
    }

    #[cold]
    fn receives_in(&mut self, flow: &mut FlowState, at: u32, second: i64) {
        flow.active_second = second;
        let Some(user) = self.user_mut(flow.user) else { return };
        if user.receives(second, at) > 0 {
            flow.shared = true;
            let first = user.first_in_second.get();
            first.into_iter().for_each(|first| self.of_one_packet.share(first, flow.user));
            let other = first.and_then(|first| self.flows.get_mut(first as usize)?.as_mut());
            // The index may be reused by another user.
            if let Some(other) = other.filter(|other| other.user == flow.user) {
                other.shared = true;
            }
        }
    }
}

impl FlowState {
    /// The second of a time, if it is not the one in which the flow last received.
    #[inline]
    pub(super) fn new_second(&self, now: i64) -> Option<i64> {
        Some(now.div_euclid(SECOND_NS)).filter(|second| self.active_second != *second)
    }

    /// Takes a packet that is no duplicate.
    #[inline]
    pub(super) fn ingest(
        &mut self,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        sender: Side,
        sink: &mut Sink<'_>,
    ) -> SegmentReport {
        let now = packet.at_ns;
        let (syn, ack) = (tcp.flags.has(TcpFlags::SYN), tcp.flags.has(TcpFlags::ACK));
        if packet.fragmented
            && now < self.last_ns
            && let Some(seen) = self.ends[sender].stream.incomplete(packet, tcp)
        {
            return seen;
        }
        self.greet(now, tcp, sender.is_client());
        self.only_syns &= syn && !ack;
        self.options_cut |= tcp.options_cut;
        if syn {
            self.ends[sender].offered(tcp);
        }
        // A SYN may have waited for the radio's promotion after its time stamp was set.
        if let Some((value, _)) = tcp.timestamps.filter(|_| !syn) {
            self.ends[sender].clock.push(now, value);
        }
        let was_idle = self.ends[sender].stream.is_idle(now);
        let in_timeout = self.ends[sender].stream.after_timeout();
        let beyond_ns = || self.handshake.beyond_ns(sender);
        let seen = self.ends[sender].stream.segment(packet, tcp, beyond_ns);
        let probe = matches!(seen.kind, SegmentKind::KeepAlive | SegmentKind::WindowProbe);
        self.touch(packet, probe);
        if let Some(name) = event_of(seen.kind) {
            self.note(packet, sender, (seen, name), sink);
        }
        if let SegmentKind::Retransmission(cause) = seen.kind {
            let end = &mut self.ends[sender];
            end.episodes.sent_again(&SentAgain {
                at_ns: now,
                offset: seen.start,
                sent_to: end.stream.next(),
                cause,
                in_timeout,
                beyond_ns: self.handshake.beyond_ns(sender),
            });
        }
        if seen.new_bytes > 0 || matches!(seen.kind, SegmentKind::Retransmission(_)) {
            self.sent(now, packet, sender, was_idle, sink);
        }
        if tcp.flags.has(TcpFlags::RST) {
            if self.closing == Closing::Open {
                self.closing = Closing::Rst;
            }
        } else if ack {
            let window = self.window_of(sender, tcp);
            if !syn && self.ends[sender].advertise(window, tcp.window) {
                self.event(now, sender.other(), TcpEventKind::ZeroWindow, 0, 0, sink.rows);
            }
            let bare = packet.payload_bytes == 0 && !syn && !tcp.flags.has(TcpFlags::FIN) && !probe;
            let kind = self.ends[sender.other()].stream.acknowledge(now, tcp, bare, window);
            self.acknowledged(now, tcp, sender.other(), kind, sink);
        }
        if tcp.flags.has(TcpFlags::FIN) && self.closing == Closing::Open {
            self.closing = Closing::Fin;
        }
        seen
    }

    /// Adds the row and counters of a segment that is out of the ordinary.
    #[cold]
    fn note(
        &mut self,
        packet: &Packet<'_>,
        sender: Side,
        (seen, name): (SegmentReport, TcpEventKind),
        sink: &mut Sink<'_>,
    ) {
        self.keep_alives += u32::from(seen.kind == SegmentKind::KeepAlive);
        self.window_probes += u32::from(seen.kind == SegmentKind::WindowProbe);
        if matches!(
            seen.kind,
            SegmentKind::New { ahead: true }
                | SegmentKind::Reordered
                | SegmentKind::Retransmission(_)
                | SegmentKind::OutOfWindow
        ) && let Some(bandwidth) = &mut self.ends[sender].bandwidth
        {
            bandwidth.disturb(sink.options.send_rate_threshold);
        }
        self.event(
            packet.at_ns,
            sender,
            name,
            seen.start,
            u64::from(packet.payload_bytes),
            sink.rows,
        );
    }

    /// Takes data of an end: its window, the receiver's, and bursts.
    #[inline(always)]
    pub(super) fn sent(
        &mut self,
        now: i64,
        packet: &Packet<'_>,
        sender: Side,
        was_idle: bool,
        sink: &mut Sink<'_>,
    ) {
        let end = &mut self.ends[sender];
        let flight = end.stream.flight();
        let phase = end.sender.push(&SendState {
            in_recovery: end.stream.in_recovery(),
            after_timeout: end.stream.after_timeout(),
            was_idle,
            flight,
            acked: end.stream.acked(),
            next: end.stream.next(),
        });
        if sender == Side::Server {
            self.dl_flights.push(flight);
        }
        if sink.options.tables.inflight_samples {
            let largest = end.stream.largest_segment;
            let own =
                end.own_flight.get_or_insert_with(Box::<OwnFlight>::default).sent(&SentSegment {
                    at_ns: now,
                    ts_ecr: packet.tcp().and_then(|tcp| tcp.timestamps).map(|(_, echo)| echo),
                    upstream_ns: self.handshake.beyond_ns(sender),
                    next: end.stream.next(),
                    mss: largest.into(),
                    is_full: packet.payload_bytes >= largest,
                    rwnd: end.stream.rwnd(),
                    phase,
                });
            sink.rows.push(PacketRow::Inflight(InflightSample {
                flow: self.number,
                time_ns: now,
                dir: sender.dir(),
                flight_bytes: flight.unsigned_abs(),
                sender_flight_bytes: own.flight.unsigned_abs(),
                cwnd_bytes: own.cwnd.map(i64::unsigned_abs),
                rwnd_bytes: end.stream.rwnd(),
                phase,
            }));
        }
        let over = end.episodes.data(now, i64::from(packet.payload_bytes));
        if let Some(over) = over {
            self.episode_row(sender, &over, sink.options.min_rto_ns, sink.rows);
        }
        self.check_window(now, sender, sink.rows);
    }

    #[inline]
    pub(super) fn check_window(&mut self, now: i64, sender: Side, rows: &mut Vec<PacketRow>) {
        let mss = self.ends[sender.other()].offer.mss_bytes.map(u32::from);
        let established = self.handshake.ack_ns.is_some() || self.mid_flow;
        let end = &mut self.ends[sender];
        if !established || end.stream.totals.bytes == 0 {
            return;
        }
        let mss = mss.unwrap_or(end.stream.largest_segment).min(end.stream.largest_segment.max(1));
        let flight = end.stream.flight();
        if end.full.push(now, flight, end.stream.rwnd(), mss) {
            let next = end.stream.next();
            self.event(now, sender, TcpEventKind::WindowFull, next, 0, rows);
        }
    }

    /// Takes an acknowledgement of new data of `data`'s stream.
    #[inline(always)]
    pub(super) fn advanced(
        &mut self,
        now: i64,
        tcp: &TcpHeader,
        data: Side,
        advance: &Advance,
        sink: &mut Sink<'_>,
    ) {
        let Advance { segments, rtt_ns, sent_ns, first_ns } = *advance;
        let end = &mut self.ends[data];
        if let Some(rtt_ns) = rtt_ns
            && sink.options.tables.rtt_samples
        {
            sink.rows.push(PacketRow::Rtt(RttSample {
                flow: self.number,
                time_ns: now,
                dir: data.dir(),
                rtt_ns,
                flight_bytes: end.stream.flight().unsigned_abs(),
                by: RttSource::Ack,
            }));
        }
        if let Some(own) = &mut end.own_flight {
            own.acknowledged(now, end.stream.acked(), tcp.timestamps.map(|(value, _)| value));
        }
        if end.episodes.is_open() {
            let at = (now, end.stream.received_to());
            end.episodes.repaired(at, first_ns, end.stream.rtt.least());
        }
        if let (Some(sent_ns), Some(first_sent_ns), Some((value, _))) =
            (sent_ns, first_ns, tcp.timestamps)
            && rtt_ns.is_some()
        {
            let bandwidth = end.bandwidth.get_or_insert_with(Box::<Bandwidth>::default);
            let threshold = sink.options.send_rate_threshold;
            bandwidth.share(self.shared);
            let acked = Acked {
                at_ns: now,
                ticks: value,
                edge: end.stream.acked(),
                sent_ns,
                first_sent_ns,
                segments,
                stopped: end.stream.flight() == 0 || end.stream.is_stopped_by_reader(),
            };
            bandwidth.push(&acked, threshold);
        }
    }

    /// Takes an acknowledgement of `data`'s stream.
    #[inline]
    fn acknowledged(
        &mut self,
        now: i64,
        tcp: &TcpHeader,
        data: Side,
        kind: AckKind,
        sink: &mut Sink<'_>,
    ) {
        let number = self.number;
        let end = &mut self.ends[data];
        match kind {
            AckKind::Advance(advance) => {
                self.advanced(now, tcp, data, &advance, sink);
            }
            AckKind::Duplicate { rtt_ns } => {
                if let Some(bandwidth) = &mut end.bandwidth {
                    bandwidth.disturb(sink.options.send_rate_threshold);
                }
                let dup = DupAck {
                    at_ns: now,
                    offset: end.stream.acked(),
                    flight: end.stream.flight(),
                    rtt_ns,
                    rto: end.stream.rto,
                    beyond_ns: self.handshake.beyond_ns(data),
                };
                let over = end.episodes.dup_ack(&dup, end.stream.rtt.last());
                let offset = dup.offset;
                if let (Some(rtt_ns), true) = (rtt_ns, sink.options.tables.rtt_samples) {
                    let flight_bytes = dup.flight.unsigned_abs();
                    let by = if tcp.sack.is_empty() { RttSource::Order } else { RttSource::Sack };
                    let dir = data.dir();
                    let sample =
                        RttSample { flow: number, time_ns: now, dir, rtt_ns, flight_bytes, by };
                    sink.rows.push(PacketRow::Rtt(sample));
                }
                self.event(now, data, TcpEventKind::DupAck, offset, 0, sink.rows);
                if let Some(over) = over {
                    self.episode_row(data, &over, sink.options.min_rto_ns, sink.rows);
                }
            }
            AckKind::WindowUpdate | AckKind::Same | AckKind::Old => {}
        }
        // After it, as the ACK may be the one that repairs.
        let end = &mut self.ends[data];
        if let Some(twice) = end.stream.d_sack() {
            end.episodes.came_twice(twice);
        }
        self.check_window(now, data, sink.rows);
    }
}
