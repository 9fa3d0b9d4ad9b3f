//! The packet study, fed as packets pass an interface.
//!
//! Memory is that of the flows that are open, of which there are [`MAX_FLOWS`] at
//! most; a flow is over sooner here than in a file, and of those that are over the
//! last [`KEPT_FLOWS`] are kept.

use std::collections::{HashMap, VecDeque};

use airmile_capture::packet::{CaptureReader, Captured, Dissector};
use airmile_model::flow::{FlowRow, PacketRow};
use airmile_model::{Direction, Protocol, Termination};
use airmile_wire::tcp::{PacketStudy, StudyOptions, Tables};
use schemars::JsonSchema;
use serde::Serialize;

/// Flows that are told at a time, and flows that are over and kept (chosen here:
/// some screens of them).
pub const KEPT_FLOWS: usize = 64;
/// A flow, and a user, are over after so long without a packet (chosen here: what
/// phones' networks keep of one in their translators; a file's are an hour).
const IDLE_NS: i64 = 300 * S;
/// One of UDP, and a connection that nobody answers, after so long (chosen here: a
/// question of DNS and a scan's SYN have had their answer, a game goes on).
const BRIEF_IDLE_NS: i64 = 60 * S;
/// Flows that are open at most (chosen here: some 150 MB of them, and far above what a
/// cell's phone or a home's router has).
pub const MAX_FLOWS: usize = 65_536;
/// A clock that is behind what was seen by more than this was set back (chosen here:
/// packets wait less than this for us).
const SET_BACK_NS: i64 = 2 * S;
/// And one that was closed after so long: what of it is still on its way is short of this
/// (chosen here: RTTs are seconds at most).
const LINGER_NS: i64 = 5 * S;
/// RTTs, and what else is said of now, are those of so long (chosen here).
const RECENT_NS: i64 = 10 * S;
/// Rates are over this long at least (chosen here).
const RATE_NS: i64 = S;
/// RTTs that are kept at most: those of a core's worth of packets (chosen here).
const KEPT_RTTS: usize = 65_536;
const S: i64 = 1_000_000_000;

/// A flow as it is seen while its packets pass.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LiveFlow {
    /// Number of the flow, in the order of their first packets.
    pub flow: u64,
    /// Whether it goes on.
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
    /// Payload towards the client in bytes, retransmissions left out.
    pub dl_bytes: u64,
    /// Payload from the client in bytes, retransmissions left out.
    pub ul_bytes: u64,
    /// IP bytes towards the client of late, in bit/s.
    pub dl_bps: Option<f64>,
    /// IP bytes from the client of late, in bit/s.
    pub ul_bps: Option<f64>,
    /// Least RTT between here and the client in milliseconds.
    pub rtt_min_ms: Option<f64>,
    /// Mean RTT between here and the client in milliseconds.
    pub rtt_mean_ms: Option<f64>,
    /// Handshake's RTT between here and the server in milliseconds.
    pub server_rtt_ms: Option<f64>,
    /// Most bytes in flight towards the client.
    pub max_flight_bytes: u64,
    /// Retransmitted segments towards the client.
    pub dl_retx: u64,
    /// Retransmitted segments from the client.
    pub ul_retx: u64,
    /// How it ended, or `open`.
    pub termination: Termination,
}

/// What passes an interface.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct PacketView {
    /// IP packets.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub ip_bytes: u64,
    /// Packets that could not be read.
    pub unread: u64,
    /// Time of the last packet, in microseconds since the Unix epoch.
    pub last_us: Option<i64>,
    /// Flows that are over.
    pub flows_total: u64,
    /// Flows that are open.
    pub flows_open: u64,
    /// IP bytes of late, in bit/s.
    pub bps: Option<f64>,
    /// Median of the RTTs between here and the clients in the last 10 s, in milliseconds:
    /// close to none where the client is this machine.
    pub rtt_median_ms: Option<f64>,
    /// Median of the RTTs between here and the servers in the last 10 s, in milliseconds.
    pub server_rtt_median_ms: Option<f64>,
    /// Segments sent again, both ways.
    pub retransmissions: u64,
    /// The flows with the latest packets, the latest first.
    pub flows: Vec<LiveFlow>,
    /// The last flows that are over, oldest first.
    #[serde(skip)]
    pub ended: VecDeque<LiveFlow>,
}

/// Bytes by which rates are told.
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
    /// Of each flow that was told: where its rate is counted from, and the last rate.
    rates: HashMap<u64, (PassedBytes, Option<[f64; 2]>)>,
    all: (PassedBytes, Option<f64>),
    looked_ns: i64,
}

/// What a packet goes through.
#[derive(Debug)]
struct Parts {
    dissector: Dissector,
    study: PacketStudy,
    view: PacketView,
    /// Towards clients, and towards servers.
    rtts: [Recent; 2],
    last_ns: Option<i64>,
    /// The latest time of packets and looks.
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
    /// An engine that has seen nothing.
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

    /// The interface was away: what comes next is another capture.
    pub fn note_gap(&mut self) {
        self.reader = CaptureReader::new();
    }

    /// Flows that are over since the last call.
    pub fn take_ended(&mut self) -> Vec<LiveFlow> {
        std::mem::take(&mut self.new_ended)
    }

    /// What passes at a time, in nanoseconds since the Unix epoch, as rates fall and flows
    /// end where nothing passes any more; without one, at the last packet's.
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
        let told: Vec<LiveFlow> = latest
            .iter()
            .map(|row| {
                live(row, rate_of(rates.entry(row.flow).or_default(), row, now_ns, *looked_ns))
            })
            .collect();
        *looked_ns = now_ns;
        // What is not told any more needs no rate.
        rates.retain(|flow, _| told.iter().any(|one| one.flow == *flow));
        let [client_ms, server_ms] = parts.rtts.each_mut().map(|rtts| rtts.median_ms(now_ns));
        let (since, bps) = all;
        let ip_bytes = parts.view.ip_bytes;
        let passed = PassedBytes { at_ns: now_ns, dl_bytes: ip_bytes, ul_bytes: 0 };
        if let Some([dl, _]) = step(since, passed) {
            *bps = Some(dl);
        }
        // Those that were closed linger until later packets come.
        let closed = told.iter().filter(|flow| !flow.open).count();
        PacketView {
            last_us: parts.last_ns.map(|ns| ns.div_euclid(1_000)),
            flows_open: parts.study.open_flows().saturating_sub(closed) as u64,
            bps: *bps,
            rtt_median_ms: client_ms,
            server_rtt_median_ms: server_ms,
            flows: told,
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

/// RTTs of late: when, and how long.
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
        let middle = rtts.len() / 2;
        (!rtts.is_empty()).then(|| *rtts.select_nth_unstable(middle).1 as f64 / 1e6)
    }
}

impl Parts {
    /// It is so late.
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

/// The rates since the last step, where that was long enough ago.
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
        // A new one began with nothing; of one that was not told for a while nothing is
        // known of late.
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
    /// RTT from the client to the server, as far as it is known, in milliseconds.
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
