//! Per-transfer results: throughput time, link demand, verdict.
//!
//! Throughput time is the bursts' overlap with the transfer; link demand is
//! that over the duration (BurstTracker, sections 2.1 and 4.2). A [`Timeline`]
//! takes the findings of a tracker and answers for any transfer, given
//! beforehand or afterwards.

#[cfg(test)]
mod tests;

use airmile_model::{
    Burst, Direction, Evidence, Grant, Record, Stamp, Transfer, TransferFinding, TtiIndex, Verdict,
    VerdictThresholds,
};

use crate::burst::{Activity, BurstOptions, BurstSummary, BurstTracker, EvidenceChoice};
use crate::gauge::{Decided, Gauge};
use crate::spans::{ByteRuns, Coverage, overlapped, worth_forgetting};

/// Clock anchors are kept this far apart, in nanoseconds: drift within is
/// far below a TTI.
const ANCHOR_SPACING_NS: i64 = 1_000_000_000;

/// Bursts, activity and holes of one direction, on one axis of TTIs.
#[derive(Debug, Clone)]
pub struct Timeline {
    dir: Direction,
    evidence: Option<Evidence>,
    numerology: u8,
    bursts: Vec<Burst>,
    in_burst: Coverage,
    waits: Coverage,
    scheduled: Coverage,
    holes: Coverage,
    sent: ByteRuns,
    /// `(time in ns, TTI)`, ascending.
    anchors: Vec<(i64, i64)>,
    /// Whether any burst carried bytes that are known.
    sizes_known: bool,
    /// First TTI that the log speaks of, and the end of the last.
    covered: Option<(i64, i64)>,
}

impl Timeline {
    /// An empty timeline.
    #[must_use]
    pub const fn new(dir: Direction) -> Self {
        Self {
            dir,
            evidence: None,
            numerology: 0,
            bursts: Vec::new(),
            in_burst: Coverage::new(),
            waits: Coverage::new(),
            scheduled: Coverage::new(),
            holes: Coverage::new(),
            sent: ByteRuns::new(),
            anchors: Vec::new(),
            sizes_known: false,
            covered: None,
        }
    }

    /// The downlink's timeline by one kind of evidence, from a whole log. For
    /// allocations alone blocks are stripped of what MAC and RLC say of them,
    /// which a log of this kind would not have.
    #[must_use]
    pub fn of_downlink<'a>(
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

    /// Which way its data went.
    #[must_use]
    pub const fn dir(&self) -> Direction {
        self.dir
    }

