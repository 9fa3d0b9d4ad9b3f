//! The packet study, fed with packets as they pass an interface.
//!
//! Memory is that of the open flows, at most [`MAX_FLOWS`]; a flow ends sooner here than in a file,
//! and the last [`KEPT_FLOWS`] ended flows are kept.

use std::collections::{HashMap, VecDeque};

use airmile_capture::packet::{CaptureReader, Captured, Dissector};
use airmile_model::flow::{FlowRow, PacketRow};
use airmile_model::median::upper_median;
use airmile_model::{Direction, Protocol, Termination};
use airmile_wire::tcp::{PacketStudy, StudyOptions, Tables};
use schemars::JsonSchema;
use serde::Serialize;

/// Number of flows reported at a time, and of ended flows kept (chosen here: some screens).
pub const KEPT_FLOWS: usize = 64;
/// A flow, and a user, end after this time without a packet (chosen here: the timeout of mobile
/// networks' address translators; in files it is an hour).
const IDLE_NS: i64 = 300 * S;
/// The same for a UDP flow or an unanswered connection (chosen here: a DNS query and a scan's SYN
/// have had their response, a game still sends).
const BRIEF_IDLE_NS: i64 = 60 * S;
/// Maximum number of open flows (chosen here: they take about 150 MB, and are far more than a phone
/// or a home router has).
pub const MAX_FLOWS: usize = 65_536;
/// A clock that falls back by more than this was set back (chosen here: packets wait less than this
/// for the analysis).
const SET_BACK_NS: i64 = 2 * S;
/// The same for a closed flow, whose last packets arrive within this time (chosen here: RTTs are at
/// most seconds).
const LINGER_NS: i64 = 5 * S;
/// Time span of current values, such as RTTs (chosen here).
const RECENT_NS: i64 = 10 * S;
/// Minimum time span of rates (chosen here).
const RATE_NS: i64 = S;
/// Maximum number of kept RTTs: those of the packets that one core handles (chosen here).
const KEPT_RTTS: usize = 65_536;
const S: i64 = 1_000_000_000;

/// A flow during the capture.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LiveFlow {
    /// Number of the flow, in the order of their first packets.
    pub flow: u64,
    /// Whether it is open.
    pub open: bool,
    /// `tcp` or `udp`.
    pub protocol: Protocol,
    /// The client's address and port.
    pub client: String,
    /// The server's address and port.
    pub server: String,
    /// Name of the server, from TLS or QUIC (SNI) or HTTP (Host).
    pub server_name: Option<String>,
    /// Application protocol.
    pub application: Option<String>,
    /// First packet, in microseconds since the Unix epoch.
    pub start_us: i64,
    /// From the first packet to the last in milliseconds.
    pub duration_ms: f64,
    /// Payload towards the client in bytes, without retransmissions.
    pub dl_bytes: u64,
    /// Payload from the client in bytes, without retransmissions.
    pub ul_bytes: u64,
    /// Current rate of IP bytes towards the client, in bit/s.
    pub dl_bps: Option<f64>,
    /// Current rate of IP bytes from the client, in bit/s.
    pub ul_bps: Option<f64>,
    /// Minimum RTT between this host and the client in milliseconds.
    pub rtt_min_ms: Option<f64>,
    /// Mean RTT between this host and the client in milliseconds.
    pub rtt_mean_ms: Option<f64>,
    /// RTT of the handshake between this host and the server in milliseconds.
    pub server_rtt_ms: Option<f64>,
    /// Maximum bytes in flight towards the client.
    pub max_flight_bytes: u64,
    /// Retransmitted segments towards the client.
    pub dl_retx: u64,
    /// Retransmitted segments from the client.
    pub ul_retx: u64,
    /// How it ended, or `open`.
    pub termination: Termination,
}

