//! Probabilities and what they rest on, in words.

use airmile_model::{TtiIndex, Verdict};
use airmile_wire::attribute::CaptureSite;
use airmile_wire::attribute::Shares;
use airmile_wire::packets_only::{
    self, CapturedPhone, Features, Model, Suspect, TransferSpan, TransportKind,
};

use super::super::diagnose::EvidenceItem;
use super::super::radio::{Missing, MissingKind};
use super::super::wire::Restarter;

/// A cause is told of in words from this share of a transfer on, a suspect from this
/// probability on (chosen here).
const WORTH_TELLING: f64 = 0.05;
/// Suspects in a sentence, at most (chosen here).
const TOLD: usize = 3;
/// A rate that varies by less while a queue stands is called steady (chosen here: of the
/// lab's wires nine in ten are below, of its cells one in ten).
const STEADY: f64 = 0.2;

fn name(suspect: Suspect) -> &'static str {
    match suspect {
        Suspect::Radio => "the radio link",
        Suspect::Wireline => "a slower link before the radio",
        Suspect::SenderLimited => "the server or its application",
        Suspect::ReceiveWindow => "the phone's receive window",
        Suspect::SlowStartRestart => "slow start after idle time",
        Suspect::FirstSlowStart => "the connection's first slow start",
        Suspect::UplinkQueue => "the phone's own upload",
        Suspect::Other => "several together, or something else",
    }
}

/// The first suspects with their probabilities.
fn candidates(suspects: &[packets_only::Suspicion]) -> String {
    let worth = |one: &&packets_only::Suspicion| one.probability >= WORTH_TELLING;
    let words = suspects.iter().filter(worth).take(TOLD);
    let words = words.map(|one| format!("{} {:.0} %", name(one.suspect), one.probability * 100.0));
    words.collect::<Vec<_>>().join(", ")
}

/// The verdict of a session in a sentence.
pub(super) fn says(
    phone: Option<&CapturedPhone>,
    spans: &[TransferSpan],
    suspects: &[packets_only::Suspicion],
    verdict: Verdict,
    restarter: Restarter,
) -> String {
    let Some(phone) = phone.filter(|_| !spans.is_empty()) else {
        return "Cannot tell: the captures show no download worth the name. Capture while one \
                runs, or set --min-bytes."
            .into();
    };
    let of = if spans.len() == 1 {
        "the transfer".to_owned()
    } else {
        format!("the {} transfers", spans.len())
    };
    let Some(first) = suspects.first() else {
        return match phone.place {
            CaptureSite::Server => {
                "Cannot tell: the capture was taken at the server, and how data came \
                to the phone does not show. Capture at the phone, and log its modem."
                    .into()
            }
            CaptureSite::Between => {
                "Cannot tell: the capture was taken between server and phone, and \
                how data came to the phone does not show. Capture at the phone, and log its modem."
                    .into()
            }
            _ => "Cannot tell: too little came in the transfers' time to see a pattern.".into(),
        };
    };
    if verdict == Verdict::Unknown {
        return format!(
            "Cannot tell by packets alone what limited {of}: {}. Log the modem while it runs again.",
            candidates(suspects)
        );
    }
    let more = match (first.suspect, restarter) {
        (Suspect::Radio, _) => {
            " Whether others held the cell or the signal was weak, packets do not tell."
        }
        (Suspect::SlowStartRestart, Restarter::Middlebox) => " A middlebox restarts it.",
        (Suspect::SlowStartRestart, Restarter::Sender) => " The server restarts it.",
        _ => "",
    };
    format!(
        "By packets alone, {} was the bottleneck of {of} (probability {:.0} %).{more}",
        name(first.suspect),
        first.probability * 100.0
    )
}

