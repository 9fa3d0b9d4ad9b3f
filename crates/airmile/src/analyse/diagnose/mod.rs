//! `diagnose`: one verdict per transfer and for the session, with evidence.
//!
//! Inputs are aligned and opened once ([`super::aligned`]). Each source gives its side of a
//! transfer as facts and numbers: the radio ([`radio`]), captures in addition to it
//! ([`super::causes`]), captures alone ([`super::blind`]), application logs
//! ([`super::application`]). [`join`] makes one judgement of the sides, and [`crate::wording`] the
//! sentences of the document.

pub(super) mod join;
mod radio;

use std::collections::BTreeMap;

use airmile_model::{Cause, Direction, TtiIndex, Verdict, VerdictThresholds};
use airmile_radio::evidence::EvidenceCounts;
use airmile_wire::attribute::CauseSpan;
use schemars::JsonSchema;
use serde::Serialize;

use self::join::Judgement;
use super::aligned::AlignedInputs;
use super::application::{self, ApplicationSide, ApplicationSummary};
use super::blind::{self, Suspicion};
use super::clocks::ClockReport;
use super::ecn;
use super::page::{self, Page};
use super::player::{self, PlayerSession};
use super::radio::{Missing, RadioAnalysis, RadioOptions, radio_with};
use super::subscription::{Keep, ServingCell};
pub use crate::fact::EcnReport;
use crate::fact::Without;
use crate::session::Inputs;
use crate::wording;
use airmile_io::FileReport;
use airmile_io::error::Result;
use airmile_io::input::Progress;

/// The result of `diagnose`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// The verdict on all transfers together.
    pub session: SessionVerdict,
    /// The verdict on each transfer.
    pub transfers: Vec<TransferDiagnosis>,
    /// Where the transfers are from: `given`, `captured` (a phone's exchanges), or `detected` in blocks or packets.
    pub transfers_from: &'static str,
    /// The pages of browser logs.
    pub pages: Vec<Page>,
    /// The players of logs, with what their stalls and changes of bitrate waited for.
    pub players: Vec<PlayerSession>,
    /// Serving cells.
    pub cells: Vec<ServingCell>,
    /// Downlink bandwidth in PRBs.
    pub n_prb_cell: Option<u16>,
    /// The amount of each kind of evidence.
    pub evidence_counts: EvidenceCounts,
    /// The contents of application logs.
    pub applications: Vec<ApplicationSummary>,
    /// What is missing for a better result, and how to capture it.
    pub missing: Vec<Missing>,
    /// The offsets between the files' clocks.
    pub clocks: Vec<ClockReport>,
    /// Congestion marks, by direction; empty without a modem log beside a capture, or if no packet was
    /// ECN-capable.
    pub ecn: Vec<EcnReport>,
    /// The files.
    pub files: Vec<FileReport>,
}

/// The verdict on all transfers of the direction that carried more.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SessionVerdict {
    /// The bottleneck.
    pub verdict: Verdict,
    /// Confidence of the verdict, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// Direction of the transfers.
    pub dir: Option<Direction>,
    /// Link demand of all of them together.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub link_demand: Option<f64>,
    /// Time in ms by cause, all of them together; empty without captures.
    pub shares: BTreeMap<&'static str, f64>,
    /// The cause with the largest share within the verdict; null without captures.
    pub leading: Option<Cause>,
    /// That share, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub leading_share: Option<f64>,
    /// Lower bound of that share, from the errors of its parts and the variation between transfers
    /// (95 %).
    pub leading_share_low: Option<f64>,
    /// Upper bound.
    pub leading_share_high: Option<f64>,
    /// The transfers' duration without the leading cause and, for a shared verdict, without the
    /// cause other than the downlink; empty without captures.
    pub counterfactuals: Vec<Counterfactual>,
    /// The verdict in a sentence.
    pub says: String,
    /// By packets alone, the most probable first; empty if the radio was logged.
    pub suspects: Vec<Suspicion>,
}

/// The duration of transfers without a cause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Counterfactual {
    /// The cause.
    pub of: Cause,
    /// Time in ms, all of them together.
    pub ms: f64,
    /// Lower bound.
    pub low_ms: f64,
    /// Upper bound.
    pub high_ms: f64,
}

/// The verdict on one transfer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TransferDiagnosis {
    /// The transfer's name.
    pub id: String,
    /// What the application requested: a URL, without its query.
    pub name: Option<String>,
    /// The bottleneck.
    pub verdict: Verdict,
    /// Confidence of the verdict, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// Time in ms by cause; the parts add up to the duration.
    pub shares: BTreeMap<&'static str, f64>,
    /// Its time in order, for the page; empty without captures.
    #[serde(skip)]
    pub spans: Vec<CauseSpan>,
    /// The cause with the largest share within the verdict; null without captures.
    pub leading: Option<Cause>,
    /// That share, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub leading_share: Option<f64>,
    /// Lower bound of that share, from the errors of its parts: ends of bursts, clocks, edges.
    pub leading_share_low: Option<f64>,
    /// Upper bound.
    pub leading_share_high: Option<f64>,
    /// Its duration without that cause, in ms; for a shared verdict, without the leading cause
    /// other than the downlink.
    pub counterfactual_ms: Option<f64>,
    /// Lower bound of that duration.
    pub counterfactual_low_ms: Option<f64>,
    /// Upper bound.
    pub counterfactual_high_ms: Option<f64>,
    /// The removed cause; null without captures: its data had always been queued.
    pub counterfactual_of: Option<Cause>,
    /// The evidence.
    pub evidence: Vec<EvidenceItem>,
    /// What to do next.
    pub next_step: String,
    /// The transfer as the application logged it; null without its log.
    pub application: Option<ApplicationSide>,
    /// By packets alone, the most probable first; empty if the radio was logged.
    pub suspects: Vec<Suspicion>,
    /// The measures that the verdict uses.
    #[serde(flatten)]
    pub finding: Measures,
}