/// The packets on an interface.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct PacketView {
    /// IP packets.
    pub packets: u64,
    /// Their bytes, including IP headers.
    pub ip_bytes: u64,
    /// Packets that could not be read.
    pub unread: u64,
    /// Time of the last packet, in microseconds since the Unix epoch.
    pub last_us: Option<i64>,
    /// Ended flows.
    pub flows_total: u64,
    /// Open flows.
    pub flows_open: u64,
    /// Current rate of IP bytes, in bit/s.
    pub bps: Option<f64>,
    /// Median of the RTTs between this host and the clients in the last 10 s, in milliseconds; near
    /// zero if the client is this host.
    pub rtt_median_ms: Option<f64>,
    /// Median of the RTTs between this host and the servers in the last 10 s, in milliseconds.
    pub server_rtt_median_ms: Option<f64>,
    /// Retransmitted segments in both directions.
    pub retransmissions: u64,
    /// The flows with the latest packets, the latest first.
    pub flows: Vec<LiveFlow>,
    /// The last ended flows, oldest first.
    #[serde(skip)]
    pub ended: VecDeque<LiveFlow>,
}

/// Byte counts for rates.
#[derive(Debug, Clone, Copy, Default)]
struct PassedBytes {
    at_ns: i64,
    dl_bytes: u64,
    ul_bytes: u64,
}

/// The engine. See the [module](self).
pub struct LivePackets {
    reader: CaptureReader,
    parts: Parts,
    ended: VecDeque<LiveFlow>,
    new_ended: Vec<LiveFlow>,
    /// For each reported flow: the start of its rate, and the last rate.
    rates: HashMap<u64, (PassedBytes, Option<[f64; 2]>)>,
    all: (PassedBytes, Option<f64>),
    looked_ns: i64,
}

/// The stages that process a packet.
#[derive(Debug)]
struct Parts {
    dissector: Dissector,
    study: PacketStudy,
    view: PacketView,
    /// Towards clients, and towards servers.
    rtts: [Recent; 2],
    last_ns: Option<i64>,
    /// The latest time of packets and views.
    clock_ns: Option<i64>,
    /// The clock was set back since the last look.
    is_set_back: bool,
}

impl Default for LivePackets {
    fn default() -> Self {
        Self::new()
    }
}

impl LivePackets {
    /// An engine without input.
    #[must_use]
    pub fn new() -> Self {
        let tables = Tables { flows: true, rtt_samples: true, tcp_events: true, ..Tables::NONE };
        let options = StudyOptions {
            idle_ns: IDLE_NS,
            brief_idle_ns: Some(BRIEF_IDLE_NS),
            max_flows: Some(MAX_FLOWS),
            user_gap_ns: IDLE_NS,
            linger_ns: LINGER_NS,
            tables,
            ..StudyOptions::default()
        };
        Self {
            reader: CaptureReader::new(),
            parts: Parts {
                dissector: Dissector::new(),
                study: PacketStudy::rows_only(options),
                view: PacketView::default(),
                rtts: Default::default(),
                last_ns: None,
                clock_ns: None,
                is_set_back: false,
            },
            ended: VecDeque::new(),
            new_ended: Vec::new(),
            rates: HashMap::new(),
            all: Default::default(),
            looked_ns: 0,
        }
    }

