//! Judges the load of one page.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use airmile_model::{AppTransfer, ApplicationLog, PageCause, RequestPhase, TimeBase};

use super::connections::{Packets, QueuedFirstByte};
use super::graph::{Graph, Step};
use super::parts::{self, Part, Requests};
use super::select::PageLoad;
use super::{Page, PageRequest, PageSaving, PathStep, RequestPart};
use crate::analyse::application::has_phases;
use crate::analyse::radio::RadioAnalysis;
use crate::fact::WaitDoubt;
use crate::wording;

/// A saving is reported for a cause from this share of the wait on (chosen here).
const WORTH_SAVING: f64 = 0.02;
/// A smaller saving rounds to 0 % (chosen here).
const MIN_SAVING: f64 = 0.005;

/// Judges one page.
pub(super) fn judge(
    load: &PageLoad<'_>,
    log: &ApplicationLog,
    packets: Option<&Packets>,
    answer: &RadioAnalysis,
) -> Page {
    let requests = parts::requests(load, log, packets);
    let queued = packets.and_then(|packets| longest_queue(packets, &requests));
    let doubts = requests.doubts.clone();
    let judged = JudgedLoad::new(load, requests, answer);
    let savings = judged.savings();
    let longest = leading(&judged.shares);
    let own_ms = savings.iter().find(|one| one.cause == longest).map_or(0.0, |one| one.saves_ms);
    let least_ms = own_ms + MIN_SAVING * judged.wait_ms();
    let most = savings.first().filter(|most| judged.can_save(longest) && most.saves_ms >= least_ms);
    let mut says = judged.says_causes(&doubts);
    if let Some(most) = most {
        says.push_str(&wording::most_saved(most.cause, most.saves_ms));
    }
    says.extend(judged.says_failure());
    says.extend(queued.and_then(|(at, queued)| judged.says_queue(at, queued)));
    says.extend(packets.and_then(|packets| judged.says_link(packets)));
    Page {
        id: load.id.clone(),
        url: judged.page_url(),
        grouped_by: load.grouped_by,
        start_us: (log.scale.base == TimeBase::Wall).then(|| load.start_ns.div_euclid(1_000)),
        milestone: judged.graph.milestone,
        wait_ms: judged.wait_ms(),
        first_paint_ms: load.page.and_then(|page| page.first_paint_ms),
        content_loaded_ms: load.page.and_then(|page| page.content_loaded_ms),
        load_ms: load.page.and_then(|page| page.loaded_ms).unwrap_or_else(|| ms(load.last_ns())),
        bytes: load.requests.iter().filter_map(|one| one.bytes).fold(0, u64::saturating_add),
        verdict: most.map_or(longest, |most| most.cause),
        says,
        evidence: match packets {
            Some(packets) if packets.has_radio() => "radio",
            Some(_) if judged.has_packets => "packets",
            _ => "log",
        },
        shares: judged.shares.iter().map(|(cause, ns)| (cause.as_str(), ms(*ns))).collect(),
        critical_path: judged.path_steps(),
        requests: judged.page_requests(),
        savings,
    }
}

fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// A load with its graph, the critical path, and the time on that by cause.
struct JudgedLoad<'a> {
    load: &'a PageLoad<'a>,
    answer: &'a RadioAnalysis,
    graph: Graph,
    path: Vec<Step>,
    shares: BTreeMap<PageCause, i64>,
    /// Whether packets of its connections were captured.
    has_packets: bool,
}

impl<'a> JudgedLoad<'a> {
    fn new(load: &'a PageLoad<'a>, requests: Requests, answer: &'a RadioAnalysis) -> Self {
        let has_packets = requests.connections.iter().any(Option::is_some);
        let graph = Graph::new(load, requests);
        let path = graph.critical_path();
        let mut shares: BTreeMap<PageCause, i64> = BTreeMap::new();
        for step in &path {
            *shares.entry(step.cause).or_default() += step.to_ns - step.from_ns;
        }
        Self { load, answer, graph, path, shares, has_packets }
    }

    fn wait_ms(&self) -> f64 {
        ms(self.graph.wait_ns())
    }

    /// Whether a time is worth a sentence, as a share of the wait.
    fn is_worth_naming(&self, ns: i64) -> bool {
        ns as f64 >= WORTH_SAVING * self.graph.wait_ns() as f64
    }

    /// In ms since the page's start.
    fn since_ms(&self, ns: i64) -> f64 {
        ms(ns.saturating_sub(self.load.start_ns))
    }

    fn id(&self, at: usize) -> Option<String> {
        self.load.requests.get(at).map(|request| request.id.clone())
    }

    fn url(&self, at: usize) -> Option<String> {
        self.load.requests.get(at).map(|request| shown(request, self.answer))
    }

    fn page_url(&self) -> String {
        let own = self.load.page.and_then(|page| page.url.as_deref());
        own.map(|url| self.answer.shown(url)).or_else(|| self.url(0)).unwrap_or_default()
    }

    /// A log alone does not show whether a link was busy.
    const fn can_save(&self, cause: PageCause) -> bool {
        match cause {
            PageCause::Transfer => self.has_packets,
            _ => !matches!(cause, PageCause::Unlogged | PageCause::Unknown),
        }
    }

