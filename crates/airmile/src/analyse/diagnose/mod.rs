//! `diagnose`: one verdict per transfer and for the session, with evidence.
//!
//! Inputs are aligned and opened once ([`super::beside`]). Each source gives its side of a
//! transfer as facts and numbers: the radio ([`radio`]), captures next to it
//! ([`super::causes`]), captures alone ([`super::blind`]), applications' logs
//! ([`super::application`]). [`join`] makes one judgement of the sides, and
//! [`crate::wording`] the sentences of the document.

pub(super) mod join;
mod radio;

use std::collections::BTreeMap;

use airmile_model::{Cause, Direction, TtiIndex, Verdict, VerdictThresholds};
use schemars::JsonSchema;
use serde::Serialize;

use self::join::Judgement;
use super::aligned::AlignedInputs;
use super::application::{self, ApplicationSide, ApplicationSummary};
use super::blind::Suspicion;
use super::clocks::ClockReport;
use super::page::{self, Page};
use super::player::{self, PlayerSession};
use super::radio::{Missing, RadioAnalysis, RadioOptions, radio_with};
use super::subscription::{EvidenceCounts, Keep, ServingCell};
use crate::session::Inputs;
use airmile_io::FileReport;
use airmile_io::error::Result;
use airmile_io::input::Progress;

/// What `diagnose` says.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// The answer for all transfers together.
    pub session: SessionVerdict,
    /// The answer for each transfer.
    pub transfers: Vec<TransferDiagnosis>,
    /// Where the transfers are from: `given`, or `detected` in the allocation, or in
    /// packets where that was not seen.
    pub transfers_from: &'static str,
    /// The pages of browsers' logs.
    pub pages: Vec<Page>,
    /// The players of logs, with what their stalls and changes of bitrate waited for.
    pub players: Vec<PlayerSession>,
    /// Serving cells.
    pub cells: Vec<ServingCell>,
    /// Downlink bandwidth in PRBs.
    pub n_prb_cell: Option<u16>,
    /// What the records hold.
    pub evidence_counts: EvidenceCounts,
    /// What applications' logs hold.
    pub applications: Vec<ApplicationSummary>,
    /// What is missing for a better answer, and how to capture it.
    pub missing: Vec<Missing>,
    /// How the files' clocks stand against each other.
    pub clocks: Vec<ClockReport>,
    /// The files.
    pub files: Vec<FileReport>,
}

/// The answer for all transfers of the direction that carried more.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SessionVerdict {
    /// Who the bottleneck was.
    pub verdict: Verdict,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// Which way the transfers went that it is about.
    pub dir: Option<Direction>,
    /// Link demand of all of them together.
    pub link_demand: Option<f64>,
    /// Time in ms by cause, all of them together; empty without captures.
    pub shares: BTreeMap<&'static str, f64>,
    /// The cause with the largest share, as the verdict leaves them; null without captures.
    pub leading: Option<Cause>,
    /// That share, 0 to 1.
    pub leading_share: Option<f64>,
    /// That share at least, by the errors of its parts and from transfer to transfer (95 %).
    pub leading_share_low: Option<f64>,
    /// And at most.
    pub leading_share_high: Option<f64>,
    /// What they would have taken without the leading cause, and with a shared verdict
    /// without the one beside the downlink; empty without captures.
    pub counterfactuals: Vec<Counterfactual>,
    /// The verdict in a sentence.
    pub says: String,
    /// By packets alone, the most probable first; empty where the radio was seen.
    pub suspects: Vec<Suspicion>,
}

/// What transfers would have taken without a cause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Counterfactual {
    /// Without which cause.
    pub of: Cause,
    /// Time in ms, all of them together.
    pub ms: f64,
    /// At least.
    pub low_ms: f64,
    /// At most.
    pub high_ms: f64,
}

