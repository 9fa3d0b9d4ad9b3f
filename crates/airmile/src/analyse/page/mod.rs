//! Pages: what the load of each waited for, along its critical path.
//!
//! A browser's log gives the start and phases of each request; packets captured at the same time
//! show what its connection waited for ([`connections`]), the modem log when data was queued at the
//! radio. [`parts`] splits each request among causes; [`graph`] finds the dependencies between
//! requests and replays the load without a cause.

mod connections;
mod graph;
mod judge;
mod parts;
mod phases;
mod select;
#[cfg(test)]
mod tests;
mod unlogged;

use std::collections::BTreeMap;

use airmile_capture::application::ApplicationFormat;
use airmile_model::{PageCause, RequestPhase, TimeBase, TransferKind};
use schemars::JsonSchema;
use serde::Serialize;

use self::connections::Packets;
pub use self::graph::Milestone;
use self::judge::judge;
use self::select::page_loads;
use super::diagnose::Diagnosis;
use super::radio::RadioAnalysis;
use crate::session::Application;
use airmile_io::error::Result;
use airmile_io::input::Progress;

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
