//! `radio`: bursts, throughput time and link demand.

use std::collections::{BTreeMap, BTreeSet};

use airmile_decode::diag::Tagged;
use airmile_model::{Burst, TransferFinding, VerdictThresholds, cut_url};
use airmile_radio::burst::BurstOptions;
use airmile_radio::detect::DetectOptions;
use airmile_radio::evidence::EvidenceCounts;
use airmile_radio::load::LoadEstimate;
use airmile_radio::loss::RadioLoss;
use airmile_radio::meter::BurstsSeen;
use airmile_radio::usage::Usage;
use schemars::JsonSchema;
use serde::Serialize;

use super::application::{Lookup, limit, note_limits};
use super::explained::{findings_of_detected, findings_of_given, findings_of_groups, is_chatter};
pub(super) use super::missing::missing;
pub use super::missing::{Missing, MissingKind};
use super::one_leg;
use super::silent::Silent;
use super::subscription::{Keep, ServingCell, SubscriptionAnalysis, SubscriptionFindings};
use super::together::{self, Together};
use super::unread;
use crate::session::{Application, Inputs, Loaded, Session};
use airmile_io::FileReport;
use airmile_io::error::{Error, Result};
use airmile_io::input::Progress;
use airmile_io::limits::Limits;
use airmile_radio::watch::Others;

/// Options of `radio`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RadioOptions {
    /// Evidence and thresholds of the burst tracker.
    pub burst: BurstOptions,
    /// How transfers are detected if none are given.
    pub detect: DetectOptions,
    /// Link demand limits of the verdict.
    pub thresholds: VerdictThresholds,
    /// Limits on the time.
    pub limits: Limits,
    /// Subscription of a multi-SIM phone; by default the one with the most data.
    pub subscription: Option<u8>,
}

impl RadioOptions {
    /// Checks that shares are between 0 and 1, and that limits are in order.
    ///
    /// # Errors
    /// One is not; the message names the option.
    pub fn check(&self) -> Result<()> {
        for (name, share) in [
            ("--start-threshold", self.burst.start_threshold),
            ("--end-threshold", self.burst.end_threshold),
            ("--radio-at-least", self.thresholds.radio_at_least),
            ("--not-radio-below", self.thresholds.not_radio_below),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return Err(Error::Option(format!("{name} {share}: give a share between 0 and 1")));
            }
        }
        if self.thresholds.not_radio_below > self.thresholds.radio_at_least {
            return Err(Error::Option(format!(
                "--not-radio-below ({}) is above --radio-at-least ({}): set both",
                self.thresholds.not_radio_below, self.thresholds.radio_at_least
            )));
        }
        self.limits.check()
    }
}

/// The result of `radio`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RadioReport {
    /// The files.
    pub files: Vec<FileReport>,
    /// Where the transfers are from: `given`, `captured` as a phone's exchanges, or `detected` in the allocation.
    pub transfers_from: &'static str,
    /// The transfers.
    pub transfers: Vec<TransferFinding>,
    /// The allocation and signal during each transfer, in the same order.
    pub usage: Vec<Usage>,
    /// The bursts, downlink then uplink, each in order.
    pub bursts: Vec<Burst>,
    /// Load of the primary cell, in windows of 200 ms; windows without measurements or with an
    /// unknown load are missing.
    pub cell_load: Vec<CellLoad>,
    /// Windows with measurements but an unknown load: SNR under 0 dB, or no reading.
    pub cell_load_unknown: u64,
    /// What the radio lost, and what it only delayed.
    pub radio_loss: RadioLoss,
    /// The amount of each kind of evidence.
    pub evidence_counts: EvidenceCounts,
    /// Serving cells.
    pub cells: Vec<ServingCell>,
    /// Downlink bandwidth in PRBs.
    pub n_prb_cell: Option<u16>,
    /// Source of the bandwidth: a message, `table` or `inferred`.
    pub n_prb_cell_from: Option<&'static str>,
    /// Activities too small for a transfer, per direction.
    pub small: BTreeMap<&'static str, SmallReport>,
    /// Length of a TTI in ms: 1 in LTE, a slot in NR.
    pub tti_ms: f64,
    /// The analysed subscription; 0 or 1 on a phone with one.
    pub subscription: u8,
    /// Whether the limits on the time exclude everything in the files.
    pub empty_window: bool,
    /// What is missing for a better result, and how to capture it.
    pub missing: Vec<Missing>,
}

/// The cell load in a window (CLAW, section 4.2, calibrated).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellLoad {
    /// Time at its start in microseconds since the Unix epoch.
    pub time_us: Option<i64>,
    /// TTI at its start.
    pub tti: i64,
    /// Share of the cell's PRBs in use by all users, 0 to 1.
    pub load: f64,
    /// Share in use by this user.
    pub own_share: f64,
    /// PRBs per TTI that are this user's own or free.
    pub free_prb: f64,
    /// What those PRBs would carry in bits per second; null if no MCS is known.
    pub capacity_bps: Option<f64>,
    /// Confidence of the load, 0 to 1.
    pub confidence: f64,
}

