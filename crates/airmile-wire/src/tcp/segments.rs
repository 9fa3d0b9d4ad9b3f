//! One TCP packet through a flow: both streams, then what is made of them.

use airmile_model::flow::{BandwidthSample, InflightSample, PacketRow, RttSample, TcpEvent};
use airmile_model::packet::{Packet, TcpFlags, TcpHeader};

use super::bandwidth::{Acked, Bandwidth, Window};
use super::cwnd::{OwnFlight, SentSegment};
use super::episode::{DupAck, Episode};
use super::flow::{Closing, Flow};
use super::options::StudyOptions;
use super::route::Route;
use super::sender::SendState;
use super::shard::PacketShard;
use super::stream::{AckKind, Kind, Seen, Why};
use super::user::User;

/// One second, for concurrency (paper 4.1).
const SECOND_NS: i64 = 1_000_000_000;

/// Name of the direction that an end sends in: the client's is `ul`.
pub(super) const fn direction(end: usize) -> &'static str {
    if end == 0 { "ul" } else { "dl" }
}

/// What `tcp_events` calls a segment, if it is out of the ordinary.
pub(super) const fn event_of(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Bare | Kind::New { ahead: false } => return None,
        Kind::New { ahead: true } => "ahead",
        Kind::Reordered => "reordered",
        Kind::Retransmission(Why::Fast) => "retx_fast",
        Kind::Retransmission(Why::Timeout) => "retx_timeout",
        Kind::Retransmission(Why::TailLossProbe) => "retx_probe",
        Kind::Retransmission(Why::Spurious) => "retx_spurious",
        Kind::Retransmission(Why::Unknown) => "retx_other",
        Kind::KeepAlive => "keep_alive",
        Kind::WindowProbe => "window_probe",
        Kind::HandshakeAgain => "syn_again",
        Kind::CloseAgain => "fin_again",
        Kind::Wild => "wild_sequence",
    })
}

impl PacketShard {
    pub(super) fn tcp(&mut self, packet: &Packet<'_>, tcp: &TcpHeader, route: Route) {
        let at = route.flow;
        let Some(mut flow) = self.flows.get_mut(at as usize).and_then(Option::take) else { return };
        if !flow.awake {
            flow.awake = true;
            self.awake.push(at);
        }
        // Known to be 0 or 1, so that neither end is looked for beyond the two.
        let sender = usize::from(route.sender & 1);
        let stream = flow.number << 1 | sender as u64;
        let fresh = flow.ends[sender].stream.is_beyond(packet, tcp)
            || flow.ends[1 - sender].stream.is_advanced_by(tcp);
        let sure = &mut flow.ends[sender].sure_copies;
        let lane = self.recent.get_mut(usize::from(route.lane));
        if lane.is_some_and(|recent| recent.is_copy(stream, packet, tcp, fresh, sure)) {
            self.counts.copies += 1;
        } else {
            let mut rows = std::mem::take(&mut self.scratch);
            let before = flow.before(sender);
            let seen = flow.take(packet, tcp, sender, &self.options, &mut rows);
            if let Some(before) = before {
                let user = self.user_number(flow.user);
                self.trace.push_back(flow.traced(packet, tcp, (sender, user), seen, before));
            }
            self.counts.wild_sequences += u64::from(seen.kind == Kind::Wild);
            self.around(&mut flow, packet, tcp, (at, sender), seen, &mut rows);
            if !rows.is_empty() {
                self.take_rows(&mut rows, flow.is_aside());
            }
            self.scratch = rows;
        }
        if let Some(slot) = self.flows.get_mut(at as usize) {
            *slot = Some(flow);
        }
    }

