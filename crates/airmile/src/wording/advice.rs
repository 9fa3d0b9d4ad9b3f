//! The sentences that advise a next step.

use airmile_blind::Suspect;
use airmile_model::{Cause, Direction};

use super::{link, time};
use crate::fact::{Advice, ApplicationAdvice, CauseAdvice, Restarter, Without};

/// The advice, with the command to run where there is one.
pub(crate) fn advice(advice: &Advice) -> String {
    match advice {
        Advice::None => String::new(),
        Advice::Radio { dir: Direction::Ul, .. } => "the uplink limits it: send less, or later; \
            `airmile radio FILE --json` shows how long data waits in the phone's buffer \
            (sched_wait_ms), and `airmile qcut run --up IFACE` on a Linux host or router keeps that short"
            .into(),
        Advice::Radio { weak: true, .. } => "the radio limits it, and the signal is weak: repeat \
            it with a better signal before changing the application; then run `airmile radio` on \
            both logs"
            .into(),
        Advice::Radio { .. } => "the radio limits it: only fewer bytes help (lower bitrate, \
            compression, caching); repeat at another hour or in another cell and compare link \
            throughput"
            .into(),
        Advice::NotRadio { dir: Direction::Ul, idle } => format!(
            "look at what is not the radio: during {:.0} % of the time no data waited for its capacity. The \
             application, its window, a response that it waits for, or a slow line behind the \
             radio; capture packets at the phone while logging the modem",
            idle * 100.0
        ),
        Advice::NotRadio { .. } => "look upstream of the radio: the sender, its window, a proxy \
            or a rate limit. To find out which, capture packets at the phone and the server while \
            logging the modem"
            .into(),
        Advice::Shared { dir, demand, without, duration_ms } => {
            shared(*dir, *demand, *without, *duration_ms)
        }
        Advice::RepeatAlone => "other transfers ran meanwhile, and queues are per user, not per \
            application: see the verdict on all of them (of a page's requests: that on the page), or \
            repeat it alone where it can run alone"
            .into(),
        Advice::LogAgain => "log again, from before the transfer starts until after it ends".into(),
        Advice::Capture { what, how } => format!("capture {what}: {how}"),
        Advice::Unread(how) => how.clone(),
        Advice::Gather { what, how } => format!("{what}: {how}"),
        Advice::Cause(dir, one) => cause_of(*dir, *one),
        Advice::Either(dir, one, near, other) => {
            let [one, other] = [one, other].map(|one| cause_of(*dir, *one));
            format!("{one}. Almost as long: {near}. For it: {other}")
        }
        Advice::SharedWith(dir, name, one) => {
            let (link, one) = (link(*dir), cause_of(*dir, *one));
            format!("the {link} and {name} share it. For the latter: {one}")
        }
        Advice::Suspect(one, restarter) => suspect(*one, *restarter).into(),
        Advice::Application(part) => application(*part),
    }
}

fn shared(dir: Direction, demand: f64, without: Option<Without>, duration_ms: f64) -> String {
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
    if let Some(without) = without.filter(|without| is_saving(without, duration_ms)) {
        out.push_str(&format!(
            ": with data always queued it would have taken {} instead of {}, and only a faster link \
             makes it shorter",
            about(without),
            time(duration_ms)
        ));
    }
    out
}

/// A cause whose removal leaves more than this part of the time gets no sentence (chosen here).
const MAX_REMAINING: f64 = 0.98;

/// What a transfer would have taken without a cause; without captures, with data always queued.
pub(crate) fn saving(cause: Option<Cause>, without: Without, duration_ms: f64) -> Option<String> {
    let took = format!("it would have taken {} instead of {}", about(without), time(duration_ms));
    is_saving(&without, duration_ms).then(|| match cause {
        Some(cause) => format!("without the cause {cause}, {took}"),
        None => format!("with data always queued, {took}"),
    })
}

fn is_saving(without: &Without, duration_ms: f64) -> bool {
    without.ms <= MAX_REMAINING * duration_ms
}

/// An estimated duration, of two digits, and its bounds in the same unit.
fn about(without: Without) -> String {
    let Without { ms, low_ms, high_ms } = without;
    let (scale, unit) = if ms >= 995.0 { (1e3, "s") } else { (1.0, "ms") };
    let round = |ms: f64| {
        let value = ms / scale;
        let step = 10_f64.powf(value.max(1.0).log10().floor() - 1.0).max(0.1);
        let value = (value / step).round() * step;
        let decimals = usize::from(step < 1.0 && unit == "s" && value > 0.0);
        format!("{value:.decimals$}")
    };
    format!("about {} {unit} ({} to {} {unit})", round(ms), round(low_ms), round(high_ms))
}

/// Where the same files show the losses.
const WHERE_LOST: &str = "`airmile packets` on the same captures (table tcp_events)";

fn cause_of(dir: Direction, advice: CauseAdvice) -> String {
    let of_upload = (dir == Direction::Ul).then(|| cause_of_upload(advice)).flatten();
    of_upload.map_or_else(|| cause(advice), str::to_owned)
}

