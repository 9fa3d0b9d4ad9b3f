//! Transfers during the pass over the log: decided parts go into their meters, and only what an
//! open transfer still needs is kept.

use airmile_model::{Direction, Transfer, TtiIndex, TtiSpan};

use crate::burst::LATENESS_MS;
use crate::decided::Decided;
use crate::detect::DetectedTransfer;
use crate::load::LoadEstimate;
use crate::meter::TransferMeter;
use crate::transfer::Timeline;
use crate::usage::{UsageBins, UsageSum};

/// The share of other users in the cell, and its capacity, over the windows of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Others {
    n: u64,
    share_sum: f64,
    confidence_sum: f64,
    n_capacity: u64,
    capacity_sum_bps: f64,
}

impl Others {
    fn add(&mut self, load: f64, window: &LoadEstimate) {
        self.n += 1;
        self.share_sum += (load - window.own_share).max(0.0);
        self.confidence_sum += window.confidence;
        self.n_capacity += u64::from(window.capacity_bps.is_some());
        self.capacity_sum_bps += window.capacity_bps.unwrap_or(0.0);
    }

    /// Mean capacity of the cell for this phone, in bit/s, over the windows that have one.
    #[must_use]
    pub fn capacity_bps(&self) -> Option<f64> {
        (self.n_capacity > 0).then(|| self.capacity_sum_bps / self.n_capacity as f64)
    }

    /// Mean share and confidence; `None` without a window that has them.
    #[must_use]
    pub fn mean(&self) -> Option<(f64, f64)> {
        let n = self.n as f64;
        (self.n > 0).then(|| (self.share_sum / n, self.confidence_sum / n))
    }
}

/// A transfer that is measured in one direction.
#[derive(Debug, Clone)]
pub struct OpenTransfer {
    /// Its index.
    pub number: usize,
    /// Its name, times, bytes and direction.
    pub transfer: Transfer,
    /// Its measures; `None` until its start can be placed.
    pub gauge: Option<TransferMeter>,
    /// The allocation and signal during it.
    pub usage: UsageSum,
    /// The share of other users during it.
    pub others: Others,
    /// Of a detected one, its doubtful TTIs and those around it.
    pub guess_ttis: (i64, i64),
}

impl OpenTransfer {
    /// A transfer given by the application; its times are placed as the log is read.
    fn given(number: usize, transfer: Transfer) -> Self {
        let (gauge, usage) = match transfer.tti {
            Some((start, end)) => (Some(TransferMeter::new(start, end)), UsageSum::new(start, end)),
            None => (None, UsageSum::new(TtiIndex(0), TtiIndex(0))),
        };
        Self { number, transfer, gauge, usage, others: Others::default(), guess_ttis: (0, 0) }
    }

    fn detected(number: usize, found: &DetectedTransfer) -> Self {
        Self {
            number,
            transfer: as_transfer(number, found),
            gauge: Some(TransferMeter::open(found.start_tti, found.end_tti)),
            usage: UsageSum::new(found.start_tti, found.end_tti),
            others: Others::default(),
            guess_ttis: (0, 0),
        }
    }

    /// Extends the end to `end`, or sets it if `ended`.
    fn lasts(&mut self, end: TtiIndex, ended: bool) {
        let Some(gauge) = &mut self.gauge else { return };
        if ended {
            gauge.set_end(end);
        } else {
            gauge.extend(end);
        }
        self.usage.set_end(end);
    }

    /// Places what the clock permits so far. A span that has ended is not moved.
    fn place(&mut self, timeline: &Timeline, log_ended: bool) {
        if self.transfer.time.is_none() {
            return;
        }
        if timeline.own_ttis(&self.transfer).is_some() {
            if self.gauge.is_none() {
                *self = Self::given(self.number, self.transfer.clone());
            }
            return;
        }
        if let Some((start, _)) = self.transfer.tti {
            self.gauge = None;
            // The log may still reach them with its time, unless it has passed that.
            let is_ahead = timeline.clock().last_anchor().is_none_or(|(last, _)| start > last);
            if is_ahead && !log_ended && timeline.place(&self.transfer, false).is_none() {
                return;
            }
            self.transfer.tti = None;
        }
        if self.has_ended() {
            return;
        }
        let Some((start, end)) = timeline.place(&self.transfer, log_ended) else {
            // The log in which it began ended before it.
            self.gauge = None;
            return;
        };
        // Its log has ended, and it lies in a later one.
        if self.gauge.as_ref().is_none_or(|gauge| gauge.span().1 < start) {
            self.gauge = Some(TransferMeter::open(start, start));
            self.usage = UsageSum::new(start, start);
            self.others = Others::default();
        }
        match (end, timeline.clock().last_anchor()) {
            (Some(end), _) => self.lasts(end, true),
            (None, Some((newest, _))) => self.lasts(newest, false),
            (None, None) => {}
        }
    }

