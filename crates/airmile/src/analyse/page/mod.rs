//! Pages: what the load of each waited for, along its critical path.
//!
//! A browser's log gives the start and phases of each request; packets captured at the same time
//! show what its connection waited for ([`connections`]), the modem log when data was queued at the
//! radio. [`parts`] splits each request among causes; [`graph`] finds the dependencies between
//! requests and replays the load without a cause.

mod connections;
mod graph;
mod parts;
mod phases;
mod select;
#[cfg(test)]
mod tests;
mod unlogged;

use std::collections::BTreeMap;

use airmile_capture::application::ApplicationFormat;
use airmile_model::{AppTransfer, ApplicationLog, PageCause, RequestPhase, TimeBase, TransferKind};
use schemars::JsonSchema;
use serde::Serialize;

use self::connections::{Packets, QueuedFirstByte};
pub use self::graph::Milestone;
use self::graph::{Graph, Step};
use self::parts::{Part, Requests};
use self::select::{PageLoad, page_loads};
use super::application::has_phases;
use super::diagnose::Diagnosis;
use super::radio::RadioAnalysis;
use crate::fact::WaitDoubt;
use crate::session::Application;
use crate::wording;
use airmile_io::error::Result;
use airmile_io::input::Progress;

/// A saving is reported for a cause from this share of the wait on (chosen here).
const WORTH_SAVING: f64 = 0.02;
/// A smaller saving rounds to 0 % (chosen here).
const MIN_SAVING: f64 = 0.005;

/// The load of a page.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Page {
    /// Its name in the browser's log, or its number.
    pub id: String,
    /// Its URL, without its query.
    pub url: String,
    /// How requests are assigned to the page: by the `log`, or by `pauses` between requests.
    pub grouped_by: &'static str,
    /// Start of its load, in microseconds since the Unix epoch; null if the log has no absolute
    /// times.
    pub start_us: Option<i64>,
    /// The milestone of the verdict: `first_paint`, `load`, or `last_byte` if the log has neither.
    pub milestone: Milestone,
    /// Time until the milestone, in ms.
    pub wait_ms: f64,
    /// Time until the first paint, in ms.
    pub first_paint_ms: Option<f64>,
    /// Time until the document was parsed, in ms.
    pub content_loaded_ms: Option<f64>,
    /// Time until the load event, in ms; until the last byte if the log does not have it.
    pub load_ms: f64,
    /// Bytes of its requests.
    pub bytes: u64,
    /// The cause whose removal saves most; the longest one, if no other saves more or nothing shows that.
    pub verdict: PageCause,
    /// The verdict in a sentence.
    pub says: String,
    /// The evidence of the verdict: `log` alone, also `packets`, or also `radio`.
    pub evidence: &'static str,
    /// Time of the critical path by cause, in ms; the parts add up to `wait_ms`.
    pub shares: BTreeMap<&'static str, f64>,
    /// The saving of each fix, the largest first.
    pub savings: Vec<PageSaving>,
    /// The critical path, from the start on.
    pub critical_path: Vec<PathStep>,
    /// Its requests, by start.
    pub requests: Vec<PageRequest>,
}

/// The time that the load would save without a cause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PageSaving {
    /// The cause.
    pub cause: PageCause,
    /// How much earlier the milestone would be, in ms; includes the next cause in its place, and
    /// the time that a link was busy with the page's bytes.
    pub saves_ms: f64,
    /// The request of the critical path with most of it.
    pub request: Option<String>,
    /// That request's part, in ms.
    pub request_ms: f64,
    /// The same as a sentence, with advice.
    pub says: String,
}

/// A step of the critical path: ms since the page's start.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PathStep {
    /// The request that was waited for; null: the page itself.
    pub request: Option<String>,
    /// Start.
    pub from_ms: f64,
    /// End.
    pub to_ms: f64,
    /// Phase of the request.
    pub phase: Option<RequestPhase>,
    /// The cause of the wait.
    pub cause: PageCause,
}