    /// What concerns the user and the application.
    #[inline]
    fn around(
        &mut self,
        flow: &mut Flow,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        (at, sender): (u32, usize),
        seen: Seen,
        rows: &mut Vec<PacketRow>,
    ) {
        let up = sender == 0;
        if let Some(mss) = flow.ends[1 - sender].offer.mss_bytes
            && packet.payload_bytes > u32::from(mss)
        {
            self.counts.super_segments += 1;
        }
        if up
            && tcp.flags.has(TcpFlags::SYN)
            && flow.handshake.syn_ns.get() == Some(packet.at_ns)
            && let Some(user) = self.users.get(flow.user as usize).and_then(Option::as_ref)
        {
            // A user without an earlier packet has no known idle time.
            let silent = packet.at_ns - user.last_ns;
            flow.handshake.from_idle = silent >= self.options.promotion_idle_ns;
        }
        let is_data = seen.new_bytes > 0;
        if is_data && !up && !flow.is_aside() {
            self.concurrency(flow, at, packet.at_ns);
        }
        if is_data && packet.payload_bytes > 0 && flow.app.looks() {
            let place = flow.place(self.user_number(flow.user), up);
            flow.app.push(place, packet, rows);
        }
        if flow.ends[1 - sender].bandwidth.as_ref().is_some_and(|b| b.has_waiting()) {
            let user = self.users.get_mut(flow.user as usize).and_then(Option::as_mut);
            flow.bandwidth_rows(user.map(AsMut::as_mut), sender, false, &self.options, rows);
        }
        if !flow.is_aside() {
            let closing = packet.payload_bytes == 0 && flow.closing != Closing::Open;
            self.radio(flow, packet, up, closing);
        }
    }

    /// Notes that a flow receives, and which others do in the same second.
    pub(super) fn concurrency(&mut self, flow: &mut Flow, at: u32, now: i64) {
        let second = now.div_euclid(SECOND_NS);
        if flow.active_second == second {
            return;
        }
        flow.active_second = second;
        let Some(user) = self.users.get_mut(flow.user as usize).and_then(Option::as_mut) else {
            return;
        };
        if user.receives(second, at) > 0 {
            flow.shared = true;
            let first = user.first_in_second;
            let other = first.and_then(|first| self.flows.get_mut(first as usize)?.as_mut());
            // The place may be another user's by now.
            if let Some(other) = other.filter(|other| other.user == flow.user) {
                other.shared = true;
            }
        }
    }
}

impl Flow {
    /// Takes a packet that is no copy.
    #[inline]
    fn take(
        &mut self,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        sender: usize,
        options: &StudyOptions,
        rows: &mut Vec<PacketRow>,
    ) -> Seen {
        let (now, sender) = (packet.at_ns, sender & 1);
        let (syn, ack) = (tcp.flags.has(TcpFlags::SYN), tcp.flags.has(TcpFlags::ACK));
        self.greet(now, tcp, sender == 0);
        self.only_syns &= syn && !ack;
        if syn {
            self.ends[sender].offered(tcp);
        }
        // A SYN may have waited for the radio's promotion behind its time stamp.
        if let Some((value, _)) = tcp.timestamps.filter(|_| !syn) {
            self.ends[sender].clock.push(now, value);
        }
        let beyond = self.beyond_ns[sender];
        let was_idle = self.ends[sender].stream.flight() == 0
            && now - self.ends[sender].stream.last_sent_ns() > SECOND_NS;
        let in_timeout = self.ends[sender].stream.after_timeout();
        let seen = self.ends[sender].stream.segment(packet, tcp, beyond);
        let probe = matches!(seen.kind, Kind::KeepAlive | Kind::WindowProbe);
        self.touch(packet, probe);
        self.note(now, packet, sender, seen, rows);
        if let Kind::Retransmission(why) = seen.kind {
            let end = &mut self.ends[sender];
            let place = (seen.start, end.stream.next());
            end.episodes.sent_again(now, place, (why, in_timeout), beyond);
        }
        if seen.new_bytes > 0 || matches!(seen.kind, Kind::Retransmission(_)) {
            self.sent(now, packet, sender, was_idle, options, rows);
        }
        if tcp.flags.has(TcpFlags::RST) {
            if self.closing == Closing::Open {
                self.closing = Closing::Rst;
            }
        } else if ack {
            let window = self.window_of(sender, tcp);
            if !syn && self.ends[sender].advertise(window, tcp.window) {
                self.event(now, 1 - sender, "zero_window", 0, 0, rows);
            }
            let bare = packet.payload_bytes == 0 && !syn && !tcp.flags.has(TcpFlags::FIN) && !probe;
            let kind = self.ends[1 - sender].stream.acknowledge(now, tcp, bare, window);
            self.acknowledged(now, tcp, 1 - sender, kind, options, rows);
        }
        if tcp.flags.has(TcpFlags::FIN) && self.closing == Closing::Open {
            self.closing = Closing::Fin;
        }
        seen
    }

