//! What to try next, in words.

use airmile_model::Direction;
use airmile_wire::packets_only::Suspect;

use super::link;
use crate::fact::{Advice, ApplicationAdvice, CauseAdvice, Restarter};

/// What to try next, with the command where there is one.
pub(crate) fn advice(advice: &Advice) -> String {
    match advice {
        Advice::None => String::new(),
        Advice::Radio { dir: Direction::Ul, .. } => "the uplink limits it: send less, or later; \
            watch the buffer it fills with `airmile radio FILE --json` (sched_wait_ms)"
            .into(),
        Advice::Radio { weak: true, .. } => "the radio limits it, and the signal is weak: repeat \
            it in a better place before changing the application; then `airmile radio` both logs"
            .into(),
        Advice::Radio { .. } => "the radio limits it: only fewer bytes help (lower bitrate, \
            compression, caching); repeat at another hour or cell and compare link throughput"
            .into(),
        Advice::NotRadio { dir: Direction::Ul, idle } => format!(
            "look at the sender: during {:.0} % of the time the phone had nothing to send. \
             Application, its window, or what it waits for from the other side; capture packets \
             at the phone at the same time as the modem log",
            idle * 100.0
        ),
        Advice::NotRadio { .. } => "look upstream of the radio: the sender, its window, a proxy \
            or a rate limit. Capture packets at the phone and the server at the same time as the \
            modem log to tell which"
            .into(),
        Advice::Shared { dir, demand, without_ms, duration_ms } => {
            shared(*dir, *demand, *without_ms, *duration_ms)
        }
        Advice::RepeatAlone => "repeat it with no other transfer at the same time: queues are per \
            user, not per application"
            .into(),
        Advice::LogAgain => "log again, with the whole transfer inside the log".into(),
        Advice::Capture { what, how } => format!("capture {what}: {how}"),
        Advice::Unread(how) => how.clone(),
        Advice::Gather { what, how } => format!("{what}: {how}"),
        Advice::Cause(one) => cause(*one),
        Advice::SharedWith(name, one) => {
            format!("shared by the downlink and {name}. Of the latter: {}", cause(*one))
        }
        Advice::Suspect(one, restarter) => suspect(*one, *restarter).into(),
        Advice::Application(part) => application(*part),
    }
}

fn shared(dir: Direction, demand: f64, without_ms: Option<f64>, duration_ms: f64) -> String {
    let (other, idle_was) = match dir {
        Direction::Ul => ("the sender", "the phone had nothing to send"),
        Direction::Dl => ("something upstream of the radio", "the queue was empty"),
    };
    let waited = demand * 100.0;
    let idle = 100.0 - waited;
    let mut out = format!(
        "both the {} and {other}: data waited during {waited:.0} % of the time, and during \
         {idle:.0} % {idle_was}. Fix {other} first",
        link(dir)
    );
    if let Some(ms) = without_ms {
        out.push_str(&format!(
            ": with its data always there it would have taken {ms:.0} ms instead of \
             {duration_ms:.0} ms, and only a faster link gets below that"
        ));
    }
    out
}

/// Where losses are is to be seen in the same files.
const WHERE_LOST: &str = "`airmile packets` the same captures, table tcp_events";

fn cause(advice: CauseAdvice) -> String {
    match advice {
        CauseAdvice::Contention => "others hold the cell: fewer bytes (lower bitrate, \
            compression, caching) or another hour; compare link throughput with `airmile radio`"
            .into(),
        CauseAdvice::Signal => "the signal limits it: repeat it in a better place before changing \
            the application, and compare both with `airmile radio`; fewer bytes help"
            .into(),
        CauseAdvice::SlowStartRestart(Restarter::Middlebox) => "bypass the middlebox (another \
            port, TLS or QUIC), or keep the window warm between requests; then measure again: \
            `airmile diagnose` with captures of both ports"
            .into(),
        CauseAdvice::SlowStartRestart(Restarter::Sender) => "switch slow start after idle time \
            off at the server (Linux: `sysctl -w net.ipv4.tcp_slow_start_after_idle=0`), or keep \
            the window warm; then measure again"
            .into(),
        CauseAdvice::SlowStartRestart(Restarter::SenderOrMiddlebox) => "capture at the server, \
            too (`tcpdump -s 128`), and give both captures: who restarts is then told"
            .into(),
        CauseAdvice::UndesiredSlowStart => "let the server take round trips from SACK and \
            duplicate ACKs (RACK-TLP, RFC 8985; Linux: `sysctl -w net.ipv4.tcp_recovery=1`), and \
            raise its least RTO (`ip route change … rto_min 500ms`)"
            .into(),
        CauseAdvice::FirstSlowStart => "reuse connections, or raise the server's initial window \
            (Linux: `ip route change … initcwnd 30`); fewer and larger requests"
            .into(),
        CauseAdvice::ReceiveWindow => "raise the application's receive buffer (`SO_RCVBUF`), or \
            read faster; `airmile packets` shows the window"
            .into(),
        CauseAdvice::ServerOrLine => "capture at the server, too (`tcpdump -s 128`): it tells the \
            server's own pace from a slow line behind a proxy"
            .into(),
        CauseAdvice::ServerAnswersLate => "look at the server's application: it answered late; \
            time a request there (`curl -w '%{time_starttransfer}'`)"
            .into(),
        CauseAdvice::ServerPaces => "look at the server: its application or a rate limit in it \
            (`tc qdisc show`) gave data slower than the link takes"
            .into(),
        CauseAdvice::Wireline => "look at the way to the base station: a rate limit or a slow \
            link; repeat with another server and `airmile diagnose` both"
            .into(),
        CauseAdvice::LossRecoveryRadio => format!(
            "the operator's bearer does not repeat what it loses (RLC mode, HARQ): `airmile radio \
             --json` counts it in radio_loss, and {WHERE_LOST} shows what it cost; a sender that \
             does not take a loss for congestion (BBR) suffers less"
        ),
        CauseAdvice::LossRecoveryCongestion => {
            format!("see where it is lost: {WHERE_LOST}; with a capture at the server, too")
        }
        CauseAdvice::Promotion => "the phone was released by the cell before it asked: ask for \
            what comes next before that (after some 10 s of silence, which `airmile radio` \
            shows), or for more at a time"
            .into(),
        CauseAdvice::SetupRoundTrips => "save round trips before the first byte: reuse \
            connections, TLS 1.3, 0-RTT, preconnect; `curl -w '%{time_connect} \
            %{time_appconnect} %{time_starttransfer}'` splits them"
            .into(),
        CauseAdvice::UplinkQueue => "hold the phone's upload back while it downloads, or shorten \
            its queue; `airmile radio` shows the uplink's buffer (sched_wait_ms)"
            .into(),
    }
}