impl TransferDiagnosis {
    /// What it would have taken without its cause, as a sentence; `None` without a saving.
    #[must_use]
    pub fn saving(&self) -> Option<String> {
        let (ms, low_ms) = (self.counterfactual_ms?, self.counterfactual_low_ms?);
        let without = Without { ms, low_ms, high_ms: self.counterfactual_high_ms? };
        wording::saving(self.counterfactual_of, without, self.finding.duration_ms)
    }
}

/// The measures of a transfer, as in `radio`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Measures {
    /// `dl` or `ul`.
    pub dir: Direction,
    /// Start in microseconds since the Unix epoch.
    pub start_us: Option<i64>,
    /// End in microseconds since the Unix epoch.
    pub end_us: Option<i64>,
    /// First TTI.
    pub start_tti: TtiIndex,
    /// End TTI (exclusive).
    pub end_tti: TtiIndex,
    /// Duration in ms.
    pub duration_ms: f64,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Throughput time in ms.
    pub throughput_time_ms: Option<f64>,
    /// Throughput time / duration.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub link_demand: Option<f64>,
    /// Link throughput in bits per second: bytes / throughput time.
    pub link_throughput_bps: Option<f64>,
    /// Rate inside bursts in bits per second: bytes of its bursts / their TTIs, both without the last
    /// TTI of each.
    pub burst_throughput_bps: Option<f64>,
    /// Whether another transfer overlaps it.
    pub overlapped: bool,
}

impl Measures {
    /// Empty measures, without the radio.
    pub(super) const fn without_radio(dir: Direction) -> Self {
        Self {
            dir,
            start_us: None,
            end_us: None,
            start_tti: TtiIndex(0),
            end_tti: TtiIndex(0),
            duration_ms: 0.0,
            bytes: None,
            throughput_time_ms: None,
            link_demand: None,
            link_throughput_bps: None,
            burst_throughput_bps: None,
            overlapped: false,
        }
    }
}

/// A piece of evidence: a sentence, a number, and a place on the time axis.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EvidenceItem {
    /// The sentence, with the number.
    pub what: String,
    /// The number.
    pub value: Option<f64>,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// First TTI of the evidence; for an application's log alone, ms since the start of its first
    /// transfer.
    pub from_tti: TtiIndex,
    /// End TTI of the evidence (exclusive).
    pub to_tti: TtiIndex,
}

impl Diagnosis {
    /// Whether it uses only application logs, neither the radio nor packets.
    #[must_use]
    pub fn is_of_applications_alone(&self) -> bool {
        let packets = self.files.iter().any(FileReport::is_capture);
        !self.applications.is_empty()
            && !packets
            && self.evidence_counts == EvidenceCounts::default()
    }
}

/// Runs the diagnosis.
///
/// # Errors
/// The inputs cannot be read, or hold nothing to analyse.
pub fn diagnose(inputs: &Inputs, options: &RadioOptions, progress: &Progress) -> Result<Diagnosis> {
    let (session, aligned) = AlignedInputs::gather(inputs, options, progress)?;
    let keep = if aligned.asks_bursts(&session) { Keep::Lists } else { Keep::Findings };
    let answer = radio_with(session, options, keep, &mut |_| {})?;
    conclude_with_pages(&answer, aligned, &options.thresholds, progress)
}

/// Joins all inputs, including pages, for which the capture is read again.
///
/// # Errors
/// The capture cannot be read.
pub(crate) fn conclude_with_pages(
    answer: &RadioAnalysis,
    aligned: AlignedInputs,
    thresholds: &VerdictThresholds,
    progress: &Progress,
) -> Result<Diagnosis> {
    let capture = aligned.nearest_capture();
    let doubt = aligned.doubt.clone();
    let mut diagnosis = conclude(answer, aligned, thresholds);
    diagnosis.pages = page::pages(capture.as_deref(), &diagnosis, answer, progress)?;
    if let Some(doubt) = doubt {
        let pages = diagnosis.pages.iter_mut();
        pages.for_each(|page| page.says += &format!(" By the log alone: {doubt}."));
        diagnosis.missing.insert(0, blind::another_run(&doubt));
    }
    diagnosis.players = player::players(&diagnosis, answer);
    Ok(diagnosis)
}

/// Joins all inputs.
pub(crate) fn conclude(
    answer: &RadioAnalysis,
    aligned: AlignedInputs,
    thresholds: &VerdictThresholds,
) -> Diagnosis {
    let report = &answer.report;
    let mut files = report.files.clone();
    files.extend(aligned.captures);
    let ecn = aligned.wire.as_ref().map(|wire| ecn::reports(wire, report)).unwrap_or_default();
    let Judgement { session, transfers, transfers_from, missing } =
        match (aligned.blind, answer.alone) {
            (Some(blind), _) => {
                let judged = blind.judge(answer);
                files.extend(blind.into_files());
                judged
            }
            (None, true) => application::judge(answer, &files),
            (None, false) => {
                radio::judge(answer, aligned.wire.as_ref(), &aligned.clocks, thresholds)
            }
        };
    files.extend(aligned.unread);
    Diagnosis {
        session: session.into_document(),
        transfers: transfers.into_iter().map(join::TransferJudgement::into_document).collect(),
        transfers_from,
        pages: Vec::new(),
        players: Vec::new(),
        cells: report.cells.clone(),
        n_prb_cell: report.n_prb_cell,
        evidence_counts: report.evidence_counts,
        applications: application::summaries(answer),
        missing,
        clocks: aligned.clocks,
        ecn,
        files,
    }
}
