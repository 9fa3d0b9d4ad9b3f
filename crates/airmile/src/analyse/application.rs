//! What applications' logs add to a diagnosis; and what they tell alone.

use std::collections::BTreeMap;

use airmile_decode::application::ApplicationFormat;
use airmile_model::{
    AppTransfer, ApplicationLog, Direction, Phases, PlayerEvent, PlayerEventKind, TimeBase,
    TransferKind, TtiIndex, Verdict,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::diagnose::{Diagnosis, EvidenceItem, Measures, SessionVerdict, TransferDiagnosis};
use super::radio::{Answer, Missing};
use crate::limits::{LimitFilter, Limits};
use crate::session::Application;

/// A part of a transfer that is worth advice of its own (chosen here).
const WORTH_ADVICE: f64 = 0.5;

/// What the application itself noted down of a transfer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ApplicationSide {
    /// What it was.
    pub kind: TransferKind,
    /// Protocol, as in `h2`.
    pub protocol: Option<String>,
    /// The connection that carried it.
    pub connection: Option<String>,
    /// Bitrate of a media segment in bits per second.
    pub bitrate_bps: Option<f64>,
    /// Whether it failed or was given up.
    pub failed: bool,
    /// In the application's own queue, in ms; here and below null where the log
    /// does not tell.
    pub blocked_ms: Option<f64>,
    /// Name lookup, in ms.
    pub dns_ms: Option<f64>,
    /// TCP handshake, or QUIC's, in ms.
    pub connect_ms: Option<f64>,
    /// TLS handshake beside it, in ms.
    pub tls_ms: Option<f64>,
    /// Sending the request, in ms.
    pub send_ms: Option<f64>,
    /// From the request to the first byte, in ms.
    pub wait_ms: Option<f64>,
    /// From the first byte to the last, in ms.
    pub receive_ms: Option<f64>,
    /// Stalls of the player that touch it.
    pub stalls: u64,
    /// Their time inside of it, in ms.
    pub stalled_ms: f64,
}

/// What an application's log holds, all in all.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ApplicationSummary {
    /// The name it was opened by.
    pub path: String,
    /// Its format.
    pub kind: &'static str,
    /// What wrote it, as it says.
    pub made_by: Option<String>,
    /// What its times count from.
    pub clock: TimeBase,
    /// How exactly it places its start, in ms.
    pub placed_within_ms: f64,
    /// Whether the transfers above are its own.
    pub gave_transfers: bool,
    /// Transfers over the network.
    pub transfers: u64,
    /// Of these, how many failed.
    pub failed: u64,
    /// Requests that the cache answered.
    pub from_cache: u64,
    /// Bytes of its transfers.
    pub bytes: u64,
    /// Time in which any transfer ran, in ms.
    pub busy_ms: f64,
    /// Bytes over that time, in bits per second.
    pub busy_bps: Option<f64>,
    /// Times that the picture stood still.
    pub stalls: u64,
    /// How long, in ms; of a stall whose end is not told nothing.
    pub stalled_ms: f64,
    /// Changes of the bitrate.
    pub switches: u64,
    /// Mean bitrate of the media segments, in bits per second.
    pub mean_bitrate_bps: Option<f64>,
    /// Least that lay in the player's buffer after the start, in ms.
    pub least_buffer_ms: Option<f64>,
    /// What the player noted down, in order.
    pub events: Vec<EventPoint>,
    /// Rates of a speed test, or of a second of QUIC.
    pub rates: Vec<RateOver>,
    /// The log in a sentence.
    pub says: String,
}

/// An event of a player.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct EventPoint {
    /// When, in microseconds by the log's clock.
    pub time_us: i64,
    /// What.
    pub kind: PlayerEventKind,
    /// How much: ms of a stall or in the buffer, bits per second of a switch or an
    /// estimate.
    pub value: Option<f64>,
}

/// A rate over a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RateOver {
    /// Start in microseconds by the log's clock.
    pub start_us: i64,
    /// End in microseconds (exclusive).
    pub end_us: i64,
    /// Which way.
    pub dir: Direction,
    /// Bits per second.
    pub bps: f64,
    /// Segments sent again, or packets lost.
    pub retransmits: Option<u64>,
    /// Mean round trip in microseconds.
    pub rtt_us: Option<f64>,
}

