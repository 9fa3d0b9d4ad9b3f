//! A request's time: its phases, each split among causes.

use std::cell::LazyCell;
use std::collections::HashMap;

use airmile_model::median::upper_median;
use airmile_model::{AppTransfer, ApplicationLog, PageCause, RequestPhase};

use super::connections::Packets;
use super::phases::{Span, arrival, phases, wait};
use super::select::PageLoad;
use super::unlogged::MergedSpans;
use crate::analyse::application::uploads;
use crate::fact::WaitDoubt;

/// Ends that differ by less are simultaneous: the precision of browsers' times, and a script's time
/// between two events (chosen here).
const TOGETHER_NS: i64 = 15_000_000;
/// A shorter wait in the browser's queue is the browser's own work (chosen here).
const SHORT_QUEUE_NS: i64 = 5_000_000;
/// Maximum number of responses on a connection that one may wait for in turn (chosen here).
const MAX_QUEUED: usize = 1_000;

/// Minimum number of waits while other responses arrived, and by how much the median of their
/// server's part exceeds twice that of the others, for a queue to be possible (chosen here).
const MIN_CROWDED: usize = 3;
const GROWN_NS: i64 = 50_000_000;

/// Without a handshake, the fastest wait for a first byte gives the round trip up to this; a longer
/// one is as likely the server's (chosen here: 95 % of the round trips that 4GTest measured on LTE
/// took at most 127 ms; Huang et al., table 1).
const PLAUSIBLE_ROUND_TRIP_NS: i64 = 200_000_000;

/// A part of a request with one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) phase: RequestPhase,
    pub(super) cause: PageCause,
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    /// The request that blocked it.
    pub(super) blocked_by: Option<usize>,
}

impl Part {
    pub(super) const fn ns(&self) -> i64 {
        self.to_ns - self.from_ns
    }
}

/// A page's requests, split.
pub(super) struct Requests {
    /// The parts of each.
    pub(super) parts: Vec<Vec<Part>>,
    /// The captured connection of each.
    pub(super) connections: Vec<Option<usize>>,
    /// What the unknown time of each may be.
    pub(super) doubts: Vec<WaitDoubt>,
    /// Requests that the log lacks, by their ends.
    pub(super) unlogged: Vec<(i64, i64)>,
    /// When the packets show a queue on the path to the phone; merged.
    pub(super) link_busy: Vec<(i64, i64)>,
}

/// The minimum round trip to a host, by the log.
#[derive(Debug, Clone, Copy, Default)]
struct RoundTrip {
    ns: i64,
    /// Whether it may be the server's time instead: no handshake, and no fast response.
    unbounded: bool,
}

