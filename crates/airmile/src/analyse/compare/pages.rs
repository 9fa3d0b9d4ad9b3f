//! Page loads of runs, page by page.

use std::collections::BTreeMap;

use airmile_model::PageCause;
use airmile_model::median::median;
use airmile_wire::compare::{LoadDifference, largest_difference};
use schemars::JsonSchema;
use serde::Serialize;

use super::gather::Run;
use crate::analyse::page::Page;

/// Whether shares of time are of a whole load: of a part, all time is unknown.
fn is_whole(shares: &BTreeMap<&'static str, f64>) -> bool {
    shares.keys().any(|of| *of != PageCause::Unknown.as_str())
}

/// A page that several runs loaded.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedPage {
    /// Its URL, without its query.
    pub url: String,
    /// Its loads in each run, in the order of the runs.
    pub loads: Vec<ComparedLoads>,
}

/// The loads of a page in a run: medians, if there are several.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedLoads {
    /// The run's path as given.
    pub run: String,
    /// Time until the load event of each load, in ms.
    pub times_ms: Vec<f64>,
    /// Time until the milestone of the verdict, in ms.
    pub wait_ms: f64,
    /// Time until the load event, in ms.
    pub load_ms: f64,
    /// That time minus that of the first run in the list; null for that run.
    pub difference_ms: Option<f64>,
    /// The cause whose removal saves most; the longest one, if no other saves more or nothing shows that.
    pub verdict: PageCause,
    /// The evidence of the causes: `log` alone, also `packets`, or also `radio`.
    pub evidence: &'static str,
    /// Time of the critical path by cause, in ms.
    pub shares_ms: BTreeMap<&'static str, f64>,
}

impl ComparedLoads {
    fn of(run: &Run, loads: &[&Page]) -> Option<Self> {
        let whole: Vec<&Page> =
            loads.iter().filter(|page| is_whole(&page.shares)).copied().collect();
        let loads = if whole.is_empty() { loads } else { &whole };
        let of = |value: &dyn Fn(&Page) -> f64| median(loads.iter().map(|page| value(page)));
        let causes = loads.iter().flat_map(|page| page.shares.keys().copied());
        let usual = |cause: &'static str| {
            Some((cause, of(&|page| page.shares.get(cause).copied().unwrap_or(0.0))?))
        };
        let shares_ms: BTreeMap<&'static str, f64> = causes.filter_map(usual).collect();
        let longest = shares_ms.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let first = loads.first()?;
        Some(Self {
            run: run.name.clone(),
            times_ms: loads.iter().map(|page| page.load_ms).collect(),
            wait_ms: of(&|page| page.wait_ms)?,
            load_ms: of(&|page| page.load_ms)?,
            difference_ms: None,
            verdict: match loads {
                [one] => one.verdict,
                _ => longest.and_then(|(of, _)| PageCause::parse(of)).unwrap_or(first.verdict),
            },
            evidence: first.evidence,
            shares_ms,
        })
    }
}