    /// Takes the next bytes of a capture.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { reader, parts, .. } = self;
        reader.push(bytes, &mut |captured| parts.take(&captured));
        self.collect();
    }

    /// The interface was absent: the next bytes are another capture.
    pub fn note_gap(&mut self) {
        self.reader = CaptureReader::new();
    }

    /// Flows that have ended since the last call.
    pub fn take_ended(&mut self) -> Vec<LiveFlow> {
        std::mem::take(&mut self.new_ended)
    }

    /// The current state at a time, in nanoseconds since the Unix epoch, as rates fall and flows
    /// end without packets; if `None`, at the last packet's time.
    pub fn look(&mut self, now_ns: Option<i64>) -> PacketView {
        if let Some(now_ns) = now_ns.or(self.parts.last_ns) {
            self.parts.clock(now_ns);
            self.parts.study.advance(now_ns);
            self.collect();
        }
        let Self { parts, rates, all, looked_ns, .. } = self;
        let now_ns = parts.clock_ns.unwrap_or_default();
        if std::mem::take(&mut parts.is_set_back) {
            rates.clear();
            *all = Default::default();
            *looked_ns = now_ns;
        }
        let latest = parts.study.latest_flows(KEPT_FLOWS);
        let shown: Vec<LiveFlow> = latest
            .iter()
            .map(|row| {
                live(row, rate_of(rates.entry(row.flow).or_default(), row, now_ns, *looked_ns))
            })
            .collect();
        *looked_ns = now_ns;
        // Flows that are no longer reported need no rate.
        rates.retain(|flow, _| shown.iter().any(|one| one.flow == *flow));
        let [client_ms, server_ms] = parts.rtts.each_mut().map(|rtts| rtts.median_ms(now_ns));
        let (since, bps) = all;
        let ip_bytes = parts.view.ip_bytes;
        let passed = PassedBytes { at_ns: now_ns, dl_bytes: ip_bytes, ul_bytes: 0 };
        if let Some([dl, _]) = step(since, passed) {
            *bps = Some(dl);
        }
        // Closed flows linger until later packets arrive.
        let closed = shown.iter().filter(|flow| !flow.open).count();
        PacketView {
            last_us: parts.last_ns.map(|ns| ns.div_euclid(1_000)),
            flows_open: parts.study.open_flows().saturating_sub(closed) as u64,
            bps: *bps,
            rtt_median_ms: client_ms,
            server_rtt_median_ms: server_ms,
            flows: shown,
            ended: self.ended.clone(),
            ..parts.view.clone()
        }
    }

    fn collect(&mut self) {
        let Self { parts, ended, new_ended, .. } = self;
        while let Some(row) = parts.study.poll() {
            match row {
                PacketRow::Flow(row) => {
                    parts.view.flows_total += 1;
                    let flow = live(&row, None);
                    ended.push_back(flow.clone());
                    new_ended.push(flow);
                }
                PacketRow::Rtt(sample) => {
                    let [client, server] = &mut parts.rtts;
                    let rtts = if sample.dir == Direction::Dl { client } else { server };
                    rtts.push(sample.time_ns, sample.rtt_ns);
                }
                PacketRow::Tcp(event) if event.event.is_retransmission() => {
                    parts.view.retransmissions += 1;
                }
                _ => {}
            }
        }
        let old = ended.len().saturating_sub(KEPT_FLOWS);
        ended.drain(..old);
    }
}

/// Recent RTTs: time and value.
#[derive(Debug, Default)]
struct Recent(VecDeque<(i64, i64)>);

impl Recent {
    fn push(&mut self, at_ns: i64, rtt_ns: i64) {
        if self.0.len() == KEPT_RTTS {
            self.0.pop_front();
        }
        self.0.push_back((at_ns, rtt_ns));
    }

    fn median_ms(&mut self, now_ns: i64) -> Option<f64> {
        while self.0.front().is_some_and(|(at, _)| now_ns - at > RECENT_NS) {
            self.0.pop_front();
        }
        let mut rtts: Vec<i64> = self.0.iter().map(|(_, rtt)| *rtt).collect();
        upper_median(&mut rtts, i64::cmp).map(|rtt| rtt as f64 / 1e6)
    }
}

impl Parts {
    /// Advances the clock.
    fn clock(&mut self, now_ns: i64) {
        let is_set_back = self.clock_ns.is_some_and(|last| now_ns + SET_BACK_NS < last);
        if is_set_back {
            self.study.set_back(now_ns);
            self.last_ns = None;
            self.rtts = Default::default();
            self.is_set_back = true;
        }
        let last = self.clock_ns.filter(|_| !is_set_back);
        self.clock_ns = Some(last.map_or(now_ns, |last| last.max(now_ns)));
    }