/// A request of a page: ms since the page's start.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PageRequest {
    /// The transfer's name.
    pub id: String,
    /// Its URL, without its query.
    pub url: String,
    /// Kind of transfer.
    pub kind: TransferKind,
    /// Protocol, as in `h2`.
    pub protocol: Option<String>,
    /// The connection that carried it.
    pub connection: Option<String>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Whether it failed.
    pub failed: bool,
    /// Start.
    pub start_ms: f64,
    /// End.
    pub end_ms: f64,
    /// The request whose response it waited for before it started; null: the page's start.
    pub waited_for: Option<String>,
    /// Whether it is on the critical path.
    pub critical: bool,
    /// Its longest cause.
    pub cause: PageCause,
    /// Its parts, in order.
    pub parts: Vec<RequestPart>,
}

/// A part of a request: ms since the page's start.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RequestPart {
    /// Phase.
    pub phase: RequestPhase,
    /// The cause of the wait.
    pub cause: PageCause,
    /// Start.
    pub from_ms: f64,
    /// End.
    pub to_ms: f64,
    /// The request that blocked it.
    pub blocked_by: Option<String>,
}

/// Whether a log is a browser's, with pages.
pub(super) const fn is_of_browser(format: ApplicationFormat) -> bool {
    matches!(format, ApplicationFormat::Har | ApplicationFormat::NetLog)
}

/// Judges the pages of browser logs. `capture` is the one nearest to the phone, read again if there
/// are pages.
///
/// # Errors
/// The capture cannot be read again.
pub(crate) fn pages(
    capture: Option<&str>,
    diagnosis: &Diagnosis,
    answer: &RadioAnalysis,
    progress: &Progress,
) -> Result<Vec<Page>> {
    let mut out = Vec::new();
    let browsers = answer.applications.iter().filter(|one| is_of_browser(one.format));
    for application in browsers {
        let loads = page_loads(&application.log);
        if loads.is_empty() {
            continue;
        }
        let seen = seen(capture, application, diagnosis, answer, progress)?;
        let judged = |load| judge(load, &application.log, seen.as_ref(), answer);
        out.extend(loads.iter().map(|load| match &load.lacks {
            Some(lacks) => judged(load).without_verdict(lacks),
            None => judged(load),
        }));
    }
    Ok(out)
}

/// The packets and the radio's queue on the clock of a log; `None` if its times have no date.
fn seen(
    capture: Option<&str>,
    application: &Application,
    diagnosis: &Diagnosis,
    answer: &RadioAnalysis,
    progress: &Progress,
) -> Result<Option<Packets>> {
    if application.log.scale.base != TimeBase::Wall {
        return Ok(None);
    }
    // One of another run is on no other clock.
    let has_report = || diagnosis.clocks.iter().any(|clock| clock.file == application.path);
    let is_aligned = application.gave_transfers || has_report();
    Ok(Some(match capture {
        Some(name) if is_aligned || !answer.is_alone() => {
            Packets::read(name, application, diagnosis, answer, progress)?
        }
        None if is_aligned => Packets::of_radio(answer),
        _ => Packets::default(),
    }))
}

impl Page {
    /// A page of which only a part is known: its requests as they are.
    fn without_verdict(self, lacks: &str) -> Self {
        Self {
            verdict: PageCause::Unknown,
            says: lacks.to_owned(),
            shares: BTreeMap::from([(PageCause::Unknown.as_str(), self.wait_ms)]),
            savings: Vec::new(),
            critical_path: Vec::new(),
            requests: self
                .requests
                .into_iter()
                .map(|one| PageRequest { critical: false, ..one })
                .collect(),
            ..self
        }
    }
}