/// The advice for a phone that sends, where it is another than for a server.
const fn cause_of_upload(advice: CauseAdvice) -> Option<&'static str> {
    Some(match advice {
        CauseAdvice::SlowStartRestart(_) => {
            "let the application send without pauses, or keep the phone's window warm (a little \
             data each round trip); on a Linux host: `sysctl -w \
             net.ipv4.tcp_slow_start_after_idle=0`"
        }
        CauseAdvice::UndesiredSlowStart => {
            "let the phone's TCP take round trips from SACK and duplicate ACKs (RACK-TLP, RFC \
             8985; Linux: `sysctl -w net.ipv4.tcp_recovery=1`)"
        }
        CauseAdvice::FirstSlowStart => {
            "reuse connections, or raise the phone's initial window (Linux: `ip route change … \
             initcwnd 30`); a server nearer to the phone, and fewer, larger uploads help, too"
        }
        CauseAdvice::ReceiveWindow => {
            "raise the receive buffer of the server (`SO_RCVBUF`; Linux: `sysctl \
             net.ipv4.tcp_rmem`), let its application read faster, and look for a proxy on the way; \
             `airmile packets` shows the window"
        }
        CauseAdvice::ServerPaces => {
            "look at the application on the phone: it supplied data more slowly than the link \
             carries it (its source, a rate limit, `SO_SNDBUF`)"
        }
        CauseAdvice::ServerOrLine => {
            "look at the phone's congestion control and send buffer (`ss -ti` on a Linux host); \
             capture at the server, too: a line with a short queue looks the same at the phone"
        }
        CauseAdvice::Wireline => {
            "look at the path behind the base station: a rate limit or a slow link; repeat with \
             another server and run `airmile diagnose` on both"
        }
        CauseAdvice::Promotion => {
            "the cell had released the phone before the upload: send earlier (the release comes \
             after about 10 s without data; `airmile decode FILE --only rrc` shows it), or \
             more at a time"
        }
        _ => return None,
    })
}

fn cause(advice: CauseAdvice) -> String {
    match advice {
        CauseAdvice::Contention => "other users hold the cell: send fewer bytes (lower bitrate, \
            compression, caching) or use another hour; compare link throughput with `airmile radio`"
            .into(),
        CauseAdvice::Signal => "the signal limits it: repeat it with a better signal before \
            changing the application, and compare both with `airmile radio`; fewer bytes help"
            .into(),
        CauseAdvice::SlowStartRestart(Restarter::Middlebox) => "bypass the middlebox (another \
            port, TLS or QUIC): `airmile probe run HOST` compares ports; or keep the window warm \
            between requests (docs/keep-warm.md, for web players)"
            .into(),
        CauseAdvice::SlowStartRestart(Restarter::Sender) => "disable slow start after idle time \
            at the server (Linux: `sysctl -w net.ipv4.tcp_slow_start_after_idle=0`), or keep the \
            window warm; then measure again"
            .into(),
        CauseAdvice::SlowStartRestart(Restarter::SenderOrMiddlebox) => {
            "capture at the phone and at \
            the server (`tcpdump -s 128`), and pass both captures: they show which host restarts"
                .into()
        }
        CauseAdvice::UndesiredSlowStart => "let the server take round trips from SACK and \
            duplicate ACKs (RACK-TLP, RFC 8985; Linux: `sysctl -w net.ipv4.tcp_recovery=1`), and \
            raise its minimum RTO (`ip route change … rto_min 500ms`)"
            .into(),
        CauseAdvice::FirstSlowStart => "reuse connections, or raise the server's initial window \
            (Linux: `ip route change … initcwnd 30`); make fewer, larger requests"
            .into(),
        CauseAdvice::ReceiveWindow => "raise the application's receive buffer (`SO_RCVBUF`), or \
            read faster; `airmile packets` shows the window"
            .into(),
        CauseAdvice::ServerOrLine => "capture at the server, too (`tcpdump -s 128`): this \
            separates the server's own pace from a slow link behind a proxy"
            .into(),
        CauseAdvice::ServerAnswersLate => "look at the server's application: it responded late; \
            time a request there (`curl -w '%{time_starttransfer}'`)"
            .into(),
        CauseAdvice::ServerPaces => "look at the server: its application or a rate limit (`tc \
            qdisc show`) supplied data more slowly than the link carries it"
            .into(),
        CauseAdvice::ClientAsksLate => "look at the application on the phone: for most of this \
            time it had asked for nothing; request earlier, or the next part before the last one \
            is complete; its own log shows why (`airmile diagnose page.har phone.pcap`)"
            .into(),
        CauseAdvice::Wireline => "look at the path between server and base station: a rate \
            limit or a slow link; repeat with another server and run `airmile diagnose` on both; \
            `airmile probe run HOST` shows whether only some ports are slow"
            .into(),
        CauseAdvice::LossRecoveryRadio => format!(
            "the operator's bearer does not retransmit what it loses (RLC mode, HARQ): `airmile \
             radio --json` counts it in radio_loss, and {WHERE_LOST} shows its cost; a sender that \
             does not take a loss for congestion (BBR) suffers less"
        ),
        CauseAdvice::LossRecoveryCongestion => {
            format!("{WHERE_LOST} shows where packets are lost; add a capture at the server")
        }
        CauseAdvice::Promotion => "the cell had released the phone before the request: request \
            earlier (the release comes after about 10 s without data; `airmile decode FILE \
            --only rrc` shows it), or request more at a time"
            .into(),
        CauseAdvice::SetupRoundTrips => "save round trips before the first byte: reuse \
            connections, TLS 1.3, 0-RTT, preconnect; `curl -w '%{time_connect} \
            %{time_appconnect} %{time_starttransfer}'` splits them"
            .into(),
        CauseAdvice::UplinkQueue => "pause the phone's upload while it downloads, or shorten its \
            queue: on a Linux host or router `airmile qcut run --up IFACE`; `airmile radio --json` \
            shows how long data waits in it (sched_wait_ms)"
            .into(),
    }
}

