//! Per-transfer results: throughput time, link demand, verdict.
//!
//! Throughput time is the bursts' overlap with the transfer; link demand is throughput
//! time over duration (BurstTracker, sections 2.1 and 4.2). A [`Timeline`] takes the
//! findings of a tracker and computes the results of any transfer, given beforehand or
//! afterwards.

mod finding;
#[cfg(test)]
mod meter_tests;
#[cfg(test)]
mod tests;

use airmile_model::{
    Burst, Direction, Evidence, Grant, Record, Stamp, Transfer, TransferFinding, TtiClock,
    TtiIndex, TtiSpan, VerdictThresholds,
};

pub(crate) use finding::{reliability, sureness_at};

use crate::burst::{Activity, BurstOptions, BurstSummary, BurstTracker, EvidenceChoice};
use crate::decided::Decided;
use crate::meter::TransferMeter;
use crate::spans::{ByteRuns, Coverage, overlapped, worth_forgetting};

/// Maximum distance of a transfer's time from that of its TTIs (chosen here: above clocks' drift and
/// corrections within a log, below a period of SFNs, 10.24 s).
const MAX_APART_NS: u64 = 5_000_000_000;

/// Bursts, activity and holes of one direction, on one axis of TTIs.
#[derive(Debug, Clone)]
pub struct Timeline {
    dir: Direction,
    evidence: Option<Evidence>,
    knows_waits: bool,
    bursts: Vec<Burst>,
    in_burst: Coverage,
    /// Bursts that may be none.
    unclear: Coverage,
    waits: Coverage,
    granted: Coverage,
    /// In bursts, nothing shows what the base station had granted.
    ungauged: Coverage,
    scheduled: Coverage,
    holes: Coverage,
    sent: ByteRuns,
    clock: TtiClock,
    /// Whether any burst has known bytes.
    sizes_known: bool,
    /// First TTI in the log, and the end of the last.
    covered: Option<(i64, i64)>,
}

impl Timeline {
    /// An empty timeline.
    #[must_use]
    pub const fn new(dir: Direction) -> Self {
        Self {
            dir,
            evidence: None,
            knows_waits: false,
            bursts: Vec::new(),
            in_burst: Coverage::new(),
            unclear: Coverage::new(),
            waits: Coverage::new(),
            granted: Coverage::new(),
            ungauged: Coverage::new(),
            scheduled: Coverage::new(),
            holes: Coverage::new(),
            sent: ByteRuns::new(),
            clock: TtiClock::new(),
            sizes_known: false,
            covered: None,
        }
    }

