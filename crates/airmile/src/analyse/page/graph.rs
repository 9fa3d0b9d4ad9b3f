//! Dependencies between requests, the critical path, and the load time without a cause.

pub use crate::fact::Milestone;
use airmile_model::{AppTransfer, PageCause, RequestPhase, TransferKind};

use super::parts::{Part, Requests};
use super::select::PageLoad;
use super::unlogged::MergedSpans;
use airmile_model::spans::merged;

/// A request that starts this soon after another's end may be caused by it, given the precision of
/// browsers' times (chosen here).
const SOON_NS: i64 = 5_000_000;
/// After a pause of this length in the data of its initiator, a request may have waited for
/// something else (chosen here).
const LONG_GAP_NS: i64 = 50_000_000;

/// Connections that browsers open to a host with HTTP/1.1 (Chrome, Firefox and Safari: six).
const BROWSERS_CONNECTIONS: usize = 6;

/// What a request waits for before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// The page's start.
    Start,
    /// Another request's end.
    End(usize),
    /// The data of another request that had arrived by then.
    During(usize),
}

/// A step of the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) request: Option<usize>,
    pub(super) phase: Option<RequestPhase>,
    pub(super) cause: PageCause,
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
}

/// A page's requests and their dependencies.
pub(super) struct Graph {
    pub(super) milestone: Milestone,
    start_ns: i64,
    end_ns: i64,
    spans: Vec<(i64, i64)>,
    after: Vec<After>,
    parts: Vec<Vec<Part>>,
    /// Whether the milestone waits for it.
    needed: Vec<bool>,
    /// Requests that the log lacks, by their ends.
    unlogged: Vec<(i64, i64)>,
    /// When a link may have been busy with the page's responses: without another cause, these bytes take as
    /// long.
    link_busy: MergedSpans,
    /// When its queue shows that it was.
    link_queued: MergedSpans,
}

impl Graph {
    pub(super) fn new(load: &PageLoad<'_>, split: Requests) -> Self {
        let Requests { parts, unlogged, link_busy, .. } = split;
        let requests = &load.requests;
        let (milestone, wait_ns) = milestone(load);
        let end_ns = load.start_ns.saturating_add(wait_ns);
        let paints = |one: &AppTransfer| {
            matches!(one.kind, TransferKind::Document | TransferKind::Code)
                || milestone != Milestone::FirstPaint
        };
        let ended = |one: &AppTransfer| one.end_ns <= end_ns.saturating_add(SOON_NS);
        let mut needed: Vec<bool> = requests.iter().map(|one| ended(one) && paints(one)).collect();
        if !needed.contains(&true) {
            needed = requests.iter().map(|one| ended(one)).collect();
        }
        if let (false, Some(first)) = (needed.contains(&true), needed.first_mut()) {
            *first = true;
        }
        // A response that nothing waits for may last longer than the load.
        let of_link = parts.iter().zip(&needed).filter(|(_, needed)| **needed);
        let of_link = of_link.flat_map(|(parts, _)| parts).filter(|part| is_link(part.cause));
        let of_link: Vec<&Part> = of_link.collect();
        let spans = |of: &dyn Fn(&Part) -> bool| {
            let parts = of_link.iter().filter(|part| of(part));
            let spans = parts.map(|part| (part.from_ns, part.to_ns));
            MergedSpans::new(spans.chain(link_busy.iter().copied()).collect())
        };
        let link_queued = spans(&|part| part.cause != PageCause::Transfer);
        let link_busy = spans(&|_| true);
        Self {
            milestone,
            start_ns: load.start_ns,
            end_ns,
            spans: requests.iter().map(|one| (one.start_ns, one.end_ns)).collect(),
            after: (0..requests.len()).map(|at| after(at, requests)).collect(),
            parts,
            needed,
            unlogged,
            link_busy,
            link_queued,
        }
    }

    pub(super) const fn wait_ns(&self) -> i64 {
        self.end_ns - self.start_ns
    }

    pub(super) fn parts(&self, at: usize) -> &[Part] {
        self.parts.get(at).map_or(&[], Vec::as_slice)
    }

    pub(super) fn waited_for(&self, at: usize) -> Option<usize> {
        match self.after.get(at)? {
            After::Start => None,
            After::End(other) | After::During(other) => Some(*other),
        }
    }

