//! A phone as seen in a capture: what arrived when, and what its senders waited for.

use std::collections::{BTreeMap, VecDeque};

use airmile_model::packet::{Address, Packet};
use airmile_model::{Direction, TcpEventKind};

use super::datagrams::{AllDatagrams, Datagrams};
use super::pauses::Pauses;
use super::span::{PAUSE_NS, TransferSpan, TransportKind, joined, within};
use super::user::UserDownlink;
use airmile_wire::attribute::{
    Attribution, CaptureSite, INITIAL_WINDOW_BYTES, MIN_RADIO_RTT_NS, PathChanges, PayloadBegin,
    PolicedSpan, SenderModel, Shares, Sides, WaitSpan, ends_inside, payload_begin,
};
use airmile_wire::tcp::TracedPacket;

/// Data within this time is one arrival (chosen here: the shortest slot of NR below 6
/// GHz).
const MERGE_NS: i64 = 250_000;
/// This long without data ends a transfer even without another request (chosen here:
/// LTE's RRC inactivity timer has this length, too).
const SILENCE_NS: i64 = 10_000_000_000;
/// Maximum number of time stamps kept while on their way to the sender (chosen here).
const MAX_STAMPS: usize = 4_096;
/// Maximum number of users kept at a time (chosen here: a phone has one or two, a server's capture
/// thousands).
pub(super) const MAX_USERS: usize = 64;

/// Above this share of acknowledged data that the capture does not show, its pauses may be its own
/// (chosen here: without drops it is 0; `tcpdump` that drops packets loses whole buffers).
const MAX_UNSEEN: f64 = 0.02;

/// One connection's downlink.
#[derive(Debug, Default)]
pub(super) struct FlowDownlink {
    pub(super) model: SenderModel,
    pub(super) server: Option<Address>,
    pub(super) bytes: u64,
    /// Ends and lengths of round trips, in nanoseconds: those on the server's side of the
    /// monitor, and those on the client's.
    pub(super) rtts: Vec<(i64, i64)>,
    client_rtts: Vec<(i64, i64)>,
    /// Bytes acknowledged so far.
    acked: i64,
    /// Offset of the first data in the capture.
    first_offset: Option<i64>,
    /// The end of the data so far.
    data_end: Option<i64>,
    /// TSval and when it was first sent.
    stamps: VecDeque<(u32, i64)>,
    pub(super) begun_ns: Option<i64>,
    asked_ns: Option<i64>,
    last_data_ns: Option<i64>,
    /// What the client sent since.
    sent_bytes: u64,
    /// What it sent in uploads, whose responses are no downloads.
    uploaded_bytes: u64,
    /// Of its data, and of the acknowledgements of it.
    pub(super) pauses: Pauses,
    pub(super) acked_pauses: Pauses,
    stamped: bool,
    current: Option<OpenResponse>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct OpenResponse {
    span: TransferSpan,
    /// What the client sent before its data; of the first data, if that is more than a request.
    up_bytes: u64,
    /// When the client last acknowledged part of it.
    acked_ns: i64,
}

/// Reads a capture, treating each user as the phone.
#[derive(Debug, Default)]
pub struct CapturedPhones {
    users: BTreeMap<u64, UserDownlink>,
    datagrams: AllDatagrams,
    pub(super) ends: Option<[Address; 2]>,
    held: Vec<WaitSpan>,
    /// Of the current packet's payload.
    begin: PayloadBegin,
    /// A pause of this length separates transfers; `None`: [`PAUSE_NS`].
    pause_ns: Option<i64>,
}

impl CapturedPhones {
    /// No packets yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With another pause that separates transfers than half a second, in nanoseconds.
    #[must_use]
    pub fn with_pause_ns(self, pause_ns: i64) -> Self {
        Self { pause_ns: Some(pause_ns), ..self }
    }

    /// Takes a packet as captured, before it is analysed.
    pub fn note(&mut self, packet: &Packet<'_>) {
        self.ends = Some([packet.src, packet.dst]);
        self.datagrams.note(packet);
        self.begins_as(packet.payload);
    }

