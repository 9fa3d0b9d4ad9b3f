//! The evidence of probabilities by packets, as facts.

use airmile_blind::{
    CapturedPhone, Features, Model, Suspect, Suspicion, TransferSpan, TransportKind,
};
use airmile_model::TtiIndex;
use airmile_wire::attribute::{CaptureSite, Reason, Shares};

use super::super::radio::{Missing, MissingKind};
use crate::fact::{Advice, Fact, FactKind, Restarter, Statement};

/// A reason or a pause is named from this share of a transfer on (chosen here).
const WORTH_NAMING: f64 = 0.05;
/// A rate that varies by less than this while data is queued is called steady (chosen here: true
/// for nine of ten of the lab's wired links and one of ten of its cells).
const STEADY: f64 = 0.2;

/// A server whose answer was waited for during this share of a transfer is named (chosen here).
const MOST: f64 = 0.75;
/// With at least this probability (chosen here).
const WAITED_PROBABILITY: f64 = 0.7;

/// The statement for a session.
pub(super) fn statement(
    (phone, features): (Option<&CapturedPhone>, Option<&Features>),
    spans: &[TransferSpan],
    suspects: &[Suspicion],
    named: Option<Suspicion>,
    restarter: Restarter,
) -> Statement {
    let Some(phone) = phone.filter(|_| !spans.is_empty()) else { return Statement::NoDownload };
    let n = spans.len();
    match (named, phone.place) {
        (Some(first), _) => Statement::Suspected { n, first, restarter },
        _ if !suspects.is_empty() => {
            let queued = features.and_then(Features::idle_links);
            Statement::NoSuspect { n, suspects: suspects.to_vec(), queued }
        }
        _ if phone.one_way => Statement::OneDirection,
        (None, CaptureSite::Server) => Statement::CapturedAtServer,
        (None, CaptureSite::Between) => Statement::CapturedBetween,
        _ => Statement::TooLittle,
    }
}

/// The first suspect, if it is probable enough; the sender also if the packets show the wait for its
/// answers during most of the time: the probabilities are lower for short transfers, whose rate says
/// little. A damaged capture shows no waits.
pub(super) fn named(
    features: &Features,
    first: Suspicion,
    shares: Option<&Shares>,
) -> Option<Suspicion> {
    if Model::names(features, &first) {
        return Some(first);
    }
    let shares = shares.filter(|_| !features.damaged)?;
    let think_ns = shares.by_reason.get(&Reason::ServerThinkTime).copied().unwrap_or(0);
    let waits = think_ns as f64 >= MOST * shares.total_ns() as f64;
    (waits && first.suspect == Suspect::SenderLimited)
        .then(|| Suspicion { probability: first.probability.max(WAITED_PROBABILITY), ..first })
}

/// The evidence for the probabilities of a transfer.
pub(super) fn facts(
    phone: &CapturedPhone,
    span: &TransferSpan,
    features: Option<&Features>,
    shares: &Shares,
    suspects: &[Suspicion],
    place: (TtiIndex, TtiIndex),
) -> Vec<Fact> {
    let mut kinds = Vec::new();
    if !suspects.is_empty() {
        kinds.push(FactKind::Suspects(suspects.to_vec()));
    }
    if span.ns() > 0 {
        let got_bps = span.bytes as f64 * 8e9 / span.ns() as f64;
        kinds.push(FactKind::Throughput { got_bps });
    }
    kinds.extend(features.into_iter().flat_map(patterns));
    if span.transport == TransportKind::Datagrams {
        kinds.push(FactKind::Datagrams);
    } else {
        kinds.extend(reasons(shares));
    }
    if phone.place == CaptureSite::Unknown {
        kinds.push(FactKind::CaptureSiteUnknown);
    }
    kinds.into_iter().map(|kind| Fact::new(kind, place)).collect()
}

/// What the sender waited for, the longest first.
fn reasons(shares: &Shares) -> impl Iterator<Item = FactKind> {
    let total = shares.total_ns().max(1) as f64;
    let mut reasons: Vec<_> = shares.by_reason.iter().map(|(reason, ns)| (*reason, *ns)).collect();
    reasons.sort_by_key(|(reason, ns)| (std::cmp::Reverse(*ns), *reason));
    reasons
        .into_iter()
        .map(move |(reason, ns)| (reason, ns as f64 / 1e6, ns as f64 / total))
        .filter(|(_, _, share)| *share >= WORTH_NAMING)
        .map(|(reason, ms, share)| FactKind::ReasonTime { reason, ms, share })
}