/// Splits a page's requests.
pub(super) fn requests(
    load: &PageLoad<'_>,
    log: &ApplicationLog,
    packets: Option<&Packets>,
) -> Requests {
    let round_trips = round_trips(log);
    // Packets may answer every request.
    let crowded = LazyCell::new(|| Crowded::new(load, &round_trips));
    let spans: Vec<Vec<Span>> = load.requests.iter().map(|one| phases(one)).collect();
    let found = packets.map(|packets| packets.matched(&load.requests)).unwrap_or_default();
    let queued_at_radio = packets.map(Packets::queued_at_radio).unwrap_or_default();
    let split = load.requests.iter().enumerate().map(|(at, request)| {
        let connection = found.get(at).copied().flatten();
        let mut out = Vec::new();
        // A response that ended early has phases.
        let came = request.phases.receive_ns.is_some_and(|ns| ns > 0);
        let failed = connection.is_none() && request.error.is_some() && !came;
        let mut doubt = WaitDoubt { failed, ..WaitDoubt::default() };
        for span in spans.get(at).map_or(&[][..], Vec::as_slice) {
            match span.phase {
                // Browsers put the whole time of a failed connection into one phase.
                _ if failed => out.push(whole(span, PageCause::Unknown)),
                RequestPhase::Blocked => out.push(queued(at, span, load)),
                RequestPhase::Dns => out.push(whole(span, PageCause::Dns)),
                RequestPhase::Connect | RequestPhase::Tls => match (packets, connection) {
                    (Some(packets), Some(connection)) => {
                        stack(&mut out, span, packets.set_up(connection, span.from_ns, span.to_ns));
                    }
                    _ => out.push(whole(span, PageCause::Setup)),
                },
                // Browsers count an upload's time as sending, or as waiting for the answer.
                RequestPhase::Send | RequestPhase::Wait if uploads(request) => {
                    out.push(whole(span, PageCause::UplinkQueue));
                }
                RequestPhase::Send => out.push(whole(span, PageCause::RoundTrip)),
                RequestPhase::Wait => {
                    let (own, held) = in_turn(at, span, &spans, load);
                    match (packets, connection) {
                        (Some(packets), Some(connection)) => {
                            let causes = packets.waited(connection, own.from_ns, own.to_ns);
                            stack(&mut out, &own, causes);
                        }
                        _ => {
                            let host = request.url.as_deref().map(host).unwrap_or_default();
                            let round_trip = round_trips.get(host).copied().unwrap_or_default();
                            doubt = answered(&mut out, &own, round_trip, crowded.server_ns(at));
                        }
                    }
                    out.extend(held);
                }
                RequestPhase::Receive => match (packets, connection) {
                    (Some(packets), Some(connection)) => {
                        let causes = packets.received(connection, span.from_ns, span.to_ns);
                        stack(&mut out, span, causes);
                    }
                    _ => stack(&mut out, span, left(request, span)),
                },
            }
        }
        if connection.is_none() && !failed {
            out = with_radio(&out, &queued_at_radio);
        }
        out.retain(|part| part.to_ns > part.from_ns);
        (out, doubt)
    });
    let (parts, doubts) = split.unzip();
    // Without a match, the packets may be another page's.
    let seen = packets.filter(|_| found.iter().any(Option::is_some));
    let unlogged = seen.map(|packets| packets.unlogged(load, log, &found)).unwrap_or_default();
    let link_busy = seen.map(|packets| packets.link_busy().collect()).unwrap_or_default();
    Requests { parts, connections: found, doubts, unlogged, link_busy }
}

const fn whole(span: &Span, cause: PageCause) -> Part {
    let Span { phase, from_ns, to_ns } = *span;
    Part { phase, cause, from_ns, to_ns, blocked_by: None }
}

/// Fills a span with causes, in the given order.
fn stack(out: &mut Vec<Part>, span: &Span, causes: Vec<(PageCause, i64)>) {
    let mut at = span.from_ns;
    let last = causes.len().saturating_sub(1);
    for (n, (cause, ns)) in causes.into_iter().enumerate() {
        let end = at.saturating_add(ns).min(span.to_ns);
        let to_ns = if n == last { span.to_ns } else { end };
        out.push(Part { phase: span.phase, cause, from_ns: at, to_ns, blocked_by: None });
        at = to_ns;
    }
    if at < span.to_ns && at == span.from_ns {
        out.push(whole(span, PageCause::Unknown));
    }
}

/// Attributes the moments of a request without packets in which data was queued at the radio to it,
/// if the request was waiting for data.
fn with_radio(parts: &[Part], queued: &[(i64, i64)]) -> Vec<Part> {
    use PageCause::{Radio, RoundTrip, Server, Transfer, Unknown};
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        let waits = matches!(part.phase, RequestPhase::Wait | RequestPhase::Receive)
            && matches!(part.cause, RoundTrip | Server | Transfer | Unknown);
        let first = queued.partition_point(|(_, to)| *to <= part.from_ns);
        let during = queued.iter().skip(first).take_while(|(from, _)| *from < part.to_ns);
        let mut at = part.from_ns;
        for (from, to) in during.filter(|_| waits) {
            let (from_ns, to_ns) = ((*from).max(at), (*to).min(part.to_ns));
            out.push(Part { from_ns: at, to_ns: from_ns, ..*part });
            out.push(Part { from_ns, to_ns, cause: Radio, ..*part });
            at = to_ns;
        }
        out.push(Part { from_ns: at, ..*part });
    }
    out
}

