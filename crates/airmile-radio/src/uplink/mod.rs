//! Bursts of the uplink, without inference: the phone logs its own buffer.
//!
//! The terms are those of the downlink ([`crate::burst`]), with the phone's buffer as the
//! queue: it is not empty while the sum of its logical channels' buffers is above zero. A
//! burst begins with the first block sent from it and ends with the last one before a
//! sample shows it empty. The wait of data for its first grant is known here and reported
//! separately. Without samples, buffer status reports and the padding of blocks show the buffer
//! after a block; data that arrives at a non-empty buffer triggers no report, so full blocks after
//! a report continue the burst.
//!
//! A base station grants what it knows of. Behind a slow line a few packets wait for the next report
//! and its grant most of the time, in a cell that would carry more: that time is reported, too.

mod granted;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use airmile_model::window::{SegmentTti, Slot};
use airmile_model::{
    Bound, BsrReport, BufferStatus, Burst, Direction, Evidence, Grant, Record, TtiIndex, TtiSpan,
};

use crate::burst::{Activity, BurstSummary};
use crate::decided::Decided;
use crate::reorder::{END, ReorderBuffer};
use crate::small_map::SmallMap;
use granted::Granted;

/// Settings of an [`UplinkTracker`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UplinkOptions {
    /// Maximum lateness of a record, in ms.
    pub lateness_ms: i64,
    /// If buffer samples are further apart than this many ms, the time between is
    /// unknown.
    pub sample_span_ms: i64,
}

impl Default for UplinkOptions {
    /// Lateness as for the downlink. In two real logs (0xB066) samples are 1 ms apart
    /// while data waits, 8 ms at most; far more is chosen here, for phones that log more
    /// sparsely.
    fn default() -> Self {
        Self { lateness_ms: 1_000, sample_span_ms: 1_000 }
    }
}

/// Confidence of an end that only reports show (chosen here: data may have arrived since
/// the report).
const REPORTED_END: f64 = 0.7;

/// A short BSR with its subheader: padding of this size holds a report (TS 36.321 and TS 38.321,
/// 5.4.5), and where none was logged, the block emptied the buffer.
const REPORT_BYTES: u32 = 2;

/// Time that data waited in the phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferWait {
    /// The first TTI.
    pub start_tti: TtiIndex,
    /// The TTI after the last.
    pub end_tti: TtiIndex,
}

#[derive(Debug, Clone, Default)]
struct UplinkTti {
    /// Blocks sent: bytes of new data and whether new.
    sent: Option<SentBlocks>,
    /// Bytes by logical channel; without a channel: none is active.
    buffer: SmallMap<Option<u8>, u64>,
    /// Maximum of the reported buffer by logical channel group: reports of one TTI have one value for
    /// each (TS 36.321, 5.4.5).
    reported: SmallMap<u8, u64>,
    hole_ttis: i64,
}

impl UplinkTti {
    /// The reported buffer of all groups.
    fn reported_bytes(&self) -> Option<u64> {
        let all = self.reported.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        (!self.reported.is_empty()).then_some(all)
    }
}

/// Capacity that a slot keeps: of the channels that phones have.
const USUAL_ROOM: usize = 8;