/// Leaves what begins within limits on the time, counted from the log's start.
pub(super) fn limit(log: &mut ApplicationLog, limits: Limits) {
    if limits == Limits::default() {
        return;
    }
    let mut filter = LimitFilter::new(limits);
    if let Some((start_ns, _)) = log.span_ns() {
        filter.keeps_ns(start_ns);
    }
    log.transfers.retain(|transfer| filter.keeps_ns(transfer.start_ns));
    log.events.retain(|event| filter.keeps_ns(event.at_ns));
    log.rates.retain(|rate| filter.keeps_ns(rate.start_ns));
}

/// Adds what applications' logs tell to a diagnosis.
pub(super) fn tell(diagnosis: &mut Diagnosis, answer: &Answer) {
    if answer.alone {
        alone(diagnosis, answer);
    }
    for transfer in &mut diagnosis.transfers {
        beside(transfer, answer);
    }
    if !answer.alone && answer.applications.iter().any(|one| one.gave_transfers) {
        diagnosis.missing.push(Missing {
            what: "how far the application's clock is from the modem's".to_owned(),
            how_to_capture: "they are taken for one, but for an offset that was given: let the \
                             phone set its clock by the network before it logs"
                .to_owned(),
        });
    }
    diagnosis.applications = answer.applications.iter().map(summary).collect();
}

/// The transfers of the first log that has any, and what can be said of them.
fn alone(diagnosis: &mut Diagnosis, answer: &Answer) {
    let log = answer.applications.iter().find(|one| !one.log.transfers.is_empty());
    let Some(Application { log, .. }) = log else {
        diagnosis.session.says = "Cannot tell: the application's log holds no transfer over the \
            network; see what is missing."
            .into();
        diagnosis.missing = missing();
        return;
    };
    let overlaps = overlaps(&log.transfers);
    let from_ns = log.transfers.first().map_or(0, |transfer| transfer.start_ns);
    diagnosis.transfers_from = "given";
    diagnosis.transfers = log
        .transfers
        .iter()
        .zip(overlaps)
        .map(|(transfer, overlapped)| unknown(transfer, overlapped, from_ns, log.scale.base))
        .collect();
    let whole = busy(&log.transfers);
    let carried = |dir| {
        let of = log.transfers.iter().filter(|transfer| transfer.dir == Some(dir));
        of.filter_map(|transfer| transfer.bytes).fold(0, u64::saturating_add)
    };
    let (dl, ul) = (carried(Direction::Dl), carried(Direction::Ul));
    let mut says = format!(
        "Cannot tell who the bottleneck was: an application's log shows how long its transfers \
         took, not what they waited for. It tells: {}",
        words(log, whole)
    );
    let before: i64 = before_first_byte_ns(&log.transfers);
    let all: i64 = log.transfers.iter().map(length_ns).fold(0, i64::saturating_add);
    if before > 0 && all > 0 {
        let share = before as f64 / all as f64 * 100.0;
        says.push_str(&format!(" {share:.0} % of the transfers' time was before a first byte."));
    }
    diagnosis.session = SessionVerdict {
        verdict: Verdict::Unknown,
        confidence: 0.0,
        dir: Some(if ul > dl { Direction::Ul } else { Direction::Dl }),
        link_demand: None,
        shares: BTreeMap::new(),
        says,
    };
    diagnosis.missing = missing();
}

/// What a log without any other file lacks.
pub(super) fn missing() -> Vec<Missing> {
    let mut out = Vec::new();
    let mut add = |what: &str, how: &str| {
        out.push(Missing { what: what.to_owned(), how_to_capture: how.to_owned() });
    };
    add(
        "what the radio link did meanwhile",
        "log the modem while the transfers run (MobileInsight, QXDM, a DIAG port with `airmile \
         live --port`), and give that log beside this one",
    );
    add(
        "packets of the same time",
        "capture at the phone (tcpdump -s 128, PCAPdroid) and at the server, and give the \
         captures beside this log",
    );
    out
}