    fn gather(&mut self, timeline: &Timeline, usage: &UsageBins, until: Until) {
        let Some(gauge) = &mut self.gauge else { return };
        timeline.gather(gauge, until.decided);
        usage.gather(&mut self.usage, until.records);
    }

    fn has_ended(&self) -> bool {
        self.gauge.as_ref().is_some_and(TransferMeter::has_ended)
    }

    fn is_whole(&self) -> bool {
        self.gauge.as_ref().is_some_and(TransferMeter::is_whole) && self.usage.is_whole()
    }

    /// Its start in nanoseconds; for a table without times from its TTIs, 1 ms each.
    #[must_use]
    pub fn start_ns(&self) -> Option<i64> {
        let placed = || self.span().map(|span| span.start.0.saturating_mul(1_000_000));
        self.transfer.time.map(|(start, _)| start.ns).or_else(placed)
    }

    /// The TTIs that certainly belong to it.
    fn span(&self) -> Option<std::ops::Range<TtiIndex>> {
        let gauge = self.gauge.as_ref()?;
        let (start, end) = gauge.span();
        Some(start..end)
    }
}

/// How far the log was read.
#[derive(Debug, Clone, Copy)]
pub struct Until {
    /// The trackers' decisions.
    pub decided: Decided,
    /// No record before this TTI is outstanding.
    pub records: TtiIndex,
    /// Whether the log has ended.
    pub log_ended: bool,
}

impl Until {
    /// With the last record at `now`.
    #[must_use]
    pub fn now(decided: Decided, now: TtiIndex, numerology: u8) -> Self {
        let late = TtiSpan::from_ms(LATENESS_MS, numerology).0;
        Self { decided, records: now.plus(-late), log_ended: false }
    }

    /// The log has ended.
    pub const END: Self =
        Self { decided: Decided::ALL, records: TtiIndex(i64::MAX), log_ended: true };
}

/// The transfers of one direction.
#[derive(Debug, Clone, Default)]
pub struct TransferWatch {
    /// Given transfers, or detected ones that are incomplete.
    open: Vec<OpenTransfer>,
    done: Vec<OpenTransfer>,
    /// Number detected so far, including the one in progress.
    detected: usize,
    /// Whether the last of `open` is in progress.
    under_way: bool,
    /// Load of windows that may lie in a future transfer.
    load: Vec<LoadEstimate>,
}

impl TransferWatch {
    /// Watches the transfers given by the application.
    #[must_use]
    pub fn given(transfers: &[Transfer]) -> Self {
        let open = transfers.iter().cloned().enumerate();
        Self { open: open.map(|(i, t)| OpenTransfer::given(i, t)).collect(), ..Self::default() }
    }

    /// The given transfers are to be placed on another axis.
    pub fn restart(&mut self) {
        for open in &mut self.open {
            *open = OpenTransfer::given(open.number, open.transfer.clone());
        }
    }

    /// Updates the activity in progress. One that began at another TTI was too small, or begins later.
    pub fn under_way(&mut self, activity: Option<&DetectedTransfer>) {
        let last = self.open.last().filter(|_| self.under_way);
        let start = last.and_then(OpenTransfer::span).map(|span| span.start);
        if self.under_way && start != activity.map(|activity| activity.start_tti) {
            self.open.pop();
            self.under_way = false;
        }
        let Some(activity) = activity else { return };
        if !self.under_way {
            self.open.push(OpenTransfer::detected(self.detected, activity));
            self.under_way = true;
        }
        if let Some(last) = self.open.last_mut() {
            last.lasts(activity.end_tti, false);
        }
    }

    /// A transfer has ended. It may be another than the activity in progress: a short one begins and ends between
    /// two records.
    pub fn ended(&mut self, found: &DetectedTransfer) {
        self.under_way(Some(found));
        if let Some(last) = self.open.last_mut() {
            last.transfer = as_transfer(self.detected, found);
            last.guess_ttis = (found.doubtful_ttis, found.around_ttis);
            last.lasts(found.end_tti, true);
        }
        self.detected += 1;
        self.under_way = false;
    }

    /// Adds a window of the primary cell's load.
    pub fn take_load(&mut self, window: LoadEstimate) {
        self.load.push(window);
    }