impl Slot for UplinkTti {
    fn clear(&mut self) {
        self.sent = None;
        self.buffer.clear(USUAL_ROOM);
        self.reported.clear(USUAL_ROOM);
        self.hole_ttis = 0;
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct SentBlocks {
    bytes: u64,
    /// Bytes of new blocks, with their padding.
    granted_bytes: u64,
    /// The most of any block.
    n_prb: u16,
    new_data: bool,
    /// The most of any new block; `None` if that of one is unknown.
    padding_bytes: Option<u32>,
    at_ns: Option<i64>,
    numerology: u8,
}

#[derive(Debug, Clone, Copy)]
struct OpenUplinkBurst {
    start: i64,
    last_sent: i64,
    /// Bytes of that TTI.
    last_bytes: u64,
    bytes: u64,
    scheduled: u32,
}

/// Finds the bursts of one user's uplink. The verbs are those of
/// [`crate::burst::BurstTracker`].
#[derive(Debug, Clone)]
pub struct UplinkTracker {
    options: UplinkOptions,
    /// Of the newest record.
    numerology: u8,
    reorder: ReorderBuffer<UplinkTti>,
    segment: u32,
    /// When the buffer was first observed not empty, and last sampled.
    waiting_since: Option<i64>,
    last_sample: Option<i64>,
    /// Whether the phone's own samples were logged: reports are then ignored.
    has_samples: bool,
    /// Maximum of the remaining bytes by the last report.
    reported_left: u64,
    open: Option<OpenUplinkBurst>,
    run: Option<Activity>,
    last_tti: i64,
    bursts: VecDeque<Burst>,
    waits: VecDeque<BufferWait>,
    granted: Granted,
    activities: VecDeque<Activity>,
    /// TTIs with samples or reports, and with blocks of new data.
    sampled: u64,
    data_ttis: u64,
}

impl UplinkTracker {
    /// A tracker without records.
    #[must_use]
    pub fn new(options: UplinkOptions) -> Self {
        Self {
            options,
            numerology: 0,
            reorder: ReorderBuffer::new(options.lateness_ms.max(0)),
            segment: 0,
            waiting_since: None,
            last_sample: None,
            has_samples: false,
            reported_left: u64::MAX,
            open: None,
            run: None,
            last_tti: 0,
            bursts: VecDeque::new(),
            waits: VecDeque::new(),
            granted: Granted::default(),
            activities: VecDeque::new(),
            sampled: 0,
            data_ttis: 0,
        }
    }

    /// Takes a record.
    pub fn push(&mut self, record: &Record) {
        match record {
            Record::Grant(grant) if grant.dir == Direction::Ul => self.push_grant(grant),
            Record::BufferStatus(status) => self.push_status(status),
            Record::Bsr(bsr) => self.push_bsr(bsr),
            Record::Hole(hole) => {
                let at = (hole.position.timing_segment, hole.position.tti);
                if let Some(pending) = self.reorder.at(at) {
                    pending.hole_ttis = pending.hole_ttis.max(hole.n_tti);
                }
            }
            _ => return,
        }
        if let Some(mark) = self.reorder.watermark.mark() {
            self.close_before(mark);
        }
    }

    /// Returns the next burst.
    pub fn poll(&mut self) -> Option<Burst> {
        self.bursts.pop_front()
    }

    /// Returns the next wait before a burst: since the buffer was first observed not empty, up to the
    /// burst's first block.
    pub fn poll_wait(&mut self) -> Option<BufferWait> {
        self.waits.pop_front()
    }

    /// Returns the next part of a burst in which the base station had granted all that the phone had
    /// reported (`true`), or in which no recent report shows whether it had; no TTI of a full block is.
    pub fn poll_granted(&mut self) -> Option<(BufferWait, bool)> {
        self.granted.poll()
    }

    /// Returns the next run of TTIs with blocks sent, or of missing ones.
    pub fn poll_activity(&mut self) -> Option<Activity> {
        self.activities.pop_front()
    }

    /// Ends the log: returns the remaining bursts.
    pub fn finish(&mut self) -> Vec<Burst> {
        self.close_before(END);
        self.reorder.watermark.close_all();
        self.end_segment(Bound::End);
        self.bursts.drain(..).collect()
    }

    /// How far the output of [`poll`](Self::poll) and the others is complete.
    #[must_use]
    pub fn decided(&self) -> Decided {
        let Some((_, TtiIndex(closed))) = self.reorder.watermark.closed() else {
            return Decided::NOTHING;
        };
        let run = self.run.map_or(closed, |run| run.start_tti.0.min(closed));
        // Samples that are missing for long make the time since the last one a hole.
        let sampled = self.waiting_since.and(self.last_sample);
        let waiting = self.waiting_since.map_or(closed, |since| since.min(closed));
        Decided {
            runs: TtiIndex(sampled.map_or(run, |last| run.min(last.saturating_add(1)))),
            bursts: TtiIndex(self.open.map_or(waiting, |open| open.start.min(closed))),
        }
    }

    /// The state apart from bursts. Blocks without the buffer do not show when it was empty, nor
    /// does the buffer show when it was sent from.
    #[must_use]
    pub fn summary(&self) -> BurstSummary {
        let is_seen = self.sampled > 0 && self.data_ttis > 0;
        BurstSummary {
            evidence: is_seen.then_some(Evidence::BufferStatus),
            data_ttis: self.data_ttis,
            // Reports come with the first block.
            knows_waits: self.has_samples,
            late_records: self.reorder.watermark.late_records,
            ..BurstSummary::default()
        }
    }

    const fn sample_span_ttis(&self) -> i64 {
        TtiSpan::from_ms(self.options.sample_span_ms, self.numerology).0
    }

    fn set_numerology(&mut self, numerology: u8) {
        if numerology != self.numerology {
            self.numerology = numerology;
            self.reorder.watermark.set_numerology(numerology);
        }
    }

    fn push_grant(&mut self, grant: &Grant) {
        if !grant.rnti.is_user() {
            return;
        }
        self.set_numerology(grant.position.numerology);
        let at = (grant.position.timing_segment, grant.position.tti);
        let filled = grant
            .data_bytes
            .unwrap_or_else(|| {
                grant.tbs_bytes.unwrap_or(0).saturating_sub(grant.padding_bytes.unwrap_or(0))
            })
            .into();
        let new_data = grant.retx != Some(true);
        let (at_ns, numerology) = (grant.at.map(|at| at.ns), grant.position.numerology);
        if let Some(pending) = self.reorder.at(at) {
            let sent = pending.sent.get_or_insert_default();
            sent.at_ns = sent.at_ns.or(at_ns);
            sent.numerology = numerology;
            sent.n_prb = sent.n_prb.max(grant.n_prb.unwrap_or(0));
            if new_data {
                let first = !std::mem::replace(&mut sent.new_data, true);
                let most = sent.padding_bytes.filter(|_| !first).or(first.then_some(0));
                sent.padding_bytes = most.zip(grant.padding_bytes).map(|(a, b)| a.max(b));
                sent.bytes = sent.bytes.saturating_add(filled);
                let granted = grant.tbs_bytes.map_or(filled, u64::from);
                sent.granted_bytes = sent.granted_bytes.saturating_add(granted);
            }
        }
    }

    fn push_status(&mut self, status: &BufferStatus) {
        let at = (status.position.timing_segment, status.position.tti);
        // RLC control is not user data (as STATUS on the downlink).
        let bytes = u64::from(status.new_bytes) + u64::from(status.retx_bytes);
        let lcid = status.lcid;
        if let Some(pending) = self.reorder.at(at) {
            pending.buffer.insert(lcid, bytes);
        }
    }

    fn push_bsr(&mut self, bsr: &BsrReport) {
        self.set_numerology(bsr.position.numerology);
        let at = (bsr.position.timing_segment, bsr.position.tti);
        // The last index of a table stands for more than its last bound.
        let bytes = bsr.upper_bound_bytes.map_or(u64::MAX, u64::from);
        if let Some(pending) = self.reorder.at(at) {
            pending.reported.insert(bsr.lcg, bytes);
        }
    }

    fn close_before(&mut self, mark: SegmentTti) {
        let mut reorder = std::mem::replace(&mut self.reorder, ReorderBuffer::new(0));
        while let Some(((segment, TtiIndex(tti)), pending)) = reorder.first_before(mark) {
            if segment != self.segment {
                self.end_segment(Bound::Handover);
                self.segment = segment;
            }
            self.apply(tti, pending);
            reorder.remove_first();
        }
        self.reorder = reorder;
    }

    fn apply(&mut self, tti: i64, pending: &UplinkTti) {
        if pending.hole_ttis > 0 {
            self.lose_sight(tti, pending.hole_ttis);
        }
        // The sample is the buffer at the start of its TTI, before its transmission.
        if !pending.buffer.is_empty() {
            self.has_samples = true;
            self.sampled += 1;
            let bytes = pending.buffer.values().sum();
            self.sample(tti, bytes);
            self.granted.sample(tti, bytes, self.numerology);
        }
        let left = self.left_after(pending);
        self.sampled += u64::from(!pending.reported.is_empty());
        if let Some(bytes) = left.filter(|bytes| *bytes > 0) {
            self.reported_left = bytes;
            self.sample(tti, bytes);
        }
        if let Some(sent) = pending.sent {
            self.send(tti, sent);
            if left.is_none() && !self.has_samples && sent.new_data {
                self.run_down(tti, sent.bytes);
            }
        }
        if left == Some(0) {
            self.sample(tti, 0);
        }
        if let Some(bytes) = pending.reported_bytes() {
            self.granted.report(tti, bytes, self.numerology);
        }
        self.last_tti = tti;
    }

    /// The maximum of the buffer after a TTI's blocks, without samples; `None` if it is not known.
    fn left_after(&self, pending: &UplinkTti) -> Option<u64> {
        if self.has_samples {
            return None;
        }
        // A group that is not reported is empty (TS 36.321, 5.4.5), or, in a truncated report,
        // another has data.
        if let Some(bytes) = pending.reported_bytes() {
            return Some(bytes);
        }
        match pending.sent.filter(|sent| sent.new_data)?.padding_bytes? {
            REPORT_BYTES.. => Some(0),
            // Data for an empty buffer triggers a report, which is left out only if all data fits
            // without it.
            _ if self.waiting_since.is_none() && self.last_sample.is_some() => Some(0),
            _ => Some(u64::MAX),
        }
    }

    /// Blocks of unknown padding have sent the reported data (TS 36.321, 6.1.3.1 gives the maximum
    /// of each index).
    fn run_down(&mut self, tti: i64, bytes: u64) {
        self.reported_left = self.reported_left.saturating_sub(bytes);
        if self.reported_left == 0 {
            self.waiting_since = None;
            self.close(tti, Bound::Gap, REPORTED_END);
        }
    }

    fn sample(&mut self, tti: i64, bytes: u64) {
        if let Some(last) = self.last_sample.replace(tti)
            && tti.saturating_sub(last) > self.sample_span_ttis()
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
            self.granted.empty(tti, self.numerology);
            // Observed empty: the last block before emptied it.
            if let Some(open) = self.open {
                self.close(open.last_sent, Bound::Gap, 1.0);
            }
        }
    }

    fn send(&mut self, tti: i64, sent: SentBlocks) {
        self.note_activity(tti, sent);
        let open = self.open.filter(|_| self.waiting_since.is_some());
        self.granted.send(open.map(|open| open.start), tti, sent);
        if !sent.new_data {
            return;
        }
        self.data_ttis += 1;
        let Some(since) = self.waiting_since else { return };
        let open = self.open.get_or_insert_with(|| {
            self.waits.push_back(BufferWait { start_tti: TtiIndex(since), end_tti: TtiIndex(tti) });
            OpenUplinkBurst { start: tti, last_sent: tti, last_bytes: 0, bytes: 0, scheduled: 0 }
        });
        if open.last_sent != tti {
            (open.last_sent, open.last_bytes) = (tti, 0);
        }
        open.last_bytes = open.last_bytes.saturating_add(sent.bytes);
        open.bytes = open.bytes.saturating_add(sent.bytes);
        open.scheduled += 1;
    }

    fn note_activity(&mut self, tti: i64, sent: SentBlocks) {
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
        self.granted.forget();
        self.waiting_since = None;
        self.last_sample = None;
        self.activities.push_back(Activity {
            timing_segment: self.segment,
            numerology: self.numerology,
            start_tti: TtiIndex(tti),
            n_tti,
            at_ns: None,
            bytes: 0,
            unknown: true,
        });
    }

    fn end_segment(&mut self, by: Bound) {
        self.close(self.last_tti.saturating_add(1), by, 0.5);
        self.granted.end_cell();
        self.waiting_since = None;
        self.last_sample = None;
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
                last_bytes: if end == open.last_sent { open.last_bytes } else { 0 },
                scheduled_ttis: open.scheduled,
                unknown_ttis: 0,
                opened_by: Bound::FirstData,
                closed_by: by,
                confidence,
            });
        }
    }
}
