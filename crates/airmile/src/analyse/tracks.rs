//! All estimators of one subscription, fed with its records.

use std::collections::BTreeMap;

use airmile_infer::burst::{BurstOptions, BurstSummary, BurstTracker};
use airmile_infer::detect::{
    DetectOptions, DetectedTransfer, SmallTransfers, TransferDetector, new_data_bytes,
};
use airmile_infer::load::{LoadEstimate, LoadEstimator};
use airmile_infer::loss::{LossTracker, RadioLoss};
use airmile_infer::transfer::Timeline;
use airmile_infer::uplink::{UplinkOptions, UplinkTracker};
use airmile_infer::usage::UsageBins;
use airmile_model::{Direction, Record, Stamp, Transfer, TtiIndex};
use schemars::JsonSchema;
use serde::Serialize;

use crate::limits::{LimitFilter, Limits};

/// How much of each kind of evidence the records hold, for the answer to say
/// what it rests on and what is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvidenceCounts {
    /// User downlink blocks.
    pub dl_blocks: u64,
    /// Of them, with a known number of PRBs.
    pub dl_blocks_with_prb: u64,
    /// Of them, with known padding.
    pub dl_blocks_with_padding: u64,
    /// Of them, with HARQ process and NDI.
    pub dl_blocks_with_harq: u64,
    /// Downlink RLC data PDUs with a poll bit (0 or 1) on data bearers.
    pub dl_pdus_with_poll: u64,
    /// Uplink blocks.
    pub ul_blocks: u64,
    /// Samples of the phone's own buffer.
    pub buffer_samples: u64,
    /// Buffer status reports.
    pub bsr_reports: u64,
    /// Measurements of the serving cell.
    pub measurements: u64,
    /// Handovers, resets and holes: timing segments after the first.
    pub timing_changes: u32,
    /// Holes in the log.
    pub holes: u64,
}

impl EvidenceCounts {
    pub(super) fn count(&mut self, record: &Record) {
        match record {
            Record::Grant(g) if g.rnti.is_user() => {
                self.timing_changes = self.timing_changes.max(g.position.timing_segment);
                if g.dir == Direction::Ul {
                    self.ul_blocks += 1;
                    return;
                }
                self.dl_blocks += 1;
                self.dl_blocks_with_prb += u64::from(g.n_prb.is_some());
                self.dl_blocks_with_padding += u64::from(g.padding_bytes.is_some());
                let harq = (g.harq_id.is_some() && g.ndi.is_some()) || g.retx.is_some();
                self.dl_blocks_with_harq += u64::from(harq);
            }
            Record::Rlc(pdu) if pdu.dir == Direction::Dl && pdu.signalling != Some(true) => {
                self.dl_pdus_with_poll += u64::from(pdu.poll.is_some());
            }
            Record::BufferStatus(_) => self.buffer_samples += 1,
            Record::Bsr(_) => self.bsr_reports += 1,
            Record::Measurement(m) => {
                self.measurements += 1;
                self.timing_changes = self.timing_changes.max(m.position.timing_segment);
            }
            Record::Hole(_) => self.holes += 1,
            _ => {}
        }
    }
}

/// One direction's findings.
pub(super) struct Track {
    pub(super) timeline: Timeline,
    pub(super) usage: UsageBins,
    pub(super) detected: Vec<DetectedTransfer>,
    pub(super) small: SmallTransfers,
    pub(super) summary: BurstSummary,
    /// Bytes of new user data.
    pub(super) bytes: u64,
}

/// The estimators of one subscription.
pub(super) struct Tracks {
    filter: LimitFilter,
    dl: BurstTracker,
    ul: UplinkTracker,
    load: LoadEstimator,
    loss: LossTracker,
    dl_track: Track,
    ul_track: Track,
    detectors: [TransferDetector; 2],
    counts: EvidenceCounts,
    cells: BTreeMap<(Option<u16>, Option<u32>), u64>,
    bandwidth: Option<(u16, &'static str)>,
}

/// What a subscription's records gave.
pub(super) struct TracksDone {
    pub(super) dl: Track,
    pub(super) ul: Track,
    /// Load of the primary cell.
    pub(super) load: Vec<LoadEstimate>,
    pub(super) counts: EvidenceCounts,
    pub(super) loss: RadioLoss,
    pub(super) cells: Vec<ServingCell>,
    pub(super) bandwidth: Option<(u16, &'static str)>,
    /// The limits, with the start that they count from.
    pub(super) filter: LimitFilter,
}

/// A serving cell that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServingCell {
    /// Physical cell identity.
    pub pci: Option<u16>,
    /// Downlink EARFCN.
    pub earfcn: Option<u32>,
    /// Measurements of it.
    pub measurements: u64,
}

impl Track {
    fn new(dir: Direction) -> Self {
        Self {
            timeline: Timeline::new(dir),
            usage: UsageBins::new(dir),
            detected: Vec::new(),
            small: SmallTransfers::default(),
            summary: BurstSummary::default(),
            bytes: 0,
        }
    }
}

impl Tracks {
    pub(super) fn new(burst: BurstOptions, detect: DetectOptions, limits: Limits) -> Self {
        Self {
            filter: LimitFilter::new(limits),
            dl: BurstTracker::new(burst),
            ul: UplinkTracker::new(UplinkOptions::default()),
            load: LoadEstimator::default(),
            loss: LossTracker::default(),
            dl_track: Track::new(Direction::Dl),
            ul_track: Track::new(Direction::Ul),
            detectors: [Direction::Dl, Direction::Ul].map(|d| TransferDetector::new(d, detect)),
            counts: EvidenceCounts::default(),
            cells: BTreeMap::new(),
            bandwidth: None,
        }
    }

