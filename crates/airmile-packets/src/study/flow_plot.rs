//! A flow as a time-sequence graph with RTT and window below it, after tcptrace.

use std::collections::BTreeMap;

use airmile_model::flow::{FlowRow, RttSample, TcpEvent};
use airmile_model::{CongestionControl, Direction, RttSource, TcpEventKind, Termination};
use airmile_wire::tcp::TracedPacket;
use schemars::JsonSchema;
use serde::Serialize;

use super::choice::{draws_downlink, window_share};
use super::line::{PointSeries, SeriesPoint};
use super::words;

/// One direction of a flow over time. Times are in milliseconds from its first packet,
/// offsets in bytes from the first sequence number in the capture. A line with too many
/// points is merged into bins; each gives their length.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FlowPlot {
    /// Number of the flow.
    pub flow: u64,
    /// Its ends, the client first.
    pub label: String,
    /// Name of the server, if it is known.
    pub server_name: Option<String>,
    /// Why it is drawn.
    pub why: Vec<String>,
    /// The flow in words.
    pub says: String,
    /// Direction of the data that is drawn: `dl` or `ul`.
    pub dir: Direction,
    /// Its first packet, in microseconds since the Unix epoch.
    pub start_us: i64,
    /// The drawn part, from and to, in milliseconds.
    pub span_ms: [f64; 2],
    /// Numbers of the flow.
    pub facts: FlowFacts,
    /// Data that passed for the first time.
    pub data: DataRuns,
    /// Acknowledgements of it.
    pub acks: AckLine,
    /// Bytes in flight.
    pub flight: RangeLine,
    /// RTTs from acknowledgements in milliseconds.
    pub rtt: RangeLine,
    /// RTTs from the SACKs of duplicate ACKs in milliseconds.
    pub rtt_dup_ack: RangeLine,
    /// Events out of the ordinary.
    pub events: Vec<EventLine>,
}

/// Numbers of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FlowFacts {
    /// Payload in the direction drawn, in bytes.
    pub bytes: u64,
    /// First packet to last in milliseconds.
    pub duration_ms: f64,
    /// Segments with payload.
    pub segments: u64,
    /// Of them, retransmitted.
    pub retx: u64,
    /// Duplicate ACKs.
    pub dup_acks: u64,
    /// Bursts of them that a slow start followed.
    pub slow_starts: u64,
    /// Share of the time that the receive window was full.
    pub window_full_share: f64,
    /// Minimum, mean and maximum RTT between monitor and client in milliseconds.
    pub rtt_ms: Option<[f64; 3]>,
    /// Available bandwidth in bit/s, mean.
    pub available_bps: Option<f64>,
    /// The server's congestion control, inferred.
    pub congestion_control: CongestionControl,
    /// Confidence in it, 0 to 1.
    pub congestion_control_confidence: f64,
    /// Its termination.
    pub termination: Termination,
}

/// Segments: from when to when, from which byte to which.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct DataRuns {
    /// Length of a bin; 0: each segment by itself.
    pub bin_ms: f64,
    /// First segment of the run.
    pub from_ms: Vec<f64>,
    /// Last segment of the run.
    pub to_ms: Vec<f64>,
    /// First byte.
    pub from_bytes: Vec<i64>,
    /// Offset after the last byte.
    pub to_bytes: Vec<i64>,
    /// Segments in all.
    pub segments: u64,
}

/// Acknowledgements.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct AckLine {
    /// Length of a bin, whose last acknowledgement stands for it; 0: each by itself.
    pub bin_ms: f64,
    /// When it passed the monitor.
    pub at_ms: Vec<f64>,
    /// Offset after the last byte acknowledged.
    pub acked_bytes: Vec<i64>,
    /// The minimum receive window of the bin, in bytes.
    pub window_bytes: Vec<Option<u64>>,
    /// Acknowledgements in all.
    pub acks: u64,
}

/// A measure over time.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RangeLine {
    /// Length of a bin; 0: each sample by itself.
    pub bin_ms: f64,
    /// Time of the (first) sample.
    pub at_ms: Vec<f64>,
    /// Minimum of the bin.
    pub least: Vec<f64>,
    /// Maximum of the bin.
    pub most: Vec<f64>,
    /// Samples in all.
    pub n: u64,
}