    /// Rows and counters of what a segment is.
    fn note(
        &mut self,
        now: i64,
        packet: &Packet<'_>,
        sender: usize,
        seen: Seen,
        rows: &mut Vec<PacketRow>,
    ) {
        let Some(name) = event_of(seen.kind) else { return };
        self.keep_alives += u32::from(seen.kind == Kind::KeepAlive);
        self.window_probes += u32::from(seen.kind == Kind::WindowProbe);
        if matches!(
            seen.kind,
            Kind::New { ahead: true } | Kind::Reordered | Kind::Retransmission(_) | Kind::Wild
        ) && let Some(bandwidth) = &mut self.ends[sender].bandwidth
        {
            bandwidth.disturb();
        }
        self.event(now, sender, name, seen.start, u64::from(packet.payload_bytes), rows);
    }

    /// A row of `tcp_events` about the data of `end`.
    fn event(
        &self,
        now: i64,
        end: usize,
        event: &'static str,
        offset_bytes: i64,
        bytes: u64,
        rows: &mut Vec<PacketRow>,
    ) {
        if !self.wants_events {
            return;
        }
        let flight = self.ends[end].stream.flight();
        rows.push(PacketRow::Tcp(Box::new(TcpEvent {
            flow: self.number,
            time_ns: now,
            dir: direction(end),
            event,
            offset_bytes,
            bytes,
            flight_bytes: flight.unsigned_abs(),
            dup_acks: None,
            r_ss: None,
            rtt_before_ns: None,
            rtt_during_ns: None,
            rtt_retx_ns: None,
            rto_ns: None,
            rto_with_dup_acks_ns: None,
            avoided: None,
            timer_too_soon: None,
        })));
    }

    /// Data of an end passed: its window, the receiver's, and bursts.
    #[inline]
    fn sent(
        &mut self,
        now: i64,
        packet: &Packet<'_>,
        sender: usize,
        was_idle: bool,
        options: &StudyOptions,
        rows: &mut Vec<PacketRow>,
    ) {
        let upstream_ns = self.beyond_ns[sender];
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
        if sender == 1 {
            end.flight_counts.push(flight);
        }
        if options.tables.inflight_samples {
            let largest = end.stream.largest_segment;
            let own =
                end.own_flight.get_or_insert_with(Box::<OwnFlight>::default).sent(&SentSegment {
                    at_ns: now,
                    ts_ecr: packet.tcp().and_then(|tcp| tcp.timestamps).map(|(_, echo)| echo),
                    upstream_ns,
                    next: end.stream.next(),
                    mss: largest.into(),
                    is_full: packet.payload_bytes >= largest,
                    rwnd: end.stream.rwnd,
                    phase,
                });
            rows.push(PacketRow::Inflight(InflightSample {
                flow: self.number,
                time_ns: now,
                dir: direction(sender),
                flight_bytes: flight.unsigned_abs(),
                sender_flight_bytes: own.flight.unsigned_abs(),
                cwnd_bytes: own.cwnd.map(i64::unsigned_abs),
                rwnd_bytes: end.stream.rwnd,
                phase: phase.as_str(),
            }));
        }
        let over = end.episodes.data(now, i64::from(packet.payload_bytes));
        if let Some(over) = over {
            self.episode_row(sender, &over, options.min_rto_ns, rows);
        }
        self.check_window(now, sender, rows);
    }