    fn take(&mut self, captured: &Captured<'_>) {
        let Captured::Frame(frame) = captured else {
            self.view.unread += 1;
            return;
        };
        self.clock(frame.at_ns);
        let Self { dissector, study, view, last_ns, .. } = self;
        *last_ns = Some(last_ns.map_or(frame.at_ns, |last| last.max(frame.at_ns)));
        dissector.push(frame, &mut |read| match read {
            Ok(packet) => {
                view.packets += 1;
                view.ip_bytes += u64::from(packet.ip_bytes);
                study.push(packet);
            }
            Err(unread) => {
                let is_ip = !matches!(unread, airmile_capture::packet::Unread::NotIp(_));
                view.unread += u64::from(is_ip);
            }
        });
    }
}

/// The rates since the last step, if that is long enough ago.
fn step(since: &mut PassedBytes, now: PassedBytes) -> Option<[f64; 2]> {
    if since.at_ns == 0 {
        *since = now;
        return None;
    }
    let ns = now.at_ns - since.at_ns;
    if ns < RATE_NS {
        return None;
    }
    let bps =
        |now: u64, before: u64| now.saturating_sub(before) as f64 * 8.0 * S as f64 / ns as f64;
    let rates = [bps(now.dl_bytes, since.dl_bytes), bps(now.ul_bytes, since.ul_bytes)];
    *since = now;
    Some(rates)
}

fn rate_of(
    (since, rates): &mut (PassedBytes, Option<[f64; 2]>),
    row: &FlowRow,
    now_ns: i64,
    looked_ns: i64,
) -> Option<[f64; 2]> {
    let now = PassedBytes { at_ns: now_ns, dl_bytes: row.dl_ip_bytes, ul_bytes: row.ul_ip_bytes };
    if since.at_ns == 0 {
        // A new flow started with zero bytes; for one that was not reported for a while the current
        // rate is unknown.
        let is_new = row.start_ns >= looked_ns;
        *since = if is_new {
            PassedBytes { at_ns: row.start_ns, ..PassedBytes::default() }
        } else {
            now
        };
    }
    if let Some(new) = step(since, now) {
        *rates = Some(new);
    }
    *rates
}

fn live(row: &FlowRow, rates: Option<[f64; 2]>) -> LiveFlow {
    let ms = |ns: i64| ns as f64 / 1e6;
    let end = |address: &str, port: u16| match address.contains(':') {
        true => format!("[{address}]:{port}"),
        false => format!("{address}:{port}"),
    };
    let [dl_bps, ul_bps] = [rates.map(|r| r[0]), rates.map(|r| r[1])];
    LiveFlow {
        flow: row.flow,
        open: row.termination == Termination::Open,
        protocol: row.protocol,
        client: end(&row.client, row.client_port),
        server: end(&row.server, row.server_port),
        server_name: row.server_name.clone(),
        application: row.application.clone(),
        start_us: row.start_ns.div_euclid(1_000),
        duration_ms: ms(row.duration_ns),
        dl_bytes: row.dl_bytes,
        ul_bytes: row.ul_bytes,
        dl_bps,
        ul_bps,
        rtt_min_ms: row.rtt_min_ns.map(ms),
        rtt_mean_ms: row.rtt_mean_ns.map(ms),
        server_rtt_ms: row.upstream_rtt_ns.map(ms),
        max_flight_bytes: row.max_flight_bytes,
        dl_retx: row.dl_retx,
        ul_retx: row.ul_retx,
        termination: row.termination,
    }
}

impl LiveFlow {
    /// RTT from the client to the server, as far as known, in milliseconds.
    #[must_use]
    pub fn path_rtt_ms(&self) -> Option<f64> {
        let parts = [self.rtt_mean_ms, self.server_rtt_ms];
        parts.iter().flatten().copied().reduce(|a, b| a + b)
    }
}

impl std::fmt::Debug for LivePackets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LivePackets").field("view", &self.parts.view).finish_non_exhaustive()
    }
}