/// Events of one kind.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EventLine {
    /// Kind: as in `tcp_events`, or `sack`: a block reported for the first time.
    pub event: TcpEventKind,
    /// Length of a bin, whose events are one mark; 0: a mark each.
    pub bin_ms: f64,
    /// When.
    pub at_ms: Vec<f64>,
    /// First byte concerned.
    pub from_bytes: Vec<i64>,
    /// Offset after the last one.
    pub to_bytes: Vec<i64>,
    /// Events of the mark.
    pub n: Vec<u64>,
}

struct Run {
    from_ns: i64,
    to_ns: i64,
    from: i64,
    to: i64,
    n: u64,
}

impl SeriesPoint for Run {
    fn at_ns(&self) -> i64 {
        self.from_ns
    }

    fn absorb(&mut self, later: Self) {
        self.to_ns = later.to_ns;
        (self.from, self.to) = (self.from.min(later.from), self.to.max(later.to));
        self.n += later.n;
    }
}

struct Ack {
    at_ns: i64,
    acked: i64,
    window: Option<u64>,
    n: u64,
}

impl SeriesPoint for Ack {
    fn at_ns(&self) -> i64 {
        self.at_ns
    }

    fn absorb(&mut self, later: Self) {
        self.acked = later.acked;
        self.window = match (self.window, later.window) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.n += later.n;
    }
}

struct Range {
    at_ns: i64,
    least: f64,
    most: f64,
    n: u64,
}

impl SeriesPoint for Range {
    fn at_ns(&self) -> i64 {
        self.at_ns
    }

    fn absorb(&mut self, later: Self) {
        (self.least, self.most) = (self.least.min(later.least), self.most.max(later.most));
        self.n += later.n;
    }
}

/// Gathers the graph of one flow, or of a part of it.
pub(super) struct FlowPlotBuilder {
    row: FlowRow,
    why: Vec<String>,
    dir: Direction,
    /// The drawn part.
    span: (i64, i64),
    data: PointSeries<Run>,
    acks: PointSeries<Ack>,
    flight: PointSeries<Range>,
    rtt: PointSeries<Range>,
    rtt_dup_ack: PointSeries<Range>,
    events: BTreeMap<TcpEventKind, PointSeries<Run>>,
    sacked: [(i64, i64); 4],
}

impl FlowPlotBuilder {
    /// Of a whole flow, in the direction of most of its bytes.
    pub(super) fn whole(row: &FlowRow, why: Vec<String>) -> Self {
        let dir = if draws_downlink(row) { Direction::Dl } else { Direction::Ul };
        Self::new(row, why, dir, (row.start_ns, row.start_ns + row.duration_ns))
    }

    /// For the packets of a time range.
    pub(super) fn excerpt(row: &FlowRow, why: String, span: (i64, i64)) -> Self {
        let end = row.start_ns + row.duration_ns;
        Self::new(row, vec![why], Direction::Dl, (span.0.max(row.start_ns), span.1.min(end)))
    }

    fn new(row: &FlowRow, why: Vec<String>, dir: Direction, span: (i64, i64)) -> Self {
        let (from, length) = (span.0, span.1 - span.0);
        Self {
            row: row.clone(),
            why,
            dir,
            span,
            data: PointSeries::new(from, length),
            acks: PointSeries::new(from, length),
            flight: PointSeries::new(from, length),
            rtt: PointSeries::new(from, length),
            rtt_dup_ack: PointSeries::new(from, length),
            events: BTreeMap::new(),
            sacked: [(0, 0); 4],
        }
    }

    pub(super) const fn flow(&self) -> u64 {
        self.row.flow
    }

    fn has(&self, at_ns: i64) -> bool {
        (self.span.0..=self.span.1).contains(&at_ns)
    }

    pub(super) fn packet(&mut self, packet: &TracedPacket) {
        if !self.has(packet.at_ns) {
            return;
        }
        if packet.dir == self.dir {
            self.sent(packet);
        } else {
            self.acknowledged(packet);
        }
    }