    #[inline]
    fn check_window(&mut self, now: i64, sender: usize, rows: &mut Vec<PacketRow>) {
        let mss = self.ends[1 - sender].offer.mss_bytes.map(u32::from);
        let established = self.handshake.ack_ns.is_some() || self.mid_flow;
        let end = &mut self.ends[sender];
        if !established || end.stream.totals.bytes == 0 {
            return;
        }
        let mss = mss.unwrap_or(end.stream.largest_segment).min(end.stream.largest_segment.max(1));
        let flight = end.stream.flight();
        if end.full.push(now, flight, end.stream.rwnd, mss) {
            let next = end.stream.next();
            self.event(now, sender, "window_full", next, 0, rows);
        }
    }

    /// What an acknowledgement of `data`'s stream tells.
    #[inline]
    fn acknowledged(
        &mut self,
        now: i64,
        tcp: &TcpHeader,
        data: usize,
        kind: AckKind,
        options: &StudyOptions,
        rows: &mut Vec<PacketRow>,
    ) {
        let number = self.number;
        let beyond = self.beyond_ns[data];
        let end = &mut self.ends[data];
        if let Some(twice) = end.stream.d_sack() {
            end.episodes.came_twice(twice);
        }
        match kind {
            AckKind::Advance { segments, rtt_ns, sent_ns, first_ns, .. } => {
                if let Some(rtt_ns) = rtt_ns
                    && options.tables.rtt_samples
                {
                    rows.push(PacketRow::Rtt(RttSample {
                        flow: number,
                        time_ns: now,
                        dir: direction(data),
                        rtt_ns,
                        flight_bytes: end.stream.flight().unsigned_abs(),
                        by: "ack",
                    }));
                }
                if let Some(own) = &mut end.own_flight {
                    own.acknowledged(
                        now,
                        end.stream.acked(),
                        tcp.timestamps.map(|(value, _)| value),
                    );
                }
                if end.episodes.is_open() {
                    end.episodes.repaired(
                        (now, end.stream.received_to()),
                        first_ns,
                        end.stream.rtt.least(),
                    );
                }
                if let (Some(sent), Some((value, _))) = (sent_ns, tcp.timestamps)
                    && rtt_ns.is_some()
                {
                    let bandwidth = end.bandwidth.get_or_insert_with(Box::<Bandwidth>::default);
                    let bar = options.send_rate_bar;
                    bandwidth.share(self.shared);
                    let acked = Acked {
                        at_ns: now,
                        ticks: value,
                        edge: end.stream.acked(),
                        sent_ns: sent,
                        segments,
                        stopped: end.stream.flight() == 0 || end.stream.is_stopped_by_reader(),
                    };
                    bandwidth.push(&acked, bar);
                }
            }
            AckKind::Duplicate { rtt_ns } => {
                if let Some(bandwidth) = &mut end.bandwidth {
                    bandwidth.disturb();
                }
                let dup = DupAck {
                    at_ns: now,
                    offset: end.stream.acked(),
                    flight: end.stream.flight(),
                    rtt_ns,
                    rto: end.stream.rto,
                    beyond_ns: beyond,
                };
                let over = end.episodes.dup_ack(&dup, end.stream.rtt.last());
                let offset = dup.offset;
                if let (Some(rtt_ns), true) = (rtt_ns, options.tables.rtt_samples) {
                    let flight_bytes = dup.flight.unsigned_abs();
                    let by = if tcp.sack.is_empty() { "order" } else { "sack" };
                    let dir = direction(data);
                    let sample =
                        RttSample { flow: number, time_ns: now, dir, rtt_ns, flight_bytes, by };
                    rows.push(PacketRow::Rtt(sample));
                }
                self.event(now, data, "dup_ack", offset, 0, rows);
                if let Some(over) = over {
                    self.episode_row(data, &over, options.min_rto_ns, rows);
                }
            }
            AckKind::WindowUpdate | AckKind::Same | AckKind::Old => {}
        }
        self.check_window(now, data, rows);
    }