    pub(super) fn push(&mut self, record: &Record) {
        // What a cell is holds whenever it was told.
        if !matches!(record, Record::CellInfo(_)) && !self.filter.keeps(record) {
            return;
        }
        self.counts.count(record);
        if let Some((tti, at)) = place(record) {
            self.dl_track.timeline.note(tti, at);
            self.ul_track.timeline.note(tti, at);
        }
        match record {
            Record::Grant(grant) => {
                let track = match grant.dir {
                    Direction::Dl => &mut self.dl_track,
                    Direction::Ul => &mut self.ul_track,
                };
                track.usage.push_grant(grant);
                track.bytes += new_data_bytes(grant);
                if let Some(n_prb) = grant.n_prb_cell
                    && grant.position.cell == 0
                {
                    track.usage.set_bandwidth(n_prb);
                    self.bandwidth.get_or_insert((n_prb, "table"));
                }
                for detector in &mut self.detectors {
                    detector.push(grant);
                }
            }
            Record::Measurement(m) if m.position.cell == 0 => {
                self.dl_track.usage.push_measurement(m);
                self.ul_track.usage.push_measurement(m);
                *self.cells.entry((Some(m.pci), Some(m.earfcn))).or_default() += 1;
            }
            Record::CellInfo(info) if info.cell == 0 => {
                if let Some(n_prb) = info.n_prb_dl {
                    self.dl_track.usage.set_bandwidth(n_prb);
                    self.ul_track.usage.set_bandwidth(info.n_prb_ul.unwrap_or(n_prb));
                    self.bandwidth = Some((n_prb, info.source));
                }
            }
            _ => {}
        }
        self.dl.push(record);
        self.ul.push(record);
        self.load.push(record);
        self.loss.push(record);
        while self.loss.poll().is_some() {}
        self.dl_track.timeline.absorb(&mut self.dl);
        absorb_uplink(&mut self.ul_track.timeline, &mut self.ul);
    }

    pub(super) fn finish(mut self) -> TracksDone {
        let rest = self.dl.finish();
        rest.into_iter().for_each(|burst| self.dl_track.timeline.add_burst(burst));
        self.dl_track.timeline.absorb(&mut self.dl);
        self.dl_track.summary = self.dl.summary();
        let rest = self.ul.finish();
        rest.into_iter().for_each(|burst| self.ul_track.timeline.add_burst(burst));
        absorb_uplink(&mut self.ul_track.timeline, &mut self.ul);
        self.ul_track.summary = self.ul.summary();
        for (detector, track) in
            self.detectors.iter_mut().zip([&mut self.dl_track, &mut self.ul_track])
        {
            track.small = detector.finish();
            track.detected = std::iter::from_fn(|| detector.poll()).collect();
        }
        let mut load = self.load.finish();
        load.retain(|window| window.cell == 0);
        let cells = self.cells.into_iter().map(|((pci, earfcn), measurements)| ServingCell {
            pci,
            earfcn,
            measurements,
        });
        TracksDone {
            dl: self.dl_track,
            ul: self.ul_track,
            load,
            counts: self.counts,
            loss: self.loss.finish(),
            cells: cells.collect(),
            bandwidth: self.bandwidth,
            filter: self.filter,
        }
    }
}

fn absorb_uplink(timeline: &mut Timeline, tracker: &mut UplinkTracker) {
    while let Some(wait) = tracker.poll_wait() {
        timeline.add_wait(wait.start_tti, wait.end_tti);
    }
    while let Some(burst) = tracker.poll() {
        timeline.add_burst(burst);
    }
    while let Some(activity) = tracker.poll_activity() {
        timeline.add_activity(&activity);
    }
    timeline.set_summary(&tracker.summary());
}

/// The TTI and time that a record speaks of.
const fn place(record: &Record) -> Option<(TtiIndex, Option<Stamp>)> {
    Some(match record {
        Record::Grant(r) => (r.position.tti, r.at),
        Record::Rlc(r) => (r.position.tti, r.at),
        Record::BufferStatus(r) => (r.position.tti, r.at),
        Record::Measurement(r) => (r.position.tti, r.at),
        Record::Dci(r) => (r.position.tti, r.at),
        _ => return None,
    })
}

/// A detected transfer as one that an application might have given.
pub(super) fn as_transfer(number: usize, found: &DetectedTransfer) -> Transfer {
    Transfer {
        id: format!("{}{number}", found.dir),
        time: None,
        tti: Some((found.start_tti, found.end_tti)),
        bytes: Some(found.bytes),
        dir: Some(found.dir),
    }
}
