//! Page loads of runs, page by page.

use std::collections::BTreeMap;

use airmile_model::PageCause;
use airmile_wire::compare::{LoadDifference, largest_difference, median};
use schemars::JsonSchema;
use serde::Serialize;

use super::gather::Run;
use crate::analyse::page::Page;

/// A page that several runs loaded.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedPage {
    /// Its URL, without its query.
    pub url: String,
    /// Its load in each run, in the order of the runs; the n-th load of a URL is compared with the
    /// n-th of the others.
    pub loads: Vec<ComparedLoad>,
}

/// The load of a page in a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedLoad {
    /// The run's path as given.
    pub run: String,
    /// Time until the milestone of the verdict, in ms.
    pub wait_ms: f64,
    /// Time until the load event, in ms.
    pub load_ms: f64,
    /// That time minus the first run's; null for the first run.
    pub difference_ms: Option<f64>,
    /// The longest cause of the wait.
    pub verdict: PageCause,
    /// The evidence of the causes: `log` alone, also `packets`, or also `radio`.
    pub evidence: &'static str,
    /// Time of the critical path by cause, in ms.
    pub shares_ms: BTreeMap<&'static str, f64>,
}

/// The pages that more than one run loaded, in the order of the first.
pub(super) fn compared(runs: &[Run]) -> Vec<ComparedPage> {
    let mut found: BTreeMap<(String, usize), Vec<(&Run, &Page)>> = BTreeMap::new();
    let mut order = Vec::new();
    for run in runs {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for page in &run.pages {
            let nth = seen.entry(&page.url).or_default();
            let key = (page.url.clone(), *nth);
            *nth += 1;
            if !found.contains_key(&key) {
                order.push(key.clone());
            }
            found.entry(key).or_default().push((run, page));
        }
    }
    let pages = order.into_iter().filter_map(|key| {
        let loads = found.remove(&key).filter(|loads| loads.len() > 1)?;
        let first_ms = loads.first()?.1.load_ms;
        let load = |(n, (run, page)): (usize, &(&Run, &Page))| ComparedLoad {
            run: run.name.clone(),
            wait_ms: page.wait_ms,
            load_ms: page.load_ms,
            difference_ms: (n > 0).then_some(page.load_ms - first_ms),
            verdict: page.verdict,
            evidence: page.evidence,
            shares_ms: page.shares.clone(),
        };
        Some(ComparedPage { url: key.0, loads: loads.iter().enumerate().map(load).collect() })
    });
    pages.collect()
}

/// By how much the load of a page differs between two runs.
pub(super) struct PageDifference<'a> {
    pub(super) url: &'a str,
    pub(super) found: LoadDifference,
    /// The slower run with its median load time in ms, and the faster one.
    pub(super) by_time: [(&'a str, f64); 2],
    /// The cause whose median time changed most in the direction of the load time, and that change in
    /// ms, at most the difference.
    pub(super) cause: Option<(PageCause, f64)>,
    /// The evidence of the slower run's causes.
    pub(super) evidence: &'static str,
}

/// The largest difference that a user notices; a page's runs are compared with its first one of `runs`.
pub(super) fn largest<'a>(
    pages: &'a [ComparedPage],
    runs: &[&str],
    seed: u64,
) -> Option<PageDifference<'a>> {
    let mut by_url: BTreeMap<&str, BTreeMap<usize, Vec<&ComparedLoad>>> = BTreeMap::new();
    for page in pages {
        // Of a part of a load, all time is unknown.
        let is_whole = |load: &&ComparedLoad| load.shares_ms.keys().any(|of| *of != "unknown");
        for load in page.loads.iter().filter(is_whole) {
            let run = runs.iter().position(|run| *run == load.run).unwrap_or_default();
            by_url.entry(&page.url).or_default().entry(run).or_default().push(load);
        }
    }
    let all: Vec<(&str, Vec<Vec<&ComparedLoad>>)> =
        by_url.into_iter().map(|(url, runs)| (url, runs.into_values().collect())).collect();
    let ms = |loads: &Vec<&ComparedLoad>| loads.iter().map(|load| load.load_ms).collect();
    let times: Vec<Vec<Vec<f64>>> =
        all.iter().map(|(_, runs)| runs.iter().map(ms).collect()).collect();
    let found = largest_difference(&times, seed)?;
    let (url, runs) = all.get(found.page)?;
    let both = [runs.first()?, runs.get(found.run)?];
    let mut order = [0, 1];
    order.sort_by(|a, b| found.medians_ms[*b].total_cmp(&found.medians_ms[*a]));
    let [slow, quick] = order.map(|at| both[at]);
    let usual = |loads: &[&ComparedLoad], cause: PageCause| {
        let of = |load: &&ComparedLoad| load.shares_ms.get(cause.as_str()).copied().unwrap_or(0.0);
        median(loads.iter().map(of)).unwrap_or(0.0)
    };
    let changes = PageCause::ALL.iter().map(|of| (*of, usual(slow, *of) - usual(quick, *of)));
    let cause = changes.filter(|(_, ms)| *ms > 0.0).max_by(|a, b| a.1.total_cmp(&b.1));
    let [first_ms, other_ms] = found.medians_ms;
    let cause = cause.map(|(cause, ms)| (cause, ms.min((other_ms - first_ms).abs())));
    let evidence = slow.first().map_or("", |load| load.evidence);
    let by_time = order.map(|at| {
        let run = both[at].first().map_or("", |load| load.run.as_str());
        (run, found.medians_ms[at])
    });
    Some(PageDifference { url, by_time, cause, evidence, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loads of a page: run, load time and time of the server, in ms.
    fn page(url: &str, loads: &[(&str, f64, f64)]) -> ComparedPage {
        let load = |(run, load_ms, server_ms): &(&str, f64, f64)| ComparedLoad {
            run: (*run).to_owned(),
            wait_ms: *load_ms,
            load_ms: *load_ms,
            difference_ms: None,
            verdict: PageCause::Server,
            evidence: "log",
            shares_ms: BTreeMap::from([("server", *server_ms), ("radio", 100.0)]),
        };
        ComparedPage { url: url.to_owned(), loads: loads.iter().map(load).collect() }
    }

    #[test]
    fn a_page_is_compared_with_its_first_run_in_the_order_given() {
        let pages = [
            page("a", &[("r1", 500.0, 0.0), ("r3", 500.0, 0.0)]),
            page("b", &[("r2", 600.0, 0.0), ("r3", 900.0, 300.0), ("r4", 2_000.0, 1_400.0)]),
        ];
        let found = largest(&pages, &["r1", "r2", "r3", "r4"], 7).unwrap();
        assert_eq!((found.url, found.by_time), ("b", [("r4", 2_000.0), ("r2", 600.0)]));
    }

    /// One load of 20 s, nearly all of it the server's.
    #[test]
    fn a_cause_explains_at_most_the_difference() {
        let times = [(500.0, 800.0, 350.0), (510.0, 810.0, 360.0), (520.0, 20_000.0, 19_000.0)];
        let pages = times.map(|(a, b, server)| page("p", &[("a", a, 0.0), ("b", b, server)]));
        let found = largest(&pages, &["a", "b"], 7).unwrap();
        assert_eq!(found.by_time, [("b", 810.0), ("a", 510.0)]);
        assert_eq!(found.cause, Some((PageCause::Server, 300.0)));
    }
}