    /// Takes the first bytes of the packet's payload.
    pub(super) fn begins_as(&mut self, payload: &[u8]) {
        self.begin = payload_begin(payload);
    }

    /// Takes the engine's analysis of a TCP packet.
    pub fn push(&mut self, packet: &TracedPacket) {
        if self.users.len() >= MAX_USERS && !self.users.contains_key(&packet.user) {
            let least = self.users.iter().min_by_key(|(_, user)| user.bytes).map(|(n, _)| *n);
            least.and_then(|number| self.users.remove(&number));
        }
        let user = self.users.entry(packet.user).or_default();
        let down = packet.dir == Direction::Dl;
        if user.address.is_none() {
            user.address = self.ends.map(|[src, dst]| if down { dst } else { src });
        }
        let server = self.ends.map(|[src, dst]| if down { src } else { dst });
        self.held.clear();
        let pause_ns = self.pause_ns.unwrap_or(PAUSE_NS);
        user.push(packet, (&self.begin, pause_ns), server, &mut self.held);
    }

    #[cfg(test)]
    pub(super) fn connections(&self) -> usize {
        self.users.values().map(|user| user.connections.len()).sum()
    }

    /// Each user, treated as the phone; the one that received the most comes first.
    #[must_use]
    pub fn finish(self) -> Vec<CapturedPhone> {
        let mut phones: Vec<CapturedPhone> = Vec::new();
        let mut clients = self.datagrams.into_clients();
        let pause_ns = self.pause_ns.unwrap_or(PAUSE_NS);
        for user in self.users.into_values() {
            let datagrams = user.address.and_then(|address| clients.remove(&address));
            phones.push(CapturedPhone::from_user(user, datagrams.unwrap_or_default(), pause_ns));
        }
        phones.extend(clients.into_iter().map(|(address, of)| {
            let mut alone = UserDownlink::default();
            alone.address = Some(address);
            CapturedPhone::from_user(alone, of, pause_ns)
        }));
        phones.sort_by_key(|phone| std::cmp::Reverse(phone.bytes));
        phones
    }
}

/// Adds bytes to a list in order of time.
pub(super) fn add(list: &mut Vec<(i64, u32)>, at_ns: i64, bytes: u32) {
    match list.last_mut() {
        _ if bytes == 0 => {}
        Some((last, sum)) if at_ns.saturating_sub(*last) < MERGE_NS => {
            *sum = sum.saturating_add(bytes);
        }
        _ => list.push((at_ns, bytes)),
    }
}

impl FlowDownlink {
    /// Takes a packet of the client; returns the bytes that it acknowledges.
    pub(super) fn up(&mut self, packet: &TracedPacket) -> u32 {
        if let Some((value, _)) = packet.timestamps {
            self.stamped = true;
            if self.stamps.back().is_none_or(|(last, _)| *last != value) {
                if self.stamps.len() >= MAX_STAMPS {
                    self.stamps.pop_front();
                }
                self.stamps.push_back((value, packet.at_ns));
            }
        }
        if self.model.is_request(packet) {
            self.asked_ns.get_or_insert(packet.at_ns);
        }
        self.sent_bytes = self.sent_bytes.saturating_add(packet.new_bytes);
        let end = packet.ack.map_or(self.acked, |ack| ack.offset_bytes);
        let acked = match end.saturating_sub(self.acked) {
            // A FIN takes a sequence number (RFC 9293, 3.4), and is no data.
            1 if self.data_end.is_some_and(|data_end| end > data_end) => 0,
            acked => acked,
        };
        if acked > 0 {
            // Data sent before the capture counts from its first packet on.
            let counts = self.last_data_ns.is_some();
            self.acked = self.acked.saturating_add(acked);
            if let Some(rtt) = self.model.last_client_rtt_ns(packet) {
                self.client_rtts.push((packet.at_ns, rtt));
            }
            if let Some(answer) = &mut self.current {
                answer.acked_ns = answer.acked_ns.max(packet.at_ns);
            }
            if !counts {
                return 0;
            }
        }
        u32::try_from(acked.max(0)).unwrap_or(0)
    }

