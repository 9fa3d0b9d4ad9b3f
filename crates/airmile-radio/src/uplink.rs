//! The uplink's bursts, without inference: the phone knows its own buffer.
//!
//! The same words as for the downlink (spec: [`crate::burst`]), with the
//! phone's buffer for the queue: it is not empty while the sum of its logical
//! channels' buffers is above zero. A burst begins with the first block sent
//! from it and ends with the last one before it is seen empty; the time that
//! data waits for its first grant is known here and reported apart.

use std::collections::{BTreeMap, VecDeque};

use airmile_model::tables::bsr_upper_bound_bytes;
use airmile_model::window::{SegmentTti, Slot};
use airmile_model::{
    Bound, BsrReport, BufferStatus, Burst, Direction, Evidence, Grant, Record, TtiIndex,
};

use crate::burst::{Activity, BurstSummary};
use crate::few::Few;
use crate::gauge::Decided;
use crate::held::{END, Held};

/// Settings of an [`UplinkTracker`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UplinkOptions {
    /// How late a record may come, in TTIs.
    pub lateness_ttis: i64,
    /// Buffer samples further apart than this leave the time between unknown.
    pub sample_span_ttis: i64,
}

impl Default for UplinkOptions {
    /// Lateness as for the downlink. In two real logs (0xB066) samples are 1 ms
    /// apart while data waits, 8 ms at most; far beyond that is chosen here,
    /// for phones that log more sparsely.
    fn default() -> Self {
        Self { lateness_ttis: 1_000, sample_span_ttis: 1_000 }
    }
}

/// How sure an end is that only reports tell (chosen here: data may have come
/// since the report).
const REPORTED_END: f64 = 0.7;

/// Time that data waited in the phone before the first block of its burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// When the buffer was first seen not empty.
    pub start_tti: TtiIndex,
    /// The burst's first block.
    pub end_tti: TtiIndex,
}

#[derive(Debug, Clone, Default)]
struct Pending {
    /// Blocks sent: bytes of new data and whether new.
    sent: Option<Sent>,
    /// Bytes by logical channel; no channel: none is active.
    buffer: Few<Option<u8>, u64>,
    /// BSR index by logical channel group.
    bsr: Vec<(u8, u8)>,
    hole_ttis: i64,
}

/// Room that a slot keeps: of groups, and of the channels that phones have.
const USUAL_ROOM: usize = 8;

impl Slot for Pending {
    fn clear(&mut self) {
        self.sent = None;
        self.buffer.clear(USUAL_ROOM);
        self.bsr.clear();
        self.bsr.shrink_to(USUAL_ROOM);
        self.hole_ttis = 0;
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    bytes: u64,
    new_data: bool,
    at_ns: Option<i64>,
    numerology: u8,
}

#[derive(Debug, Clone, Copy)]
struct OpenBurst {
    start: i64,
    last_sent: i64,
    bytes: u64,
    scheduled: u32,
}

/// Finds the bursts of one user's uplink. The verbs are those of
/// [`crate::burst::BurstTracker`].
#[derive(Debug, Clone)]
pub struct UplinkTracker {
    options: UplinkOptions,
    held: Held<Pending>,
    segment: u32,
    /// When the buffer was first seen not empty, and last sampled.
    waiting_since: Option<i64>,
    last_sample: Option<i64>,
    /// Whether the phone's own samples were seen: reports are then left aside.
    has_samples: bool,
    lcg: BTreeMap<u8, u8>,
    /// The most that is left by the reports; `None`: over the table's end.
    reported_left: Option<u64>,
    open: Option<OpenBurst>,
    run: Option<Activity>,
    last_tti: i64,
    bursts: VecDeque<Burst>,
    waits: VecDeque<Wait>,
    activities: VecDeque<Activity>,
    sampled: u64,
}

impl UplinkTracker {
    /// A tracker that has seen nothing.
    #[must_use]
    pub fn new(options: UplinkOptions) -> Self {
        Self {
            options,
            held: Held::new(options.lateness_ttis.max(0)),
            segment: 0,
            waiting_since: None,
            last_sample: None,
            has_samples: false,
            lcg: BTreeMap::new(),
            reported_left: None,
            open: None,
            run: None,
            last_tti: 0,
            bursts: VecDeque::new(),
            waits: VecDeque::new(),
            activities: VecDeque::new(),
            sampled: 0,
        }
    }