/// Questions that a log answers.
pub(super) fn answers(application: &Application) -> Vec<String> {
    let log = &application.log;
    let title = application.format.title();
    let mut out = Vec::new();
    let n = log.transfers.len();
    if n > 0 {
        let with_bytes = log.transfers.iter().filter(|transfer| transfer.bytes.is_some()).count();
        out.push(format!(
            "how long transfers took, and at what rate: from {n} transfers of the {title}, \
             {with_bytes} with bytes; not what they waited for, which needs the files below"
        ));
    }
    let phases = log.transfers.iter().filter(|t| t.phases.before_first_byte_ns().is_some()).count();
    if phases > 0 {
        out.push(format!(
            "how their time was split (own queue, lookup, handshakes, first byte): from {phases} \
             transfers with phases"
        ));
    }
    let count = |kind| log.events.iter().filter(|event| event.kind == kind).count();
    let (stalls, switches) = (count(PlayerEventKind::Stall), count(PlayerEventKind::Switch));
    let buffer = count(PlayerEventKind::Buffer);
    if !log.events.is_empty() {
        out.push(format!(
            "when the picture stood still and which bitrate was shown: from {stalls} stalls, \
             {switches} changes of bitrate and {buffer} buffer levels"
        ));
    }
    if !log.rates.is_empty() {
        out.push(format!("the rate second by second: from {} intervals", log.rates.len()));
    }
    out
}

/// A log that places its start no better than this has to be aligned by its data
/// (chosen here: a few round trips).
const ROUGHLY_PLACED_NS: i64 = 100_000_000;

/// What a log itself lacks.
pub(super) fn lacks(application: &Application) -> Vec<Missing> {
    let scale = application.log.scale;
    let mut out = Vec::new();
    let mut add =
        |what: String, how: &str| out.push(Missing { what, how_to_capture: how.to_owned() });
    if scale.base == TimeBase::Unplaced {
        add(
            format!("{}: when it was in the day", application.path),
            "its times count from some start: have the log written with wall-clock times, or \
             with both clocks at its start (docs/application-logs.md)",
        );
    } else if scale.placed_within_ns >= ROUGHLY_PLACED_NS {
        let how = match application.format {
            ApplicationFormat::Iperf3 | ApplicationFormat::Iperf3Stream => {
                "iperf3 before 3.18 writes whole seconds: update it"
            }
            _ => "have the server log ms (nginx: msec=$msec)",
        };
        add(format!("{}: when it began, to better than a second", application.path), how);
    }
    if !application.log.transfers.is_empty()
        && application.log.transfers.iter().all(|transfer| transfer.bytes.is_none())
    {
        add(
            format!("{}: how many bytes its transfers had", application.path),
            "export it with sizes (docs/application-logs.md)",
        );
    }
    out
}

/// A transfer of which nobody knows what held it up.
fn unknown(
    transfer: &AppTransfer,
    overlapped: bool,
    from_ns: i64,
    base: TimeBase,
) -> TransferDiagnosis {
    let ns = length_ns(transfer);
    let duration_ms = ms(ns);
    let setup_ms = transfer.phases.setup_ns().map_or(0.0, ms).min(duration_ms);
    let mut shares = BTreeMap::from([("unknown", duration_ms - setup_ms)]);
    if setup_ms > 0.0 {
        shares.insert("setup", setup_ms);
    }
    let tti = |ns: i64| TtiIndex(ns.saturating_sub(from_ns).div_euclid(1_000_000));
    let placed = |ns: i64| (base == TimeBase::Wall).then(|| ns.div_euclid(1_000));
    let mut evidence = Vec::new();
    let whole = (tti(transfer.start_ns), tti(transfer.end_ns));
    if let Some(bytes) = transfer.bytes.filter(|_| duration_ms > 0.0) {
        let bps = bytes as f64 * 8e3 / duration_ms;
        let what = format!("it got {:.2} Mbit/s (bytes / duration)", bps / 1e6);
        evidence.push(item(what, Some(bps), "bit/s", whole));
    }
    TransferDiagnosis {
        id: transfer.id.clone(),
        name: None,
        verdict: Verdict::Unknown,
        confidence: 0.0,
        shares,
        leading: None,
        leading_share: None,
        counterfactual_ms: None,
        counterfactual_of: None,
        evidence,
        next_step: next_step(transfer, ns),
        application: None,
        finding: Measures {
            dir: transfer.dir.unwrap_or(Direction::Dl),
            start_us: placed(transfer.start_ns),
            end_us: placed(transfer.end_ns),
            start_tti: whole.0,
            end_tti: whole.1,
            duration_ms,
            bytes: transfer.bytes,
            throughput_time_ms: None,
            link_demand: None,
            link_throughput_bps: None,
            burst_throughput_bps: None,
            overlapped,
        },
    }
}