    fn sent(&mut self, packet: &TracedPacket) {
        let (at, from) = (packet.at_ns, packet.offset_bytes);
        let to = from + i64::from(packet.payload_bytes);
        let new = packet.new_bytes > 0 && matches!(packet.event, None | Some(TcpEventKind::Ahead));
        if new {
            self.data.push(Run { from_ns: at, to_ns: at, from, to, n: 1 });
        }
        if let Some(event) = packet.event {
            self.event(event, at, from, to);
        }
        if packet.payload_bytes > 0 {
            self.in_flight(at, packet.flight_bytes);
        }
    }

    fn acknowledged(&mut self, packet: &TracedPacket) {
        let Some(ack) = packet.ack else { return };
        let at_ns = packet.at_ns;
        let (acked, window) = (ack.offset_bytes, ack.rwnd_bytes);
        self.acks.push(Ack { at_ns, acked, window, n: 1 });
        if ack.duplicate {
            self.event(TcpEventKind::DupAck, at_ns, acked, acked);
        }
        for (from, to) in ack.sack.into_iter().filter(|(from, to)| from < to) {
            if !self.sacked.contains(&(from, to)) {
                self.event(TcpEventKind::Sack, at_ns, from, to);
            }
        }
        self.sacked = ack.sack;
        self.in_flight(at_ns, ack.flight_bytes);
    }

    fn in_flight(&mut self, at_ns: i64, bytes: u64) {
        let bytes = bytes as f64;
        self.flight.push(Range { at_ns, least: bytes, most: bytes, n: 1 });
    }

    /// Takes a sample of the flow.
    pub(super) fn rtt(&mut self, sample: &RttSample) {
        if sample.dir != self.dir || !self.has(sample.time_ns) {
            return;
        }
        let ms = sample.rtt_ns as f64 / 1e6;
        let line = if sample.by == RttSource::Sack { &mut self.rtt_dup_ack } else { &mut self.rtt };
        line.push(Range { at_ns: sample.time_ns, least: ms, most: ms, n: 1 });
    }

    /// Takes a row of `tcp_events` that no single packet shows.
    pub(super) fn finding(&mut self, row: &TcpEvent) {
        if row.dir != self.dir || !self.has(row.time_ns) {
            return;
        }
        let offset = match row.event {
            TcpEventKind::WindowFull | TcpEventKind::SlowStart | TcpEventKind::Recovered => {
                row.offset_bytes
            }
            // At the last acknowledged offset.
            TcpEventKind::ZeroWindow => self.acks.points().last().map_or(0, |ack| ack.acked),
            _ => return,
        };
        self.event(row.event, row.time_ns, offset, offset);
    }

    fn event(&mut self, event: TcpEventKind, at: i64, from: i64, to: i64) {
        let (start, length) = (self.span.0, self.span.1 - self.span.0);
        let line = self.events.entry(event).or_insert_with(|| PointSeries::new(start, length));
        line.push(Run { from_ns: at, to_ns: at, from, to, n: 1 });
    }

    pub(super) fn finish(self) -> FlowPlot {
        let start = self.row.start_ns;
        let ms = |at: i64| words::rounded_ms(at - start);
        let data = self.data.points();
        let acks = self.acks.points();
        let facts = facts(&self.row, self.dir);
        FlowPlot {
            flow: self.row.flow,
            label: label(&self.row),
            server_name: self.row.server_name.clone(),
            says: says(&facts, self.dir),
            why: self.why,
            dir: self.dir,
            start_us: start.div_euclid(1_000),
            span_ms: [ms(self.span.0), ms(self.span.1)],
            facts,
            data: DataRuns {
                bin_ms: self.data.bin_ms(),
                from_ms: data.iter().map(|r| ms(r.from_ns)).collect(),
                to_ms: data.iter().map(|r| ms(r.to_ns)).collect(),
                from_bytes: data.iter().map(|r| r.from).collect(),
                to_bytes: data.iter().map(|r| r.to).collect(),
                segments: data.iter().map(|r| r.n).sum(),
            },
            acks: AckLine {
                bin_ms: self.acks.bin_ms(),
                at_ms: acks.iter().map(|a| ms(a.at_ns)).collect(),
                acked_bytes: acks.iter().map(|a| a.acked).collect(),
                window_bytes: acks.iter().map(|a| a.window).collect(),
                acks: acks.iter().map(|a| a.n).sum(),
            },
            flight: range_line(&self.flight, start),
            rtt: range_line(&self.rtt, start),
            rtt_dup_ack: range_line(&self.rtt_dup_ack, start),
            events: self
                .events
                .iter()
                .map(|(event, line)| event_line(*event, line, start))
                .collect(),
        }
    }
}

