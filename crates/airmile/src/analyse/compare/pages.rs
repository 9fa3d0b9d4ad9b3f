//! Page loads of runs, page by page.

use std::collections::BTreeMap;

use airmile_model::PageCause;
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
            shares_ms: page.shares.clone(),
        };
        Some(ComparedPage { url: key.0, loads: loads.iter().enumerate().map(load).collect() })
    });
    pages.collect()
}