/// By packets alone, where the other files of the paper are not at hand.
const fn suspect(suspect: Suspect, restarter: Restarter) -> &'static str {
    match (suspect, restarter) {
        (Suspect::Radio, _) => {
            "the radio limits it: fewer bytes help (lower bitrate, compression, caching), or \
             another place or hour. Whether others or the signal: log the modem, too"
        }
        (Suspect::Wireline, _) => {
            "look at the way to the base station: a rate limit or a slow link; repeat with another \
             server, or over Wi-Fi of the same line"
        }
        (Suspect::SenderLimited, _) => {
            "look at the server: it answered late, or its application or a rate limit in it gave \
             data slower than the path takes"
        }
        (Suspect::ReceiveWindow, _) => {
            "raise the application's receive buffer (SO_RCVBUF), or read faster"
        }
        (Suspect::SlowStartRestart, Restarter::Middlebox) => {
            "bypass the middlebox (another port, TLS or QUIC), or keep the window warm between \
             requests"
        }
        (Suspect::SlowStartRestart, Restarter::Sender) => {
            "switch slow start after idle time off at the server (Linux: \
             net.ipv4.tcp_slow_start_after_idle=0), or keep the window warm"
        }
        (Suspect::SlowStartRestart, Restarter::SenderOrMiddlebox) => {
            "capture at the server, too: who restarts, the server or a middlebox, is then told"
        }
        (Suspect::FirstSlowStart, _) => {
            "reuse connections, or raise the server's initial window; fewer and larger requests"
        }
        (Suspect::UplinkQueue, _) => {
            "hold the phone's upload back while it downloads, or shorten its queue"
        }
        (Suspect::Other, _) => "",
    }
}

fn application(part: ApplicationAdvice) -> String {
    const CAPTURE: &str = "log the modem and capture packets while it runs again";
    let part = match part {
        ApplicationAdvice::Failed => "it failed: see why in the application first",
        ApplicationAdvice::OwnQueue => {
            "most of it was in the application's own queue: fewer requests at once, or more \
             connections"
        }
        ApplicationAdvice::Setup => {
            "most of it was lookup and handshakes: reuse connections, TLS 1.3, preconnect"
        }
        ApplicationAdvice::Wait => {
            "most of it was the wait for the first byte: the server's answer, or round trips"
        }
        ApplicationAdvice::Capture => return CAPTURE.to_owned(),
    };
    format!("{part}. Whether the link had a part in it: {CAPTURE}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mends_a_cause_names_what_to_run() {
        use CauseAdvice as C;
        for one in [
            C::Contention,
            C::Signal,
            C::SlowStartRestart(Restarter::Middlebox),
            C::SlowStartRestart(Restarter::Sender),
            C::SlowStartRestart(Restarter::SenderOrMiddlebox),
            C::UndesiredSlowStart,
            C::FirstSlowStart,
            C::ReceiveWindow,
            C::ServerOrLine,
            C::ServerAnswersLate,
            C::ServerPaces,
            C::Wireline,
            C::LossRecoveryRadio,
            C::LossRecoveryCongestion,
            C::Promotion,
            C::SetupRoundTrips,
            C::UplinkQueue,
        ] {
            assert!(cause(one).contains('`'), "{one:?}: {}", cause(one));
        }
    }
}
