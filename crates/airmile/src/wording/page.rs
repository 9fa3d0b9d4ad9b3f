//! The sentences of page loads.

use std::collections::BTreeMap;

use airmile_model::PageCause;

use super::WORTH_NAMING;
use crate::fact::{Milestone, WaitDoubt};

/// A modem log is asked for if a link took this share of the wait (chosen here).
const WORTH_A_LOG: f64 = 0.2;
/// Below this share of the wait, the longest cause alone does not explain it.
const HALF: f64 = 0.5;
/// The evidence of a page by a browser's log alone.
const BY_LOG: &str = "log";
/// The maximum number of causes in the verdict's sentence (chosen here).
const MAX_CAUSES: usize = 4;

/// A time in ms, or in seconds from one second on.
pub(crate) fn time(ms: f64) -> String {
    if ms >= 995.0 { format!("{:.1} s", ms / 1e3) } else { format!("{ms:.0} ms") }
}

/// The verdict on a page; `doubt`: what the unknown time of a log with phases may be.
pub(crate) fn page(
    milestone: Milestone,
    wait_ms: f64,
    shares_ms: &BTreeMap<PageCause, f64>,
    doubt: Option<WaitDoubt>,
) -> String {
    let what = match milestone {
        Milestone::FirstPaint => "First paint waited",
        Milestone::Load => "The load took",
        Milestone::LastByte => "The last byte came after",
    };
    let mut causes: Vec<(PageCause, f64)> =
        shares_ms.iter().map(|(cause, ms)| (*cause, ms / wait_ms.max(1e-9))).collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let most = causes.first().map_or(0.0, |(_, share)| *share);
    let named = causes.into_iter().filter(|(_, share)| *share >= WORTH_NAMING).take(MAX_CAUSES);
    // The phases of a log have no other unknown time, but what none explains: `parts::answered`.
    let doubt_of = |of| doubt.filter(|_| of == PageCause::Unknown);
    // Without packets, a wait for a first byte shows no queue, unless waits differ.
    let hides_queue = |of| of == PageCause::Server && doubt.is_some_and(|doubt| !doubt.queue);
    let by_log = |of| hides_queue(of) || of == PageCause::UplinkQueue && doubt.is_some();
    let name = |of| match doubt_of(of) {
        Some(doubt) => unknown(doubt),
        None if by_log(of) => page_cause_by(of, BY_LOG).to_owned(),
        None => page_cause(of).to_owned(),
    };
    let named: Vec<(PageCause, String)> =
        named.map(|(of, share)| (of, format!("{} {:.0} %", name(of), share * 100.0))).collect();
    let end = match named.iter().find_map(|(of, _)| doubt_of(*of)) {
        Some(WaitDoubt { round_trip: true, .. }) => {
            " Neither a handshake nor a fast response in the log shows how long a round trip takes: \
             a packet capture, or a log from before the connection opened, would."
        }
        Some(WaitDoubt { queue: true, .. }) => {
            " Responses took longer to begin while others arrived: a packet capture would show \
             whether your server or a queue on the path caused it."
        }
        _ if named.iter().any(|(of, _)| hides_queue(*of)) => {
            " The log alone does not show whether a queue on the path delayed first bytes, too: a packet \
             capture would."
        }
        _ => "",
    };
    // The verdict on the link says the same of a queue that was empty for most of the time.
    let half = if most < HALF { ", no cause half of it" } else { "" };
    let named: Vec<String> = named.into_iter().map(|(_, text)| text).collect();
    format!("{what} {}{half}: {}.{end}", time(wait_ms), named.join(", "))
}

/// The cause that costs most, if another one took longer.
pub(crate) fn most_saved(of: PageCause, saves_ms: f64) -> String {
    format!(
        " Without {}, it would take {} less; the removal of no other cause would save more.",
        page_cause(of),
        time(saves_ms)
    )
}