fn patterns(features: &Features) -> impl Iterator<Item = FactKind> {
    let base_rtt_ms = features.base_rtt_ns.map(|ns| ns as f64 / 1e6);
    let paused = features.get("paused").filter(|share| *share >= WORTH_NAMING);
    [
        base_rtt_ms
            .filter(|_| Model::no_radio(features))
            .map(|rtt_ms| FactKind::NoCellularLink { rtt_ms }),
        features
            .queue_ms
            .zip(base_rtt_ms)
            .map(|(queue_ms, base_rtt_ms)| FactKind::QueueDelay { queue_ms, base_rtt_ms }),
        features
            .get("steady_queue")
            .map(|spread| FactKind::RateVariation { spread, steady: spread < STEADY }),
        features.get("catch_up").map(|share| FactKind::CaughtUp { share }),
        paused.map(|share| FactKind::Paused { share }),
        features.path_queue.map(|share| FactKind::PathQueue { share }),
    ]
    .into_iter()
    .flatten()
}

/// What to capture for a transfer without a named cause.
pub(super) fn to_gather(
    (phone, features): (&CapturedPhone, Option<&Features>),
    span: &TransferSpan,
    has_server: bool,
) -> Advice {
    let missing = missing((Some(phone), features), std::slice::from_ref(span), has_server);
    let first = missing.into_iter().next();
    first.map_or(Advice::None, |one| Advice::Gather { what: one.what, how: one.how_to_capture })
}

/// An application's log that may be of another run than the capture.
pub(in super::super) fn another_run(doubt: &str) -> Missing {
    Missing {
        kind: MissingKind::Clock,
        what: doubt.to_owned(),
        how_to_capture:
            "give a log and a capture of the same run, or each of them alone; let both \
                         clocks be set by the network, and start the capture first"
                .to_owned(),
    }
}

/// What to do where a snap length cut headers.
pub(super) const LONGER_HEADERS: &str = "capture longer headers (`tcpdump -s 128`)";

/// Time stamps that a phone's capture lacks, and how to get them.
pub(super) const fn time_stamps(phone: &CapturedPhone) -> (&'static str, &'static str) {
    if phone.headers_cut {
        return (
            "TCP options, which the capture cut off: time stamps show queues in round trips",
            LONGER_HEADERS,
        );
    }
    (
        "TCP time stamps (RFC 7323), which show queues in round trips",
        "enable them at both ends (Linux: net.ipv4.tcp_timestamps=1)",
    )
}

/// What would make the result more certain, the most useful first. `has_server`: a capture at the
/// server was given, too.
pub(in super::super) fn missing(
    (phone, features): (Option<&CapturedPhone>, Option<&Features>),
    spans: &[TransferSpan],
    has_server: bool,
) -> Vec<Missing> {
    let mut out = Vec::new();
    let mut add = |kind: MissingKind, what: &str, how: &str| {
        out.push(Missing { kind, what: what.to_owned(), how_to_capture: how.to_owned() });
    };
    let place = phone.map_or(CaptureSite::Unknown, |phone| phone.place);
    if matches!(place, CaptureSite::Server | CaptureSite::Between) {
        add(
            MissingKind::Packets,
            "the phone's own packets",
            "capture at the phone (tcpdump -s 128 if it is rooted, else PCAPdroid) while the \
             transfer runs again",
        );
    }
    let without_cell = phone.is_some_and(CapturedPhone::excludes_radio);
    let is_idle = features.and_then(Features::idle_links).is_some();
    if !(without_cell || is_idle) {
        add(
            MissingKind::Radio,
            "the state of the radio link",
            "log the modem of a rooted phone while the transfer runs again (MobileInsight, QXDM, a \
             DIAG port with `airmile live --port`), and pass that log together with the capture: it \
             shows the downlink queue, which is only estimated without it",
        );
    }
    if place != CaptureSite::Server && !has_server {
        add(
            MissingKind::Packets,
            "what the server sent, and when",
            "capture at the server, too (`tcpdump -s 128`): this separates delays at the server \
             from delays on the path",
        );
    }
    if phone.is_some_and(|phone| phone.one_way) {
        add(
            MissingKind::Packets,
            "the packets of the other direction",
            "capture without a filter on the direction (tcpdump without `src` or `dst`)",
        );
    }
    if without_cell {
        add(
            MissingKind::Packets,
            "a transfer over a cellular network",
            "turn Wi-Fi off and repeat the transfer: round trips under 4 ms are too short for LTE \
             or NR, so these packets crossed no cell",
        );
    }
    if let Some(phone) = phone
        && spans.iter().any(|span| span.transport == TransportKind::Plain)
    {
        let (what, how) = time_stamps(phone);
        add(MissingKind::Packets, what, how);
    }
    if spans.iter().any(|span| span.transport == TransportKind::Datagrams) {
        add(
            MissingKind::Application,
            "what a QUIC sender waited for",
            "repeat it over TCP, or also pass the application's own log (Chrome's net-log)",
        );
    } else if is_idle {
        let how = "also pass the application's own log (Chrome's net-log, or a HAR)";
        add(MissingKind::Application, "what the sender waited for", how);
    }
    out
}