    /// A record in.
    pub fn push(&mut self, record: &Record) {
        match record {
            Record::Grant(grant) if grant.dir == Direction::Ul => self.push_grant(grant),
            Record::BufferStatus(status) => self.push_status(status),
            Record::Bsr(bsr) => self.push_bsr(bsr),
            Record::Hole(hole) => {
                let at = (hole.position.timing_segment, hole.position.tti);
                if let Some(pending) = self.held.at(at) {
                    pending.hole_ttis = pending.hole_ttis.max(hole.n_tti);
                }
            }
            _ => return,
        }
        if let Some(mark) = self.held.mark() {
            self.close_before(mark);
        }
    }

    /// A burst out.
    pub fn poll(&mut self) -> Option<Burst> {
        self.bursts.pop_front()
    }

    /// A wait before a burst out.
    pub fn poll_wait(&mut self) -> Option<Wait> {
        self.waits.pop_front()
    }

    /// A run of TTIs with blocks sent, or of missing ones, out.
    pub fn poll_activity(&mut self) -> Option<Activity> {
        self.activities.pop_front()
    }

    /// The end of the log: the bursts not yet taken.
    pub fn finish(&mut self) -> Vec<Burst> {
        self.close_before(END);
        self.end_segment(Bound::End);
        self.bursts.drain(..).collect()
    }

    /// How far what [`poll`](Self::poll) and the others gave is complete.
    #[must_use]
    pub fn decided(&self) -> Decided {
        let Some((_, TtiIndex(closed))) = self.held.closed() else { return Decided::NOTHING };
        let run = self.run.map_or(closed, |run| run.start_tti.0.min(closed));
        // Samples that stay away for long make a hole of the time since the last.
        let sampled = self.waiting_since.and(self.last_sample);
        let waiting = self.waiting_since.map_or(closed, |since| since.min(closed));
        Decided {
            runs: TtiIndex(sampled.map_or(run, |last| run.min(last.saturating_add(1)))),
            bursts: TtiIndex(self.open.map_or(waiting, |open| open.start.min(closed))),
        }
    }

    /// What is known beside bursts.
    #[must_use]
    pub fn summary(&self) -> BurstSummary {
        BurstSummary {
            evidence: (self.sampled > 0).then_some(Evidence::BufferStatus),
            late_records: self.held.late_records,
            ..BurstSummary::default()
        }
    }

    fn push_grant(&mut self, grant: &Grant) {
        if !grant.rnti.is_user() {
            return;
        }
        let at = (grant.position.timing_segment, grant.position.tti);
        let filled = grant
            .data_bytes
            .unwrap_or_else(|| {
                grant.tbs_bytes.unwrap_or(0).saturating_sub(grant.padding_bytes.unwrap_or(0))
            })
            .into();
        let new_data = grant.retx != Some(true);
        let (at_ns, numerology) = (grant.at.map(|at| at.ns), grant.position.numerology);
        if let Some(pending) = self.held.at(at) {
            let sent = pending.sent.get_or_insert_default();
            sent.at_ns = sent.at_ns.or(at_ns);
            sent.numerology = numerology;
            if new_data {
                sent.new_data = true;
                sent.bytes = sent.bytes.saturating_add(filled);
            }
        }
    }

    fn push_status(&mut self, status: &BufferStatus) {
        let at = (status.position.timing_segment, status.position.tti);
        // RLC control is not user data (as STATUS on the downlink).
        let bytes = u64::from(status.new_bytes) + u64::from(status.retx_bytes);
        let lcid = status.lcid;
        if let Some(pending) = self.held.at(at) {
            pending.buffer.insert(lcid, bytes);
        }
    }

    fn push_bsr(&mut self, bsr: &BsrReport) {
        let at = (bsr.position.timing_segment, bsr.position.tti);
        let (lcg, index) = (bsr.lcg, bsr.index);
        if let Some(pending) = self.held.at(at) {
            pending.bsr.push((lcg, index));
        }
    }

    fn close_before(&mut self, mark: SegmentTti) {
        let mut held = std::mem::replace(&mut self.held, Held::new(0));
        while let Some(((segment, TtiIndex(tti)), pending)) = held.first_before(mark) {
            if segment != self.segment {
                self.end_segment(Bound::Handover);
                self.segment = segment;
            }
            self.take(tti, pending);
            held.remove_first();
        }
        self.held = held;
    }