/// What the probabilities of a transfer rest on.
pub(super) fn evidence(
    phone: &CapturedPhone,
    span: &TransferSpan,
    features: Option<&Features>,
    shares: &Shares,
    suspects: &[packets_only::Suspicion],
    (from_tti, to_tti): (TtiIndex, TtiIndex),
) -> Vec<EvidenceItem> {
    let mut out = Vec::new();
    let mut add = |what: String, value: Option<f64>, unit| {
        out.push(EvidenceItem { what, value, unit, from_tti, to_tti });
    };
    if let Some(first) = suspects.first() {
        let what = format!("by packets alone: {}", candidates(suspects));
        add(what, Some(first.probability), "");
    }
    if span.ns() > 0 {
        let bps = span.bytes as f64 * 8e9 / span.ns() as f64;
        add(format!("it got {:.2} Mbit/s (bytes / duration)", bps / 1e6), Some(bps), "bit/s");
    }
    if let Some(features) = features {
        patterns(features, &mut add);
    }
    if span.transport == TransportKind::Datagrams {
        let what = "it came in datagrams (QUIC or another): only when they came is seen, not what \
                    their sender waited for";
        add(what.to_owned(), None, "");
    } else {
        let total = shares.total_ns().max(1) as f64;
        let mut reasons: Vec<_> = shares.by_reason.iter().collect();
        reasons.sort_by_key(|(reason, ns)| (std::cmp::Reverse(**ns), **reason));
        for (reason, ns) in
            reasons.into_iter().filter(|(_, ns)| **ns as f64 / total >= WORTH_TELLING)
        {
            let what = format!(
                "{:.0} ms ({:.0} %): {}",
                *ns as f64 / 1e6,
                *ns as f64 / total * 100.0,
                reason_words(*reason)
            );
            add(what, Some(*ns as f64 / 1e6), "ms");
        }
    }
    if phone.place == CaptureSite::Unknown {
        add("where the capture was taken does not show; taken as the phone's".to_owned(), None, "");
    }
    out
}

fn patterns(features: &Features, add: &mut dyn FnMut(String, Option<f64>, &'static str)) {
    if let (true, Some(base)) = (Model::no_radio(features), features.base_rtt_ns) {
        let ms = base as f64 / 1e6;
        let what = format!(
            "the least round trip was {ms:.1} ms: there was no cellular link on the way, which \
             takes 4 ms and more"
        );
        add(what, Some(ms), "ms");
    }
    if let (Some(queue), Some(base)) = (features.queue_ms, features.base_rtt_ns) {
        let what = format!(
            "queues added {queue:.0} ms to the round trip (the middle of all), of at least {:.0} ms",
            base as f64 / 1e6
        );
        add(what, Some(queue), "ms");
    }
    if let Some(spread) = features.get("steady_queue") {
        let how = if spread < STEADY { "steady, as a wire's" } else { "it came and went" };
        let what = format!(
            "while a queue stood, the rate varied by {:.0} % from a tenth of a second to the next: \
             {how}",
            spread * 100.0
        );
        add(what, Some(spread), "");
    }
    if let Some(caught) = features.get("catch_up") {
        let what = format!(
            "behind gaps of 6 ms and more came {:.0} % of what the mean rate owed: {}",
            caught * 100.0,
            if caught > 0.8 {
                "the link that held it back had room to make up for it"
            } else {
                "what held it back did not make up for it"
            }
        );
        add(what, Some(caught), "");
    }
    if let Some(paused) = features.get("paused").filter(|share| *share >= WORTH_TELLING) {
        let what = format!(
            "nothing came during {:.0} % of it, in pauses of 200 ms and more",
            paused * 100.0
        );
        add(what, Some(paused), "");
    }
}

fn reason_words(reason: airmile_wire::attribute::Reason) -> &'static str {
    use airmile_wire::attribute::Reason;
    match reason {
        Reason::Handshake => "handshakes",
        Reason::Promotion => "the radio connected",
        Reason::Request => "requests' round trips",
        Reason::ServerThinkTime => "the server thought",
        Reason::NoRequest => "nobody asked",
        Reason::AppLimited => "the server had nothing to send in the middle of an answer",
        Reason::FirstSlowStart => "the connection's first slow start waited for ACKs",
        Reason::SlowStartRestart => "a slow start after idle time waited for ACKs",
        Reason::UndesiredSlowStart => "a slow start behind a needless timeout",
        Reason::LossRecovery => "lost segments were sent again",
        Reason::ReceiveWindow => "the receive window was full",
        Reason::Pacing => "ACKs or the sender's own pace",
        Reason::Queue => "a queue stood on the round trip",
        Reason::Unknown => "the connection's start is not in the capture",
        Reason::AfterLast => "no data came any more",
    }
}

