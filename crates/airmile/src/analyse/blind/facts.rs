//! The evidence of probabilities by packets, as facts.

use airmile_blind::{CapturedPhone, Feature, Features, Model, Suspect, Suspicion, TransportKind};
use airmile_model::TtiIndex;
use airmile_packets::phones::LONGER_HEADERS;
use airmile_wire::attribute::{CaptureSite, Shares};

use super::super::radio::{Missing, MissingKind};
use super::Judged;
use crate::fact::{Advice, Fact, FactKind, Restarter, Statement};
use crate::wording::WORTH_NAMING;

/// The statement for a session.
pub(super) fn statement(
    phone: Option<&CapturedPhone>,
    judged: &[Judged],
    (suspects, named): (&[Suspicion], Option<Suspicion>),
    restarter: Restarter,
) -> Statement {
    let is_one_way = phone.is_some_and(CapturedPhone::only_acknowledges);
    let Some(phone) = phone.filter(|_| !judged.is_empty()) else {
        return if is_one_way { Statement::OneDirection } else { Statement::NoDownload };
    };
    let mut counts: Vec<(Suspect, usize)> = Suspect::ALL
        .into_iter()
        .map(|suspect| (suspect, judged.iter().filter(|one| one.is_named(suspect)).count()))
        .filter(|(_, n)| *n > 0)
        .collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let of = judged.len();
    match (named, phone.place) {
        (Some(first), _) => {
            let n = judged.iter().filter(|one| one.is_named(first.suspect)).count();
            Statement::Suspected { n, of, first, restarter }
        }
        _ if !suspects.is_empty() => {
            let (suspects, queued) = (suspects.to_vec(), idle_links(judged));
            Statement::NoSuspect { n: of, suspects, counts, queued }
        }
        _ if phone.one_way => Statement::OneDirection,
        (None, CaptureSite::Phone | CaptureSite::Unknown) => Statement::TooLittle,
        (None, site) => Statement::Captured(site),
    }
}

/// The longest time in which packets were queued, as a share of a transfer, if no link was the limit of
/// any.
fn idle_links(judged: &[Judged]) -> Option<f64> {
    let each = judged.iter().map(|one| one.features.as_ref()?.idle_links());
    each.collect::<Option<Vec<f64>>>()?.into_iter().max_by(f64::total_cmp)
}

/// The evidence for the probabilities of a transfer.
pub(super) fn facts(
    phone: &CapturedPhone,
    Judged { span, bytes, features, shares, suspects, .. }: &Judged,
    place: (TtiIndex, TtiIndex),
) -> Vec<Fact> {
    let mut kinds = Vec::new();
    if !suspects.is_empty() {
        kinds.push(FactKind::Suspects(suspects.clone()));
    }
    if span.ns() > 0 {
        let got_bps = *bytes as f64 * 8e9 / span.ns() as f64;
        kinds.push(FactKind::Throughput { got_bps });
    }
    kinds.extend(features.iter().flat_map(patterns));
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
    let paused = features.get(Feature::Paused).filter(|share| *share >= WORTH_NAMING);
    [
        base_rtt_ms
            .filter(|_| Model::no_radio(features))
            .map(|rtt_ms| FactKind::NoCellularLink { rtt_ms }),
        features
            .queue_ms
            .zip(base_rtt_ms)
            .map(|(queue_ms, base_rtt_ms)| FactKind::QueueDelay { queue_ms, base_rtt_ms }),
        features.get(Feature::SteadyQueue).map(|spread| FactKind::RateVariation { spread }),
        Model::hides_link(features).then_some(FactKind::LinkHidden),
        features.get(Feature::CatchUp).map(|share| FactKind::CaughtUp { share }),
        paused.map(|share| FactKind::Paused { share }),
        features.path_queue.map(|share| FactKind::PathQueue { share }),
    ]
    .into_iter()
    .flatten()
}

/// What to capture for a transfer without a named cause.
pub(super) fn to_gather(phone: &CapturedPhone, judged: &[Judged], has_server: bool) -> Advice {
    let first = missing(Some(phone), judged, has_server).into_iter().next();
    first.map_or(Advice::None, |one| Advice::Gather { what: one.what, how: one.how_to_capture })
}

/// An application's log that may be of another run than the capture.
pub(in super::super) fn another_run(doubt: &str) -> Missing {
    Missing::new(
        MissingKind::Clock,
        doubt,
        "give a log and a capture of the same run, or each of them alone; let both clocks be set by \
         the network, and start the capture first",
    )
}

/// Packets of one direction that a capture lacks, and how to get them.
pub(super) const OTHER_DIRECTION: (&str, &str) = (
    "the packets of the other direction",
    "capture without a filter on the direction (tcpdump without `src` or `dst`)",
);

/// What a capture lacks where connections end on the phone, and how to get it.
pub(super) const NETWORK: (&str, &str) = (
    "round trips, losses and windows of the network: a VPN on the phone (PCAPdroid without root) ends \
     each connection there",
    "capture with root, at the server, or log the modem (docs/phones.md)",
);

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
    phone: Option<&CapturedPhone>,
    judged: &[Judged],
    has_server: bool,
) -> Vec<Missing> {
    let mut out = Vec::new();
    let mut add = |kind: MissingKind, what: &str, how: &str| {
        out.push(Missing::new(kind, what, how));
    };
    let place = phone.map_or(CaptureSite::Unknown, |phone| phone.place);
    if matches!(place, CaptureSite::Server | CaptureSite::Between) {
        add(
            MissingKind::Packets,
            "the phone's own packets",
            "capture at the phone (tcpdump -s 128 if it is rooted; an iPhone by rvictl) while the \
             transfer runs again",
        );
    }
    if place == CaptureSite::Inside {
        add(MissingKind::Packets, NETWORK.0, NETWORK.1);
    }
    let without_cell = phone.is_some_and(CapturedPhone::excludes_radio);
    let is_idle = idle_links(judged).is_some();
    let has = |transport| judged.iter().any(|one| one.span.transport == transport);
    if !(without_cell || is_idle) {
        add(
            MissingKind::Radio,
            "the state of the radio link",
            "log the modem of a rooted phone while the transfer runs again (MobileInsight, QXDM, a \
             DIAG port with `airmile live --port`), and pass that log together with the capture: it \
             shows the queue of the radio link, which is only estimated without it",
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
        add(MissingKind::Packets, OTHER_DIRECTION.0, OTHER_DIRECTION.1);
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
        && has(TransportKind::Plain)
    {
        let (what, how) = time_stamps(phone);
        add(MissingKind::Packets, what, how);
    }
    if has(TransportKind::Datagrams) {
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