    /// The request that the milestone waited for last.
    fn last(&self) -> Option<usize> {
        let needed = self.spans.iter().zip(&self.needed).enumerate();
        let needed = needed.filter(|(_, (_, needed))| **needed);
        needed.max_by_key(|(_, ((_, end), _))| *end).map(|(at, _)| at)
    }

    /// The critical path, from the start on, without gaps.
    pub(super) fn critical_path(&self) -> Vec<Step> {
        let mut path = Vec::new();
        let mut cursor = self.end_ns;
        let mut at = self.last();
        // Each step goes to a request that started earlier.
        for _ in 0..=self.spans.len() {
            let Some((one, (from_ns, to_ns))) = at.and_then(|at| Some((at, *self.spans.get(at)?)))
            else {
                break;
            };
            self.push_page(&mut path, to_ns.min(cursor), cursor);
            cursor = cursor.min(to_ns);
            for part in self.parts(one).iter().rev() {
                let within = (part.from_ns.max(self.start_ns), part.to_ns.min(cursor));
                match part.blocked_by.filter(|_| self.is_crowded(part)) {
                    Some(by) => self.push_blocker(&mut path, by, one, within),
                    None => push_part(&mut path, one, part, within),
                }
            }
            cursor = cursor.min(from_ns.max(self.start_ns));
            at = self.waited_for(one);
        }
        self.push_page(&mut path, self.start_ns, cursor);
        path.reverse();
        path
    }

    /// Requests that the log lacks within a gap between its own: those that ended in it, as the page
    /// may have waited for them.
    fn unlogged_in(&self, from_ns: i64, to_ns: i64) -> Vec<(i64, i64)> {
        let first = self.unlogged.partition_point(|(_, end_ns)| *end_ns <= from_ns);
        let latest_ns = to_ns.saturating_add(SOON_NS);
        let within =
            self.unlogged.iter().skip(first).take_while(|(_, end_ns)| *end_ns <= latest_ns);
        merged(within.map(|(from, to)| ((*from).max(from_ns), (*to).min(to_ns))).collect())
    }

    /// The page's own part of a gap.
    fn own_ns(&self, from_ns: i64, to_ns: i64) -> i64 {
        let unlogged: i64 =
            self.unlogged_in(from_ns, to_ns).iter().map(|(from, to)| to - from).sum();
        (to_ns - from_ns).max(0) - unlogged
    }

    /// Adds a gap between requests, last part first.
    fn push_page(&self, path: &mut Vec<Step>, from_ns: i64, to_ns: i64) {
        let mut cursor = to_ns;
        let mut push = |cause: PageCause, from_ns: i64, to_ns: i64| {
            if to_ns > from_ns {
                path.push(Step { request: None, phase: None, cause, from_ns, to_ns });
            }
        };
        for (from, to) in self.unlogged_in(from_ns, to_ns).into_iter().rev() {
            push(PageCause::Browser, to, cursor);
            push(PageCause::Unlogged, from, to);
            cursor = from;
        }
        push(PageCause::Browser, from_ns, cursor);
    }

    /// Whether a request that waited for its turn waited for the same as those before it: all connections
    /// that a browser opens to a host were in use, or the link was busy, which no further connection
    /// shortens.
    fn is_crowded(&self, part: &Part) -> bool {
        if 2 * self.link_queued.within_ns(part.from_ns, part.to_ns) >= part.ns().unsigned_abs() {
            return true;
        }
        let middle_ns = part.from_ns.midpoint(part.to_ns);
        let in_use = self.parts.iter().flatten().filter(|other| {
            other.cause != PageCause::Blocked && (other.from_ns..other.to_ns).contains(&middle_ns)
        });
        in_use.count() >= BROWSERS_CONNECTIONS
    }