/// A wait for a first byte by the log alone: one round trip, which may be the server's time if
/// nothing bounds it, and the server for the rest, up to a maximum; what exceeds it may be a queue.
fn answered(out: &mut Vec<Part>, span: &Span, round_trip: RoundTrip, server_ns: i64) -> WaitDoubt {
    let cut = span.from_ns.saturating_add(round_trip.ns).min(span.to_ns);
    let doubt = cut.saturating_add(server_ns).min(span.to_ns);
    let first = if round_trip.unbounded { PageCause::Unknown } else { PageCause::RoundTrip };
    out.push(whole(&Span { to_ns: cut, ..*span }, first));
    out.push(whole(&Span { from_ns: cut, to_ns: doubt, ..*span }, PageCause::Server));
    out.push(whole(&Span { from_ns: doubt, ..*span }, PageCause::Unknown));
    WaitDoubt { failed: false, queue: doubt < span.to_ns, round_trip: round_trip.unbounded }
}

/// Waits for first bytes while other responses arrived: if they are much longer than the other
/// waits, a queue on the path may have caused them as well as the server.
struct Crowded {
    /// The usual wait for the server without other responses, if crowded waits are longer.
    usual_ns: Option<i64>,
    /// Which requests waited while other responses arrived.
    crowded: Vec<bool>,
}

impl Crowded {
    fn new(load: &PageLoad<'_>, round_trips: &HashMap<&str, RoundTrip>) -> Self {
        let waits: Vec<Option<(i64, i64)>> = load.requests.iter().map(|one| wait(one)).collect();
        // A request's own response is among them: it begins where the request's wait ends, so that it
        // adds nothing within that wait.
        let arriving = MergedSpans::new(load.requests.iter().map(|one| arrival(one)).collect());
        let crowded: Vec<bool> = waits
            .iter()
            .map(|wait| {
                wait.is_some_and(|(from, to)| {
                    arriving.within_ns(from, to) >= to.abs_diff(from).div_ceil(2)
                })
            })
            .collect();
        let (mut in_crowd, mut alone) = (Vec::new(), Vec::new());
        for ((request, wait), crowded) in load.requests.iter().zip(&waits).zip(&crowded) {
            let Some((from, to)) = wait else { continue };
            let host = request.url.as_deref().map(host).unwrap_or_default();
            let server_ns = (to - from - round_trips.get(host).map_or(0, |one| one.ns)).max(0);
            if *crowded { in_crowd.push(server_ns) } else { alone.push(server_ns) }
        }
        let [usual, crowd] = [&mut alone, &mut in_crowd].map(|waits| upper_median(waits, i64::cmp));
        let usual_ns = usual.zip(crowd).and_then(|(alone, crowd)| {
            let grows =
                in_crowd.len() >= MIN_CROWDED && crowd - alone > alone.saturating_add(GROWN_NS);
            grows.then_some(alone)
        });
        Self { usual_ns, crowded }
    }

    /// How much of a request's wait is the server's for certain.
    fn server_ns(&self, at: usize) -> i64 {
        let usual = self.usual_ns.filter(|_| self.crowded.get(at) == Some(&true));
        usual.unwrap_or(i64::MAX)
    }
}

/// What is left for the last phase, by the log alone: only the first part of it, if any, is unexplained.
fn left(request: &AppTransfer, span: &Span) -> Vec<(PageCause, i64)> {
    let left_ns = arrival(request).0.saturating_sub(span.from_ns);
    let waited = request.phases.wait_ns.is_some_and(|ns| ns > 0);
    let is_explained = request.phases.receive_ns.map_or(waited, |_| left_ns <= TOGETHER_NS);
    vec![(PageCause::Unknown, if is_explained { 0 } else { left_ns }), (PageCause::Transfer, 0)]
}

