//! What application logs add to a diagnosis, and what they show on their own.

mod lacks;
mod place;
mod summary;

use std::collections::BTreeMap;

use airmile_model::{
    AppTransfer, ApplicationLog, Direction, Phases, TimeBase, TransferKind, TtiIndex,
};
use airmile_wire::attribute::INITIAL_WINDOW_BYTES;
use schemars::JsonSchema;
use serde::Serialize;

use super::aligned::TRANSFERS;
use super::clocks::ClockReport;
use super::diagnose::Measures;
use super::diagnose::join::{ApplicationFacts, Judgement, SessionJudgement, SharesMs, Sides, join};
use super::radio::{Missing, MissingKind, RadioAnalysis};
use crate::fact::{Advice, ApplicationAdvice, Fact, FactKind, Statement};
use crate::session::{Application, Loaded};
use airmile_io::FileReport;
use airmile_io::limits::{LimitFilter, Limits};

pub(super) use lacks::{answers, lacks, missing};
pub(super) use place::Lookup;
use place::TransferPlace;
pub use summary::{ApplicationSummary, EventPoint, RateOver};
use summary::{busy, length_ns, overlaps, words};

/// A phase with at least this share of a transfer gets its own advice (chosen here).
const WORTH_ADVICE: f64 = 0.5;

/// A transfer as the application logged it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ApplicationSide {
    /// Kind of transfer.
    pub kind: TransferKind,
    /// Protocol, as in `h2`.
    pub protocol: Option<String>,
    /// The connection that carried it.
    pub connection: Option<String>,
    /// Bitrate of a media segment in bits per second.
    pub bitrate_bps: Option<f64>,
    /// Whether it failed or was cancelled.
    pub failed: bool,
    /// Time in the application's own queue, in ms; here and below null if the log does not have it.
    pub blocked_ms: Option<f64>,
    /// Name lookup, in ms.
    pub dns_ms: Option<f64>,
    /// TCP or QUIC handshake, in ms.
    pub connect_ms: Option<f64>,
    /// TLS handshake after it, in ms.
    pub tls_ms: Option<f64>,
    /// Sending the request, in ms; of an upload, giving it to the system.
    pub send_ms: Option<f64>,
    /// From the request to the first byte, in ms; of an upload, most of the sending included.
    pub wait_ms: Option<f64>,
    /// From the first byte to the last, in ms.
    pub receive_ms: Option<f64>,
    /// Stalls of the player that overlap it.
    pub stalls: u64,
    /// Their time inside it, in ms.
    pub stalled_ms: f64,
}

/// The transfers that start within the limits on the time, counted from a start, or from the log's.
fn apart(log: &mut ApplicationLog, limits: Limits, start_ns: Option<i64>) -> LimitFilter {
    let mut filter = LimitFilter::new(limits);
    if let Some(start_ns) = start_ns.or_else(|| Some(log.span_ns()?.0)) {
        filter.keeps_ns(start_ns);
    }
    let left_out = log.transfers.iter().filter(|transfer| !filter.keeps_ns(transfer.start_ns));
    log.left_out = left_out.cloned().collect();
    filter
}

/// Notes which transfers of the logs are outside of the limits on the time of a modem log.
pub(super) fn note_limits(loaded: &mut Loaded, limits: Limits) {
    let Loaded { files, applications, .. } = loaded;
    let is_application = |file: &&FileReport| applications.iter().any(|one| one.path == file.path);
    let of_radio = files.iter().filter(|file| !is_application(file));
    let start_ns = of_radio.filter_map(|file| file.start_us).min().map(|us| us * 1_000);
    for application in applications.iter_mut().filter(|_| limits.are_given()) {
        apart(&mut application.log, limits, start_ns);
    }
}

/// Keeps the transfers that start within the limits on the time, counted from the log's start.
pub(super) fn limit(log: &mut ApplicationLog, limits: Limits) {
    if !limits.are_given() {
        return;
    }
    let mut filter = apart(log, limits, None);
    log.transfers.retain(|transfer| filter.keeps_ns(transfer.start_ns));
    log.events.retain(|event| filter.keeps_ns(event.at_ns));
    log.rates.retain(|rate| filter.keeps_ns(rate.start_ns));
}