    /// Takes what a tracker has decided so far.
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
        self.in_burst.add(burst.start_tti.0, burst.end_tti.0);
        self.sizes_known |= burst.bytes > 0;
        self.bursts.push(burst);
    }

    /// Adds a wait of data before its first departure (uplink only; a phone
    /// cannot see the base station's).
    pub fn add_wait(&mut self, start_tti: TtiIndex, end_tti: TtiIndex) {
        self.waits.add(start_tti.0, end_tti.0);
    }

    /// Adds a run of scheduled or missing TTIs; runs come in order.
    pub fn add_activity(&mut self, activity: &Activity) {
        let start = activity.start_tti.0;
        let end = start.saturating_add(activity.n_tti);
        self.numerology = activity.numerology;
        if activity.unknown {
            self.holes.add(start, end);
            return;
        }
        self.scheduled.add(start, end);
        self.sent.add(start, end, activity.bytes);
        if let Some(at_ns) = activity.at_ns
            && self.anchors.last().is_none_or(|last| {
                at_ns.saturating_sub(last.0) >= ANCHOR_SPACING_NS && start > last.1
            })
        {
            self.anchors.push((at_ns, start));
        }
    }

    /// Notes that the log speaks of a TTI, of whatever: it covers the time from
    /// the first such TTI to the last.
    pub fn note(&mut self, tti: TtiIndex, at: Option<Stamp>) {
        let (first, end) = self.covered.unwrap_or((tti.0, tti.0));
        self.covered = Some((first.min(tti.0), end.max(tti.0.saturating_add(1))));
        if let Some(at) = at
            && self.anchors.last().is_none_or(|last| {
                at.ns.saturating_sub(last.0) >= ANCHOR_SPACING_NS && tti.0 > last.1
            })
        {
            self.anchors.push((at.ns, tti.0));
        }
    }

    /// Tells the TTIs' length ahead of the runs (NR numerology; 0: LTE).
    pub const fn set_numerology(&mut self, numerology: u8) {
        self.numerology = numerology;
    }

    /// Adds to a gauge what is decided of its span and not in it yet.
    pub fn gather(&self, gauge: &mut Gauge, decided: Decided) {
        if gauge.whole {
            return;
        }
        let runs_known = gauge.ended && decided.runs.0 >= gauge.end;
        let bursts_known = gauge.ended && decided.bursts.0 >= gauge.end;
        let mut runs = decided.runs.0.min(gauge.end);
        if !runs_known {
            // A run counts by its part in a span: it is not to be cut in two.
            runs = self.sent.cut_at(runs);
        }
        if gauge.runs_to < runs {
            let from = gauge.runs_to;
            gauge.scheduled += self.scheduled.within(from, runs);
            gauge.holes += self.holes.within(from, runs);
            gauge.sent_bytes = gauge.sent_bytes.saturating_add(self.sent.within(from, runs));
            gauge.runs_to = runs;
        }
        let bursts = decided.bursts.0.min(gauge.end);
        let none_yet = gauge.bursts_to == gauge.start;
        if gauge.bursts_to < bursts || (bursts_known && none_yet) {
            let from = gauge.bursts_to;
            gauge.in_burst += self.in_burst.within(from, bursts);
            gauge.waits += self.waits.within(from, bursts);
            gauge.take_bursts(&self.bursts, bursts);
            gauge.bursts_to = gauge.bursts_to.max(bursts);
        }
        if runs_known && bursts_known {
            gauge.whole = true;
            gauge.times_us = self.us_of(gauge.start).zip(self.us_of(gauge.end));
        }
    }

    /// Forgets what ends at or before these TTIs: no gauge may need it.
    pub fn forget_before(&mut self, before: Decided) {
        self.scheduled.forget_before(before.runs.0);
        self.holes.forget_before(before.runs.0);
        self.sent.forget_before(before.runs.0);
        self.in_burst.forget_before(before.bursts.0);
        self.waits.forget_before(before.bursts.0);
        let n = self.bursts.partition_point(|b| b.end_tti <= before.bursts);
        if worth_forgetting(n, self.bursts.len()) {
            self.bursts.drain(..n);
        }
        // The first anchor holds for what is before it.
        let oldest = before.runs.min(before.bursts).0;
        let n = self.anchors.partition_point(|anchor| anchor.1 <= oldest).saturating_sub(1);
        if worth_forgetting(n, self.anchors.len()) {
            self.anchors.drain(1..n.max(1));
        }
    }

    /// The newest TTI whose time is known, and its time.
    #[must_use]
    pub fn last_anchor(&self) -> Option<(Stamp, TtiIndex)> {
        self.anchors.last().map(|&(ns, tti)| (Stamp::modem(ns), TtiIndex(tti)))
    }

    /// What the bursts rest on.
    pub fn set_summary(&mut self, summary: &BurstSummary) {
        self.evidence = summary.evidence;
    }

    /// As [`Self::set_summary`], for sources other than a burst tracker.
    pub fn set_evidence(&mut self, evidence: Option<Evidence>) {
        self.evidence = evidence;
    }

    /// The bursts so far.
    #[must_use]
    pub fn bursts(&self) -> &[Burst] {
        &self.bursts
    }

    /// A TTI's length in ms: `1 ms / 2^numerology` (TS 38.211, 4.3.2).
    #[must_use]
    pub fn tti_ms(&self) -> f64 {
        1.0 / f64::from(1_u32 << u32::from(self.numerology.min(6)))
    }

    /// The TTI at a time of the log's clock; `None` while no anchor is known.
    #[must_use]
    pub fn tti_at(&self, at: Stamp) -> Option<TtiIndex> {
        let after = self.anchors.partition_point(|anchor| anchor.0 <= at.ns);
        let &(ns, tti) = self.anchors.get(after.saturating_sub(1))?;
        let tti_ns = 1_000_000_i64 >> self.numerology.min(6);
        Some(TtiIndex(tti.saturating_add(at.ns.saturating_sub(ns).div_euclid(tti_ns))))
    }

    /// The time of a TTI by the log's clock, in microseconds since the Unix
    /// epoch; `None` while no anchor is known.
    #[must_use]
    pub fn time_us(&self, tti: TtiIndex) -> Option<i64> {
        self.us_of(tti.0)
    }

    fn us_of(&self, tti: i64) -> Option<i64> {
        let after = self.anchors.partition_point(|anchor| anchor.1 <= tti);
        let &(ns, anchor) = self.anchors.get(after.saturating_sub(1))?;
        let tti_ns = 1_000_000_i64 >> self.numerology.min(6);
        Some(ns.saturating_add(tti.saturating_sub(anchor).saturating_mul(tti_ns)).div_euclid(1_000))
    }

    /// Where a transfer lies on the axis.
    #[must_use]
    pub fn place(&self, transfer: &Transfer) -> Option<(TtiIndex, TtiIndex)> {
        transfer.tti.or_else(|| {
            let (start, end) = transfer.time?;
            Some((self.tti_at(start)?, self.tti_at(end)?))
        })
    }

    /// The findings of all transfers of the user, which tells overlaps too.
    #[must_use]
    pub fn findings(
        &self,
        transfers: &[Transfer],
        thresholds: &VerdictThresholds,
    ) -> Vec<TransferFinding> {
        let gauged = transfers.iter().map(|transfer| {
            let gauge = self.place(transfer).map(|(start, end)| {
                let mut gauge = Gauge::new(start, end);
                self.gather(&mut gauge, Decided::ALL);
                gauge
            });
            (transfer, gauge)
        });
        let gauged: Vec<_> = gauged.collect();
        let gauged: Vec<_> = gauged.iter().map(|(t, gauge)| (*t, gauge.as_ref())).collect();
        self.conclude(&gauged, thresholds)
    }

    /// The findings of all transfers of the user, from gauges that are whole;
    /// those without one could not be placed.
    #[must_use]
    pub fn conclude(
        &self,
        transfers: &[(&Transfer, Option<&Gauge>)],
        thresholds: &VerdictThresholds,
    ) -> Vec<TransferFinding> {
        let places: Vec<Option<(i64, i64)>> =
            transfers.iter().map(|(_, gauge)| gauge.map(|g| (g.start, g.end))).collect();
        transfers
            .iter()
            .zip(overlapped(&places))
            .map(|((transfer, gauge), overlapped)| {
                self.finding(transfer, *gauge, overlapped, thresholds)
            })
            .collect()
    }

    fn finding(
        &self,
        transfer: &Transfer,
        gauge: Option<&Gauge>,
        overlapped: bool,
        thresholds: &VerdictThresholds,
    ) -> TransferFinding {
        let placed = gauge.is_some();
        let nowhere = Gauge::new(TtiIndex(0), TtiIndex(0));
        let gauge = gauge.unwrap_or(&nowhere);
        let (start, end) = (gauge.start, gauge.end);
        let mut notes = Vec::new();
        let n_tti = end.saturating_sub(start);
        let tti_ms = self.tti_ms();
        let judged = self.evidence.is_some() && placed && n_tti > 0;
        let ms = |ttis: i64| ttis as f64 * tti_ms;
        let duration_ms = ms(n_tti.max(0));
        let throughput_time_ms = judged.then(|| ms(gauge.in_burst));
        let outside = self.covered.map_or(0, |(first, last)| {
            n_tti.max(0) - (end.min(last).saturating_sub(start.max(first))).max(0)
        });
        let unknown_ms = ms((gauge.holes + outside).min(n_tti.max(0)));
        let active_time_ms = placed.then(|| ms(gauge.scheduled));
        let bytes = transfer.bytes.or_else(|| placed.then_some(gauge.sent_bytes));
        let link_demand = throughput_time_ms.map(|t| t / duration_ms);
        let (mut verdict, mut confidence) =
            self.verdict(link_demand, unknown_ms / duration_ms, overlapped, thresholds, &mut notes);
        if transfer.unfinished {
            notes.insert(0, "it had not ended: this is of its time and bytes so far".into());
        }
        if let Some(note) = self.uncovered(start, end) {
            notes.push(note);
        }
        let claimed = transfer.bytes.filter(|_| !transfer.unfinished);
        if let Some(seen) = self.misses_bytes(claimed, gauge) {
            notes.push(format!(
                "the modem saw {seen} bytes then, not {}: are its times on the modem's clock, or \
                 did it go by Wi-Fi?",
                transfer.bytes.unwrap_or(0)
            ));
            (verdict, confidence) = (Verdict::Unknown, 0.0);
        }
        if !placed {
            notes.push("its times cannot be placed on the log's TTIs".into());
        } else if !judged {
            notes.push("the log holds no evidence of this kind".into());
        }
        if unknown_ms > 0.0 && outside == 0 {
            notes
                .push(format!("records are missing for {unknown_ms:.0} ms of {duration_ms:.0} ms"));
        }
        let seen_us = gauge.times_us.or_else(|| self.us_of(start).zip(self.us_of(end)));
        TransferFinding {
            id: transfer.id.clone(),
            dir: self.dir,
            start_us: transfer.time.map(|t| t.0.micros()).or(seen_us.map(|t| t.0)),
            end_us: transfer.time.map(|t| t.1.micros()).or(seen_us.map(|t| t.1)),
            start_tti: TtiIndex(start),
            end_tti: TtiIndex(end),
            duration_ms,
            bytes,
            throughput_time_ms,
            // Data that waits at the base station before its first departure
            // leaves no trace at the phone.
            sched_wait_ms: (self.dir == Direction::Ul && judged).then(|| ms(gauge.waits)),
            active_time_ms,
            unknown_ms,
            link_demand,
            link_throughput_bps: bytes
                .zip(throughput_time_ms)
                .filter(|&(_, t)| t > 0.0)
                .map(|(bytes, t)| bytes as f64 * 8_000.0 / t),
            burst_throughput_bps: self.burst_throughput_bps(gauge),
            evidence: self.evidence,
            verdict,
            confidence,
            overlapped,
            notes,
        }
    }

    /// What the log does not cover of a span. Where that is much of it, the
    /// clocks may differ; a log of grants alone begins with the first one, and
    /// so a little after a transfer's request.
    fn uncovered(&self, start: i64, end: i64) -> Option<String> {
        let (first, last) = self.covered?;
        let ms = |ttis: i64| ttis as f64 * self.tti_ms();
        let n_tti = (end - start).max(0);
        let (before, after) = ((first - start).clamp(0, n_tti), (end - last).clamp(0, n_tti));
        // A tenth: chosen here, far more than a request takes of a long transfer.
        let of = match (before, after) {
            (0, 0) => return None,
            _ if before + after > n_tti / 10 => {
                return Some(format!(
                    "the log does not cover {:.0} of its {:.0} ms: are its times on the modem's \
                     clock?",
                    ms((before + after).min(n_tti)),
                    ms(n_tti)
                ));
            }
            (_, 0) => format!("begins {:.0} ms after it", ms(before)),
            (0, _) => format!("ends {:.0} ms before it", ms(after)),
            _ => format!("lacks its first {:.0} and last {:.0} ms", ms(before), ms(after)),
        };
        Some(format!("the log {of}: they are unknown"))
    }

    /// Bytes seen, where they are far fewer than a transfer claims.
    fn misses_bytes(&self, claimed: Option<u64>, gauge: &Gauge) -> Option<u64> {
        let seen = gauge.sent_bytes;
        let sizes_known = self.sizes_known || seen > 0;
        // Half: chosen here; headers add to what was claimed, losses take a few
        // percent at most.
        claimed.filter(|&claimed| sizes_known && seen < claimed / 2).map(|_| seen)
    }

    fn burst_throughput_bps(&self, gauge: &Gauge) -> Option<f64> {
        let (bytes, ttis) = (gauge.bursts().bytes, gauge.bursts().sending_ttis);
        (ttis > 0 && bytes > 0).then(|| bytes as f64 * 8_000.0 / (ttis as f64 * self.tti_ms()))
    }

    fn verdict(
        &self,
        link_demand: Option<f64>,
        unknown_share: f64,
        overlapped: bool,
        thresholds: &VerdictThresholds,
        notes: &mut Vec<String>,
    ) -> (Verdict, f64) {
        let Some(demand) = link_demand else { return (Verdict::Unknown, 0.0) };
        let verdict = thresholds.judge(demand);
        // What is missing could have been all throughput time.
        if unknown_share > 0.0 && thresholds.judge((demand + unknown_share).min(1.0)) != verdict {
            notes.push(format!(
                "link demand is between {demand:.2} and {:.2}, as records are missing",
                (demand + unknown_share).min(1.0)
            ));
            return (Verdict::Unknown, 0.0);
        }
        if overlapped && matches!(verdict, Verdict::Radio | Verdict::Mixed) {
            // BurstTracker, section 2.1.2: queues are per user.
            notes.push(format!(
                "another transfer overlaps it: the user's link demand is {demand:.2}, \
                 but whose data waited cannot be told"
            ));
            return (Verdict::Unknown, 0.0);
        }
        (verdict, confidence(demand, thresholds) * reliability(self.evidence))
    }
}