/// The name of unknown time by what it may be.
fn unknown(doubt: WaitDoubt) -> String {
    let server = doubt.queue || doubt.round_trip;
    let of = [
        (doubt.failed, "failed requests"),
        (server, "your server"),
        (doubt.queue, "a queue"),
        (doubt.round_trip, "round trips"),
    ];
    let named: Vec<&str> = of.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
    match named.split_last() {
        None => page_cause(PageCause::Unknown).to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

/// A request of the critical path that failed.
pub(crate) fn failed_request(url: &str, ms: f64, error: &str) -> String {
    format!(" {url} failed after {}: {error}.", time(ms))
}

/// Which link is slow, if packets alone do not decide it and a link is worth naming.
pub(crate) fn slow_link(
    shares_ms: &BTreeMap<PageCause, f64>,
    wait_ms: f64,
    radio: f64,
    wireline: f64,
) -> String {
    let of = |cause: PageCause| shares_ms.get(&cause).copied().unwrap_or(0.0);
    let link_ms = [PageCause::Radio, PageCause::Wireline, PageCause::Transfer].map(of);
    if link_ms.iter().sum::<f64>() < WORTH_A_LOG * wait_ms {
        return String::new();
    }
    let (radio, wireline) = (radio * 100.0, wireline * 100.0);
    format!(
        " Packets alone do not show which link it was (the radio {radio:.0} %, a slow one before it \
         {wireline:.0} %): a modem log would."
    )
}

/// The evidence of a queue in front of first bytes: times in ms of the wait, of its queue, and of
/// the minimum round trip; `others`: data of other connections arrived during the wait.
pub(crate) fn queued_first_byte(url: &str, ms: [f64; 3], others: bool) -> String {
    let [wait, queued, round_trip] = ms.map(time);
    let filled = if others { "; data of other connections arrived meanwhile" } else { "" };
    format!(
        " By the packets, the first byte of {url} came {wait} after its request (minimum round trip \
         {round_trip}), {queued} of it in the queue of the path{filled}."
    )
}

/// The name of a page's cause in a text for people.
#[must_use]
pub const fn page_cause(cause: PageCause) -> &'static str {
    match cause {
        PageCause::Browser => "the page's own work",
        PageCause::Unlogged => "requests that the log lacks",
        PageCause::Blocked => "blocked by other requests",
        PageCause::Dns => "name lookup",
        PageCause::Setup => "connection set-up",
        PageCause::Server => "your server",
        PageCause::RoundTrip => "round trips of requests",
        PageCause::SlowStart => "slow start",
        PageCause::Loss => "lost packets",
        PageCause::ReceiveWindow => "the receive window",
        PageCause::UplinkQueue => "the phone's own upload",
        PageCause::Wireline => "a slow link before the radio",
        PageCause::Radio => "radio",
        PageCause::Transfer => "receiving data",
        PageCause::Unknown => "unknown",
    }
}

/// The name of a page's cause by its evidence: a browser's log alone shows neither a queue before a
/// first byte, nor where an upload ends and the wait for its answer begins.
#[must_use]
pub fn page_cause_by(cause: PageCause, evidence: &str) -> &'static str {
    match cause {
        PageCause::Server if evidence == BY_LOG => "your server or a queue",
        PageCause::UplinkQueue if evidence == BY_LOG => "the phone's own upload or your server",
        _ => page_cause(cause),
    }
}

/// What would remove or reduce a cause.
const fn fix(cause: PageCause) -> &'static str {
    match cause {
        PageCause::Browser => "less work between requests (scripts, parsing)",
        PageCause::Unlogged => "a complete log",
        PageCause::Blocked => "parallel requests (HTTP/2 or 3, more connections, priorities)",
        PageCause::Dns => "earlier name lookup (`dns-prefetch`) or a faster resolver",
        PageCause::Setup => "connections opened earlier or reused (`preconnect`, TLS 1.3, QUIC)",
        PageCause::Server => "a server that responds at once",
        PageCause::RoundTrip => "fewer requests in a row (`preload`), or a nearer server",
        PageCause::SlowStart => "a warm or larger congestion window, or fewer bytes",
        PageCause::Loss => "a path without losses",
        PageCause::ReceiveWindow => "a larger receive window",
        PageCause::UplinkQueue => {
            "fewer bytes to send, or uploads that wait until the page has loaded"
        }
        PageCause::Wireline => "a faster link before the radio, or fewer bytes",
        PageCause::Radio => "a radio link without a queue (fewer bytes shorten it)",
        PageCause::Transfer => "a faster link, or fewer bytes",
        PageCause::Unknown => "more evidence",
    }
}

/// A page of which some requests are outside of the limits on the time.
pub(crate) fn page_outside_limits(outside: usize, all: usize) -> String {
    format!(
        "No verdict on the page: only a part of this load is between --from and --to, which leave \
         out {outside} of its {all} requests."
    )
}

/// A page of which a damaged log may lack requests.
pub(crate) fn page_damaged(last_ms: f64) -> String {
    format!(
        "No verdict on the page: only a part of this load is in the log, which is damaged; its last \
         known request ends after {}. Save the log again.",
        time(last_ms)
    )
}

/// Why a log is not joined with a capture.
pub(crate) fn not_joined(log: &str, capture: &str, why: &str) -> String {
    format!(
        "{capture} may be of another run than {log}, or hold a part of its packets, and is not joined \
         with it: {why}"
    )
}

/// The time that the load would save without a cause.
pub(crate) fn page_saving(
    of: PageCause,
    saves_ms: f64,
    wait_ms: f64,
    request: Option<&str>,
    request_ms: f64,
) -> String {
    let share = saves_ms / wait_ms.max(1e-9) * 100.0;
    let most = match request.filter(|_| request_ms > 0.0) {
        None => String::new(),
        Some(url) if request_ms <= saves_ms => format!("; {} of it on {url}", time(request_ms)),
        // Without the longest wait, other requests determine the end: the saving is smaller.
        Some(url) => format!("; the longest such wait, {}, is on {url}", time(request_ms)),
    };
    format!("{}: {} would save {} ({share:.0} %){most}", page_cause(of), fix(of), time(saves_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of a saving is not larger than the saving.
    #[test]
    fn a_request_with_a_longer_wait_than_the_saving_is_no_part_of_it() {
        let of = |saves_ms, request_ms| {
            page_saving(PageCause::Loss, saves_ms, 10_000.0, Some("http://a/b"), request_ms)
        };
        let fix = "lost packets: a path without losses would save";
        for (saves_ms, request_ms, expected) in [
            (810.0, 400.0, "810 ms (8 %); 400 ms of it on http://a/b"),
            (810.0, 810.0, "810 ms (8 %); 810 ms of it on http://a/b"),
            (810.0, 3_300.0, "810 ms (8 %); the longest such wait, 3.3 s, is on http://a/b"),
            (810.0, 0.0, "810 ms (8 %)"),
        ] {
            assert_eq!(of(saves_ms, request_ms), format!("{fix} {expected}"));
        }
    }
}