/// Minimum round trip to each host, from TCP handshakes; for a host without one, from the fastest
/// response.
fn round_trips(log: &ApplicationLog) -> HashMap<&str, RoundTrip> {
    // QUIC's handshake includes TLS, and takes one round trip, too.
    let handshakes = least(log, |one| one.phases.connect_ns);
    let mut out: HashMap<&str, RoundTrip> = HashMap::new();
    for (host, ns) in &handshakes {
        out.insert(host, RoundTrip { ns: *ns, unbounded: false });
    }
    for (host, wait_ns) in least(log, |one| one.phases.wait_ns) {
        let unbounded = wait_ns > PLAUSIBLE_ROUND_TRIP_NS && !handshakes.contains_key(host);
        let ns = handshakes.get(host).map_or(wait_ns, |ns| wait_ns.min(*ns));
        out.insert(host, RoundTrip { ns, unbounded });
    }
    out
}

fn least(log: &ApplicationLog, of: impl Fn(&AppTransfer) -> Option<i64>) -> HashMap<&str, i64> {
    let mut out = HashMap::new();
    for one in &log.transfers {
        let known = of(one).filter(|ns| *ns > 0);
        if let (Some(host), Some(ns)) = (one.url.as_deref().map(host), known) {
            let least = out.entry(host).or_insert(ns);
            *least = ns.min(*least);
        }
    }
    out
}

/// The host of a URL, with its port.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

fn is_of_host(one: &AppTransfer, other: &AppTransfer) -> bool {
    let of = |transfer: &AppTransfer| transfer.url.as_deref().map(host).map(str::to_owned);
    of(one) == of(other)
}

/// Time in the browser's queue: the blocking request is the one on its connection, else to its
/// host, that ended when the queueing did.
fn queued(at: usize, span: &Span, load: &PageLoad<'_>) -> Part {
    let Some(own) = load.requests.get(at) else { return whole(span, PageCause::Unknown) };
    let under_way = || {
        load.requests.iter().enumerate().filter(|(other, one)| {
            *other != at
                && one.start_ns < span.to_ns
                && one.end_ns > span.from_ns
                && (same_connection(own, one) || is_of_host(own, one))
        })
    };
    let ends = |one: &AppTransfer| (one.end_ns - span.to_ns).abs();
    let ended = under_way().filter(|(_, one)| ends(one) <= TOGETHER_NS);
    let by = ended.min_by_key(|(_, one)| (!same_connection(own, one), ends(one)));
    let is_queue = span.to_ns - span.from_ns > SHORT_QUEUE_NS && under_way().next().is_some();
    match by {
        Some((by, _)) => Part { blocked_by: Some(by), ..whole(span, PageCause::Blocked) },
        None if is_queue => whole(span, PageCause::Blocked),
        None => whole(span, PageCause::Browser),
    }
}

fn same_connection(one: &AppTransfer, other: &AppTransfer) -> bool {
    one.connection.is_some() && one.connection == other.connection
}