fn range_line(line: &PointSeries<Range>, start: i64) -> RangeLine {
    let points = line.points();
    let round = |value: f64| (value * 1e3).round() / 1e3;
    RangeLine {
        bin_ms: line.bin_ms(),
        at_ms: points.iter().map(|p| words::rounded_ms(p.at_ns - start)).collect(),
        least: points.iter().map(|p| round(p.least)).collect(),
        most: points.iter().map(|p| round(p.most)).collect(),
        n: points.iter().map(|p| p.n).sum(),
    }
}

fn event_line(event: TcpEventKind, line: &PointSeries<Run>, start: i64) -> EventLine {
    let points = line.points();
    EventLine {
        event,
        bin_ms: line.bin_ms(),
        at_ms: points.iter().map(|p| words::rounded_ms(p.from_ns - start)).collect(),
        from_bytes: points.iter().map(|p| p.from).collect(),
        to_bytes: points.iter().map(|p| p.to).collect(),
        n: points.iter().map(|p| p.n).collect(),
    }
}

fn facts(row: &FlowRow, dir: Direction) -> FlowFacts {
    let down = dir == Direction::Dl;
    let of = |dl: u64, ul: u64| if down { dl } else { ul };
    let ms = |ns: i64| words::rounded_ms(ns);
    let rtt = row.rtt_min_ns.zip(row.rtt_mean_ns).zip(row.rtt_max_ns);
    FlowFacts {
        bytes: of(row.dl_bytes, row.ul_bytes),
        duration_ms: ms(row.duration_ns),
        segments: of(row.dl_segments, row.ul_segments),
        retx: of(row.dl_retx, row.ul_retx),
        dup_acks: of(row.dl_dup_acks, row.ul_dup_acks),
        slow_starts: if down { row.slow_starts } else { 0 },
        window_full_share: if down { window_share(row) } else { 0.0 },
        rtt_ms: rtt.map(|((least, mean), most)| [ms(least), ms(mean), ms(most)]),
        available_bps: if down { row.available_bps } else { row.ul_available_bps },
        congestion_control: if down { row.congestion_control } else { CongestionControl::Unknown },
        congestion_control_confidence: if down { row.congestion_control_confidence } else { 0.0 },
        termination: row.termination,
    }
}

/// Both ends, as `--flow` takes them.
pub(super) fn label(row: &FlowRow) -> String {
    let end = |address: &str, port: u16| match address.contains(':') {
        true => format!("[{address}]:{port}"),
        false => format!("{address}:{port}"),
    };
    format!("{}-{}", end(&row.client, row.client_port), end(&row.server, row.server_port))
}

fn says(facts: &FlowFacts, dir: Direction) -> String {
    let seconds = facts.duration_ms / 1e3;
    let mut parts = vec![format!(
        "{} {} in {}",
        words::bytes(facts.bytes as f64),
        if dir == Direction::Dl { "to the client" } else { "from the client" },
        words::ms(facts.duration_ms),
    )];
    if seconds > 0.0 {
        let used = facts.bytes as f64 * 8.0 / seconds;
        let rate = words::rate(used);
        // An estimate below the used bandwidth is not shown.
        parts.push(match facts.available_bps.filter(|available| *available > used) {
            Some(available) => format!("{rate} of {} available", words::rate(available)),
            None => rate,
        });
    }
    if let Some([least, _, most]) = facts.rtt_ms {
        parts.push(format!("RTT to the client {} to {}", words::ms(least), words::ms(most)));
    }
    if facts.retx > 0 {
        parts.push(format!("{} of {} segments sent again", facts.retx, facts.segments));
    }
    if facts.dup_acks > 0 {
        parts.push(words::count(facts.dup_acks, "duplicate ACK"));
    }
    if facts.slow_starts > 0 {
        parts.push(words::count(facts.slow_starts, "undesired slow start"));
    }
    if facts.window_full_share > 0.005 {
        let share = 100.0 * facts.window_full_share;
        parts.push(format!("receive window full {share:.0} % of the time"));
    }
    parts.join("; ") + "."
}