/// A segmented transfer (video): sums over its segments' downloads, pauses
/// left out (BurstTracker, section 4.2). `None` without segments.
#[must_use]
pub fn combine_segments(
    id: &str,
    segments: &[TransferFinding],
    thresholds: &VerdictThresholds,
) -> Option<TransferFinding> {
    let mut whole = segments.first()?.clone();
    let sum = |value: fn(&TransferFinding) -> Option<f64>| {
        segments.iter().map(value).sum::<Option<f64>>()
    };
    id.clone_into(&mut whole.id);
    whole.end_tti = segments.iter().map(|s| s.end_tti).max()?;
    whole.end_us = segments.iter().filter_map(|s| s.end_us).max();
    whole.duration_ms = segments.iter().map(|s| s.duration_ms).sum();
    whole.bytes = segments.iter().map(|s| s.bytes).sum();
    whole.throughput_time_ms = sum(|s| s.throughput_time_ms);
    whole.sched_wait_ms = sum(|s| s.sched_wait_ms);
    whole.active_time_ms = sum(|s| s.active_time_ms);
    whole.unknown_ms = segments.iter().map(|s| s.unknown_ms).sum();
    whole.overlapped = segments.iter().any(|s| s.overlapped);
    whole.link_demand =
        whole.throughput_time_ms.filter(|_| whole.duration_ms > 0.0).map(|t| t / whole.duration_ms);
    whole.link_throughput_bps = whole
        .bytes
        .zip(whole.throughput_time_ms)
        .filter(|&(_, t)| t > 0.0)
        .map(|(bytes, t)| bytes as f64 * 8_000.0 / t);
    whole.burst_throughput_bps = None;
    whole.verdict = whole.link_demand.map_or(Verdict::Unknown, |demand| thresholds.judge(demand));
    if whole.overlapped && whole.verdict != Verdict::NotRadio {
        whole.verdict = Verdict::Unknown;
    }
    whole.confidence = segments.iter().map(|s| s.confidence).fold(1.0, f64::min);
    whole.notes = vec![format!("{} segments together, pauses left out", segments.len())];
    Some(whole)
}

/// Distance of a link demand from the limits, as a share of 5 points (chosen
/// here: several times the median error of the fused estimate).
fn confidence(demand: f64, thresholds: &VerdictThresholds) -> f64 {
    let distance =
        (demand - thresholds.radio_at_least).abs().min((demand - thresholds.not_radio_below).abs());
    0.5 + 0.5 * (distance / 0.05).min(1.0)
}

/// Agreement of verdicts with the truth on simulated logs (`make accuracy`),
/// rounded down; of the uplink, which needs no inference, chosen here.
const fn reliability(evidence: Option<Evidence>) -> f64 {
    match evidence {
        Some(Evidence::Fused | Evidence::Padding | Evidence::BufferStatus) => 0.99,
        Some(Evidence::Poll) => 0.98,
        Some(Evidence::Grants) => 0.95,
        Some(Evidence::Paper) => 0.7,
        _ => 0.0,
    }
}