fn next_step(transfer: &AppTransfer, ns: i64) -> String {
    const CAPTURE: &str = "log the modem and capture packets while it runs again";
    let share = |part: Option<i64>| part.unwrap_or(0) as f64 / ns.max(1) as f64;
    let p = transfer.phases;
    let part = if transfer.failed {
        "it failed: see why in the application first"
    } else if share(p.blocked_ns) >= WORTH_ADVICE {
        "most of it was in the application's own queue: fewer requests at once, or more \
         connections"
    } else if share(p.setup_ns()) >= WORTH_ADVICE {
        "most of it was lookup and handshakes: reuse connections, TLS 1.3, preconnect"
    } else if share(p.wait_ns) >= WORTH_ADVICE {
        "most of it was the wait for the first byte: the server's answer, or round trips"
    } else {
        return CAPTURE.to_owned();
    };
    format!("{part}. Whether the link had a part in it: {CAPTURE}")
}

/// Adds what the application knows of a transfer.
fn beside(transfer: &mut TransferDiagnosis, answer: &Answer) {
    let place = Place::of(transfer, answer);
    let same = |one: &&AppTransfer| {
        one.id == transfer.id && (answer.alone || place.touches(one.start_ns, one.end_ns))
    };
    let own = answer.applications.iter().find_map(|app| app.log.transfers.iter().find(same));
    let mut stalls = (0, 0.0);
    for application in &answer.applications {
        let (n, stalled_ms) = place.player(&application.log.events, &mut transfer.evidence);
        stalls = (stalls.0 + n, stalls.1 + stalled_ms);
        if application.gave_transfers || answer.alone {
            place.rates(&application.log, &mut transfer.evidence);
        }
    }
    let Some(own) = own else { return };
    let shown = if answer.whole_urls { own.url.clone() } else { own.name() };
    transfer.name = shown.filter(|name| !name.is_empty());
    if let Some(what) = phase_words(own) {
        let before = own.phases.before_first_byte_ns().map(ms);
        transfer.evidence.push(item(what, before, "ms", place.whole));
    }
    if own.bytes_decoded {
        let what = "its bytes are those after decompression: its rates may be too high".to_owned();
        transfer.evidence.push(item(what, None, "", place.whole));
    }
    let p = own.phases;
    let in_ms = |ns: Option<i64>| ns.map(ms);
    transfer.application = Some(ApplicationSide {
        kind: own.kind,
        protocol: own.protocol.clone(),
        connection: own.connection.clone(),
        bitrate_bps: own.bitrate_bps,
        failed: own.failed,
        blocked_ms: in_ms(p.blocked_ns),
        dns_ms: in_ms(p.dns_ns),
        connect_ms: in_ms(p.connect_ns),
        tls_ms: in_ms(p.tls_ns),
        send_ms: in_ms(p.send_ns),
        wait_ms: in_ms(p.wait_ns),
        receive_ms: in_ms(p.receive_ns),
        stalls: stalls.0,
        stalled_ms: stalls.1,
    });
}

/// Where a transfer is, by time and by TTI.
struct Place {
    start_ns: i64,
    end_ns: i64,
    whole: (TtiIndex, TtiIndex),
}

impl Place {
    fn of(transfer: &TransferDiagnosis, answer: &Answer) -> Self {
        let finding = &transfer.finding;
        let whole = (finding.start_tti, finding.end_tti);
        let times = finding.start_us.zip(finding.end_us);
        let unplaced = || {
            let mut all = answer.applications.iter().flat_map(|app| &app.log.transfers);
            let own = all.find(|own| answer.alone && own.id == transfer.id)?;
            Some((own.start_ns, own.end_ns))
        };
        let by_time =
            times.map(|(from, to)| (from.saturating_mul(1_000), to.saturating_mul(1_000)));
        let (start_ns, end_ns) = by_time.or_else(unplaced).unwrap_or((0, 0));
        Self { start_ns, end_ns, whole }
    }

    /// Whether a time lies in it, in part.
    const fn touches(&self, from_ns: i64, to_ns: i64) -> bool {
        from_ns < self.end_ns && to_ns > self.start_ns
    }

    fn tti(&self, ns: i64) -> TtiIndex {
        let n_tti = self.whole.1.since(self.whole.0) as f64;
        let length = self.end_ns.saturating_sub(self.start_ns).max(1) as f64;
        let share = ns.saturating_sub(self.start_ns) as f64 / length;
        TtiIndex(self.whole.0.0 + (share.clamp(0.0, 1.0) * n_tti) as i64)
    }