    /// Adds the phases of a blocking request during `within`, last part first; the rest remains
    /// blocked. If another request blocked that one, its phases follow in turn.
    fn push_blocker(&self, path: &mut Vec<Step>, by: usize, own: usize, within: (i64, i64)) {
        let blocked = |path: &mut Vec<Step>, own: usize, from_ns: i64, to_ns: i64| {
            if to_ns > from_ns {
                let (phase, cause) = (Some(RequestPhase::Blocked), PageCause::Blocked);
                path.push(Step { request: Some(own), phase, cause, from_ns, to_ns });
            }
        };
        let (from_ns, mut cursor) = within;
        let (mut by, mut own) = (Some(by), own);
        // Each blocker has waited since an earlier time than the one that it blocked.
        for _ in 0..self.spans.len() {
            let Some(blocker) = by.take() else { break };
            for part in self.parts(blocker).iter().rev() {
                let (from, to) = (part.from_ns.max(from_ns), part.to_ns.min(cursor));
                if to <= from {
                    continue;
                }
                blocked(path, own, to, cursor);
                cursor = to;
                by = part.blocked_by.filter(|_| self.is_crowded(part));
                if by.is_some() {
                    own = blocker;
                    break;
                }
                push_part(path, blocker, part, (from, to));
                cursor = from;
            }
        }
        blocked(path, own, from_ns, cursor);
    }

    /// Which requests are on a path.
    pub(super) fn on_path(&self, path: &[Step]) -> Vec<bool> {
        let mut out = vec![false; self.spans.len()];
        for at in path.iter().filter_map(|step| step.request) {
            if let Some(one) = out.get_mut(at) {
                *one = true;
            }
        }
        out
    }

    /// The request of a path with most of a cause, and its time.
    pub(super) fn largest(&self, cause: PageCause, path: &[Step]) -> Option<(usize, i64)> {
        let mut sums = vec![0; self.spans.len()];
        for step in path.iter().filter(|step| step.cause == cause) {
            if let Some(sum) = step.request.and_then(|at| sums.get_mut(at)) {
                *sum += step.to_ns - step.from_ns;
            }
        }
        let most = sums.into_iter().enumerate().max_by_key(|(_, ns)| *ns);
        most.filter(|(_, ns)| *ns > 0)
    }

    /// How much earlier the milestone would be without a cause: each request starts when its
    /// dependency is available, and takes its time without the cause's.
    pub(super) fn saves_ns(&self, without: PageCause) -> i64 {
        let mut order: Vec<usize> = (0..self.spans.len()).collect();
        order.sort_by_key(|at| self.spans.get(*at).copied());
        // New start and end of each part.
        let mut moved: Vec<Option<Vec<(i64, i64)>>> = vec![None; self.spans.len()];
        for at in order {
            let Some(&(start_ns, _)) = self.spans.get(at) else { continue };
            let after = self.after.get(at).copied().unwrap_or(After::Start);
            let (was_ns, is_ns) = match after {
                After::Start => (self.start_ns, self.start_ns),
                After::End(other) => {
                    let was = self.spans.get(other).map_or(self.start_ns, |(_, end)| *end);
                    (was.min(start_ns), self.moved_to(other, was, &moved))
                }
                After::During(other) => (start_ns, self.moved_to(other, start_ns, &moved)),
            };
            let own_ns =
                if without == PageCause::Browser { self.own_ns(was_ns, start_ns) } else { 0 };
            let gap_ns = start_ns - was_ns - own_ns;
            let mut now = is_ns.saturating_add(gap_ns);
            let mut own = Vec::with_capacity(self.parts(at).len() + 1);
            own.push((start_ns, now));
            for part in self.parts(at) {
                if part.cause != without {
                    let blocker = part.blocked_by.filter(|by| {
                        moved.get(*by).is_some_and(Option::is_some) && self.ends_before(*by, part)
                    });
                    now = match blocker {
                        Some(by) => {
                            let end_ns = self.spans.get(by).map_or(part.to_ns, |(_, end)| *end);
                            let rest_ns = part.to_ns.saturating_sub(end_ns).max(0);
                            let free_ns = self.moved_to(by, end_ns, &moved);
                            now.max(free_ns.saturating_add(rest_ns))
                        }
                        None => now.saturating_add(part.ns()),
                    };
                }
                own.push((part.to_ns, now));
            }
            if let Some(slot) = moved.get_mut(at) {
                *slot = Some(own);
            }
        }
        let needed = (0..self.spans.len()).filter(|at| self.needed.get(*at) == Some(&true));
        let ends = needed.filter_map(|at| Some(moved.get(at)?.as_ref()?.last()?.1));
        let Some(end_ns) = ends.max() else { return 0 };
        let last_ns = self.last().and_then(|at| self.spans.get(at)).map_or(end_ns, |span| span.1);
        let own_ns =
            if without == PageCause::Browser { self.own_ns(last_ns, self.end_ns) } else { 0 };
        let tail_ns = (self.end_ns - last_ns - own_ns).max(0);
        let saves_ns = self.end_ns.saturating_sub(end_ns.saturating_add(tail_ns)).max(0);
        let busy_ns = self.link_busy.within_ns(self.start_ns, self.end_ns).cast_signed();
        let busy_ns = if is_link(without) { 0 } else { busy_ns };
        saves_ns.min(self.wait_ns().saturating_sub(busy_ns).max(0))
    }