    /// The downlink's timeline by one kind of evidence, from a whole log. For allocations
    /// alone, the MAC and RLC fields of blocks are removed, which a log of this kind
    /// would not have.
    #[must_use]
    pub fn from_downlink_records<'a>(
        records: impl IntoIterator<Item = &'a Record>,
        options: &BurstOptions,
    ) -> Self {
        let grants_only = options.evidence == EvidenceChoice::Grants;
        let mut tracker = BurstTracker::new(*options);
        for record in records {
            match record {
                Record::Rlc(_) if grants_only => {}
                Record::Grant(grant) if grants_only => tracker.push(&Record::Grant(Grant {
                    padding_bytes: None,
                    data_bytes: None,
                    ..grant.clone()
                })),
                _ => tracker.push(record),
            }
        }
        let mut timeline = Self::new(Direction::Dl);
        tracker.finish().into_iter().for_each(|burst| timeline.add_burst(burst));
        timeline.absorb(&mut tracker);
        timeline
    }

    /// The direction of its data.
    #[must_use]
    pub const fn dir(&self) -> Direction {
        self.dir
    }

    /// Takes the tracker's decided findings.
    pub fn absorb(&mut self, tracker: &mut BurstTracker) {
        while let Some(burst) = tracker.poll() {
            self.add_burst(burst);
        }
        while let Some(activity) = tracker.poll_activity() {
            self.add_activity(&activity);
        }
        self.set_summary(&tracker.summary());
    }

    /// Adds a burst; bursts come in order.
    pub fn add_burst(&mut self, burst: Burst) {
        let bursts = if burst.is_clear() { &mut self.in_burst } else { &mut self.unclear };
        bursts.add(burst.start_tti.0, burst.end_tti.0);
        self.sizes_known |= burst.bytes > 0;
        self.bursts.push(burst);
    }

    /// Adds a wait of data before its first departure (uplink only; the base station's
    /// queue is not visible to a phone).
    pub fn add_wait(&mut self, start_tti: TtiIndex, end_tti: TtiIndex) {
        self.waits.add(start_tti.0, end_tti.0);
    }

    /// Adds a part of a burst in which the base station had granted all that the phone had reported
    /// (`known`), or in which nothing shows whether it had (uplink only).
    pub fn add_granted(&mut self, start_tti: TtiIndex, end_tti: TtiIndex, known: bool) {
        let spans = if known { &mut self.granted } else { &mut self.ungauged };
        spans.add(start_tti.0, end_tti.0);
    }

    /// Adds a run of scheduled or missing TTIs; runs come in order.
    pub fn add_activity(&mut self, activity: &Activity) {
        let start = activity.start_tti.0;
        let end = start.saturating_add(activity.n_tti);
        self.clock.set_numerology(activity.numerology);
        if activity.unknown {
            self.holes.add(start, end);
            return;
        }
        self.scheduled.add(start, end);
        self.sent.add(start, end, activity.bytes);
        activity.at_ns.into_iter().for_each(|at_ns| self.clock.note(activity.start_tti, at_ns));
    }

    /// Marks a TTI as covered by the log, which covers the time from the first such TTI
    /// to the last.
    pub fn note(&mut self, tti: TtiIndex, at: Option<Stamp>) {
        let (first, end) = self.covered.unwrap_or((tti.0, tti.0));
        self.covered = Some((first.min(tti.0), end.max(tti.0.saturating_add(1))));
        at.into_iter().for_each(|at| self.clock.note(tti, at.ns));
    }

    /// Sets the TTIs' length before the first run (NR numerology; 0: LTE).
    pub const fn set_numerology(&mut self, numerology: u8) {
        self.clock.set_numerology(numerology);
    }

    /// Adds the newly decided findings of a meter's span to it.
    pub fn gather(&self, meter: &mut TransferMeter, decided: Decided) {
        if meter.whole {
            return;
        }
        // The anchors of a start long past are forgotten.
        if self.clock.last_anchor().is_some_and(|(tti, _)| meter.start <= tti.0) {
            meter.start_us = meter.start_us.or_else(|| self.us_of(meter.start));
        }
        let runs_known = meter.ended && decided.runs.0 >= meter.end;
        let bursts_known = meter.ended && decided.bursts.0 >= meter.end;
        let mut runs = decided.runs.0.min(meter.end);
        if !runs_known {
            // A run counts by its part in a span: it must not be split.
            runs = self.sent.cut_at(runs);
        }
        if meter.runs_to < runs {
            let from = meter.runs_to;
            meter.scheduled += self.scheduled.within(from, runs);
            meter.holes += self.holes.within(from, runs);
            meter.sent_bytes = meter.sent_bytes.saturating_add(self.sent.within(from, runs));
            meter.runs_to = runs;
        }
        let bursts = decided.bursts.0.min(meter.end);
        let none_yet = meter.bursts_to == meter.start;
        if meter.bursts_to < bursts || (bursts_known && none_yet) {
            let from = meter.bursts_to;
            meter.in_burst += self.in_burst.within(from, bursts);
            meter.unclear += self.unclear.within(from, bursts);
            meter.waits += self.waits.within(from, bursts);
            meter.granted += self.granted.within(from, bursts);
            meter.ungauged += self.ungauged.within(from, bursts);
            meter.ingest_bursts(&self.bursts, bursts);
            meter.bursts_to = meter.bursts_to.max(bursts);
        }
        if runs_known && bursts_known {
            meter.whole = true;
            let start_us = meter.start_us.or_else(|| self.us_of(meter.start));
            meter.times_us = start_us.zip(self.us_of(meter.end));
        }
    }

    /// Removes findings that end at or before these TTIs: no meter may need them.
    pub fn forget_before(&mut self, before: Decided) {
        self.scheduled.forget_before(before.runs.0);
        self.holes.forget_before(before.runs.0);
        self.sent.forget_before(before.runs.0);
        self.in_burst.forget_before(before.bursts.0);
        self.unclear.forget_before(before.bursts.0);
        self.waits.forget_before(before.bursts.0);
        self.granted.forget_before(before.bursts.0);
        self.ungauged.forget_before(before.bursts.0);
        let n = self.bursts.partition_point(|b| b.end_tti <= before.bursts);
        if worth_forgetting(n, self.bursts.len()) {
            self.bursts.drain(..n);
        }
        self.clock.forget_before(before.runs.min(before.bursts));
    }

    /// The times of its TTIs.
    #[must_use]
    pub const fn clock(&self) -> &TtiClock {
        &self.clock
    }

    /// Sets the evidence of the bursts.
    pub fn set_summary(&mut self, summary: &BurstSummary) {
        self.evidence = summary.evidence;
        self.knows_waits = summary.knows_waits;
    }

    /// As [`Self::set_summary`], without a burst tracker.
    #[cfg(test)]
    pub(crate) fn set_evidence(&mut self, evidence: Option<Evidence>) {
        self.evidence = evidence;
    }

    /// The bursts so far.
    #[must_use]
    pub fn bursts(&self) -> &[Burst] {
        &self.bursts
    }

    /// The numerology of its TTIs (0: LTE).
    #[must_use]
    pub const fn numerology(&self) -> u8 {
        self.clock.numerology()
    }

    /// A TTI's length in ms: `1 ms / 2^numerology` (TS 38.211, 4.3.2).
    #[must_use]
    pub fn tti_ms(&self) -> f64 {
        TtiSpan(1).ms(self.numerology())
    }

    /// The time of a TTI on the log's clock, in microseconds since the Unix epoch; `None`
    /// before the first anchor.
    #[must_use]
    pub fn time_us(&self, tti: TtiIndex) -> Option<i64> {
        self.us_of(tti.0)
    }

    fn us_of(&self, tti: i64) -> Option<i64> {
        self.clock.ns_at(TtiIndex(tti)).map(|ns| ns.div_euclid(1_000))
    }

    /// The TTIs of a transfer, unless the axis shows other times there: that of a part of a log begins at
    /// another TTI.
    #[must_use]
    pub(crate) fn own_ttis(&self, transfer: &Transfer) -> Option<(TtiIndex, TtiIndex)> {
        transfer.tti.filter(|(start, _)| {
            let shown_ns = self.clock.ns_at(*start);
            let apart_ns = shown_ns.zip(transfer.time).map(|(ns, (from, _))| ns.abs_diff(from.ns));
            apart_ns.is_none_or(|ns| ns <= MAX_APART_NS)
        })
    }

    /// The position of a transfer on the axis: its start and, where the log reaches it, its end, as
    /// [`TtiClock::place`] gives them. Its ends are within TTIs; their number is that of its duration,
    /// unless the log's clock and its TTIs go apart.
    #[must_use]
    pub fn place(
        &self,
        transfer: &Transfer,
        log_ended: bool,
    ) -> Option<(TtiIndex, Option<TtiIndex>)> {
        if let Some((start, end)) = self.own_ttis(transfer) {
            return Some((start, Some(end)));
        }
        let (from, to) = transfer.time?;
        let (start, end) = self.clock.place((from.ns, to.ns), log_ended)?;
        let tti_ns = TtiSpan(1).ns(self.numerology());
        let n_tti = to.ns.saturating_sub(from.ns).saturating_add(tti_ns / 2).div_euclid(tti_ns);
        let rounded = start.plus(n_tti);
        let is_near = |end: TtiIndex| n_tti > 0 && rounded.0.abs_diff(end.0) <= 1;
        Some((start, end.map(|end| if is_near(end) { rounded } else { end })))
    }

    /// The findings of all transfers of the user, including overlaps.
    #[must_use]
    pub fn findings(
        &self,
        transfers: &[Transfer],
        thresholds: &VerdictThresholds,
    ) -> Vec<TransferFinding> {
        let metered = transfers.iter().map(|transfer| {
            let meter = self.place(transfer, true).and_then(|(start, end)| {
                let mut meter = TransferMeter::new(start, end?);
                self.gather(&mut meter, Decided::ALL);
                Some(meter)
            });
            (transfer, meter)
        });
        let metered: Vec<_> = metered.collect();
        let metered: Vec<_> = metered.iter().map(|(t, meter)| (*t, meter.as_ref())).collect();
        self.conclude(&metered, thresholds)
    }

    /// The findings of all transfers of the user, from complete meters; those without one
    /// could not be placed.
    #[must_use]
    pub fn conclude(
        &self,
        transfers: &[(&Transfer, Option<&TransferMeter>)],
        thresholds: &VerdictThresholds,
    ) -> Vec<TransferFinding> {
        let places: Vec<Option<(i64, i64)>> =
            transfers.iter().map(|(_, meter)| meter.map(|g| (g.start, g.end))).collect();
        transfers
            .iter()
            .zip(overlapped(&places))
            .map(|((transfer, meter), overlapped)| {
                self.finding(transfer, *meter, overlapped, thresholds)
            })
            .collect()
    }
}