    /// Collects decisions, and forgets what no transfer needs.
    pub fn gather(&mut self, timeline: &mut Timeline, usage: &mut UsageBins, until: Until) {
        for watched in &mut self.open {
            watched.place(timeline, until.log_ended);
            watched.gather(timeline, usage, until);
        }
        self.spread_load(timeline, until);
        let mut kept = until.decided;
        let mut bins = until.records;
        for watched in &self.open {
            let needs = watched.gauge.as_ref().map(TransferMeter::needs);
            // A transfer that cannot be placed yet starts after the newest anchor.
            let newest = timeline.clock().last_anchor();
            let newest = newest.map_or(TtiIndex(i64::MIN), |(tti, _)| tti);
            kept = kept.min(needs.unwrap_or(Decided { runs: newest, bursts: newest }));
            if !(watched.has_ended() && watched.usage.is_whole()) {
                let gathered = watched.usage.gathered_to();
                bins = bins.min(watched.gauge.as_ref().map_or(newest, |_| gathered));
            }
        }
        if !until.log_ended {
            timeline.forget_before(kept);
            usage.forget_before(bins);
        }
        let under_way = self.under_way.then(|| self.open.pop()).flatten();
        let done = self.open.extract_if(.., |watched| watched.is_whole());
        self.done.extend(done);
        self.open.extend(under_way);
    }

    /// Adds each window to the transfers during which it starts.
    fn spread_load(&mut self, timeline: &Timeline, until: Until) {
        if self.load.is_empty() {
            return;
        }
        self.load.sort_by_key(|window| window.tti);
        let newest = timeline.clock().last_anchor().map_or(until.records, |(tti, _)| tti);
        let all_before = if until.log_ended {
            TtiIndex(i64::MAX)
        } else {
            let open = self.open.iter().filter(|watched| !watched.has_ended());
            let ends = open.map(|watched| watched.span().map_or(newest, |span| span.end));
            ends.fold(until.records, TtiIndex::min)
        };
        let ready = self.load.partition_point(|window| window.tti < all_before);
        let windows = &self.load[..ready];
        for watched in self.done.iter_mut().chain(&mut self.open) {
            let Some(span) = watched.span() else { continue };
            let first = windows.partition_point(|window| window.tti < span.start);
            for window in windows.iter().skip(first).take_while(|w| w.tti < span.end) {
                if let (Some(load), Some(_)) = (window.load, window.free_prb()) {
                    watched.others.add(load, window);
                }
            }
        }
        self.load.drain(..ready);
    }

    /// Names of the complete transfers.
    pub fn whole(&self) -> impl Iterator<Item = &str> {
        self.done.iter().map(|watched| watched.transfer.id.as_str())
    }

    /// Forgets all but the last `keep` complete transfers.
    pub fn retire(&mut self, keep: usize) {
        let old = self.done.len().saturating_sub(keep);
        self.done.drain(..old);
    }

    /// All transfers, in order.
    #[must_use]
    pub fn finish(mut self) -> Vec<OpenTransfer> {
        self.done.append(&mut self.open);
        self.done.sort_by_key(|watched| watched.number);
        self.done
    }
}

/// A detected transfer in the form of a given one.
fn as_transfer(number: usize, found: &DetectedTransfer) -> Transfer {
    Transfer {
        id: format!("{}{number}", found.dir),
        time: None,
        tti: Some((found.start_tti, found.end_tti)),
        bytes: Some(found.bytes),
        dir: Some(found.dir),
        unfinished: false,
    }
}