    /// What the load would save without each cause, the largest first.
    fn savings(&self) -> Vec<PageSaving> {
        let named = self
            .shares
            .iter()
            .filter(|(cause, ns)| self.can_save(**cause) && self.is_worth_naming(**ns));
        let mut savings: Vec<PageSaving> =
            named.filter_map(|(cause, _)| self.saving(*cause)).collect();
        // What a link was busy for, or another request took, cuts several savings to the same.
        let share_ns = |cause| self.shares.get(&cause).copied().unwrap_or_default();
        savings.sort_by_key(|one| (-(one.saves_ms * 1e6) as i64, -share_ns(one.cause)));
        savings
    }

    fn saving(&self, cause: PageCause) -> Option<PageSaving> {
        let (saves_ms, wait_ms) = (ms(self.graph.saves_ns(cause)), self.wait_ms());
        let largest = self.graph.largest(cause, &self.path);
        let request_ms = largest.map_or(0.0, |(_, ns)| ms(ns));
        let url = largest.and_then(|(at, _)| self.url(at));
        (saves_ms >= MIN_SAVING * wait_ms).then(|| PageSaving {
            cause,
            saves_ms,
            request: largest.and_then(|(at, _)| self.id(at)),
            request_ms,
            says: wording::page_saving(cause, saves_ms, wait_ms, url.as_deref(), request_ms),
        })
    }

    fn shares_ms(&self) -> BTreeMap<PageCause, f64> {
        self.shares.iter().map(|(cause, ns)| (*cause, ms(*ns))).collect()
    }

    /// What the wait was for.
    fn says_causes(&self, doubts: &[WaitDoubt]) -> String {
        let has_phases = self.load.requests.iter().all(|one| has_phases(one.phases));
        let by_phases = !self.has_packets && has_phases;
        let doubt = by_phases.then(|| doubt_of(&self.path, doubts));
        wording::page(self.graph.milestone, self.wait_ms(), &self.shares_ms(), doubt)
    }

    /// The request whose failure took a notable part of the wait.
    fn says_failure(&self) -> Option<String> {
        let (at, _) =
            longest_failure(self.load, &self.path).filter(|(_, ns)| self.is_worth_naming(*ns))?;
        let one = self.load.requests.get(at)?;
        let error = one.error.as_deref().unwrap_or_default();
        let lasted_ms = ms(one.end_ns.saturating_sub(one.start_ns));
        Some(wording::failed_request(&shown(one, self.answer), lasted_ms, error))
    }

    /// The queue before the first byte of a request.
    fn says_queue(&self, at: usize, queued: QueuedFirstByte) -> Option<String> {
        self.is_worth_naming(queued.queued_ns).then(|| {
            let times_ns = [queued.wait_ns, queued.queued_ns, queued.round_trip_ns];
            let url = self.url(at).unwrap_or_default();
            wording::queued_first_byte(&url, times_ns.map(ms), queued.others)
        })
    }

    /// Which link may be the slow one, if packets do not decide it.
    fn says_link(&self, packets: &Packets) -> Option<String> {
        let [radio, wireline] = packets.undecided_link().filter(|_| self.has_packets)?;
        Some(wording::slow_link(&self.shares_ms(), self.wait_ms(), radio, wireline))
    }

    fn path_steps(&self) -> Vec<PathStep> {
        let steps = self.path.iter().map(|step| PathStep {
            request: step.request.and_then(|at| self.id(at)),
            from_ms: self.since_ms(step.from_ns),
            to_ms: self.since_ms(step.to_ns),
            phase: step.phase,
            cause: step.cause,
        });
        steps.collect()
    }

    fn page_requests(&self) -> Vec<PageRequest> {
        let critical = self.graph.on_path(&self.path);
        let each = self.load.requests.iter().enumerate().zip(critical);
        each.map(|((at, request), critical)| self.page_request(at, request, critical)).collect()
    }

    fn page_request(&self, at: usize, request: &AppTransfer, critical: bool) -> PageRequest {
        let parts = self.graph.parts(at);
        let mut own: BTreeMap<PageCause, i64> = BTreeMap::new();
        for part in parts {
            *own.entry(part.cause).or_default() += part.ns();
        }
        PageRequest {
            id: request.id.clone(),
            url: shown(request, self.answer),
            kind: request.kind,
            protocol: request.protocol.clone(),
            connection: request.connection.clone(),
            bytes: request.bytes,
            failed: request.failed,
            start_ms: self.since_ms(request.start_ns),
            end_ms: self.since_ms(request.end_ns),
            waited_for: self.graph.waited_for(at).and_then(|before| self.id(before)),
            critical,
            cause: leading(&own),
            parts: parts.iter().map(|part| self.request_part(part)).collect(),
        }
    }

    fn request_part(&self, part: &Part) -> RequestPart {
        RequestPart {
            phase: part.phase,
            cause: part.cause,
            from_ms: self.since_ms(part.from_ns),
            to_ms: self.since_ms(part.to_ns),
            blocked_by: part.blocked_by.and_then(|at| self.id(at)),
        }
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
    let named = shares.iter().max_by_key(|(cause, ns)| (**ns, Reverse(**cause)));
    named.map_or(PageCause::Unknown, |(cause, _)| *cause)
}

/// A request's URL as it may be printed, or its name.
fn shown(request: &AppTransfer, answer: &RadioAnalysis) -> String {
    let url = request.url.as_deref().map(|url| answer.shown(url));
    url.filter(|url| !url.is_empty()).unwrap_or_else(|| request.id.clone())
}