/// The pages that more than one run loaded, in the order of the first.
pub(super) fn compared(runs: &[Run]) -> Vec<ComparedPage> {
    let mut urls: Vec<&str> = Vec::new();
    for page in runs.iter().flat_map(|run| &run.pages) {
        if !urls.contains(&page.url.as_str()) {
            urls.push(&page.url);
        }
    }
    let pages = urls.into_iter().filter_map(|url| {
        let in_run = |run: &Run| {
            let own: Vec<&Page> = run.pages.iter().filter(|page| page.url == url).collect();
            ComparedLoads::of(run, &own)
        };
        let mut loads: Vec<ComparedLoads> = runs.iter().filter_map(in_run).collect();
        let (first, others) = loads.split_first_mut().filter(|(_, others)| !others.is_empty())?;
        for one in others {
            one.difference_ms = Some(one.load_ms - first.load_ms);
        }
        Some(ComparedPage { url: url.to_owned(), loads })
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

/// The largest difference that a user notices; a page's runs are compared with its first one.
pub(super) fn largest<'a>(pages: &'a [ComparedPage], seed: u64) -> Option<PageDifference<'a>> {
    let whole = |page: &'a ComparedPage| -> Vec<&'a ComparedLoads> {
        page.loads.iter().filter(|loads| is_whole(&loads.shares_ms)).collect()
    };
    let times_of = |page| whole(page).iter().map(|loads| loads.times_ms.clone()).collect();
    let times: Vec<Vec<Vec<f64>>> = pages.iter().map(times_of).collect();
    let found = largest_difference(&times, seed)?;
    let page = pages.get(found.page)?;
    let whole = whole(page);
    let mut both = [*whole.first()?, *whole.get(found.run)?];
    both.sort_by(|a, b| b.load_ms.total_cmp(&a.load_ms));
    let [slow, quick] = both;
    let usual = |loads: &ComparedLoads, cause: PageCause| {
        loads.shares_ms.get(cause.as_str()).copied().unwrap_or(0.0)
    };
    let changes = PageCause::ALL.iter().map(|of| (*of, usual(slow, *of) - usual(quick, *of)));
    let cause = changes.filter(|(_, ms)| *ms > 0.0).max_by(|a, b| a.1.total_cmp(&b.1));
    let cause = cause.map(|(cause, ms)| (cause, ms.min(slow.load_ms - quick.load_ms)));
    let by_time = both.map(|loads| (loads.run.as_str(), loads.load_ms));
    Some(PageDifference { url: &page.url, by_time, cause, evidence: slow.evidence, found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::page::Milestone;

    /// Loads of a page in a run: load times, and of which the server took, in ms.
    fn loads(run: &str, times: &[(f64, f64)]) -> ComparedLoads {
        let usual = |of: fn(&(f64, f64)) -> f64| median(times.iter().map(of)).unwrap();
        ComparedLoads {
            run: run.to_owned(),
            times_ms: times.iter().map(|of| of.0).collect(),
            wait_ms: usual(|of| of.0),
            load_ms: usual(|of| of.0),
            difference_ms: None,
            verdict: PageCause::Server,
            evidence: "log",
            shares_ms: BTreeMap::from([("server", usual(|of| of.1)), ("radio", 100.0)]),
        }
    }

    fn page(url: &str, loads: Vec<ComparedLoads>) -> ComparedPage {
        ComparedPage { url: url.to_owned(), loads }
    }

    #[test]
    fn a_page_is_compared_with_its_first_run_in_the_order_given() {
        let one = |run, ms, server| loads(run, &[(ms, server)]);
        let pages = [
            page("a", vec![one("r1", 500.0, 0.0), one("r3", 500.0, 0.0)]),
            page(
                "b",
                vec![one("r2", 600.0, 0.0), one("r3", 900.0, 300.0), one("r4", 2_000.0, 1_400.0)],
            ),
        ];
        let found = largest(&pages, 7).unwrap();
        assert_eq!((found.url, found.by_time), ("b", [("r4", 2_000.0), ("r2", 600.0)]));
    }

    /// One load of 20 s, nearly all of it the server's.
    #[test]
    fn a_cause_explains_at_most_the_difference() {
        let before = loads("a", &[(500.0, 0.0), (510.0, 0.0), (520.0, 0.0)]);
        let after = loads("b", &[(800.0, 350.0), (810.0, 360.0), (20_000.0, 19_000.0)]);
        let pages = [page("p", vec![before, after])];
        let found = largest(&pages, 7).unwrap();
        assert_eq!(found.by_time, [("b", 810.0), ("a", 510.0)]);
        assert_eq!(found.cause, Some((PageCause::Server, 300.0)));
    }

    fn run(name: &str, times_ms: &[f64]) -> Run {
        let page = |load_ms: &f64| Page {
            id: "page_1".into(),
            url: "http://a/".into(),
            grouped_by: "log",
            start_us: None,
            milestone: Milestone::Load,
            wait_ms: *load_ms,
            first_paint_ms: None,
            content_loaded_ms: None,
            load_ms: *load_ms,
            bytes: 1_000,
            verdict: PageCause::Server,
            says: String::new(),
            evidence: "log",
            shares: BTreeMap::from([("server", *load_ms)]),
            savings: Vec::new(),
            critical_path: Vec::new(),
            requests: Vec::new(),
        };
        let pages = times_ms.iter().map(page).collect();
        Run { name: name.into(), pages, ..Run::default() }
    }

    /// Runs of unequal length are compared by all their loads, with the first run.
    #[test]
    fn no_repetition_is_left_out() {
        let runs = [
            run("a", &[100.0, 102.0, 104.0]),
            run("b", &[200.0, 210.0, 220.0, 900.0]),
            run("c", &[300.0, 310.0, 320.0, 330.0, 340.0]),
        ];
        let pages = compared(&runs);
        let of = |loads: &ComparedLoads| (loads.times_ms.len(), loads.load_ms, loads.difference_ms);
        let found: Vec<_> = pages[0].loads.iter().map(of).collect();
        assert_eq!(found, [(3, 102.0, None), (4, 215.0, Some(113.0)), (5, 320.0, Some(218.0))]);
    }
}