    /// The row of a burst of duplicate ACKs that is over.
    pub(super) fn episode_row(
        &self,
        data: usize,
        over: &Episode,
        min_rto_ns: i64,
        rows: &mut Vec<PacketRow>,
    ) {
        rows.push(PacketRow::Tcp(Box::new(TcpEvent {
            flow: self.number,
            time_ns: over.last_dup_ns,
            dir: direction(data),
            event: if over.is_slow_start() { "slow_start" } else { "recovered" },
            offset_bytes: over.offset,
            bytes: 0,
            flight_bytes: over.flight.unsigned_abs(),
            dup_acks: Some(over.dup_acks.into()),
            r_ss: over.r_ss(),
            rtt_before_ns: over.rtt_before_ns,
            rtt_during_ns: over.rtt_during_ns,
            rtt_retx_ns: over.rtt_retx_ns,
            rto_ns: over.rto_ns(),
            rto_with_dup_acks_ns: over.rto_with_ns(),
            avoided: over.avoided(min_rto_ns),
            timer_too_soon: Some(over.timer_too_soon()),
        })));
    }

    /// Samples of the available bandwidth of the data that `receiver` takes.
    pub(super) fn bandwidth_rows(
        &mut self,
        mut user: Option<&mut User>,
        receiver: usize,
        at_end: bool,
        options: &StudyOptions,
        rows: &mut Vec<PacketRow>,
    ) {
        let data = 1 - receiver;
        let alone = receiver == 1 || self.is_aside();
        let waiting = |b: &&mut Box<Bandwidth>| at_end || b.has_waiting();
        let Some(bandwidth) = self.ends[data].bandwidth.as_mut().filter(waiting) else { return };
        let own = self.ends[receiver].clock.tick_ns();
        let Some(tick_ns) = own.or(self.device_tick_ns.filter(|_| at_end && receiver == 0)) else {
            return;
        };
        for window in bandwidth.take(tick_ns, at_end) {
            let mut place = (0, 1);
            if let Some(user) = &mut user {
                let flows = if alone { 1 } else { user.together.flows_at(window.middle_ns()) };
                place = (user.number, flows);
                if flows > 1 {
                    let (numbers, bar) = ((user.number, self.number), options.send_rate_bar);
                    rows.extend(user.together.push(numbers, &window, tick_ns, bar));
                }
            }
            if window.enough {
                rows.push(bandwidth_row(self.number, place, data, &window, tick_ns));
            }
        }
    }

    /// An RTT between monitor and client, by the spin bit.
    pub(super) fn spin_rtt(&mut self, now: i64, rtt_ns: i64, rows: &mut Vec<PacketRow>) {
        self.ends[1].stream.rtt.push(rtt_ns);
        rows.push(PacketRow::Rtt(RttSample {
            flow: self.number,
            time_ns: now,
            dir: "dl",
            rtt_ns,
            flight_bytes: 0,
            by: "spin",
        }));
    }
}

fn bandwidth_row(
    flow: u64,
    (user, flows): (u64, u32),
    data: usize,
    window: &Window,
    tick_ns: f64,
) -> PacketRow {
    PacketRow::Bandwidth(BandwidthSample {
        flow: Some(flow),
        user,
        flows,
        time_ns: window.middle_ns(),
        dir: direction(data),
        window_ns: (f64::from(window.ticks) * tick_ns) as i64,
        bytes: window.bytes.unsigned_abs(),
        r_snd_bps: window.r_snd_bps,
        r_rcv_bps: window.r_rcv_bps(tick_ns),
    })
}