    /// Whether a request that blocks a part ends no later than the part.
    fn ends_before(&self, by: usize, part: &Part) -> bool {
        self.spans.get(by).is_some_and(|(_, end)| *end <= part.to_ns.saturating_add(SOON_NS))
    }

    /// The new time of an instant of a request.
    fn moved_to(&self, at: usize, was_ns: i64, moved: &[Option<Vec<(i64, i64)>>]) -> i64 {
        let Some(points) = moved.get(at).and_then(Option::as_ref) else { return was_ns };
        let next = points.partition_point(|(was, _)| *was < was_ns);
        match (next.checked_sub(1).and_then(|at| points.get(at)), points.get(next)) {
            (Some(before), Some(after)) if after.0 > before.0 => {
                let share = (was_ns - before.0) as f64 / (after.0 - before.0) as f64;
                before.1 + ((after.1 - before.1) as f64 * share) as i64
            }
            (_, Some(after)) => after.1,
            (Some(before), None) => before.1.saturating_add(was_ns - before.0),
            (None, None) => was_ns,
        }
    }
}

/// Whether a link was busy: fewer bytes or a faster link alone shorten it.
const fn is_link(cause: PageCause) -> bool {
    matches!(cause, PageCause::Wireline | PageCause::Radio | PageCause::Transfer)
}

fn push_part(path: &mut Vec<Step>, request: usize, part: &Part, (from_ns, to_ns): (i64, i64)) {
    if to_ns > from_ns {
        let (phase, cause) = (Some(part.phase), part.cause);
        path.push(Step { request: Some(request), phase, cause, from_ns, to_ns });
    }
}

/// The milestone of the wait, and how long it is.
fn milestone(load: &PageLoad<'_>) -> (Milestone, i64) {
    let ns = |ms: Option<f64>| ms.filter(|ms| *ms > 0.0).map(|ms| (ms * 1e6) as i64);
    let page = load.page;
    if let Some(ns) = ns(page.and_then(|page| page.first_paint_ms)) {
        return (Milestone::FirstPaint, ns);
    }
    match ns(page.and_then(|page| page.loaded_ms)) {
        Some(ns) => (Milestone::Load, ns),
        None => (Milestone::LastByte, load.last_ns()),
    }
}

/// What a request waited for before it started: its initiator in the log; without one, or if that
/// had ended long before, the request that last ended before it.
fn after(at: usize, requests: &[&AppTransfer]) -> After {
    let Some(own) = requests.get(at) else { return After::Start };
    let before = || requests.iter().enumerate().take(at);
    let initiator = own.initiator.as_ref().and_then(|url| {
        let mut of_url = before().filter(|(_, one)| one.url.as_ref() == Some(url));
        of_url.next_back()
    });
    let may_ask =
        |one: &AppTransfer| !matches!(one.kind, TransferKind::Image | TransferKind::Media);
    let ended = before()
        .filter(|(_, one)| may_ask(one) && one.end_ns <= own.start_ns.saturating_add(SOON_NS));
    let latest = ended.max_by_key(|(_, one)| one.end_ns);
    match (initiator, latest) {
        (Some((_, asks)), Some((other, one)))
            if own.start_ns.saturating_sub(asks.end_ns) > LONG_GAP_NS
                && own.start_ns.saturating_sub(one.end_ns) <= SOON_NS =>
        {
            After::End(other)
        }
        (Some((other, asks)), _) => position(other, asks, own),
        (None, Some((other, _))) => After::End(other),
        // A document in transfer initiates the requests it has named so far.
        _ => match requests.first() {
            Some(first) if at > 0 && first.end_ns > own.start_ns => After::During(0),
            _ => After::Start,
        },
    }
}

fn position(other: usize, asks: &AppTransfer, own: &AppTransfer) -> After {
    if asks.end_ns <= own.start_ns.saturating_add(SOON_NS) {
        After::End(other)
    } else {
        After::During(other)
    }
}