/// Judges one page.
fn judge(
    load: &PageLoad<'_>,
    log: &ApplicationLog,
    packets: Option<&Packets>,
    answer: &RadioAnalysis,
) -> Page {
    let requests = parts::requests(load, log, packets);
    let seen = requests.connections.iter().any(Option::is_some);
    let queued = packets.and_then(|packets| longest_queue(packets, &requests));
    let doubts = requests.doubts.clone();
    let graph = Graph::new(load, requests);
    let ms = |ns: i64| ns as f64 / 1e6;
    let since = |ns: i64| ms(ns.saturating_sub(load.start_ns));
    let id = |at: usize| load.requests.get(at).map(|request| request.id.clone());
    let url = |at: usize| load.requests.get(at).map(|request| shown(request, answer));
    let wait_ns = graph.wait_ns();
    let path = graph.critical_path();
    let mut shares: BTreeMap<PageCause, i64> = BTreeMap::new();
    for step in &path {
        *shares.entry(step.cause).or_default() += step.to_ns - step.from_ns;
    }
    let longest = leading(&shares);
    // A log alone does not show whether a link was busy.
    let can_save = |cause: PageCause| match cause {
        PageCause::Transfer => seen,
        _ => !matches!(cause, PageCause::Unlogged | PageCause::Unknown),
    };
    let mut savings: Vec<PageSaving> = shares
        .iter()
        .filter(|(cause, ns)| can_save(**cause) && **ns as f64 >= WORTH_SAVING * wait_ns as f64)
        .filter_map(|(cause, _)| {
            let saves_ms = ms(graph.saves_ns(*cause));
            let largest = graph.largest(*cause, &path);
            let request_ms = largest.map_or(0.0, |(_, ns)| ms(ns));
            let request = largest.and_then(|(at, _)| url(at));
            let says =
                wording::page_saving(*cause, saves_ms, ms(wait_ns), request.as_deref(), request_ms);
            let request = largest.and_then(|(at, _)| id(at));
            (saves_ms >= MIN_SAVING * ms(wait_ns)).then_some(PageSaving {
                cause: *cause,
                saves_ms,
                request,
                request_ms,
                says,
            })
        })
        .collect();
    // What a link was busy for, or another request took, cuts several savings to the same.
    savings.sort_by_key(|one| (-(one.saves_ms * 1e6) as i64, shares.get(&one.cause).map(|ns| -ns)));
    let own_ms = savings.iter().find(|one| one.cause == longest).map_or(0.0, |one| one.saves_ms);
    let least_ms = own_ms + MIN_SAVING * ms(wait_ns);
    let most = savings.first().filter(|most| can_save(longest) && most.saves_ms >= least_ms);
    let verdict = most.map_or(longest, |most| most.cause);
    let own_url = load.page.and_then(|page| page.url.as_deref());
    let page_url = own_url.map(|url| answer.shown(url)).or_else(|| url(0)).unwrap_or_default();
    let shares_ms: BTreeMap<PageCause, f64> =
        shares.iter().map(|(cause, ns)| (*cause, ms(*ns))).collect();
    let by_phases = !seen && load.requests.iter().all(|one| has_phases(one.phases));
    let doubt = by_phases.then(|| doubt_of(&path, &doubts));
    let mut says = wording::page(graph.milestone, ms(wait_ns), &shares_ms, doubt);
    if let Some(most) = most {
        says.push_str(&wording::most_saved(verdict, most.saves_ms));
    }
    if let Some((at, ns)) = longest_failure(load, &path)
        && ns as f64 >= WORTH_SAVING * wait_ns as f64
        && let Some(one) = load.requests.get(at)
    {
        let error = one.error.as_deref().unwrap_or_default();
        let lasted_ms = ms(one.end_ns.saturating_sub(one.start_ns));
        says.push_str(&wording::failed_request(&shown(one, answer), lasted_ms, error));
    }
    if let Some((at, one)) =
        queued.filter(|(_, one)| one.queued_ns as f64 >= WORTH_SAVING * wait_ns as f64)
    {
        says.push_str(&wording::queued_first_byte(
            &url(at).unwrap_or_default(),
            [one.wait_ns, one.queued_ns, one.round_trip_ns].map(ms),
            one.others,
        ));
    }
    let undecided = packets.filter(|_| seen).and_then(Packets::undecided_link);
    if let Some([radio, wireline]) = undecided {
        says.push_str(&wording::slow_link(&shares_ms, ms(wait_ns), radio, wireline));
    }
    let critical: Vec<bool> = graph.on_path(&path);
    let each = load.requests.iter().enumerate().zip(critical);
    let requests = each.map(|((at, request), critical)| {
        let parts = graph.parts(at);
        let mut own: BTreeMap<PageCause, i64> = BTreeMap::new();
        for part in parts {
            *own.entry(part.cause).or_default() += part.ns();
        }
        PageRequest {
            id: request.id.clone(),
            url: shown(request, answer),
            kind: request.kind,
            protocol: request.protocol.clone(),
            connection: request.connection.clone(),
            bytes: request.bytes,
            failed: request.failed,
            start_ms: since(request.start_ns),
            end_ms: since(request.end_ns),
            waited_for: graph.waited_for(at).and_then(id),
            critical,
            cause: leading(&own),
            parts: parts.iter().map(|part| document(part, load.start_ns, &id)).collect(),
        }
    });
    Page {
        id: load.id.clone(),
        url: page_url,
        grouped_by: load.grouped_by,
        start_us: (log.scale.base == TimeBase::Wall).then(|| load.start_ns.div_euclid(1_000)),
        milestone: graph.milestone,
        wait_ms: ms(wait_ns),
        first_paint_ms: load.page.and_then(|page| page.first_paint_ms),
        content_loaded_ms: load.page.and_then(|page| page.content_loaded_ms),
        load_ms: load.page.and_then(|page| page.loaded_ms).unwrap_or_else(|| ms(load.last_ns())),
        bytes: load.requests.iter().filter_map(|one| one.bytes).fold(0, u64::saturating_add),
        verdict,
        says,
        evidence: match packets {
            Some(packets) if packets.has_radio() => "radio",
            Some(_) if seen => "packets",
            _ => "log",
        },
        shares: shares_ms.iter().map(|(cause, ms)| (cause.as_str(), *ms)).collect(),
        savings,
        critical_path: path
            .iter()
            .map(|step| PathStep {
                request: step.request.and_then(id),
                from_ms: since(step.from_ns),
                to_ms: since(step.to_ns),
                phase: step.phase,
                cause: step.cause,
            })
            .collect(),
        requests: requests.collect(),
    }
}