    /// What a player noted down meanwhile; gives its stalls, and their ms inside.
    fn player(&self, events: &[PlayerEvent], evidence: &mut Vec<EvidenceItem>) -> (u64, f64) {
        let (mut n, mut stalled_ns, mut first) = (0_u64, 0, None);
        let (mut switches, mut bps) = (0_u64, None);
        let mut least: Option<f64> = None;
        for event in events {
            let inside = event.at_ns >= self.start_ns && event.at_ns < self.end_ns;
            match event.kind {
                PlayerEventKind::Stall => {
                    let long_ns = (event.value.unwrap_or(0.0) * 1e6) as i64;
                    let end_ns = event.at_ns.saturating_add(long_ns);
                    if inside || self.touches(event.at_ns, end_ns) {
                        let (from, to) = (event.at_ns.max(self.start_ns), end_ns.min(self.end_ns));
                        n += 1;
                        stalled_ns += to.saturating_sub(from).max(0);
                        first.get_or_insert((from, to.max(from)));
                    }
                }
                PlayerEventKind::Switch if inside => {
                    switches += 1;
                    bps = event.value;
                }
                PlayerEventKind::Buffer if inside => {
                    least = event.value.map(|ms| least.map_or(ms, |l| l.min(ms))).or(least);
                }
                _ => {}
            }
        }
        let stalled_ms = ms(stalled_ns);
        if let Some((from, to)) = first {
            let what = format!(
                "the picture stood still for {stalled_ms:.0} ms of it ({n} stall{})",
                plural(n)
            );
            let range = (self.tti(from), self.tti(to));
            evidence.push(item(what, Some(stalled_ms), "ms", range));
        }
        if let Some(bps) = bps {
            let what = format!(
                "the player changed its bitrate meanwhile ({switches} time{}), to {:.2} Mbit/s",
                plural(switches),
                bps / 1e6
            );
            evidence.push(item(what, Some(bps), "bit/s", self.whole));
        }
        if let Some(ms) = least {
            let what = format!("least in the player's buffer meanwhile: {:.1} s", ms / 1e3);
            evidence.push(item(what, Some(ms), "ms", self.whole));
        }
        (n, stalled_ms)
    }

    /// Rates per second meanwhile, of a speed test or a connection.
    fn rates(&self, log: &ApplicationLog, evidence: &mut Vec<EvidenceItem>) {
        let inside = |from: i64, to: i64| self.touches(from, to);
        let longest_ns = log
            .rates
            .iter()
            .map(|rate| rate.end_ns.saturating_sub(rate.start_ns))
            .max()
            .unwrap_or(0);
        // The last interval of a test is what is left of a second.
        let rates: Vec<_> = log
            .rates
            .iter()
            .filter(|rate| rate.end_ns.saturating_sub(rate.start_ns) >= longest_ns / 2)
            .filter(|rate| inside(rate.start_ns, rate.end_ns))
            .collect();
        let bps = rates
            .iter()
            .map(|rate| bits_per_s(rate.bytes, rate.end_ns.saturating_sub(rate.start_ns)));
        let (Some(least), Some(most)) = (bps.clone().reduce(f64::min), bps.reduce(f64::max)) else {
            return;
        };
        let mut what = format!(
            "per second {:.2} to {:.2} Mbit/s by the application's log",
            least / 1e6,
            most / 1e6
        );
        let retransmits: Option<u64> =
            rates.iter().filter_map(|rate| rate.retransmits).reduce(|a, b| a.saturating_add(b));
        if let Some(n) = retransmits {
            what.push_str(&format!("; {n} segments lost or sent again"));
        }
        let rtts: Vec<f64> = rates.iter().filter_map(|rate| rate.rtt_us).collect();
        let bounds = (rtts.iter().copied().reduce(f64::min), rtts.iter().copied().reduce(f64::max));
        if let (Some(least), Some(most)) = bounds {
            what.push_str(&format!("; round trips {:.0} to {:.0} ms", least / 1e3, most / 1e3));
        }
        evidence.push(item(what, Some(least), "bit/s", self.whole));
    }
}

fn item(
    what: String,
    value: Option<f64>,
    unit: &'static str,
    (from_tti, to_tti): (TtiIndex, TtiIndex),
) -> EvidenceItem {
    EvidenceItem { what, value, unit, from_tti, to_tti }
}