/// Below this confidence a load is called rough (chosen here: half of the scale).
pub const ROUGH_CONFIDENCE: f64 = 0.5;

impl CellLoad {
    /// TTIs of a window.
    pub(crate) const WINDOW_TTIS: i64 = airmile_radio::load::WINDOW_MS;

    /// `None` if the load is unknown.
    fn from_estimate(window: &LoadEstimate) -> Option<Self> {
        Some(Self {
            time_us: window.at.map(|at| at.micros()),
            tti: window.tti.0,
            load: window.load?,
            own_share: window.own_share,
            free_prb: window.free_prb()?,
            capacity_bps: window.capacity_bps,
            confidence: window.confidence,
        })
    }
}

/// Activities too small for a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SmallReport {
    /// Their number.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Runs the analysis.
///
/// # Errors
/// The inputs cannot be read, or hold no allocations, PDUs or buffers.
pub fn radio(inputs: &Inputs, options: &RadioOptions, progress: &Progress) -> Result<RadioReport> {
    options.check()?;
    let session = Session::open_to_judge(inputs, progress)?;
    let answer = radio_with(session, options, Keep::Lists, &mut |_| {})?;
    if answer.alone { Err(nothing(&answer.report.files)) } else { Ok(answer.report) }
}

/// The result of `radio`, with what `diagnose` needs to explain it.
pub(crate) struct RadioAnalysis {
    pub(crate) report: RadioReport,
    /// One for each transfer, in the same order.
    pub(crate) seen: Vec<TransferTrace>,
    /// Simultaneous transfers of a direction, as one.
    pub(crate) together: Vec<Together>,
    pub(super) silent: Silent,
    /// Application logs among the inputs.
    pub(super) applications: Vec<Application>,
    /// Whether there are only application logs.
    pub(super) alone: bool,
    /// Whether URLs are printed with their query.
    pub(super) whole_urls: bool,
}

impl RadioAnalysis {
    /// Lookups of transfers in the application logs.
    pub(super) fn lookups(&self) -> Vec<Lookup<'_>> {
        self.applications.iter().map(|one| Lookup::new(&one.log)).collect()
    }

    /// A URL as it may be printed.
    pub(super) fn shown(&self, url: &str) -> String {
        if self.whole_urls { url.to_owned() } else { cut_url(url) }
    }

    /// Whether the evidence is application logs only, without the radio.
    pub(crate) const fn is_alone(&self) -> bool {
        self.alone
    }
}

/// The evidence for a transfer's finding.
pub(crate) struct TransferTrace {
    /// `None` if it could not be placed.
    pub(super) bursts: Option<BurstsSeen>,
    pub(super) others: Others,
}

/// As [`radio`]; lists are empty unless they are kept. `tap` also gets every record.
pub(crate) fn radio_with(
    session: Session,
    options: &RadioOptions,
    keep: Keep,
    tap: &mut dyn FnMut(&Tagged),
) -> Result<RadioAnalysis> {
    let whole_urls = session.whole_urls();
    if session.is_without_radio() {
        return alone(session.read(&mut |_| {})?, options, whole_urls);
    }
    let mut by_subscription: BTreeMap<u8, SubscriptionAnalysis> = BTreeMap::new();
    let mut watched = session.transfers().to_vec();
    let groups = together::groups(&watched);
    watched.extend(groups.into_iter().map(|group| group.transfer));
    let mut loaded = session.read(&mut |tagged| {
        tap(&tagged);
        by_subscription
            .entry(tagged.subscription)
            .or_insert_with(|| SubscriptionAnalysis::new(options, &watched, keep))
            .push(&tagged.record);
    })?;
    let mut done: BTreeMap<u8, SubscriptionFindings> =
        by_subscription.into_iter().map(|(s, tracks)| (s, tracks.finish())).collect();
    check_subscription(options.subscription, &done.keys().copied().collect())?;
    let blocks = |tracks: &SubscriptionFindings| tracks.counts.dl_blocks + tracks.counts.ul_blocks;
    let most = || done.iter().max_by_key(|(_, tracks)| blocks(tracks)).map_or(0, |(s, _)| *s);
    let chosen = options.subscription.unwrap_or_else(most);
    note_limits(&mut loaded, options.limits);
    match done.remove(&chosen) {
        Some(tracks) => Ok(RadioAnalysis { whole_urls, ..report(loaded, chosen, tracks, options) }),
        None => Err(nothing(&loaded.files)),
    }
}

/// Checks that the log has the wanted subscription; one without records has none to check.
pub(super) fn check_subscription(wanted: Option<u8>, has: &BTreeSet<u8>) -> Result<()> {
    match wanted.filter(|wanted| !has.is_empty() && !has.contains(wanted)) {
        None => Ok(()),
        Some(wanted) => {
            let has: Vec<String> = has.iter().map(u8::to_string).collect();
            let has = has.join(", ");
            Err(Error::Option(format!(
                "--sim {wanted}: the log has no such subscription; it has {has}"
            )))
        }
    }
}

