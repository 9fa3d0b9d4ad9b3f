//! `radio`: bursts, throughput time and link demand.

use std::collections::BTreeMap;

use airmile_decode::diag::Tagged;
use airmile_infer::burst::{BurstOptions, EvidenceChoice};
use airmile_infer::detect::DetectOptions;
use airmile_infer::usage::Usage;
use airmile_model::{Burst, Transfer, TransferFinding, VerdictThresholds};
use schemars::JsonSchema;
use serde::Serialize;

use super::tracks::{EvidenceCounts, ServingCell, Track, Tracks, TracksDone, as_transfer};
use crate::error::{Error, Result};
use crate::input::Progress;
use crate::limits::{LimitFilter, Limits};
use crate::session::{FileReport, Inputs, Loaded, read_inputs};

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RadioOptions {
    /// Evidence and thresholds of the burst tracker.
    pub burst: BurstOptions,
    /// How transfers are told apart where none are given.
    pub detect: DetectOptions,
    /// Link demand limits of the verdict.
    pub thresholds: VerdictThresholds,
    /// Limits on the time.
    pub limits: Limits,
    /// Which subscription of a multi-SIM phone; the one with the most data
    /// where it is not given.
    pub subscription: Option<u8>,
}

/// What `radio` says.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RadioReport {
    /// The files.
    pub files: Vec<FileReport>,
    /// Where the transfers are from: `given`, or `detected` in the allocation.
    pub transfers_from: &'static str,
    /// The transfers.
    pub transfers: Vec<TransferFinding>,
    /// How the allocation and signal looked during each transfer, in the same order.
    pub usage: Vec<Usage>,
    /// The bursts, downlink then uplink, each in order.
    pub bursts: Vec<Burst>,
    /// Cell load; empty, as this version does not estimate it.
    pub cell_load: Vec<CellLoad>,
    /// What the records hold.
    pub evidence_counts: EvidenceCounts,
    /// Cells that served.
    pub cells: Vec<ServingCell>,
    /// Downlink bandwidth in PRBs.
    pub n_prb_cell: Option<u16>,
    /// Where the bandwidth is from: a message, `table` or `inferred`.
    pub n_prb_cell_from: Option<&'static str>,
    /// Activities too small to be called transfers, per direction.
    pub small: BTreeMap<&'static str, SmallReport>,
    /// Which subscription was analysed; 0 or 1 on a phone with one.
    pub subscription: u8,
    /// What is missing for a better answer, and how to capture it.
    pub missing: Vec<Missing>,
}

/// A window's cell load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellLoad {
    /// Time in microseconds since the Unix epoch.
    pub time_us: Option<i64>,
    /// TTI at its start.
    pub tti: i64,
    /// Share of the cell's PRBs in use, 0 to 1.
    pub load: f64,
    /// Share that was this user's own.
    pub own_share: f64,
    /// Free PRBs per TTI.
    pub free_prb: f64,
    /// Capacity for this user in bits per second.
    pub capacity_bps: f64,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
}

/// Activities under the size of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SmallReport {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Something that the inputs do not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Missing {
    /// What.
    pub what: String,
    /// How to get it.
    pub how_to_capture: String,
}

/// Runs the analysis.
///
/// # Errors
/// The inputs cannot be read, or hold no allocations, PDUs or buffers.
pub fn radio(inputs: &Inputs, options: &RadioOptions, progress: &Progress) -> Result<RadioReport> {
    radio_with(inputs, options, progress, &mut |_| {})
}

/// As [`radio`]; `tap` sees every record, too.
pub(super) fn radio_with(
    inputs: &Inputs,
    options: &RadioOptions,
    progress: &Progress,
    tap: &mut dyn FnMut(&Tagged),
) -> Result<RadioReport> {
    let mut by_subscription: BTreeMap<u8, Tracks> = BTreeMap::new();
    let loaded = read_inputs(inputs, progress, &mut |tagged| {
        tap(&tagged);
        by_subscription
            .entry(tagged.subscription)
            .or_insert_with(|| Tracks::new(options.burst, options.detect, options.limits))
            .push(&tagged.record);
    })?;
    let mut done: BTreeMap<u8, TracksDone> =
        by_subscription.into_iter().map(|(s, tracks)| (s, tracks.finish())).collect();
    let chosen = match options.subscription {
        Some(wanted) if done.contains_key(&wanted) => wanted,
        Some(wanted) => {
            let have: Vec<String> = done.keys().map(u8::to_string).collect();
            return Err(Error::Option(format!(
                "--sim {wanted}: the log has no such subscription; it has {}",
                have.join(", ")
            )));
        }
        None => done
            .iter()
            .max_by_key(|(_, t)| t.counts.dl_blocks + t.counts.ul_blocks)
            .map_or(0, |(s, _)| *s),
    };
    match done.remove(&chosen) {
        Some(tracks) => report(loaded, chosen, tracks, options),
        None => Err(nothing(&loaded)),
    }
}

fn nothing(loaded: &Loaded) -> Error {
    let names: Vec<&str> = loaded.files.iter().map(|f| f.path.as_str()).collect();
    Error::NothingToAnalyse(format!(
        "{}: no radio records to analyse; `airmile inspect` says what the files hold",
        names.join(", ")
    ))
}