/// The parts of a transfer's time in words; `None` where the log does not tell them.
fn phase_words(transfer: &AppTransfer) -> Option<String> {
    let Phases { blocked_ns, dns_ns, connect_ns, tls_ns, send_ns, wait_ns, receive_ns } =
        transfer.phases;
    let parts = [
        ("in its own queue", blocked_ns),
        ("name lookup", dns_ns),
        ("connecting", connect_ns),
        ("TLS", tls_ns),
        ("request", send_ns),
        ("wait for the first byte", wait_ns),
        ("receiving", receive_ns),
    ];
    let told: Vec<String> = parts
        .into_iter()
        .filter_map(|(name, ns)| Some((name, ns.filter(|ns| *ns > 0)?)))
        .map(|(name, ns)| format!("{name} {:.0} ms", ms(ns)))
        .collect();
    let mut words = match told.as_slice() {
        [] => return None,
        told => format!("by the application's own log: {}", told.join(", ")),
    };
    if transfer.phases.setup_ns() == Some(0) {
        words.push_str("; on a connection that was there");
    }
    Some(words)
}

fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

const fn plural(n: u64) -> &'static str {
    if n == 1 { "" } else { "s" }
}

fn bits_per_s(bytes: u64, ns: i64) -> f64 {
    bytes as f64 * 8e9 / ns.max(1) as f64
}

const fn length_ns(transfer: &AppTransfer) -> i64 {
    transfer.end_ns.saturating_sub(transfer.start_ns)
}

fn before_first_byte_ns(transfers: &[AppTransfer]) -> i64 {
    let of = |transfer: &AppTransfer| {
        let ns = length_ns(transfer);
        transfer.phases.before_first_byte_ns().unwrap_or(0).clamp(0, ns.max(0))
    };
    transfers.iter().map(of).fold(0, i64::saturating_add)
}

/// Of each transfer (in the order of their starts), whether another overlaps it.
fn overlaps(transfers: &[AppTransfer]) -> Vec<bool> {
    let mut out = Vec::with_capacity(transfers.len());
    let mut busy_until = i64::MIN;
    for (number, transfer) in transfers.iter().enumerate() {
        let next = transfers.get(number + 1).map_or(i64::MAX, |next| next.start_ns);
        out.push(transfer.start_ns < busy_until || next < transfer.end_ns);
        busy_until = busy_until.max(transfer.end_ns);
    }
    out
}

/// Time in which any transfer ran, in nanoseconds.
fn busy(transfers: &[AppTransfer]) -> i64 {
    let (mut total, mut until) = (0_i64, i64::MIN);
    for transfer in transfers {
        let from = transfer.start_ns.max(until);
        total = total.saturating_add(transfer.end_ns.saturating_sub(from).max(0));
        until = until.max(transfer.end_ns);
    }
    total
}

fn bytes_of(log: &ApplicationLog) -> u64 {
    log.transfers.iter().filter_map(|transfer| transfer.bytes).fold(0, u64::saturating_add)
}

/// How often and how long the picture stood still, in ms.
fn stalls(log: &ApplicationLog) -> (u64, f64) {
    let stalls = log.events.iter().filter(|event| event.kind == PlayerEventKind::Stall);
    stalls.fold((0, 0.0), |(n, ms), stall| (n + 1, ms + stall.value.unwrap_or(0.0)))
}

/// A log in words.
fn words(log: &ApplicationLog, busy_ns: i64) -> String {
    let n = log.transfers.len() as u64;
    let mut out = format!("{n} transfer{}", plural(n));
    let failed = log.transfers.iter().filter(|transfer| transfer.failed).count();
    if failed > 0 {
        out.push_str(&format!(" ({failed} failed)"));
    }
    if busy_ns > 0 {
        let bytes = bytes_of(log);
        out.push_str(&format!(
            ", {:.2} MB in {:.1} s of transfers, {:.2} Mbit/s",
            bytes as f64 / 1e6,
            busy_ns as f64 / 1e9,
            bits_per_s(bytes, busy_ns) / 1e6
        ));
    }
    if log.from_cache > 0 {
        out.push_str(&format!("; {} more from the cache", log.from_cache));
    }
    let (stalls, stalled_ms) = stalls(log);
    if stalls > 0 {
        let s = stalled_ms / 1e3;
        out.push_str(&format!(
            "; the picture stood still {stalls} time{}, {s:.1} s",
            plural(stalls)
        ));
    } else if log.events.iter().any(|event| event.kind == PlayerEventKind::Started) {
        out.push_str("; the picture never stood still");
    }
    let switches = log.events.iter().filter(|e| e.kind == PlayerEventKind::Switch).count() as u64;
    if switches > 0 {
        out.push_str(&format!("; {switches} change{} of bitrate", plural(switches)));
    }
    out.push('.');
    out
}