/// Splits a wait into the request's own part and the turn of others: responses that arrived back to
/// back on its connection, the last of which ended when its own started.
fn in_turn(
    at: usize,
    span: &Span,
    spans: &[Vec<Span>],
    load: &PageLoad<'_>,
) -> (Span, Option<Part>) {
    let Some(own) = load.requests.get(at) else { return (*span, None) };
    let (mut cut, mut by) = (span.to_ns, None);
    let others: Vec<(usize, Span)> = load
        .requests
        .iter()
        .enumerate()
        .filter(|(other, one)| *other != at && same_connection(own, one))
        .filter_map(|(other, _)| {
            let last = spans.get(other)?.last().copied()?;
            (last.phase == RequestPhase::Receive).then_some((other, last))
        })
        .collect();
    for _ in 0..MAX_QUEUED {
        let before = others.iter().filter(|(_, one)| {
            (one.to_ns - cut).abs() <= TOGETHER_NS && one.from_ns < cut && one.to_ns > span.from_ns
        });
        let Some((other, one)) = before.min_by_key(|(_, one)| one.from_ns) else { break };
        by = by.or(Some(*other));
        cut = one.from_ns.max(span.from_ns);
        if cut <= span.from_ns {
            break;
        }
    }
    let held = by.map(|by| Part {
        blocked_by: Some(by),
        ..whole(&Span { from_ns: cut, ..*span }, PageCause::Blocked)
    });
    (Span { to_ns: cut, ..*span }, held.filter(|part| part.ns() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_that_overlap_count_once() {
        let arrivals = vec![(20, 30), (0, 10), (5, 12), (12, 14), (22, 25), (40, 40), (60, 50)];
        let arriving = MergedSpans::new(arrivals.clone());
        assert_eq!(arriving.spans, [(0, 14, 0), (20, 30, 14)]);
        for from in -1..45 {
            for to in from..46 {
                let covers = |at: &i64| arrivals.iter().any(|(a, b)| (*a..*b).contains(at));
                let expected = (from..to).filter(covers).count() as u64;
                assert_eq!(arriving.within_ns(from, to), expected, "{from} to {to}");
            }
        }
    }

    #[test]
    fn arrivals_of_any_length_do_not_overflow() {
        let arriving = MergedSpans::new(vec![(i64::MIN, -1), (1, i64::MAX)]);
        assert_eq!(arriving.within_ns(i64::MIN, i64::MAX), u64::MAX - 2);
        assert_eq!(arriving.within_ns(0, 0), 0);
    }

    #[test]
    fn moments_with_data_queued_at_the_radio_are_the_radios() {
        use PageCause::{Radio, Server, Setup, Transfer};
        let part = |phase, cause, (from_ns, to_ns)| Part {
            phase,
            cause,
            from_ns,
            to_ns,
            blocked_by: None,
        };
        let parts = [
            part(RequestPhase::Connect, Setup, (0, 10)),
            part(RequestPhase::Wait, Server, (10, 30)),
            part(RequestPhase::Receive, Transfer, (30, 50)),
        ];
        let got: Vec<_> = with_radio(&parts, &[(0, 5), (20, 40), (45, 60)])
            .into_iter()
            .filter(|part| part.ns() > 0)
            .map(|part| (part.cause, part.from_ns, part.to_ns))
            .collect();
        let expected = [
            (Setup, 0, 10),
            (Server, 10, 20),
            (Radio, 20, 30),
            (Radio, 30, 40),
            (Transfer, 40, 45),
            (Radio, 45, 50),
        ];
        assert_eq!(got, expected);
    }

    #[test]
    fn a_wait_of_centuries_is_crowded_if_half_of_it_is() {
        const LONG_NS: i64 = 9_000_000_000_000_000_000;
        let request = |wait_ns, receive_ns| {
            let mut out = AppTransfer::new("part".into(), 0, LONG_NS);
            out.phases.wait_ns = Some(wait_ns);
            out.phases.receive_ns = Some(receive_ns);
            out
        };
        let check = |receive_ns, expected: &[bool]| {
            let transfers = [request(LONG_NS, 0), request(LONG_NS - receive_ns, receive_ns)];
            let load = PageLoad {
                id: "page".into(),
                grouped_by: "pause",
                page: None,
                start_ns: 0,
                lacks: None,
                requests: transfers.iter().collect(),
            };
            assert_eq!(Crowded::new(&load, &HashMap::new()).crowded, expected);
        };
        check(LONG_NS / 2, &[true, false]);
        check(LONG_NS / 2 - 1, &[false, false]);
    }
}