    /// The round trip that ends with this packet, in nanoseconds, if data was in flight
    /// throughout: otherwise it may include waiting for the application.
    pub(super) fn round_trip(&mut self, packet: &TracedPacket) -> Option<i64> {
        let (_, echo) = packet.timestamps?;
        let usual = packet.event.is_none_or(|event| event == TcpEventKind::Ahead);
        let mut left = None;
        while let Some(&(value, at_ns)) = self.stamps.front()
            && value.wrapping_sub(echo).cast_signed() <= 0
        {
            left = (value == echo).then_some(at_ns);
            self.stamps.pop_front();
        }
        let flies = packet.flight_bytes > u64::from(packet.payload_bytes);
        let rtt = packet.at_ns.saturating_sub(left?);
        (usual && flies && packet.payload_bytes > 0 && rtt > 0).then_some(rtt)
    }

    /// When the client asked for this data.
    pub(super) fn asked(&self, data: &TracedPacket) -> Option<i64> {
        self.asked_ns.or_else(|| self.model.asked_ns(data))
    }

    /// Takes new data; returns the previous answer if it is over.
    pub(super) fn data(&mut self, packet: &TracedPacket, pause_ns: i64) -> Option<OpenResponse> {
        let now = packet.at_ns;
        self.first_offset.get_or_insert(packet.offset_bytes);
        let data_end = packet.offset_bytes.saturating_add(packet.payload_bytes.into());
        self.data_end = self.data_end.max(Some(data_end));
        // A capture begun within an answer may show its data before an acknowledgement.
        self.stamped |= packet.timestamps.is_some();
        let asked = self.asked(packet);
        self.asked_ns = None;
        let last = self.last_data_ns.replace(now);
        let apart = last.is_some_and(|last| {
            let paused = asked.is_some_and(|at| at.saturating_sub(last) > pause_ns);
            paused || now.saturating_sub(last) > SILENCE_NS
        });
        let done = if apart { self.done() } else { None };
        let begun_ns = if last.is_none() { self.begun_ns } else { None };
        let transport = if self.stamped { TransportKind::Stamped } else { TransportKind::Plain };
        let mut up_bytes = std::mem::take(&mut self.sent_bytes);
        let answer = self.current.get_or_insert_with(|| {
            let from_ns = begun_ns.or(asked).unwrap_or(now).min(now);
            let span = TransferSpan { from_ns, to_ns: now, bytes: 0, transport };
            up_bytes = if up_bytes > INITIAL_WINDOW_BYTES { up_bytes } else { 0 };
            OpenResponse { span, up_bytes: 0, acked_ns: now }
        });
        answer.up_bytes = answer.up_bytes.saturating_add(up_bytes);
        answer.span.bytes = answer.span.bytes.saturating_add(packet.new_bytes);
        answer.span.to_ns = answer.span.to_ns.max(now);
        done
    }

    /// Bytes that the client acknowledged and that the capture, once it had begun, does not show.
    fn unseen_bytes(&self) -> u64 {
        // Without any data in the capture; a FIN takes a sequence number.
        let first = self.first_offset.unwrap_or(1);
        let covered = self.acked.saturating_sub(first);
        let unseen = u64::try_from(covered).unwrap_or(0).saturating_sub(self.bytes);
        if unseen == 1 { 0 } else { unseen }
    }

    /// The response to an upload is no download.
    fn done(&mut self) -> Option<OpenResponse> {
        let answer = self.current.take()?;
        if answer.up_bytes <= answer.span.bytes {
            return Some(answer);
        }
        self.uploaded_bytes = self.uploaded_bytes.saturating_add(answer.up_bytes);
        None
    }