fn summary(application: &Application) -> ApplicationSummary {
    let Application { path, format, log, gave_transfers } = application;
    let busy_ns = busy(&log.transfers);
    let (stalls, stalled_ms) = stalls(log);
    let of = |kind| log.events.iter().filter(move |event: &&PlayerEvent| event.kind == kind);
    let started = of(PlayerEventKind::Started).map(|event| event.at_ns).next();
    let buffer =
        of(PlayerEventKind::Buffer).filter(|event| started.is_none_or(|at| event.at_ns > at));
    let bitrates: Vec<f64> = log.transfers.iter().filter_map(|t| t.bitrate_bps).collect();
    let mean = bitrates.iter().sum::<f64>() / bitrates.len().max(1) as f64;
    let point = |event: &PlayerEvent| EventPoint {
        time_us: event.at_ns.div_euclid(1_000),
        kind: event.kind,
        value: event.value,
    };
    ApplicationSummary {
        path: path.clone(),
        kind: format.name(),
        made_by: log.made_by.clone(),
        clock: log.scale.base,
        placed_within_ms: ms(log.scale.placed_within_ns),
        gave_transfers: *gave_transfers,
        transfers: log.transfers.len() as u64,
        failed: log.transfers.iter().filter(|transfer| transfer.failed).count() as u64,
        from_cache: log.from_cache,
        bytes: bytes_of(log),
        busy_ms: ms(busy_ns),
        busy_bps: (busy_ns > 0).then(|| bits_per_s(bytes_of(log), busy_ns)),
        stalls,
        stalled_ms,
        switches: of(PlayerEventKind::Switch).count() as u64,
        mean_bitrate_bps: (!bitrates.is_empty()).then_some(mean),
        least_buffer_ms: buffer.filter_map(|event| event.value).reduce(f64::min),
        events: log.events.iter().map(point).collect(),
        rates: log
            .rates
            .iter()
            .map(|rate| RateOver {
                start_us: rate.start_ns.div_euclid(1_000),
                end_us: rate.end_ns.div_euclid(1_000),
                dir: rate.dir,
                bps: bits_per_s(rate.bytes, rate.end_ns.saturating_sub(rate.start_ns)),
                retransmits: rate.retransmits,
                rtt_us: rate.rtt_us,
            })
            .collect(),
        says: format!("{}: {}", format.title(), words(log, busy_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers(spans: &[(i64, i64)]) -> Vec<AppTransfer> {
        let one =
            |(n, &(from, to)): (usize, &(i64, i64))| AppTransfer::new(n.to_string(), from, to);
        spans.iter().enumerate().map(one).collect()
    }

    #[test]
    fn overlaps_and_busy_time() {
        let check = |spans: &[(i64, i64)], expected: &[bool], busy_ns: i64| {
            let transfers = transfers(spans);
            assert_eq!((overlaps(&transfers).as_slice(), busy(&transfers)), (expected, busy_ns));
        };
        check(&[(0, 10), (10, 20)], &[false, false], 20);
        check(&[(0, 50), (10, 20), (30, 40), (60, 70)], &[true, true, true, false], 60);
        check(&[(0, 10), (5, 20), (30, 31)], &[true, true, false], 21);
        check(&[], &[], 0);
    }

    #[test]
    fn phases_in_words() {
        let mut transfer = AppTransfer::new("a".into(), 0, 1);
        assert_eq!(phase_words(&transfer), None);
        transfer.phases = Phases {
            dns_ns: Some(0),
            connect_ns: Some(0),
            wait_ns: Some(40_000_000),
            receive_ns: Some(5_400_000),
            ..Phases::default()
        };
        let expected = "by the application's own log: wait for the first byte 40 ms, receiving \
                        5 ms; on a connection that was there";
        assert_eq!(phase_words(&transfer).as_deref(), Some(expected));
    }
}
