//! Assigns requests to pages.

use std::collections::{BTreeMap, HashSet};

use airmile_model::{AppPage, AppTransfer, ApplicationLog, LostEntries};

use crate::wording;

/// Without pages in the log, one starts after this long without a request (chosen here: twice as
/// long as browsers' own tools wait for an idle page).
const PAUSE_NS: i64 = 1_000_000_000;
/// Maximum number of requests of a page (chosen here: the largest pages have some thousand).
const MAX_REQUESTS: usize = 5_000;

/// The load of a page, from its log.
pub(super) struct PageLoad<'a> {
    pub(super) id: String,
    pub(super) grouped_by: &'static str,
    pub(super) page: Option<&'a AppPage>,
    pub(super) start_ns: i64,
    /// By start.
    pub(super) requests: Vec<&'a AppTransfer>,
    /// What the inputs lack of it, in a sentence.
    pub(super) lacks: Option<String>,
}

impl PageLoad<'_> {
    /// From the start to the last byte.
    pub(super) fn last_ns(&self) -> i64 {
        let last = self.requests.iter().map(|request| request.end_ns).max();
        last.unwrap_or(self.start_ns).saturating_sub(self.start_ns).max(0)
    }
}

/// The pages of a log, in order.
pub(super) fn page_loads(log: &ApplicationLog) -> Vec<PageLoad<'_>> {
    let known: BTreeMap<&str, &AppPage> =
        log.pages.iter().map(|page| (page.id.as_str(), page)).collect();
    let mut by_page: BTreeMap<&str, Vec<&AppTransfer>> = BTreeMap::new();
    let mut others: Vec<Vec<&AppTransfer>> = Vec::new();
    let mut busy_until = i64::MIN;
    let kept: HashSet<&str> = log.transfers.iter().map(|one| one.id.as_str()).collect();
    let dropped = log.left_out.iter().filter(|one| !kept.contains(one.id.as_str()));
    let mut all: Vec<&AppTransfer> = log.transfers.iter().chain(dropped).collect();
    all.sort_by_key(|one| one.start_ns);
    for transfer in all.into_iter().filter(|one| one.url.is_some()) {
        if let Some(page) = transfer.page.as_deref().filter(|id| known.contains_key(id)) {
            by_page.entry(page).or_default().push(transfer);
            continue;
        }
        let apart = transfer.start_ns.saturating_sub(busy_until) > PAUSE_NS;
        match others.last_mut() {
            Some(last) if !apart => last.push(transfer),
            _ => others.push(vec![transfer]),
        }
        busy_until = busy_until.max(transfer.end_ns);
    }
    let mut out: Vec<PageLoad<'_>> = Vec::new();
    for (id, requests) in by_page {
        let page = known.get(id).copied();
        let first_ns = requests.first().map_or(0, |first| first.start_ns);
        let start_ns = page.map_or(first_ns, |page| page.start_ns.min(first_ns));
        let (id, lacks) = (id.to_owned(), None);
        out.push(PageLoad { id, grouped_by: "log", page, start_ns, requests, lacks });
    }
    for (n, requests) in others.into_iter().enumerate() {
        let start_ns = requests.first().map_or(0, |first| first.start_ns);
        let id = format!("page-{}", n + 1);
        let (page, lacks) = (None, None);
        out.push(PageLoad { id, grouped_by: "pauses", page, start_ns, requests, lacks });
    }
    for load in &mut out {
        load.requests.truncate(MAX_REQUESTS);
    }
    out.sort_by_key(|load| load.start_ns);
    limit(&mut out, log);
    note_damage(&mut out, log);
    out
}

/// Takes out the requests outside of the limits on the time, and pages with no others.
fn limit(loads: &mut Vec<PageLoad<'_>>, log: &ApplicationLog) {
    let outside: HashSet<&str> = log.left_out.iter().map(|one| one.id.as_str()).collect();
    for load in loads.iter_mut() {
        let n = load.requests.len();
        load.requests.retain(|request| !outside.contains(request.id.as_str()));
        let left = n - load.requests.len();
        load.lacks = (left > 0).then(|| wording::page_outside_limits(left, n));
    }
    loads.retain(|load| !load.requests.is_empty());
}

/// Marks the pages of which a damaged log may lack requests: the last one if the file was cut off.
fn note_damage(loads: &mut [PageLoad<'_>], log: &ApplicationLog) {
    let whole = match log.lost {
        LostEntries::None => loads.len(),
        LostEntries::Last => loads.len().saturating_sub(1),
        LostEntries::Any => 0,
    };
    for load in loads.iter_mut().skip(whole) {
        load.lacks = Some(wording::page_damaged(load.last_ns() as f64 / 1e6));
    }
}