    /// The last answer, and what the client sent in uploads.
    fn finish(mut self) -> (Option<OpenResponse>, u64) {
        let Some(answer) = &mut self.current else {
            let is_open = self.sent_bytes > INITIAL_WINDOW_BYTES;
            let open_bytes = if is_open { self.sent_bytes } else { 0 };
            return (None, self.uploaded_bytes.saturating_add(open_bytes));
        };
        answer.up_bytes = answer.up_bytes.saturating_add(self.sent_bytes);
        (self.done(), self.uploaded_bytes)
    }
}

/// A phone, and what it received.
#[derive(Debug, Clone, Default)]
pub struct CapturedPhone {
    /// Where the capture was taken.
    pub place: CaptureSite,
    /// Payload towards it.
    pub bytes: u64,
    /// What it sent in uploads over TCP.
    pub uploaded_bytes: u64,
    /// Minimum round trip to the server that sent the most, in nanoseconds.
    pub base_rtt_ns: Option<i64>,
    /// Whether the capture lacks the TCP packets of one direction: it shows no round trips.
    pub one_way: bool,
    /// Bytes that it acknowledged and that the capture does not show.
    pub unseen_bytes: u64,
    /// Whether the connection with the most bytes began before the capture.
    pub begun_before: bool,
    /// Whether packets are at wrong times: not in order, beyond what could be sorted, or by a coarse
    /// clock.
    pub mistimed: bool,
    /// Whether most TCP options are cut off: time stamps, window scale, SACK.
    pub headers_cut: bool,
    /// When the losses of a connection were a policer's.
    policed: Vec<PolicedSpan>,
    /// Minimum round trip to each server, in nanoseconds.
    servers: BTreeMap<Option<Address>, i64>,
    attribution: Attribution,
    pub(super) arrivals: Vec<(i64, u32)>,
    pub(super) datagrams: Vec<(i64, u32)>,
    /// First and last data after a pause, of each connection that had one.
    after_pauses: Vec<(i64, i64)>,
    datagrams_after_pauses: Vec<(i64, i64)>,
    /// Whether most of the datagrams' bytes belong to flows of QUIC.
    pub(super) is_quic: bool,
    /// Datagrams' payload to the phone, and from it.
    pub(super) datagrams_bytes: u64,
    pub(super) datagrams_up_bytes: u64,
    /// The shortest round trips of QUIC's handshakes on either side of the monitor.
    pub(super) datagram_sides: Sides,
    /// Ends of round trips, and by how much each exceeds the minimum to its server, in nanoseconds.
    pub(super) queued: Vec<(i64, i64)>,
    pub(super) again_ns: Vec<i64>,
    answers: Vec<(Option<Address>, TransferSpan)>,
    requests_ns: Vec<(i64, i64)>,
    /// A pause of this length separates its transfers.
    pause_ns: i64,
}

/// Whether handshakes of QUIC show that the capture was taken at the server: the answer took less
/// than any path over a cell, or less than the client's reply.
pub(super) fn is_at_quic_server(Sides { upstream_ns, downstream_ns, .. }: Sides) -> bool {
    upstream_ns
        .is_some_and(|up| up < MIN_RADIO_RTT_NS || downstream_ns.is_some_and(|down| up < down))
}

impl CapturedPhone {
    /// Whether its round trips are too short for a cellular link.
    #[must_use]
    pub fn excludes_radio(&self) -> bool {
        self.place != CaptureSite::Inside
            && self.base_rtt_ns.is_some_and(|ns| ns < MIN_RADIO_RTT_NS)
    }

    /// Answered requests over TCP: their times, and how long the first byte took.
    #[must_use]
    pub fn requests_ns(&self) -> &[(i64, i64)] {
        &self.requests_ns
    }

    /// Whether the same data arrived at the same times.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.arrivals == other.arrivals && self.datagrams == other.datagrams
    }

    /// Whether packets are missing, so that pauses may be the capture's own.
    #[must_use]
    pub fn lacks_packets(&self) -> bool {
        self.unseen_bytes as f64 > MAX_UNSEEN * self.bytes as f64
    }