/// The failed request with the longest unknown time on a path, and that time.
fn longest_failure(load: &PageLoad<'_>, path: &[Step]) -> Option<(usize, i64)> {
    let unknown = path.iter().filter(|step| step.cause == PageCause::Unknown);
    let failed = unknown.filter_map(|step| {
        load.requests.get(step.request?)?.error.as_ref()?;
        Some((step.request?, step.to_ns - step.from_ns))
    });
    failed.max_by_key(|(_, ns)| *ns)
}

/// What the unknown time of a path may be.
fn doubt_of(path: &[Step], doubts: &[WaitDoubt]) -> WaitDoubt {
    let unknown = path.iter().filter(|step| step.cause == PageCause::Unknown);
    let each = unknown.filter_map(|step| doubts.get(step.request?));
    each.fold(WaitDoubt::default(), |all, one| WaitDoubt {
        failed: all.failed || one.failed,
        queue: all.queue || one.queue,
        round_trip: all.round_trip || one.round_trip,
    })
}

/// The request whose first byte waited longest in a queue, if the packets show any.
fn longest_queue(packets: &Packets, requests: &Requests) -> Option<(usize, QueuedFirstByte)> {
    let each = requests.parts.iter().zip(&requests.connections).enumerate();
    let queued = each.filter_map(|(at, (parts, connection))| {
        let waits = || parts.iter().filter(|part| part.phase == RequestPhase::Wait);
        let span = (waits().next()?.from_ns, waits().next_back()?.to_ns);
        let causes = waits().map(|part| (part.cause, part.ns()));
        Some((at, packets.queued_first_byte((*connection)?, span, causes)?))
    });
    queued.max_by_key(|(_, one)| one.queued_ns)
}

/// The cause with the largest time; of equal ones the first.
fn leading(shares: &BTreeMap<PageCause, i64>) -> PageCause {
    let named = shares.iter().max_by_key(|(cause, ns)| (**ns, std::cmp::Reverse(**cause)));
    named.map_or(PageCause::Unknown, |(cause, _)| *cause)
}

fn document(part: &Part, start_ns: i64, id: &dyn Fn(usize) -> Option<String>) -> RequestPart {
    let since = |ns: i64| ns.saturating_sub(start_ns) as f64 / 1e6;
    RequestPart {
        phase: part.phase,
        cause: part.cause,
        from_ms: since(part.from_ns),
        to_ms: since(part.to_ns),
        blocked_by: part.blocked_by.and_then(id),
    }
}

/// A request's URL as it may be printed, or its name.
fn shown(request: &AppTransfer, answer: &RadioAnalysis) -> String {
    let url = request.url.as_deref().map(|url| answer.shown(url));
    url.filter(|url| !url.is_empty()).unwrap_or_else(|| request.id.clone())
}