fn report(
    loaded: Loaded,
    subscription: u8,
    tracks: TracksDone,
    options: &RadioOptions,
) -> Result<RadioReport> {
    let TracksDone { dl, ul, counts, cells, bandwidth, filter } = tracks;
    let (transfers_from, transfers, usage) = if loaded.transfers.is_empty() {
        let (mut found, mut usage) = findings_of_detected(&dl, options);
        let (more, more_usage) = findings_of_detected(&ul, options);
        found.extend(more);
        usage.extend(more_usage);
        ("detected", found, usage)
    } else {
        let given = within_limits(loaded.transfers, &dl, filter);
        let found = dl.timeline.findings(&given, &options.thresholds);
        let usage = found.iter().map(|f| dl.usage.usage(f.start_tti, f.end_tti)).collect();
        ("given", found, usage)
    };
    let mut small = BTreeMap::new();
    for (name, track) in [("dl", &dl), ("ul", &ul)] {
        let report = SmallReport { count: track.small.count, bytes: track.small.bytes };
        small.insert(name, report);
    }
    let bursts = dl.timeline.bursts().iter().chain(ul.timeline.bursts()).cloned().collect();
    let missing = missing(&counts, options.burst.evidence, transfers_from == "given");
    Ok(RadioReport {
        files: loaded.files,
        transfers_from,
        transfers,
        usage,
        bursts,
        cell_load: Vec::new(),
        evidence_counts: counts,
        cells,
        n_prb_cell: bandwidth.map(|(n, _)| n),
        n_prb_cell_from: bandwidth.map(|(_, from)| from),
        small,
        subscription,
        missing,
    })
}

fn findings_of_detected(
    track: &Track,
    options: &RadioOptions,
) -> (Vec<TransferFinding>, Vec<Usage>) {
    let transfers: Vec<Transfer> =
        track.detected.iter().enumerate().map(|(i, found)| as_transfer(i, found)).collect();
    let found = track.timeline.findings(&transfers, &options.thresholds);
    let usage = found.iter().map(|f| track.usage.usage(f.start_tti, f.end_tti)).collect();
    (found, usage)
}

/// Given transfers that begin within the limits.
fn within_limits(transfers: Vec<Transfer>, dl: &Track, mut filter: LimitFilter) -> Vec<Transfer> {
    let mut kept = Vec::new();
    for transfer in transfers {
        let start_ns = match transfer.time {
            Some((start, _)) => Some(start.ns),
            None => dl.timeline.place(&transfer).map(|(start, _)| start.0 * 1_000_000),
        };
        // One that cannot be placed is kept, to be told of.
        if start_ns.is_none_or(|ns| filter.keeps_ns(ns)) {
            kept.push(transfer);
        }
    }
    kept
}

/// What would make the answer better.
pub(super) fn missing(
    counts: &EvidenceCounts,
    choice: EvidenceChoice,
    transfers_given: bool,
) -> Vec<Missing> {
    let mut out = Vec::new();
    let mut add = |what: &str, how: &str| {
        out.push(Missing { what: what.to_owned(), how_to_capture: how.to_owned() });
    };
    if counts.dl_blocks == 0 {
        add(
            "downlink allocations (0xB173 or 0xB126)",
            "enable LTE_PHY_PDSCH_Stat_Indication and LTE_PHY_PDSCH_Packet in MobileInsight or \
             QXDM, and log while the transfer runs",
        );
    } else if counts.dl_blocks_with_prb == 0 {
        add(
            "the PRBs of downlink assignments (0xB173 or 0xB126)",
            "enable LTE_PHY_PDSCH_Stat_Indication or LTE_PHY_PDSCH_Packet",
        );
    }
    let auto = choice == EvidenceChoice::Auto;
    if counts.dl_blocks > 0 && counts.dl_pdus_with_poll == 0 && auto {
        add(
            "RLC poll bits (0xB082), the standard's own mark of an emptied buffer",
            "enable LTE_RLC_DL_AM_All_PDU",
        );
    }
    if counts.dl_blocks > 0 && counts.dl_blocks_with_padding == 0 && auto {
        add(
            "MAC padding (0xB063), which tells a block larger than the queue",
            "enable LTE_MAC_DL_Transport_Block",
        );
    }
    if counts.dl_blocks > 0 && counts.dl_blocks_with_harq * 2 < counts.dl_blocks {
        add(
            "HARQ process and new-data indicator of blocks (0xB173)",
            "enable LTE_PHY_PDSCH_Stat_Indication; without it retransmissions look like data",
        );
    }
    if counts.buffer_samples == 0 && counts.bsr_reports == 0 {
        add(
            "the phone's uplink buffer (0xB066 or 0xB064)",
            "enable LTE_MAC_UL_Buffer_Status_Internal",
        );
    }
    if counts.measurements == 0 {
        add("signal quality (0xB193)", "enable LTE_PHY_Serv_Cell_Measurement");
    }
    if !transfers_given {
        add(
            "when the application's transfers began and ended",
            "pass --transfers FILE with id,start_us,end_us,bytes; without it transfers are \
             activity split at pauses, and time before the first and after the last block is not \
             seen",
        );
    }
    out
}
