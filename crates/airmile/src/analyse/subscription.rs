//! All estimators of one subscription, fed with its records.

use std::collections::{BTreeMap, BTreeSet};

use airmile_model::{
    Burst, CellInfo, Direction, Grant, Measurement, Position, Record, Stamp, Transfer, TtiIndex,
};
use airmile_radio::burst::{BurstOptions, BurstTracker};
use airmile_radio::decided::Decided;
use airmile_radio::evidence::EvidenceCounts;
use airmile_radio::legs::{LegFindings, LegSorter, OtherLeg, Rat, place, rat_of};
use airmile_radio::load::{LoadEstimate, LoadEstimator};
use airmile_radio::loss::{LossTracker, RadioLoss};
use airmile_radio::transfer::Timeline;
use airmile_radio::uplink::{BufferWait, UplinkOptions, UplinkTracker};
use airmile_radio::usage::UsageBins;
use schemars::JsonSchema;
use serde::Serialize;

use super::radio::RadioOptions;
use super::silent::Silent;
use super::track::Track;
pub(crate) use super::track::{Keep, TimedBurst, TrackDone};
use super::windows::Windows;
use airmile_io::limits::LimitFilter;
use airmile_radio::watch::Until;

/// Decided findings are collected after this many records (chosen here: seconds of a busy link, so
/// that it costs nothing).
const GATHER_RECORDS: u32 = 8_192;