/// The advice where only packets were captured.
const fn suspect(suspect: Suspect, restarter: Restarter) -> &'static str {
    match (suspect, restarter) {
        (Suspect::Radio, _) => {
            "the radio limits it: fewer bytes help (lower bitrate, compression, caching), or \
             another place or hour. A modem log shows whether other users or the signal are the \
             reason"
        }
        (Suspect::Wireline, _) => {
            "look at the path to the base station: a rate limit or a slow link; repeat with \
             another server, or over Wi-Fi on the same line"
        }
        (Suspect::SenderLimited, _) => {
            "look at the server: it responded late, or its application or a rate limit supplied \
             data more slowly than the path carries it"
        }
        (Suspect::ReceiveWindow, _) => {
            "raise the application's receive buffer (SO_RCVBUF), or read faster"
        }
        (Suspect::SlowStartRestart, Restarter::Middlebox) => {
            "bypass the middlebox (another port, TLS or QUIC): `airmile probe run HOST` compares \
             ports; or keep the window warm between requests"
        }
        (Suspect::SlowStartRestart, Restarter::Sender) => {
            "disable slow start after idle time at the server (Linux: \
             net.ipv4.tcp_slow_start_after_idle=0), or keep the window warm"
        }
        (Suspect::SlowStartRestart, Restarter::SenderOrMiddlebox) => {
            "capture at phone and server, to see whether the server or a middlebox restarts"
        }
        (Suspect::FirstSlowStart, _) => {
            "reuse connections, or raise the server's initial window; make fewer, larger requests"
        }
        (Suspect::UplinkQueue, _) => {
            "pause the phone's upload while it downloads, or shorten its queue: on a Linux host or \
             router `airmile qcut run --up IFACE`"
        }
        (Suspect::Other, _) => "",
    }
}

fn application(part: ApplicationAdvice) -> String {
    const CAPTURE: &str = "log the modem and capture packets while it runs again";
    let part = match part {
        ApplicationAdvice::Failed => "it failed: find the reason in the application first",
        ApplicationAdvice::OwnQueue => {
            "it waited mostly in the application's own queue: make fewer requests at once, or open \
             more connections"
        }
        ApplicationAdvice::Setup => {
            "name lookup and handshakes took most of it: reuse connections, TLS 1.3, preconnect"
        }
        ApplicationAdvice::Wait => {
            "it waited mostly for the first byte: the server's response time, or round trips"
        }
        ApplicationAdvice::Capture => return CAPTURE.to_owned(),
    };
    format!("{part}. To see whether the link contributed: {CAPTURE}")
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
            C::ClientAsksLate,
            C::ServerPaces,
            C::Wireline,
            C::LossRecoveryRadio,
            C::LossRecoveryCongestion,
            C::Promotion,
            C::SetupRoundTrips,
            C::UplinkQueue,
        ] {
            for words in [Direction::Dl, Direction::Ul].map(|dir| cause_of(dir, one)) {
                assert!(words.contains('`'), "{one:?}: {words}");
            }
        }
    }

    #[test]
    fn an_estimate_has_its_bounds() {
        let of = |ms, low_ms, high_ms| about(Without { ms, low_ms, high_ms });
        assert_eq!(of(1_792.0, 353.0, 3_312.0), "about 1.8 s (0.4 to 3.3 s)");
        assert_eq!(of(26.4, 0.0, 128.0), "about 26 ms (0 to 130 ms)");
        assert_eq!(of(31_980.0, 30_400.0, 142_226.0), "about 32 s (30 to 140 s)");
        assert_eq!(of(20.0, 0.0, 1_040.0), "about 20 ms (0 to 1000 ms)");
        assert_eq!(of(1_100.0, 0.0, 2_200.0), "about 1.1 s (0 to 2.2 s)");
    }

    #[test]
    fn what_is_as_long_saves_nothing() {
        let without = |ms| Without { ms, low_ms: 1_800.0, high_ms: 2_400.0 };
        assert_eq!(saving(None, without(2_390.0), 2_400.0), None);
        assert!(saving(None, without(2_000.0), 2_400.0).is_some());
        let shared = |ms| shared(Direction::Dl, 0.8, Some(without(ms)), 2_400.0);
        assert!(!shared(2_390.0).contains("instead") && shared(2_000.0).contains("instead"));
    }
}
