//! What applications' logs add to a diagnosis; and what they tell alone.

mod lacks;
mod place;
mod summary;

use std::collections::BTreeMap;

use airmile_model::{
    AppTransfer, ApplicationLog, Direction, Phases, TimeBase, TransferKind, TtiIndex, Verdict,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::beside::TRANSFERS;
use super::diagnose::{Diagnosis, EvidenceItem, Measures, SessionVerdict, TransferDiagnosis};
use super::radio::{Answer, Missing, MissingKind};
use crate::session::Application;
use airmile_io::limits::{LimitFilter, Limits};

pub(super) use lacks::{answers, lacks, missing};
use place::{Lookup, Place};
pub use summary::{ApplicationSummary, EventPoint, RateOver};
use summary::{before_first_byte_ns, busy, length_ns, overlaps, words};

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
    let applications: Vec<Lookup<'_>> =
        answer.applications.iter().map(|one| Lookup::of(&one.log)).collect();
    for transfer in &mut diagnosis.transfers {
        beside(transfer, answer, &applications);
    }
    let aligned = diagnosis.clocks.iter().any(|c| c.file == TRANSFERS && c.offset_ms.is_some());
    if !answer.alone && !aligned && answer.applications.iter().any(|one| one.gave_transfers) {
        diagnosis.missing.push(Missing {
            kind: MissingKind::Clock,
            what: "how far the application's clock is from the modem's".to_owned(),
            how_to_capture: "the data do not tell, and they are taken for one: let the phone set \
                             its clock by the network before it logs, or log a larger download"
                .to_owned(),
        });
    }
    diagnosis.applications = answer.applications.iter().map(summary::summary).collect();
}

/// The transfers of the first log that has any, and what can be said of them.
fn alone(diagnosis: &mut Diagnosis, answer: &Answer) {
    let log = answer.applications.iter().find(|one| !one.log.transfers.is_empty());
    let Some(Application { log, .. }) = log else {
        diagnosis.session.says = "Cannot tell: the application's log holds no transfer over the \
            network; see what is missing."
            .into();
        diagnosis.missing = missing_beside(diagnosis);
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
    let dir = Some(if ul > dl { Direction::Ul } else { Direction::Dl });
    diagnosis.session = SessionVerdict { dir, ..SessionVerdict::unknown(says) };
    diagnosis.missing = missing_beside(diagnosis);
}

/// What is missing beside the files that were given.
fn missing_beside(diagnosis: &Diagnosis) -> Vec<Missing> {
    let captured = diagnosis.files.iter().any(|file| file.kind.starts_with("pcap"));
    let mut missing = missing();
    missing.retain(|missing| !captured || missing.kind != MissingKind::Packets);
    missing
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
        leading_share_low: None,
        leading_share_high: None,
        counterfactual_ms: None,
        counterfactual_of: None,
        evidence,
        next_step: next_step(transfer, ns),
        application: None,
        suspects: Vec::new(),
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
fn beside(transfer: &mut TransferDiagnosis, answer: &Answer, applications: &[Lookup<'_>]) {
    let place = Place::of(transfer, answer, applications);
    let same = |one: &&AppTransfer| answer.alone || place.touches(one.start_ns, one.end_ns);
    let own = applications.iter().find_map(|one| one.named(&transfer.id).find(same));
    let mut stalls = (0, 0.0);
    for (application, lookup) in answer.applications.iter().zip(applications) {
        let (n, stalled_ms) = place.player(lookup, &mut transfer.evidence);
        stalls = (stalls.0 + n, stalls.1 + stalled_ms);
        if application.gave_transfers || answer.alone {
            place.rates(lookup, &mut transfer.evidence);
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

#[cfg(test)]
mod tests {
    use super::*;

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
