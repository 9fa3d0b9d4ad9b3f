//! Pages in sentences.

use std::collections::BTreeMap;

use airmile_model::PageCause;

use crate::fact::Milestone;

/// A cause is worth naming from this share of the wait on (chosen here).
const WORTH_NAMING: f64 = 0.05;
/// Causes in the verdict's sentence (chosen here: the first screen is for what matters).
const MAX_CAUSES: usize = 4;

/// A time as a person reads it: seconds from one on.
pub(crate) fn time(ms: f64) -> String {
    if ms >= 995.0 { format!("{:.1} s", ms / 1e3) } else { format!("{ms:.0} ms") }
}

/// The verdict on a page.
pub(crate) fn page(
    milestone: Milestone,
    wait_ms: f64,
    shares_ms: &BTreeMap<PageCause, f64>,
) -> String {
    let what = match milestone {
        Milestone::FirstPaint => "First paint waited",
        Milestone::Load => "The load took",
        Milestone::LastByte => "The last byte came after",
    };
    let mut causes: Vec<(PageCause, f64)> =
        shares_ms.iter().map(|(cause, ms)| (*cause, ms / wait_ms.max(1e-9))).collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named = causes.into_iter().filter(|(_, share)| *share >= WORTH_NAMING).take(MAX_CAUSES);
    let named: Vec<String> =
        named.map(|(of, share)| format!("{} {:.0} %", cause(of), share * 100.0)).collect();
    format!("{what} {}: {}.", time(wait_ms), named.join(", "))
}

/// What a cause is called in a sentence.
pub(crate) const fn cause(cause: PageCause) -> &'static str {
    match cause {
        PageCause::Browser => "the page's own work",
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

/// What mends a cause.
const fn fix(cause: PageCause) -> &'static str {
    match cause {
        PageCause::Browser => "less work between requests (scripts, parsing)",
        PageCause::Blocked => "requests side by side (HTTP/2 or 3, more connections, priorities)",
        PageCause::Dns => "names that are looked up early (`dns-prefetch`) or a faster resolver",
        PageCause::Setup => "connections that are there (`preconnect`, reuse, TLS 1.3, QUIC)",
        PageCause::Server => "a server that answers at once",
        PageCause::RoundTrip => "fewer requests in a row (`preload`), or a nearer server",
        PageCause::SlowStart => "a warm or larger congestion window, or fewer bytes",
        PageCause::Loss => "a path without losses",
        PageCause::ReceiveWindow => "a larger receive window",
        PageCause::UplinkQueue => "uploads that wait until the page is there",
        PageCause::Wireline => "a faster link before the radio, or fewer bytes",
        PageCause::Radio => "a radio link without a queue (fewer bytes have part of it)",
        PageCause::Transfer => "fewer bytes",
        PageCause::Unknown => "more evidence",
    }
}

/// What the load would save without a cause.
pub(crate) fn page_saving(
    of: PageCause,
    saves_ms: f64,
    wait_ms: f64,
    request: Option<&str>,
    request_ms: f64,
) -> String {
    let share = saves_ms / wait_ms.max(1e-9) * 100.0;
    let most = request
        .filter(|_| request_ms > 0.0)
        .map_or_else(String::new, |url| format!("; {} of it on {url}", time(request_ms)));
    format!("{}: {} would save {} ({share:.0} %){most}", cause(of), fix(of), time(saves_ms))
}