/// The answer for one transfer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TransferDiagnosis {
    /// The transfer's name.
    pub id: String,
    /// What the application asked for: a URL, without its query.
    pub name: Option<String>,
    /// Who the bottleneck was.
    pub verdict: Verdict,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// Time in ms by cause; the parts add up to the duration.
    pub shares: BTreeMap<&'static str, f64>,
    /// The cause with the largest share, as the verdict leaves them; null without captures.
    pub leading: Option<Cause>,
    /// That share, 0 to 1.
    pub leading_share: Option<f64>,
    /// That share at least, by the errors of its parts: ends of bursts, clocks, edges.
    pub leading_share_low: Option<f64>,
    /// And at most.
    pub leading_share_high: Option<f64>,
    /// What it would have taken without that cause, in ms; with a shared verdict,
    /// without the leading cause beside the downlink.
    pub counterfactual_ms: Option<f64>,
    /// Without which cause; null without captures: had its data always been there.
    pub counterfactual_of: Option<Cause>,
    /// Why.
    pub evidence: Vec<EvidenceItem>,
    /// What to do next.
    pub next_step: String,
    /// What the application itself noted down of it; null without its log.
    pub application: Option<ApplicationSide>,
    /// By packets alone, the most probable first; empty where the radio was seen.
    pub suspects: Vec<Suspicion>,
    /// The measures that it rests on.
    #[serde(flatten)]
    pub finding: Measures,
}

/// The measures of a transfer, as `radio` gives them.
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
    pub link_demand: Option<f64>,
    /// Link throughput in bits per second: bytes / throughput time.
    pub link_throughput_bps: Option<f64>,
    /// Rate inside bursts in bits per second: bytes of its bursts / their TTIs,
    /// the last ones included.
    pub burst_throughput_bps: Option<f64>,
    /// Whether another transfer overlaps it.
    pub overlapped: bool,
}

impl Measures {
    /// Of nothing yet, and of the radio nothing at all.
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

/// A reason: words, a number, and a place on the time axis.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EvidenceItem {
    /// What was seen, in words with the number.
    pub what: String,
    /// The number.
    pub value: Option<f64>,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// Where to look: first TTI; of an application's log alone, ms since its first
    /// transfer began.
    pub from_tti: TtiIndex,
    /// Where to look: end TTI (exclusive).
    pub to_tti: TtiIndex,
}

impl Diagnosis {
    /// Whether it rests on applications' logs and nothing of the radio, nor on packets.
    #[must_use]
    pub fn is_of_applications_alone(&self) -> bool {
        let packets = self.files.iter().any(|file| file.kind.starts_with("pcap"));
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
    let (session, beside) = AlignedInputs::gather(inputs, options, progress)?;
    let keep = if beside.wire.is_some() { Keep::Lists } else { Keep::Findings };
    let answer = radio_with(session, options, keep, &mut |_| {})?;
    conclude_with_pages(&answer, beside, &options.thresholds, progress)
}

/// Joins what all inputs show, pages included, for which the capture is read again.
///
/// # Errors
/// The capture cannot be read.
pub(crate) fn conclude_with_pages(
    answer: &RadioAnalysis,
    beside: AlignedInputs,
    thresholds: &VerdictThresholds,
    progress: &Progress,
) -> Result<Diagnosis> {
    let capture = beside.nearest_capture();
    let mut diagnosis = conclude(answer, beside, thresholds);
    diagnosis.pages = page::pages(capture.as_deref(), &diagnosis, answer, progress)?;
    diagnosis.players = player::players(&diagnosis, answer);
    Ok(diagnosis)
}

/// Joins what all inputs show.
pub(crate) fn conclude(
    answer: &RadioAnalysis,
    beside: AlignedInputs,
    thresholds: &VerdictThresholds,
) -> Diagnosis {
    let report = &answer.report;
    let mut files = report.files.clone();
    files.extend(beside.captures);
    let Judgement { session, transfers, transfers_from, missing } =
        match (beside.blind, answer.alone) {
            (Some(blind), _) => {
                let judged = blind.judge(answer);
                files.extend(blind.into_files());
                judged
            }
            (None, true) => application::judge(answer, &files),
            (None, false) => radio::judge(answer, beside.wire.as_ref(), &beside.clocks, thresholds),
        };
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
        clocks: beside.clocks,
        files,
    }
}