/// The direction of a given transfer: as given, else the direction with more bytes during it.
#[must_use]
pub fn direction(dl: &OpenTransfer, ul: &OpenTransfer) -> Direction {
    let sent = |watched: &OpenTransfer| watched.gauge.as_ref().map(TransferMeter::sent_bytes);
    match dl.transfer.dir {
        Some(dir) => dir,
        None if sent(dl).is_some() && sent(ul) > sent(dl) => Direction::Ul,
        None => Direction::Dl,
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::Stamp;

    use super::*;
    use crate::burst::Activity;

    fn given(start: Stamp, end: Stamp) -> Transfer {
        let (id, time) = ("a".to_owned(), Some((start, end)));
        Transfer { id, time, tti: None, bytes: None, dir: None, unfinished: false }
    }

    /// The anchors at its start are forgotten before its end comes.
    #[test]
    fn a_long_transfer_keeps_its_start() {
        let stamp = |tti: i64| Stamp::modem(1_001_000 * tti);
        let given = [given(stamp(10_000), stamp(900_000))];
        let mut timeline = Timeline::new(Direction::Dl);
        let mut usage = UsageBins::new(Direction::Dl);
        let mut watch = TransferWatch::given(&given);
        for tti in (0..1_000_000).step_by(100) {
            timeline.note(TtiIndex(tti), Some(stamp(tti)));
            if tti % 10_000 == 0 {
                timeline.add_activity(&Activity {
                    timing_segment: 0,
                    numerology: 0,
                    start_tti: TtiIndex(tti + 50),
                    n_tti: 10,
                    at_ns: None,
                    bytes: 1_000,
                    unknown: false,
                });
                let decided = Decided { runs: TtiIndex(tti), bursts: TtiIndex(tti) };
                let until = Until::now(decided, TtiIndex(tti), 0);
                watch.gather(&mut timeline, &mut usage, until);
            }
        }
        watch.gather(&mut timeline, &mut usage, Until::END);
        let gauge = watch.finish().remove(0).gauge.unwrap();
        assert_eq!((gauge.span().0.0, gauge.scheduled), (10_000, 89 * 10));
        assert_eq!(gauge.times_us.unwrap().0, 10_010_000);
    }

    /// A second log, whose clock was set back, follows the first at a later TTI.
    #[test]
    fn ttis_ahead_of_the_log_wait_for_their_time() {
        let stamp = |tti: i64| {
            let back_ms = if tti < 50_000 { 0 } else { 3_600_000 };
            Stamp::modem((10_000_000 + tti - back_ms) * 1_000_000)
        };
        let tti = Some((TtiIndex(54_000), TtiIndex(54_600)));
        let given = [Transfer { tti, ..given(stamp(54_000), stamp(54_600)) }];
        let mut timeline = Timeline::new(Direction::Dl);
        let mut usage = UsageBins::new(Direction::Dl);
        let mut watch = TransferWatch::given(&given);
        for tti in (0..6_000).chain(50_000..56_000) {
            timeline.note(TtiIndex(tti), Some(stamp(tti)));
            if tti % 1_000 == 0 {
                let until = Until::now(Decided::NOTHING, TtiIndex(tti), 0);
                watch.gather(&mut timeline, &mut usage, until);
            }
        }
        watch.gather(&mut timeline, &mut usage, Until::END);
        let gauge = watch.finish().remove(0).gauge.unwrap();
        assert_eq!((gauge.span().0.0, gauge.span().1.0), (54_000, 54_600));
    }

    /// A table of a whole log has TTIs, which begin at another number in a part of it: its times count.
    #[test]
    fn ttis_of_another_axis_are_not_used() {
        let stamp = |ms: i64| Stamp::modem((100_000 + ms) * 1_000_000);
        for (own, expected) in
            [((24_480, 25_080), (4_000, 4_600)), ((4_003, 4_603), (4_003, 4_603))]
        {
            let tti = Some((TtiIndex(own.0), TtiIndex(own.1)));
            let given = [Transfer { tti, ..given(stamp(4_000), stamp(4_600)) }];
            let mut timeline = Timeline::new(Direction::Dl);
            let mut usage = UsageBins::new(Direction::Dl);
            let mut watch = TransferWatch::given(&given);
            for tti in 0..6_000 {
                timeline.note(TtiIndex(tti), Some(stamp(tti)));
                if tti % 1_000 == 0 {
                    let until = Until::now(Decided::NOTHING, TtiIndex(tti), 0);
                    watch.gather(&mut timeline, &mut usage, until);
                }
            }
            watch.gather(&mut timeline, &mut usage, Until::END);
            let span = watch.finish().remove(0).gauge.unwrap().span();
            assert_eq!((span.0.0, span.1.0), expected);
        }
    }

    /// Two logs in one file, of 6 s, the second from 2.5 s before the end of the first: a transfer is in one
    /// of them, however often what is known was collected, and its place does not change.
    #[test]
    fn a_transfer_at_a_time_shown_twice_is_in_one_log() {
        let stamp = |ms: i64| Stamp::modem((100_000 + ms) * 1_000_000);
        let check = |(from_ms, to_ms): (i64, i64), expected: Option<(i64, i64)>| {
            let given = [given(stamp(from_ms), stamp(to_ms))];
            for every in [1, 700, 2_500, 20_000] {
                let mut timeline = Timeline::new(Direction::Dl);
                let mut usage = UsageBins::new(Direction::Dl);
                let mut watch = TransferWatch::given(&given);
                for tti in 0..12_000 {
                    timeline.note(
                        TtiIndex(tti),
                        Some(stamp(if tti < 6_000 { tti } else { tti - 2_500 })),
                    );
                    if tti % every == every - 1 {
                        let until = Until::now(Decided::NOTHING, TtiIndex(tti), 0);
                        watch.gather(&mut timeline, &mut usage, until);
                    }
                }
                watch.gather(&mut timeline, &mut usage, Until::END);
                let gauge = watch.finish().remove(0).gauge;
                let found = gauge.map(|gauge| (gauge.span().0.0, gauge.span().1.0));
                assert_eq!(found, expected, "{from_ms} {every}");
            }
        };
        check((4_000, 4_600), Some((4_000, 4_600)));
        check((5_800, 6_300), Some((8_300, 8_800)));
        check((3_200, 3_700), Some((3_200, 3_700)));
        check((9_000, 9_900), Some((11_500, 12_400)));
        // The clock was corrected during it.
        check((3_300, 6_400), Some((3_300, 8_900)));
    }
}