/// The estimators of one subscription. [`Self::push`] passes a record to each that can use it:
/// evidence counts, cells, bursts of both directions, transfers, PRB usage, load and losses.
#[derive(Debug, Clone)]
pub(crate) struct SubscriptionAnalysis {
    filter: LimitFilter,
    dl: BurstTracker,
    ul: UplinkTracker,
    load: LoadEstimator,
    loss: LossTracker,
    dl_track: Track,
    ul_track: Track,
    /// Whether transfers were given; otherwise they are detected.
    given: bool,
    windows: Windows,
    /// `None` unless lists are kept.
    silent: Option<Silent>,
    counts: EvidenceCounts,
    legs: LegSorter,
    /// The second leg, with EN-DC.
    other: Option<Box<OtherLeg>>,
    /// Losses of its blocks.
    other_loss: LossTracker,
    options: BurstOptions,
    cells: BTreeMap<(Option<u16>, Option<u32>), u64>,
    /// Cells from other messages, for logs without measurements.
    reported_cells: BTreeSet<(Option<u16>, Option<u32>)>,
    /// Of the primary cell of the first leg.
    bandwidth: Option<(u16, &'static str)>,
    /// What messages state about LTE's cells before the first leg is known.
    early: BTreeMap<u8, CellInfo>,
    now: TtiIndex,
    until_gather: u32,
}

/// The findings of a subscription.
pub(crate) struct SubscriptionFindings {
    pub(super) dl: TrackDone,
    pub(super) ul: TrackDone,
    /// Load of the primary cell, if it is kept.
    pub(super) load: Vec<LoadEstimate>,
    pub(super) load_unknown: u64,
    pub(super) counts: EvidenceCounts,
    pub(super) loss: RadioLoss,
    pub(super) cells: Vec<ServingCell>,
    pub(super) bandwidth: Option<(u16, &'static str)>,
    /// The limits, and the start that they count from.
    pub(super) filter: LimitFilter,
    pub(super) silent: Silent,
}

impl SubscriptionFindings {
    /// The kept bursts, downlink then uplink.
    pub(crate) fn burst_times(&self) -> Vec<TimedBurst> {
        let of = |track: &TrackDone| {
            let timed = |burst: &Burst| TimedBurst::of(burst.clone(), &track.timeline);
            track.bursts.iter().map(timed).collect::<Vec<_>>()
        };
        [of(&self.dl), of(&self.ul)].concat()
    }
}

/// A serving cell that was measured, or only reported in another message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServingCell {
    /// Physical cell identity.
    pub pci: Option<u16>,
    /// Downlink EARFCN; in NR the NR-ARFCN.
    pub earfcn: Option<u32>,
    /// Number of its measurements.
    pub measurements: u64,
}

impl SubscriptionAnalysis {
    /// Creates the estimators of a log with the given transfers, or for detection if there are
    /// none.
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
            windows: Windows { kept: (keep == Keep::Lists).then(Vec::new), unknown: 0 },
            silent: (keep == Keep::Lists).then(Silent::default),
            counts: EvidenceCounts::default(),
            legs: LegSorter::default(),
            other: None,
            other_loss: LossTracker::default(),
            options: options.burst,
            cells: BTreeMap::new(),
            reported_cells: BTreeSet::new(),
            bandwidth: None,
            early: BTreeMap::new(),
            now: TtiIndex(0),
            until_gather: GATHER_RECORDS,
        }
    }

    /// Whether a record is of another leg than the first one seen (EN-DC).
    fn is_of_other_leg(&mut self, record: &Record) -> bool {
        let known = self.legs.first();
        let leg = self.legs.take(record);
        match (known, record) {
            (None, Record::CellInfo(info)) if rat_of(record) == Some(Rat::Lte) => {
                self.early.insert(info.cell, info.clone());
            }
            (None, _) if self.legs.first() == Some(Rat::Nr) => self.begin_with_nr(),
            _ => {}
        }
        self.legs.first().is_some_and(|first| first != leg)
    }

    /// LTE's records before the first one of NR are of the other leg: NR's TTIs are the axis.
    fn begin_with_nr(&mut self) {
        self.bandwidth = None;
        self.dl = BurstTracker::new(self.options);
        self.ul = UplinkTracker::new(UplinkOptions::default());
        self.load = LoadEstimator::default();
        self.windows.kept.iter_mut().for_each(Vec::clear);
        self.now = TtiIndex(0);
        for track in [&mut self.dl_track, &mut self.ul_track] {
            track.timeline = Timeline::new(track.timeline.dir());
            track.usage = UsageBins::new(track.timeline.dir());
            track.watch.restart();
        }
        for info in std::mem::take(&mut self.early).into_values() {
            self.push_other(&info.into());
        }
    }

    fn other_rat(&self) -> Rat {
        if self.legs.first() == Some(Rat::Nr) { Rat::Lte } else { Rat::Nr }
    }

    pub(crate) fn push(&mut self, record: &Record) {
        // Cell information holds at any time, and its own may be the log's start.
        if !self.filter.keeps(record) && !matches!(record, Record::CellInfo(_)) {
            return;
        }
        self.counts.count(record);
        if self.is_of_other_leg(record) {
            self.push_other(record);
        } else {
            self.push_first(record);
        }
        self.until_gather -= 1;
        if self.until_gather == 0 {
            self.until_gather = GATHER_RECORDS;
            self.gather();
        }
    }

    /// Marks a TTI of the axis as covered by the log.
    fn note(&mut self, tti: TtiIndex, at: Option<Stamp>) {
        self.dl_track.timeline.note(tti, at);
        self.ul_track.timeline.note(tti, at);
    }

    /// Processes a record of the second leg.
    fn push_other(&mut self, record: &Record) {
        // The cell's load is estimated for the first leg only.
        let options = self.options;
        self.dl.set_leg();
        let other = self.other.get_or_insert_with(|| Box::new(OtherLeg::new(options)));
        other.push(record, &self.dl_track.timeline);
        let on_axis = |tti| other.on_axis(tti, &self.dl_track.timeline, 0);
        let tti = place(record).and_then(|(position, _)| on_axis(position.tti));
        tti.into_iter().for_each(|tti| self.note(tti, None));
        match record {
            Record::Grant(_) => {
                self.other_loss.push(record);
                self.take_waiting();
            }
            Record::Measurement(m) => self.take_measurement(m, tti),
            Record::CellInfo(info) => self.set_bandwidth(info, self.other_rat()),
            _ => {}
        }
    }

    /// Processes a measurement, of a TTI of the axis if it has one.
    fn take_measurement(&mut self, m: &Measurement, tti: Option<TtiIndex>) {
        if m.position.cell != 0 {
            return;
        }
        *self.cells.entry((Some(m.pci), Some(m.earfcn))).or_default() += 1;
        if let Some(tti) = tti {
            self.dl_track.usage.push_measurement(m, tti);
            self.ul_track.usage.push_measurement(m, tti);
        }
    }

    fn set_bandwidth(&mut self, info: &CellInfo, rat: Rat) {
        if let Some(n_prb) = info.n_prb_dl {
            let (cell, segment) = ((rat, info.cell), info.timing_segment);
            self.dl_track.usage.set_bandwidth(cell, segment, n_prb);
            self.ul_track.usage.set_bandwidth(cell, segment, info.n_prb_ul.unwrap_or(n_prb));
        }
    }

    /// Processes the grants of both legs before which no other can arrive.
    fn take_waiting(&mut self) {
        let Some(other) = &mut self.other else { return };
        let Some(both) = other.both(&self.dl_track.timeline) else { return };
        self.now = both;
        for (of_first, grant) in other.take_grants(both) {
            self.take_grant(&grant, of_first);
        }
    }

    /// Processes a grant for transfers, in the order of TTIs. A second leg adds scheduled TTIs and PRBs.
    fn take_grant(&mut self, grant: &Grant, of_first: bool) {
        let other_rat = self.other_rat();
        let track = match grant.dir {
            Direction::Dl => &mut self.dl_track,
            Direction::Ul => &mut self.ul_track,
        };
        match &self.other {
            Some(other) if !of_first => {
                track.usage.push_other_leg(grant, other_rat, other.numerology());
            }
            _ => track.usage.push_grant(grant, self.legs.first().unwrap_or(Rat::Lte)),
        }
        // Timing advance commands continue while the phone is connected; the content of a block
        // that was not received is unknown.
        let data = match grant.data_bytes {
            Some(bytes) => bytes > 0,
            None => grant.crc_ok != Some(false),
        };
        if let Some(silent) = self.silent.as_mut().filter(|_| grant.rnti.is_user() && data) {
            silent.busy(grant.dir, grant.position.tti, grant.position.numerology);
        }
        track.detector.push(grant);
        if !self.given {
            track.watch_detected();
        }
    }

    /// Processes a record of the first leg.
    fn push_first(&mut self, record: &Record) {
        if let Some((Position { tti, .. }, at)) = place(record) {
            match &mut self.other {
                Some(other) => other.note_first(tti, at, &self.dl_track.timeline),
                None => self.now = tti,
            }
            self.note(tti, at);
        }
        match record {
            Record::Grant(grant) => {
                let track = match grant.dir {
                    Direction::Dl => &mut self.dl_track,
                    Direction::Ul => &mut self.ul_track,
                };
                track.timeline.set_numerology(grant.position.numerology);
                if let Some(n_prb) = grant.n_prb_cell
                    && grant.position.cell == 0
                {
                    self.bandwidth.get_or_insert((n_prb, "table"));
                }
                match &mut self.other {
                    Some(other) => {
                        other.wait(true, grant.clone());
                        self.take_waiting();
                    }
                    None => self.take_grant(grant, true),
                }
            }
            Record::Measurement(m) => self.take_measurement(m, Some(m.position.tti)),
            Record::CellInfo(info) => {
                if info.cell == 0 && info.pci.is_some() && info.earfcn.is_some() {
                    self.reported_cells.insert((info.pci, info.earfcn));
                }
                self.set_bandwidth(info, self.legs.first().unwrap_or(Rat::Lte));
                if let Some(n_prb) = info.n_prb_dl.filter(|_| info.cell == 0) {
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
    }

    /// Bursts decided since the last call, downlink then uplink, with their times; empty unless
    /// lists are kept.
    pub(crate) fn take_bursts(&mut self) -> Vec<TimedBurst> {
        self.absorb();
        let mut out = Vec::new();
        for track in [&mut self.dl_track, &mut self.ul_track] {
            let bursts = track.bursts.as_mut().map(std::mem::take).unwrap_or_default();
            out.extend(bursts.into_iter().map(|burst| TimedBurst::of(burst, &track.timeline)));
        }
        out
    }

    /// First TTI of the activities in progress at the newest record, downlink then uplink.
    pub(crate) fn under_way(&mut self) -> [Option<TtiIndex>; 2] {
        self.end_activities(self.now);
        let first = |track: &Track| track.detector.current().map(|activity| activity.start_tti);
        [first(&self.dl_track), first(&self.ul_track)]
    }

    /// Forgets all but the last complete transfers, which the result identifies by name.
    pub(crate) fn retire(&mut self, keep: usize) {
        if let Some(windows) = &mut self.windows.kept {
            let old = windows.len().saturating_sub(keep);
            windows.drain(..old);
        }
        for track in [&mut self.dl_track, &mut self.ul_track] {
            track.watch.retire(keep);
        }
    }

    /// Names of the complete transfers, which no longer change.
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

    /// Collects the trackers' decisions.
    pub(crate) fn gather(&mut self) {
        let [dl, ul] = self.absorb();
        let now = Until::now(dl, self.now, self.dl_track.timeline.numerology());
        self.end_activities(now.records);
        self.dl_track.gather(now);
        self.ul_track.gather(Until { decided: ul, ..now });
    }

    /// Collects the trackers' decisions; returns up to where they are complete, downlink then
    /// uplink.
    fn absorb(&mut self) -> [Decided; 2] {
        let decided = [self.dl.decided(), self.ul.decided()];
        let dl = LegFindings {
            bursts: std::iter::from_fn(|| self.dl.poll()).collect(),
            runs: std::iter::from_fn(|| self.dl.poll_activity()).collect(),
            granted: Vec::new(),
        };
        while let Some(wait) = self.ul.poll_wait() {
            self.ul_track.timeline.add_wait(wait.start_tti, wait.end_tti);
        }
        let ul = LegFindings {
            bursts: std::iter::from_fn(|| self.ul.poll()).collect(),
            runs: std::iter::from_fn(|| self.ul.poll_activity()).collect(),
            granted: std::iter::from_fn(|| self.ul.poll_granted()).collect(),
        };
        if let Some(other) = &mut self.other {
            other.absorb(&self.dl_track.timeline);
        }
        let decided = self.take_found([dl, ul], decided);
        let windows = std::iter::from_fn(|| self.load.poll());
        self.windows.take(windows, &mut self.dl_track.watch);
        decided
    }

    /// Puts findings of the first leg on the timelines, joined with those of the second.
    fn take_found(&mut self, found: [LegFindings; 2], decided: [Decided; 2]) -> [Decided; 2] {
        let summaries = [self.dl.summary(), self.ul.summary()];
        let [dl, ul] = [&mut self.dl_track, &mut self.ul_track];
        let mut out = decided;
        for ((i, track), found) in [dl, ul].into_iter().enumerate().zip(found) {
            let dir = track.timeline.dir();
            let (found, summary) = match &mut self.other {
                Some(other) => {
                    let (found, decided) = other.join(dir, found, decided[i], &track.timeline);
                    out[i] = decided;
                    (found, other.summary(dir, summaries[i]))
                }
                None => (found, summaries[i]),
            };
            found.bursts.into_iter().for_each(|burst| track.add_burst(burst));
            found.runs.iter().for_each(|run| track.timeline.add_activity(run));
            for (BufferWait { start_tti, end_tti }, known) in found.granted {
                track.timeline.add_granted(start_tti, end_tti, known);
                let kept = self.silent.iter_mut().map(|kept| &mut kept.granted[usize::from(known)]);
                kept.for_each(|kept| kept.push((start_tti, end_tti)));
            }
            track.timeline.set_summary(&summary);
        }
        out
    }

    /// Ends the activities whose pause is over at a TTI.
    fn end_activities(&mut self, tti: TtiIndex) {
        for track in [&mut self.dl_track, &mut self.ul_track] {
            track.detector.advance(tti);
            if !self.given {
                track.watch_detected();
            }
        }
    }

    pub(crate) fn finish(mut self) -> SubscriptionFindings {
        let (dl, ul) = (self.dl.finish(), self.ul.finish());
        if let Some(other) = &mut self.other {
            other.end(&self.dl_track.timeline);
            for (of_first, grant) in other.take_grants(TtiIndex(i64::MAX)) {
                self.take_grant(&grant, of_first);
            }
        }
        let rest = [dl, ul].map(|bursts| LegFindings { bursts, ..LegFindings::default() });
        self.take_found(rest, [Decided::NOTHING; 2]);
        self.absorb();
        self.take_found(Default::default(), [Decided::ALL; 2]);
        self.windows.take(self.load.finish(), &mut self.dl_track.watch);
        self.end_activities(self.now);
        for track in [&mut self.dl_track, &mut self.ul_track] {
            track.detector.finish();
            if !self.given {
                track.watch_detected();
            }
            track.gather(Until::END);
        }
        let mut loss = self.loss.finish();
        let of_other = self.other_loss.finish();
        loss.harq_failures += of_other.harq_failures;
        loss.harq_retx += of_other.harq_retx;
        self.take_losses();
        self.counts.is_nr_first = self.legs.first() == Some(Rat::Nr);
        let mut silent = self.silent.unwrap_or_default();
        let mut cells = self.cells;
        if cells.is_empty() {
            cells.extend(self.reported_cells.into_iter().map(|cell| (cell, 0)));
        }
        let cells = cells.into_iter().map(|((pci, earfcn), measurements)| ServingCell {
            pci,
            earfcn,
            measurements,
        });
        let mut load = self.windows.kept.unwrap_or_default();
        load.sort_by_key(|window| window.timing_segment);
        // If sequence numbers are known, data that HARQ gave up and RLC retransmitted was not lost.
        if !loss.known {
            silent.lost_ttis = std::mem::take(&mut silent.given_up);
        }
        silent.lost_ttis.sort_unstable();
        SubscriptionFindings {
            dl: self.dl_track.finish(),
            ul: self.ul_track.finish(),
            load,
            load_unknown: self.windows.unknown,
            counts: self.counts,
            loss,
            cells: cells.collect(),
            bandwidth: self.bandwidth,
            filter: self.filter,
            silent,
        }
    }
}