/// What to do next.
pub(super) fn next_step(
    verdict: Verdict,
    restarter: Restarter,
    phone: &CapturedPhone,
    span: &TransferSpan,
) -> String {
    match verdict {
        Verdict::Radio => "the radio limits it: fewer bytes help (lower bitrate, compression, \
            caching), or another place or hour. Whether others or the signal: log the modem, too"
            .into(),
        Verdict::Wireline => "look at the way to the base station: a rate limit or a slow link; \
            repeat with another server, or over Wi-Fi of the same line"
            .into(),
        Verdict::SenderLimited => "look at the server: it answered late, or its application or a \
            rate limit in it gave data slower than the path takes"
            .into(),
        Verdict::ReceiveWindow => "raise the application's receive buffer (SO_RCVBUF), or read \
            faster"
            .into(),
        Verdict::SlowStartRestart => match restarter {
            Restarter::Middlebox => {
                "bypass the middlebox (another port, TLS or QUIC), or keep the \
                window warm between requests"
                    .into()
            }
            Restarter::Sender => "switch slow start after idle time off at the server (Linux: \
                net.ipv4.tcp_slow_start_after_idle=0), or keep the window warm"
                .into(),
            Restarter::SenderOrMiddlebox => "capture at the server, too: who restarts, the server \
                or a middlebox, is then told"
                .into(),
        },
        Verdict::FirstSlowStart => "reuse connections, or raise the server's initial window; \
            fewer and larger requests"
            .into(),
        Verdict::UplinkQueue => "hold the phone's upload back while it downloads, or shorten its \
            queue"
            .into(),
        _ => missing(Some(phone), std::slice::from_ref(span))
            .into_iter()
            .next()
            .map_or_else(String::new, |one| format!("{}: {}", one.what, one.how_to_capture)),
    }
}

/// What would make the answer surer, most telling first.
pub(super) fn missing(phone: Option<&CapturedPhone>, spans: &[TransferSpan]) -> Vec<Missing> {
    let mut out = Vec::new();
    let mut add = |kind: MissingKind, what: &str, how: &str| {
        out.push(Missing { kind, what: what.to_owned(), how_to_capture: how.to_owned() });
    };
    let place = phone.map_or(CaptureSite::Unknown, |phone| phone.place);
    if matches!(place, CaptureSite::Server | CaptureSite::Between) {
        add(
            MissingKind::Packets,
            "the phone's own packets",
            "capture at the phone (tcpdump -s 128 where it is rooted, PCAPdroid where not) while \
             the transfer runs again",
        );
    }
    add(
        MissingKind::Radio,
        "what the radio link did",
        "log the modem of a rooted phone while the transfer runs again (MobileInsight, QXDM, a \
         DIAG port with `airmile live --port`), and give that log beside the capture: the \
         downlink's queue is then seen, and no guess",
    );
    if place != CaptureSite::Server {
        add(
            MissingKind::Packets,
            "what the server sent, and when",
            "capture at the server, too (`tcpdump -s 128`): data that it held back is then told \
             from data that the way held back",
        );
    }
    if spans.iter().any(|span| span.transport == TransportKind::Plain) {
        add(
            MissingKind::Packets,
            "TCP time stamps (RFC 7323), without which a queue in round trips is not seen",
            "switch them on at both ends (Linux: net.ipv4.tcp_timestamps=1)",
        );
    }
    if spans.iter().any(|span| span.transport == TransportKind::Datagrams) {
        add(
            MissingKind::Application,
            "what a QUIC sender waited for",
            "repeat it over TCP, or give the application's own log (Chrome's net-log) beside it",
        );
    }
    out
}
