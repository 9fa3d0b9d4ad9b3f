//! All estimators of one subscription, fed with its records.

use std::collections::{BTreeMap, BTreeSet};

use airmile_model::{Burst, Direction, GrantSources, Record, Stamp, Transfer, TtiIndex, TtiSpan};
use airmile_radio::burst::BurstTracker;
use airmile_radio::detect::{SmallTransfers, TransferDetector};
use airmile_radio::load::{LoadEstimate, LoadEstimator};
use airmile_radio::loss::{LossTracker, RadioLoss};
use airmile_radio::transfer::Timeline;
use airmile_radio::uplink::{UplinkOptions, UplinkTracker};
use airmile_radio::usage::UsageBins;
use airmile_wire::attribute::RELEASE_NS;
use schemars::JsonSchema;
use serde::Serialize;

use super::radio::RadioOptions;
use super::watch::{OpenTransfer, TransferWatch, Until};
use airmile_io::limits::LimitFilter;

/// How much of each kind of evidence the records hold, for the answer to say
/// what it rests on and what is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvidenceCounts {
    /// User downlink blocks.
    pub dl_blocks: u64,
    /// Blocks of NR, of either direction; the others are LTE's.
    pub nr_blocks: u64,
    /// Of the downlink blocks, with a known number of PRBs.
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
    /// Whether all blocks are of NR.
    #[must_use]
    pub const fn is_nr(&self) -> bool {
        self.nr_blocks > 0 && self.nr_blocks == self.dl_blocks + self.ul_blocks
    }

    pub(super) fn count(&mut self, record: &Record) {
        match record {
            Record::Grant(g) if g.rnti.is_user() => {
                self.timing_changes = self.timing_changes.max(g.position.timing_segment);
                self.nr_blocks += u64::from(is_nr(record) == Some(true));
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

/// Whether a block is of NR; nothing for records that both radios have.
fn is_nr(record: &Record) -> Option<bool> {
    match record {
        Record::Grant(g) if g.rnti.is_user() => {
            let by_source = g.sources.contains(GrantSources::NR_PDSCH_STATUS)
                || g.sources.contains(GrantSources::NR_UL_TB);
            Some(by_source || g.position.numerology > 0)
        }
        Record::MacBlock(b) => (b.position.numerology > 0).then_some(true),
        Record::Bsr(b) => (b.position.numerology > 0).then_some(true),
        _ => None,
    }
}

/// Records after which what is decided is gathered (chosen here: seconds of a
/// busy link, so that it costs nothing).
const GATHER_RECORDS: u32 = 8_192;

/// Which lists to keep of the whole log; findings need none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Findings,
    /// Bursts and windows of load, too.
    Lists,
}

/// One direction's findings.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    pub(super) timeline: Timeline,
    pub(super) usage: UsageBins,
    watch: TransferWatch,
    detector: TransferDetector,
    /// Where they are kept.
    bursts: Option<Vec<Burst>>,
}

/// One direction's findings at the end of the log.
pub(crate) struct TrackDone {
    pub(super) timeline: Timeline,
    pub(super) usage: UsageBins,
    pub(super) watched: Vec<OpenTransfer>,
    pub(super) small: SmallTransfers,
    pub(super) bursts: Vec<Burst>,
}

/// A burst with its times in microseconds since the Unix epoch.
#[derive(Debug, Clone)]
pub(crate) struct TimedBurst {
    pub(crate) burst: Burst,
    pub(crate) start_us: Option<i64>,
    pub(crate) end_us: Option<i64>,
}

impl TimedBurst {
    fn of(burst: Burst, timeline: &Timeline) -> Self {
        let start_us = timeline.time_us(burst.start_tti);
        let end_us = timeline.time_us(burst.end_tti);
        Self { burst, start_us, end_us }
    }
}

/// The estimators of one subscription.
#[derive(Debug, Clone)]
pub(crate) struct Tracks {
    filter: LimitFilter,
    dl: BurstTracker,
    ul: UplinkTracker,
    load: LoadEstimator,
    loss: LossTracker,
    dl_track: Track,
    ul_track: Track,
    /// Whether transfers were given; else they are detected.
    given: bool,
    windows: Windows,
    /// Where lists are kept.
    silent: Option<Silent>,
    counts: EvidenceCounts,
    /// Whether the leg that is analysed is NR's; unknown before its first block.
    nr_leg: Option<bool>,
    cells: BTreeMap<(Option<u16>, Option<u32>), u64>,
    /// Of which other messages told; for logs that measure none.
    told_cells: BTreeSet<(Option<u16>, Option<u32>)>,
    bandwidth: Option<(u16, &'static str)>,
    now: TtiIndex,
    until_gather: u32,
}

/// When nothing was scheduled, and what the radio lost.
#[derive(Debug, Clone, Default)]
struct Silent {
    silences: Vec<(TtiIndex, TtiIndex)>,
    last: Option<TtiIndex>,
    lost_ttis: Vec<TtiIndex>,
    given_up: Vec<TtiIndex>,
}

impl Silent {
    /// Takes a TTI in which something was scheduled.
    fn busy(&mut self, tti: TtiIndex, numerology: u8) {
        let least = TtiSpan::from_ms(RELEASE_NS / 1_000_000, numerology).0;
        // Before the first one the phone may have been anywhere.
        let since = self.last.unwrap_or(TtiIndex(i64::MIN / 2));
        if tti.0.saturating_sub(since.0) >= least {
            self.silences.push((since, tti));
        }
        self.last = self.last.max(Some(tti));
    }
}

/// Windows of the primary cell's load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows {
    /// Where they are kept.
    kept: Option<Vec<LoadEstimate>>,
    /// Of which the load cannot be told.
    pub(super) untold: u64,
}

/// What a subscription's records gave.
pub(crate) struct TracksDone {
    pub(super) dl: TrackDone,
    pub(super) ul: TrackDone,
    /// Load of the primary cell, where it is kept.
    pub(super) load: Vec<LoadEstimate>,
    pub(super) load_untold: u64,
    pub(super) counts: EvidenceCounts,
    pub(super) loss: RadioLoss,
    pub(super) cells: Vec<ServingCell>,
    pub(super) bandwidth: Option<(u16, &'static str)>,
    /// The limits, with the start that they count from.
    pub(super) filter: LimitFilter,
    /// Empty where lists are not kept.
    pub(super) silences: Vec<(TtiIndex, TtiIndex)>,
    pub(super) lost_ttis: Vec<TtiIndex>,
}

impl TracksDone {
    /// The bursts that were kept, downlink then uplink.
    pub(crate) fn burst_times(&self) -> Vec<TimedBurst> {
        let of = |track: &TrackDone| {
            let timed = |burst: &Burst| TimedBurst::of(burst.clone(), &track.timeline);
            track.bursts.iter().map(timed).collect::<Vec<_>>()
        };
        [of(&self.dl), of(&self.ul)].concat()
    }
}

/// A serving cell that was measured, or that another message told of where
/// none was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServingCell {
    /// Physical cell identity.
    pub pci: Option<u16>,
    /// Downlink EARFCN; in NR the NR-ARFCN.
    pub earfcn: Option<u32>,
    /// Measurements of it.
    pub measurements: u64,
}

impl Track {
    fn new(dir: Direction, options: &RadioOptions, given: &[Transfer], keep: Keep) -> Self {
        Self {
            timeline: Timeline::new(dir),
            usage: UsageBins::new(dir),
            watch: TransferWatch::given(given),
            detector: TransferDetector::new(dir, options.detect),
            bursts: (keep == Keep::Lists).then(Vec::new),
        }
    }

    fn add_burst(&mut self, burst: Burst) {
        if let Some(bursts) = &mut self.bursts {
            bursts.push(burst.clone());
        }
        self.timeline.add_burst(burst);
    }

    /// Tells the watch what the detector found since.
    fn watch_detected(&mut self, small_before: SmallTransfers) {
        if self.detector.small() != small_before {
            self.watch.ended(None);
        }
        while let Some(found) = self.detector.poll() {
            self.watch.ended(Some(&found));
        }
        if let Some(activity) = self.detector.current() {
            self.watch.under_way(activity);
        }
    }

    fn gather(&mut self, until: Until) {
        self.watch.gather(&mut self.timeline, &mut self.usage, until);
    }

    fn finish(self) -> TrackDone {
        TrackDone {
            timeline: self.timeline,
            usage: self.usage,
            watched: self.watch.finish(),
            small: self.detector.small(),
            bursts: self.bursts.unwrap_or_default(),
        }
    }
}

impl Tracks {
    /// Estimators of a log with these transfers, or else with those that it shows.
    pub(crate) fn new(options: &RadioOptions, given: &[Transfer], keep: Keep) -> Self {
        Self {
            filter: LimitFilter::new(options.limits),
            dl: BurstTracker::new(options.burst),
            ul: UplinkTracker::new(UplinkOptions::default()),
            load: LoadEstimator::default(),
            loss: LossTracker::default(),
            dl_track: Track::new(Direction::Dl, options, given, keep),
            ul_track: Track::new(Direction::Ul, options, given, keep),
            given: !given.is_empty(),
            windows: Windows { kept: (keep == Keep::Lists).then(Vec::new), untold: 0 },
            silent: (keep == Keep::Lists).then(Silent::default),
            counts: EvidenceCounts::default(),
            nr_leg: None,
            cells: BTreeMap::new(),
            told_cells: BTreeSet::new(),
            bandwidth: None,
            now: TtiIndex(0),
            until_gather: GATHER_RECORDS,
        }
    }

    /// Whether a record is of another radio than the first block of the user
    /// was. With EN-DC (TS 37.340) a phone has one of LTE and one of NR, whose
    /// slots are counted apart: what is said here is of one leg.
    fn is_of_other_leg(&mut self, record: &Record) -> bool {
        let Some(nr) = is_nr(record) else { return false };
        *self.nr_leg.get_or_insert(nr) != nr
    }

    pub(crate) fn push(&mut self, record: &Record) {
        // What a cell is holds whenever it was told.
        if !matches!(record, Record::CellInfo(_)) && !self.filter.keeps(record) {
            return;
        }
        if self.is_of_other_leg(record) {
            self.counts.nr_blocks += u64::from(is_nr(record) == Some(true));
            return;
        }
        self.counts.count(record);
        if let Some((tti, at)) = place(record) {
            self.dl_track.timeline.note(tti, at);
            self.ul_track.timeline.note(tti, at);
            self.now = tti;
        }
        match record {
            Record::Grant(grant) => {
                let track = match grant.dir {
                    Direction::Dl => &mut self.dl_track,
                    Direction::Ul => &mut self.ul_track,
                };
                track.usage.push_grant(grant);
                // Timing advance goes on while the phone is connected; of a block that was
                // not received, what it had is not known.
                let data = match grant.data_bytes {
                    Some(bytes) => bytes > 0,
                    None => grant.crc_ok != Some(false),
                };
                if let Some(silent) = self.silent.as_mut().filter(|_| grant.rnti.is_user() && data)
                {
                    silent.busy(grant.position.tti, grant.position.numerology);
                }
                track.timeline.set_numerology(grant.position.numerology);
                if let Some(n_prb) = grant.n_prb_cell
                    && grant.position.cell == 0
                {
                    track.usage.set_bandwidth(n_prb);
                    self.bandwidth.get_or_insert((n_prb, "table"));
                }
                let small = track.detector.small();
                track.detector.push(grant);
                if !self.given {
                    track.watch_detected(small);
                }
            }
            Record::Measurement(m) if m.position.cell == 0 => {
                self.dl_track.usage.push_measurement(m);
                self.ul_track.usage.push_measurement(m);
                *self.cells.entry((Some(m.pci), Some(m.earfcn))).or_default() += 1;
            }
            Record::CellInfo(info) if info.cell == 0 => {
                if info.pci.is_some() && info.earfcn.is_some() {
                    self.told_cells.insert((info.pci, info.earfcn));
                }
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
        self.take_losses();
        self.until_gather -= 1;
        if self.until_gather == 0 {
            self.until_gather = GATHER_RECORDS;
            self.gather();
        }
    }

    /// Bursts that were decided since the last call, downlink then uplink,
    /// with their times; nothing where lists are not kept.
    pub(crate) fn take_bursts(&mut self) -> Vec<TimedBurst> {
        self.absorb();
        let mut out = Vec::new();
        for track in [&mut self.dl_track, &mut self.ul_track] {
            let bursts = track.bursts.as_mut().map(std::mem::take).unwrap_or_default();
            out.extend(bursts.into_iter().map(|burst| TimedBurst::of(burst, &track.timeline)));
        }
        out
    }

    /// Activities under way at the newest record, downlink then uplink: first TTI.
    pub(crate) fn under_way(&mut self) -> [Option<TtiIndex>; 2] {
        self.end_activities(self.now);
        let first = |track: &Track| track.detector.current().map(|activity| activity.start_tti);
        [first(&self.dl_track), first(&self.ul_track)]
    }

    /// Forgets all but the last transfers that are whole; those are told apart
    /// by their names in the answer.
    pub(crate) fn retire(&mut self, keep: usize) {
        if let Some(windows) = &mut self.windows.kept {
            let old = windows.len().saturating_sub(keep);
            windows.drain(..old);
        }
        for track in [&mut self.dl_track, &mut self.ul_track] {
            track.watch.retire(keep);
        }
    }

    /// Names of the transfers that are whole: nothing of them changes any more.
    pub(crate) fn whole(&self) -> impl Iterator<Item = &str> {
        self.dl_track.watch.whole().chain(self.ul_track.watch.whole())
    }

    /// Blocks of user data so far.
    pub(crate) const fn blocks(&self) -> u64 {
        self.counts.dl_blocks + self.counts.ul_blocks
    }

    fn take_losses(&mut self) {
        let mut nowhere = Silent::default();
        let kept = self.silent.as_mut().unwrap_or(&mut nowhere);
        kept.lost_ttis.extend(std::iter::from_fn(|| self.loss.poll()).map(|loss| loss.tti));
        kept.given_up.extend(std::iter::from_fn(|| self.loss.poll_given_up()));
    }

    /// Takes in what the trackers have decided.
    pub(crate) fn gather(&mut self) {
        self.absorb();
        let now = Until::now(self.dl.decided(), self.now);
        self.end_activities(now.records);
        self.dl_track.gather(now);
        self.ul_track.gather(Until { decided: self.ul.decided(), ..now });
    }

    fn absorb(&mut self) {
        while let Some(burst) = self.dl.poll() {
            self.dl_track.add_burst(burst);
        }
        while let Some(activity) = self.dl.poll_activity() {
            self.dl_track.timeline.add_activity(&activity);
        }
        self.dl_track.timeline.set_summary(&self.dl.summary());
        while let Some(wait) = self.ul.poll_wait() {
            self.ul_track.timeline.add_wait(wait.start_tti, wait.end_tti);
        }
        while let Some(burst) = self.ul.poll() {
            self.ul_track.add_burst(burst);
        }
        while let Some(activity) = self.ul.poll_activity() {
            self.ul_track.timeline.add_activity(&activity);
        }
        self.ul_track.timeline.set_summary(&self.ul.summary());
        let windows = std::iter::from_fn(|| self.load.poll());
        self.windows.take(windows, &mut self.dl_track.watch);
    }

    /// Ends the activities whose pause is over at a TTI.
    fn end_activities(&mut self, tti: TtiIndex) {
        for track in [&mut self.dl_track, &mut self.ul_track] {
            let small = track.detector.small();
            track.detector.advance(tti);
            if !self.given {
                track.watch_detected(small);
            }
        }
    }

    pub(crate) fn finish(mut self) -> TracksDone {
        let rest = self.dl.finish();
        rest.into_iter().for_each(|burst| self.dl_track.add_burst(burst));
        let rest = self.ul.finish();
        rest.into_iter().for_each(|burst| self.ul_track.add_burst(burst));
        self.absorb();
        self.windows.take(self.load.finish(), &mut self.dl_track.watch);
        for track in [&mut self.dl_track, &mut self.ul_track] {
            let small = track.detector.small();
            track.detector.finish();
            if !self.given {
                track.watch_detected(small);
            }
            track.gather(Until::END);
        }
        let loss = self.loss.finish();
        self.take_losses();
        let silent = self.silent.unwrap_or_default();
        let mut cells = self.cells;
        if cells.is_empty() {
            cells.extend(self.told_cells.into_iter().map(|cell| (cell, 0)));
        }
        let cells = cells.into_iter().map(|((pci, earfcn), measurements)| ServingCell {
            pci,
            earfcn,
            measurements,
        });
        let mut load = self.windows.kept.unwrap_or_default();
        load.sort_by_key(|window| window.timing_segment);
        // Where numbers are known, what HARQ gave up and RLC repeated was not lost.
        let mut lost_ttis = if loss.known { silent.lost_ttis } else { silent.given_up };
        lost_ttis.sort_unstable();
        TracksDone {
            dl: self.dl_track.finish(),
            ul: self.ul_track.finish(),
            load,
            load_untold: self.windows.untold,
            counts: self.counts,
            loss,
            cells: cells.collect(),
            bandwidth: self.bandwidth,
            filter: self.filter,
            silences: silent.silences,
            lost_ttis,
        }
    }
}

impl Windows {
    /// Takes estimates: those of the primary cell are for the watch.
    fn take(&mut self, windows: impl IntoIterator<Item = LoadEstimate>, watch: &mut TransferWatch) {
        for window in windows.into_iter().filter(|window| window.cell == 0) {
            self.untold += u64::from(window.load.is_none() || window.n_free_prb.is_none());
            if let Some(kept) = &mut self.kept {
                kept.push(window.clone());
            }
            watch.take_load(window);
        }
    }
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