/// The result for application logs without records of the radio.
fn alone(mut loaded: Loaded, options: &RadioOptions, whole_urls: bool) -> Result<RadioAnalysis> {
    loaded.check_applications()?;
    loaded.transfers.clear();
    for application in &mut loaded.applications {
        limit(&mut application.log, options.limits);
    }
    let tracks = SubscriptionAnalysis::new(options, &[], Keep::Findings).finish();
    Ok(RadioAnalysis { alone: true, whole_urls, ..report(loaded, 0, tracks, options) })
}

fn nothing(files: &[FileReport]) -> Error {
    let names: Vec<&str> = files.iter().map(|f| f.path.as_str()).collect();
    let summaries: Vec<&str> = files.iter().filter_map(summary).collect();
    let what = match &summaries[..] {
        [] => "`airmile inspect` shows what the files contain".to_owned(),
        summaries => summaries.join("; "),
    };
    let mut others = files.iter().filter(|file| summary(file).is_none());
    let problem = others.find_map(|file| Some((&file.path, file.problems.first()?)));
    let first = problem.map_or_else(String::new, |(path, why)| format!(" ({path}: {why})"));
    let names = names.join(", ");
    Error::NothingToAnalyse(format!("{names}: no radio records to analyse{first}; {what}"))
}

/// The summary of a file without times.
pub(super) fn summary(file: &FileReport) -> Option<&str> {
    let is_summed_up = matches!(&*file.kind, "gnb_console_srsran" | "gnb_log_oai");
    file.problems.first().filter(|_| is_summed_up).map(|problem| problem.what.as_str())
}

/// The results of a subscription's estimators.
pub(crate) fn report(
    loaded: Loaded,
    subscription: u8,
    tracks: SubscriptionFindings,
    options: &RadioOptions,
) -> RadioAnalysis {
    let SubscriptionFindings {
        dl,
        ul,
        load,
        load_unknown,
        counts,
        loss,
        cells,
        bandwidth,
        filter,
        silent,
    } = tracks;
    let mut chatter: Vec<TransferFinding> = Vec::new();
    let (transfers_from, mut found) = if loaded.transfers.is_empty() {
        let mut found = findings_of_detected(&dl, options);
        found.extend(findings_of_detected(&ul, options));
        let all: Vec<TransferFinding> = found.iter().map(|(_, one)| one.finding.clone()).collect();
        let (small, found): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(_, one)| is_chatter(&one.finding, &all));
        chatter.extend(small.into_iter().map(|(_, one)| one.finding));
        ("detected", found)
    } else {
        let from = if loaded.is_captured { "captured" } else { "given" };
        (from, findings_of_given(&dl, &ul, filter, loaded.transfers.len(), options))
    };
    let mut together = findings_of_groups(&dl, &ul, &loaded.transfers, &found, options);
    let unread = one_leg::unread_leg(&counts, loaded.files.iter().flat_map(|f| &f.messages));
    if let Some(unread) = unread {
        let joint = together.iter_mut().map(|one| &mut one.finding);
        let each = found.iter_mut().map(|(_, one)| &mut one.finding);
        each.chain(joint).for_each(|finding| one_leg::judge(finding, unread));
    }
    let found = found.into_iter().map(|(_, found)| found);
    let mut transfers = Vec::with_capacity(found.len());
    let mut usage = Vec::with_capacity(found.len());
    let mut seen = Vec::with_capacity(found.len());
    for one in found {
        transfers.push(one.finding);
        usage.push(one.usage);
        seen.push(one.seen);
    }
    let mut small = BTreeMap::new();
    for (name, track) in [("dl", &dl), ("ul", &ul)] {
        let of_dir = || chatter.iter().filter(|one| one.dir == track.timeline.dir());
        let bytes =
            of_dir().filter_map(|one| one.bytes).fold(track.small.bytes, u64::saturating_add);
        let count = track.small.count + of_dir().count() as u64;
        small.insert(name, SmallReport { count, bytes });
    }
    let bursts = [dl.bursts, ul.bursts].concat();
    let empty_window = options.limits.are_given() && counts == EvidenceCounts::default();
    let mut missing = if empty_window {
        Vec::new()
    } else {
        missing(&counts, options.burst.evidence, !loaded.transfers.is_empty())
    };
    missing.extend(unread.map(one_leg::missing));
    unread::advise(&mut missing, loaded.files.iter().flat_map(|f| &f.messages));
    let cell_load: Vec<CellLoad> = load.iter().filter_map(CellLoad::from_estimate).collect();
    let report = RadioReport {
        files: loaded.files,
        transfers_from,
        transfers,
        usage,
        bursts,
        cell_load_unknown: load_unknown,
        cell_load,
        radio_loss: loss,
        evidence_counts: counts,
        cells,
        n_prb_cell: bandwidth.map(|(n, _)| n),
        n_prb_cell_from: bandwidth.map(|(_, from)| from),
        small,
        tti_ms: dl.timeline.tti_ms().min(ul.timeline.tti_ms()),
        subscription,
        empty_window,
        missing,
    };
    let applications = loaded.applications;
    let whole_urls = false;
    RadioAnalysis { report, seen, together, silent, applications, alone: false, whole_urls }
}