/// Judges the transfers of application logs if there is no other evidence.
pub(super) fn judge(answer: &RadioAnalysis, files: &[FileReport]) -> Judgement {
    let missing = missing_beside(files);
    let all = || answer.applications.iter();
    let first = || all().find(|one| !one.log.transfers.is_empty());
    let log = all().find(|one| one.gave_transfers).or_else(first);
    let Some(Application { log, .. }) = log else {
        let session = SessionJudgement::unknown(Statement::NoApplicationTransfer);
        let transfers_from = answer.report.transfers_from;
        return Judgement { session, transfers: Vec::new(), transfers_from, missing };
    };
    let logs = answer.lookups();
    let own = own_transfers(log, answer, &logs).into_iter();
    let transfers = own.map(|(id, measures, application)| {
        join(id, measures, Sides { application: Some(application), ..Sides::default() })
    });
    Judgement {
        session: session(log),
        transfers: transfers.collect(),
        transfers_from: "given",
        missing,
    }
}

/// A log's transfers with their facts.
pub(super) fn own_transfers(
    log: &ApplicationLog,
    answer: &RadioAnalysis,
    logs: &[Lookup<'_>],
) -> Vec<(String, Measures, ApplicationFacts)> {
    let from_ns = log.transfers.first().map_or(0, |transfer| transfer.start_ns);
    let overlaps = overlaps(&log.transfers);
    let each = log.transfers.iter().zip(overlaps);
    each.map(|(transfer, overlapped)| {
        let measures = measures(transfer, overlapped, from_ns, log.scale.base);
        let mut known = facts(&transfer.id, &measures, answer, logs);
        known.shares_ms = Some(shares_ms(transfer, measures.duration_ms));
        known.advice = Some(Advice::Application(advice(transfer)));
        if let Some(bytes) = transfer.bytes.filter(|_| measures.duration_ms > 0.0) {
            let got_bps = bytes as f64 * 8e3 / measures.duration_ms;
            let whole = (measures.start_tti, measures.end_tti);
            known.facts.insert(0, Fact::new(FactKind::Throughput { got_bps }, whole));
        }
        (transfer.id.clone(), measures, known)
    })
    .collect()
}

/// The clock of given transfers as missing evidence, if it is unknown.
pub(super) fn unaligned(answer: &RadioAnalysis, clocks: &[ClockReport]) -> Option<Missing> {
    let aligned = clocks.iter().any(|c| c.file == TRANSFERS && c.offset_ms.is_some());
    let given = answer.applications.iter().any(|one| one.gave_transfers);
    (given && !aligned).then(|| {
        Missing::new(
            MissingKind::Clock,
            "the offset of the application's clock from the modem's",
            "the same clock is assumed: let the phone set its clock by the network before it logs, or \
             log a larger download",
        )
    })
}

/// The contents of application logs.
pub(super) fn summaries(answer: &RadioAnalysis) -> Vec<ApplicationSummary> {
    answer.applications.iter().map(summary::summary).collect()
}

fn session(log: &ApplicationLog) -> SessionJudgement {
    let carried = |dir| {
        let of_dir = log.transfers.iter().filter(|transfer| transfer.dir == Some(dir));
        of_dir.filter_map(|transfer| transfer.bytes).fold(0, u64::saturating_add)
    };
    let (dl, ul) = (carried(Direction::Dl), carried(Direction::Ul));
    let before: i64 = summary::before_first_byte_ns(&log.transfers);
    let all: i64 = log.transfers.iter().map(length_ns).fold(0, i64::saturating_add);
    SessionJudgement {
        dir: Some(if ul > dl { Direction::Ul } else { Direction::Dl }),
        ..SessionJudgement::unknown(Statement::ApplicationAlone {
            log: words(log, busy(&log.transfers)),
            before_first_byte: (before > 0 && all > 0).then(|| before as f64 / all as f64),
        })
    }
}

/// What is missing in addition to the given files.
fn missing_beside(files: &[FileReport]) -> Vec<Missing> {
    let captured = files.iter().any(FileReport::is_capture);
    let mut missing = missing();
    missing.retain(|missing| !captured || missing.kind != MissingKind::Packets);
    missing
}

fn measures(transfer: &AppTransfer, overlapped: bool, from_ns: i64, base: TimeBase) -> Measures {
    let tti = |ns: i64| TtiIndex(ns.saturating_sub(from_ns).div_euclid(1_000_000));
    let placed = |ns: i64| (base == TimeBase::Wall).then(|| ns.div_euclid(1_000));
    Measures {
        start_us: placed(transfer.start_ns),
        end_us: placed(transfer.end_ns),
        start_tti: tti(transfer.start_ns),
        end_tti: tti(transfer.end_ns),
        duration_ms: ms(length_ns(transfer)),
        bytes: transfer.bytes,
        overlapped,
        ..Measures::without_radio(transfer.dir.unwrap_or(Direction::Dl))
    }
}

/// Time by cause if only the log has it: set-up, and the rest.
fn shares_ms(transfer: &AppTransfer, duration_ms: f64) -> SharesMs {
    let setup_ms = transfer.phases.setup_ns().map_or(0.0, ms).min(duration_ms);
    let mut shares = BTreeMap::from([("unknown", duration_ms - setup_ms)]);
    if setup_ms > 0.0 {
        shares.insert("setup", setup_ms);
    }
    shares
}

fn advice(transfer: &AppTransfer) -> ApplicationAdvice {
    let length_ns = length_ns(transfer).max(1) as f64;
    let is_most = |part: Option<i64>| part.unwrap_or(0) as f64 / length_ns >= WORTH_ADVICE;
    let p = transfer.phases;
    if transfer.failed {
        ApplicationAdvice::Failed
    } else if is_most(p.blocked_ns) {
        ApplicationAdvice::OwnQueue
    } else if is_most(p.setup_ns()) {
        ApplicationAdvice::Setup
    } else if is_most(p.wait_ns) && !uploads(transfer) {
        ApplicationAdvice::Wait
    } else {
        ApplicationAdvice::Capture
    }
}

/// The facts of a transfer from application logs.
pub(super) fn facts(
    id: &str,
    measures: &Measures,
    answer: &RadioAnalysis,
    logs: &[Lookup<'_>],
) -> ApplicationFacts {
    let place = TransferPlace::new(id, measures, answer, logs);
    let same = |one: &&AppTransfer| answer.alone || place.touches(one.start_ns, one.end_ns);
    let with = |gave: bool| {
        let each = answer.applications.iter().zip(logs);
        let mut each = each.filter(|(application, _)| application.gave_transfers == gave);
        each.find_map(|(_, one)| one.named(id).find(same))
    };
    let own = with(true).or_else(|| with(false));
    let mut known = ApplicationFacts::default();
    let mut stalls = (0, 0.0);
    for (application, lookup) in answer.applications.iter().zip(logs) {
        let (n, stalled_ms) = place.player(lookup, &mut known.facts);
        stalls = (stalls.0 + n, stalls.1 + stalled_ms);
        if application.gave_transfers || answer.alone {
            place.rates(lookup, &mut known.facts);
        }
    }
    let Some(own) = own else { return known };
    let shown = own.url.as_deref().map(|url| answer.shown(url));
    known.name = shown.filter(|name| !name.is_empty());
    let p = own.phases;
    if has_phases(p) {
        let kind = FactKind::Phases { phases: p, uploads: uploads(own) };
        known.facts.push(Fact::new(kind, place.whole));
    }
    if own.bytes_decoded {
        known.facts.push(Fact::new(FactKind::BytesDecoded, place.whole));
    }
    let in_ms = |ns: Option<i64>| ns.map(ms);
    known.side = Some(ApplicationSide {
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
    known
}

/// Whether a request carries more than fits the first flight, which needs no answer.
pub(super) fn uploads(request: &AppTransfer) -> bool {
    let bytes = request.bytes.unwrap_or(0);
    request.dir == Some(Direction::Ul) && bytes > INITIAL_WINDOW_BYTES
}

/// Everything before the first byte of an answer, or of an upload, which browsers count as the wait for
/// its answer; `None` if nothing of it is known.
pub(super) fn before_first_byte_ns(transfer: &AppTransfer) -> Option<i64> {
    let unsent = Phases { send_ns: None, wait_ns: None, ..transfer.phases };
    if uploads(transfer) { unsent } else { transfer.phases }.before_first_byte_ns()
}

/// Whether a log has any phase of a transfer.
pub(super) fn has_phases(phases: Phases) -> bool {
    let Phases { blocked_ns, dns_ns, connect_ns, tls_ns, send_ns, wait_ns, receive_ns } = phases;
    let parts = [blocked_ns, dns_ns, connect_ns, tls_ns, send_ns, wait_ns, receive_ns];
    parts.into_iter().flatten().any(|ns| ns > 0)
}

fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

fn bits_per_s(bytes: u64, ns: i64) -> f64 {
    bytes as f64 * 8e9 / ns.max(1) as f64
}