    /// Whether packets are missing, cut or at wrong times.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.mistimed || self.headers_cut || self.lacks_packets()
    }

    /// Whether it shows what the phone received only by its acknowledgements.
    #[must_use]
    pub const fn only_acknowledges(&self) -> bool {
        self.one_way && self.bytes == 0
    }

    fn from_user(user: UserDownlink, datagrams: Datagrams, pause_ns: i64) -> Self {
        let sides =
            Sides::from_connections(user.connections.values().map(|connection| &connection.model));
        let place = sides.place();
        // At the server, acknowledgements show what arrived at the phone.
        let at_server = place == CaptureSite::Server;
        let each = user.connections.values().map(|one| (one.server, &one.model));
        let is_inside = user.address.is_some_and(|address| ends_inside(address, each));
        let mut servers: BTreeMap<Option<Address>, i64> = BTreeMap::new();
        let mut sent: BTreeMap<Option<Address>, u64> = BTreeMap::new();
        for one in user.connections.values() {
            let rtt_ns = match at_server {
                true => one.model.downstream_rtt_ns(),
                false => one.model.upstream_rtt_ns(),
            };
            let Some(rtt_ns) = rtt_ns else { continue };
            let least_ns = servers.entry(one.server).or_insert(rtt_ns);
            *least_ns = rtt_ns.min(*least_ns);
            let bytes = sent.entry(one.server).or_default();
            *bytes = bytes.saturating_add(one.bytes);
        }
        let unseen_bytes = user.connections.values().map(FlowDownlink::unseen_bytes).sum();
        let largest = user.connections.values().max_by_key(|one| one.bytes);
        let begun_before = largest.is_some_and(|one| !one.model.seen_from_start());
        let policed = user.connections.values().filter_map(|one| one.model.policed()).collect();
        let first = sent.into_iter().max_by_key(|(_, bytes)| *bytes);
        let base_rtt_ns = first.and_then(|(server, _)| servers.get(&server).copied());
        let (mut answers, mut queued, mut after_pauses) = (user.answers, Vec::new(), Vec::new());
        let mut uploaded_bytes = 0_u64;
        for one in user.connections.into_values() {
            let pauses = if at_server { &one.acked_pauses } else { &one.pauses };
            after_pauses.extend(pauses.after(servers.get(&one.server).copied().or(base_rtt_ns)));
            if let Some(&least_ns) = servers.get(&one.server) {
                let rtts = if at_server { &one.client_rtts } else { &one.rtts };
                let mut changes = PathChanges::default();
                rtts.iter().for_each(|(at_ns, rtt_ns)| changes.push(*at_ns, *rtt_ns));
                queued.extend(rtts.iter().map(|&(at_ns, rtt_ns)| {
                    let base_ns = least_ns.saturating_add(changes.rise_at_ns(at_ns));
                    (at_ns, rtt_ns.saturating_sub(base_ns).max(0))
                }));
            }
            let (server, (answer, sent_bytes)) = (one.server, one.finish());
            answers.extend(answer.map(|answer| (server, answer)));
            uploaded_bytes = uploaded_bytes.saturating_add(sent_bytes);
        }
        let span = |answer: OpenResponse| match at_server {
            // Its queue is visible in round trips, with or without time stamps.
            true => TransferSpan {
                to_ns: answer.span.to_ns.max(answer.acked_ns),
                transport: TransportKind::Stamped,
                ..answer.span
            },
            false => answer.span,
        };
        let answers = answers.into_iter().map(|(server, answer)| (server, span(answer))).collect();
        queued.sort_unstable();
        let arrivals = if at_server { user.acked } else { user.arrivals };
        let datagrams_pauses = datagrams.pauses.iter();
        let place = match place {
            _ if is_inside => CaptureSite::Inside,
            CaptureSite::Unknown if is_at_quic_server(datagrams.sides) => CaptureSite::Server,
            place => place,
        };
        Self {
            place,
            bytes: user.bytes.saturating_add(datagrams.bytes),
            uploaded_bytes,
            base_rtt_ns,
            one_way: user.packets.contains(&0) && user.packets != [0, 0],
            unseen_bytes,
            begun_before,
            mistimed: false,
            headers_cut: false,
            policed,
            servers,
            attribution: Attribution::new(user.waits, user.uplink),
            after_pauses,
            datagrams_after_pauses: datagrams_pauses
                .filter_map(|pauses| pauses.after(datagrams.sides.upstream_ns))
                .collect(),
            is_quic: 2 * datagrams.quic_bytes > datagrams.bytes,
            datagrams_bytes: datagrams.bytes,
            datagrams_up_bytes: datagrams.up_bytes,
            datagram_sides: datagrams.sides,
            arrivals,
            datagrams: datagrams.list,
            queued,
            again_ns: user.again_ns,
            answers,
            requests_ns: user.requests_ns,
            pause_ns,
        }
    }

    /// Whether data of a span is of a connection that had paused, so that its sender may have restarted
    /// slow start.
    pub(super) fn paused_before(&self, span: &TransferSpan) -> bool {
        let after = match span.transport {
            TransportKind::Datagrams => &self.datagrams_after_pauses,
            TransportKind::Stamped | TransportKind::Plain => &self.after_pauses,
        };
        after.iter().any(|(from_ns, to_ns)| *from_ns <= span.to_ns && *to_ns >= span.from_ns)
    }

    /// Whether a policer dropped packets in a span.
    pub(super) fn is_policed(&self, span: &TransferSpan) -> bool {
        self.policed.iter().any(|one| one.acts_in(span.from_ns, span.to_ns))
    }

    /// Its transfers of at least this many bytes: answers that overlap, or have no pause
    /// between them, are merged.
    #[must_use]
    pub fn transfers(&self, min_bytes: u64) -> Vec<TransferSpan> {
        let spans = self.answers.iter().map(|(_, span)| *span).collect();
        let mut spans = joined(spans, self.pause_ns);
        spans.extend(joined(self.datagram_spans(), self.pause_ns));
        spans.retain(|span| span.bytes >= min_bytes);
        spans.sort_by_key(|span| (span.from_ns, span.to_ns));
        spans
    }

    /// Stretches of datagrams without a pause.
    fn datagram_spans(&self) -> Vec<TransferSpan> {
        let each = self.datagrams.iter().map(|&(at_ns, bytes)| TransferSpan {
            from_ns: at_ns,
            to_ns: at_ns,
            bytes: bytes.into(),
            transport: TransportKind::Datagrams,
        });
        each.collect()
    }

    /// The transport of a span given by the application: that of most of the bytes.
    #[must_use]
    pub fn span(&self, from_ns: i64, to_ns: i64) -> TransferSpan {
        let sum = |list: &[(i64, u32)]| within(list, from_ns, to_ns).map(|a| u64::from(a.1)).sum();
        let (tcp, datagrams): (u64, u64) = (sum(&self.arrivals), sum(&self.datagrams));
        let transport = match self.most_of(from_ns, to_ns) {
            _ if datagrams > tcp => TransportKind::Datagrams,
            Some((_, answer)) => answer.transport,
            None => TransportKind::Plain,
        };
        TransferSpan { from_ns, to_ns, bytes: tcp.saturating_add(datagrams), transport }
    }

    /// The largest answer that touches a span.
    fn most_of(&self, from_ns: i64, to_ns: i64) -> Option<&(Option<Address>, TransferSpan)> {
        let touching = |(_, a): &&(_, TransferSpan)| a.from_ns < to_ns && a.to_ns > from_ns;
        self.answers.iter().filter(touching).max_by_key(|(_, answer)| answer.bytes)
    }

    /// Minimum round trip to the server of a span's largest answer, in nanoseconds. For
    /// datagrams, the phone's usual one is assumed.
    #[must_use]
    pub fn base_rtt_ns_of(&self, span: &TransferSpan) -> Option<i64> {
        if span.transport == TransportKind::Datagrams {
            let Sides { upstream_ns, downstream_ns, .. } = self.datagram_sides;
            // At the server, the way back to it is the host's own.
            let is_at_server = is_at_quic_server(self.datagram_sides);
            let of_path = if is_at_server { downstream_ns } else { upstream_ns };
            return of_path.or(self.base_rtt_ns);
        }
        let server = self.most_of(span.from_ns, span.to_ns).map(|(server, _)| server);
        server.and_then(|server| self.servers.get(server).copied()).or(self.base_rtt_ns)
    }

    /// Arrivals of the span's transport: nanoseconds and bytes.
    #[must_use]
    pub fn arrivals(&self, transport: TransportKind) -> &[(i64, u32)] {
        if transport == TransportKind::Datagrams { &self.datagrams } else { &self.arrivals }
    }

    /// A span's time by wait reason of the senders, without radio records.
    #[must_use]
    pub fn split(&self, span: &TransferSpan) -> Shares {
        self.attribution.split(span.from_ns, span.to_ns, None)
    }
}