    fn take(&mut self, tti: i64, pending: &Pending) {
        if pending.hole_ttis > 0 {
            self.lose_sight(tti, pending.hole_ttis);
        }
        // The sample is the buffer at the start of its TTI, before what it sends.
        if !pending.buffer.is_empty() {
            self.has_samples = true;
            self.sample(tti, pending.buffer.values().sum());
        } else if !pending.bsr.is_empty() && !self.has_samples {
            // A report tells what is left after its block (TS 36.321, 5.4.5).
            self.lcg.extend(pending.bsr.iter().copied());
            let left = self.lcg.values().try_fold(0_u64, |sum, &index| {
                Some(sum + u64::from(bsr_upper_bound_bytes(index)?))
            });
            self.reported_left = left;
            self.sample(tti, left.unwrap_or(u64::MAX));
        }
        if let Some(sent) = pending.sent {
            self.send(tti, sent);
        }
        self.last_tti = tti;
    }

    fn sample(&mut self, tti: i64, bytes: u64) {
        self.sampled += 1;
        if let Some(last) = self.last_sample.replace(tti)
            && tti.saturating_sub(last) > self.options.sample_span_ttis
            && self.waiting_since.is_some()
        {
            let from = last.saturating_add(1);
            self.lose_sight(from, tti.saturating_sub(from));
            self.last_sample = Some(tti);
        }
        if bytes > 0 {
            self.waiting_since.get_or_insert(tti);
        } else {
            self.waiting_since = None;
            // Seen empty: the last block before emptied it.
            if let Some(open) = self.open {
                self.close(open.last_sent, Bound::Gap, 1.0);
            }
        }
    }

    fn send(&mut self, tti: i64, sent: Sent) {
        self.note_activity(tti, sent);
        if !sent.new_data {
            return;
        }
        let Some(since) = self.waiting_since else { return };
        let open = self.open.get_or_insert_with(|| {
            self.waits.push_back(Wait { start_tti: TtiIndex(since), end_tti: TtiIndex(tti) });
            OpenBurst { start: tti, last_sent: tti, bytes: 0, scheduled: 0 }
        });
        open.last_sent = tti;
        open.bytes = open.bytes.saturating_add(sent.bytes);
        open.scheduled += 1;
        // Without samples: what was reported has been sent (TS 36.321, 6.1.3.1
        // gives the most that an index stands for).
        if !self.has_samples
            && let Some(left) = &mut self.reported_left
        {
            *left = left.saturating_sub(sent.bytes);
            if *left == 0 {
                self.waiting_since = None;
                self.lcg.clear();
                self.close(tti, Bound::Gap, REPORTED_END);
            }
        }
    }

    fn note_activity(&mut self, tti: i64, sent: Sent) {
        match &mut self.run {
            Some(run) if run.start_tti.0 + run.n_tti == tti => {
                run.n_tti += 1;
                run.bytes = run.bytes.saturating_add(sent.bytes);
            }
            run => {
                self.activities.extend(run.take());
                *run = Some(Activity {
                    timing_segment: self.segment,
                    numerology: sent.numerology,
                    start_tti: TtiIndex(tti),
                    n_tti: 1,
                    at_ns: sent.at_ns,
                    bytes: sent.bytes,
                    unknown: false,
                });
            }
        }
    }

    fn lose_sight(&mut self, tti: i64, n_tti: i64) {
        self.close(tti, Bound::LogHole, 0.5);
        self.waiting_since = None;
        self.last_sample = None;
        self.activities.push_back(Activity {
            timing_segment: self.segment,
            numerology: 0,
            start_tti: TtiIndex(tti),
            n_tti,
            at_ns: None,
            bytes: 0,
            unknown: true,
        });
    }

    fn end_segment(&mut self, by: Bound) {
        self.close(self.last_tti.saturating_add(1), by, 0.5);
        self.waiting_since = None;
        self.last_sample = None;
        self.lcg.clear();
        self.activities.extend(self.run.take());
    }

    fn close(&mut self, end: i64, by: Bound, confidence: f64) {
        let Some(open) = self.open.take() else { return };
        if end > open.start {
            self.bursts.push_back(Burst {
                dir: Direction::Ul,
                timing_segment: self.segment,
                start_tti: TtiIndex(open.start),
                end_tti: TtiIndex(end),
                bytes: open.bytes,
                scheduled_ttis: open.scheduled,
                unknown_ttis: 0,
                opened_by: Bound::FirstData,
                closed_by: by,
                confidence,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::{Hole, Position};
    use proptest::prelude::*;

    use super::*;

    fn sample(tti: i64, new_bytes: u32) -> Record {
        Record::BufferStatus(BufferStatus {
            at: None,
            position: Position::lte(tti),
            lcid: Some(3),
            priority: None,
            new_bytes,
            retx_bytes: 0,
            control_bytes: 9,
        })
    }

    fn sent(tti: i64) -> Record {
        let mut grant = Grant::new(Position::lte(tti), Direction::Ul, 20);
        grant.tbs_bytes = Some(1_000);
        grant.into()
    }

    type Spans = Vec<(i64, i64)>;

    fn run(records: &[Record]) -> (Spans, Spans) {
        let mut tracker = UplinkTracker::new(UplinkOptions::default());
        records.iter().for_each(|record| tracker.push(record));
        let bursts = tracker.finish();
        let waits = std::iter::from_fn(|| tracker.poll_wait());
        (
            bursts.iter().map(|b| (b.start_tti.0, b.end_tti.0)).collect(),
            waits.map(|w| (w.start_tti.0, w.end_tti.0)).collect(),
        )
    }

    #[test]
    fn a_burst_goes_from_the_first_block_to_the_one_that_empties_the_buffer() {
        let records = [
            sample(10, 0),
            sent(12), // nothing to send: padding
            sample(20, 3_000),
            sent(25),
            sample(30, 2_000),
            sent(31),
            sent(40),
            sample(41, 0),
            sent(45),
        ];
        assert_eq!(run(&records), (vec![(25, 40)], vec![(20, 25)]));
    }

    #[test]
    fn all_logical_channels_count_together() {
        let other = |tti, bytes| match sample(tti, bytes) {
            Record::BufferStatus(status) => {
                Record::BufferStatus(BufferStatus { lcid: Some(4), ..status })
            }
            record => record,
        };
        let records = [
            sample(10, 500),
            other(10, 500),
            sent(11),
            sample(20, 0),
            other(20, 500),
            sent(21),
            sample(30, 0),
            other(30, 0),
        ];
        assert_eq!(run(&records).0, [(11, 21)]);
    }

    #[test]
    fn a_hole_leaves_the_buffer_unknown() {
        let hole = Hole { at: None, position: Position::lte(30), n_tti: 100, why: "test" };
        let records =
            [sample(10, 500), sent(11), hole.into(), sample(150, 0), sample(151, 5), sent(160)];
        assert_eq!(run(&records).0, [(11, 30), (160, 161)]);
    }

    #[test]
    fn reports_stand_in_for_samples() {
        let report = |tti, index| {
            Record::Bsr(BsrReport {
                at: None,
                position: Position::lte(tti),
                lcg: 2,
                index,
                upper_bound_bytes: None,
            })
        };
        let records = [report(10, 40), sent(15), sent(19), report(20, 0), sent(20)];
        assert_eq!(run(&records).0, [(15, 19)]);
        // At most 4667 bytes were reported: five blocks of 1000 empty them.
        let mut records = vec![report(10, 40)];
        records.extend((15..25).map(sent));
        assert_eq!(run(&records).0, [(15, 19)]);
    }

    proptest! {
        #[test]
        fn order_within_the_lateness_does_not_matter(
            buffer in prop::collection::vec(0_u32..3, 5..60),
            delays in prop::collection::vec(0_i64..200, 1..20),
        ) {
            let mut records = Vec::new();
            for (i, &n) in buffer.iter().enumerate() {
                let tti = 40 * i as i64;
                records.push((tti, sample(tti, n * 700)));
                records.push((tti + 3, sent(tti + 3)));
            }
            let in_order: Vec<Record> = records.iter().map(|(_, r)| r.clone()).collect();
            let mut late: Vec<(i64, Record)> = records
                .into_iter()
                .enumerate()
                .map(|(i, (tti, r))| (tti + delays[i % delays.len()], r))
                .collect();
            late.sort_by_key(|(when, _)| *when);
            let late: Vec<Record> = late.into_iter().map(|(_, r)| r).collect();
            prop_assert_eq!(run(&late), run(&in_order));
        }
    }
}
