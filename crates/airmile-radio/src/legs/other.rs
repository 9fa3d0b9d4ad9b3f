//! The second leg of a phone with EN-DC (TS 37.340): its own trackers, whose findings are moved to
//! the first leg's axis and joined with that leg's.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{LATE_NS, LegUnion, place};
use crate::burst::{Activity, BurstOptions, BurstSummary, BurstTracker};
use crate::decided::Decided;
use crate::transfer::Timeline;
use crate::uplink::{BufferWait, UplinkOptions, UplinkTracker};
use airmile_model::{
    Bound, Burst, Direction, Evidence, Grant, Record, Stamp, TtiClock, TtiIndex, TtiSpan,
};

/// A leg without records for this time was released (chosen here: far longer than operators'
/// inactivity timers of the second leg).
const RELEASED_NS: i64 = 10_000_000_000;

/// Blocks of an upload hold more bytes than this (chosen here: less than a TCP acknowledgement over
/// IPv4; a STATUS PDU without NACKs has 2 or 3, TS 36.322, 6.2.1.6, and TS 38.322, 6.2.2.5).
const CONTROL_BYTES: u32 = 39;

/// Findings of a leg in one direction.
#[derive(Debug, Clone, Default)]
pub struct LegFindings {
    /// Bursts in order.
    pub bursts: Vec<Burst>,
    /// Runs of scheduled TTIs in order.
    pub runs: Vec<Activity>,
    /// Of bursts of the uplink, what [`UplinkTracker::poll_granted`] returns.
    pub granted: Vec<(BufferWait, bool)>,
}

/// What a leg's uplink did in a span of the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    Burst = 0,
    Granted = 1,
    Ungauged = 2,
}

/// The second leg.
#[derive(Debug, Clone)]
pub struct OtherLeg {
    options: BurstOptions,
    dl: BurstTracker,
    ul: UplinkTracker,
    clock: TtiClock,
    /// Newest times of the first leg and of this one, since the clock was set back.
    newest_ns: [Option<i64>; 2],
    released: bool,
    /// The clock was set back before a record of this leg, and not yet before one of the first: no
    /// TTI of the axis is its.
    leads: bool,
    unions: [LegUnion; 2],
    /// Of the uplink's bursts that are not joined yet: TTIs of the axis, and whether it is the first leg's.
    waited: Vec<(std::ops::Range<i64>, bool, Waited)>,
    evidence: [Option<Evidence>; 2],
    /// Whether it had data.
    sent: [bool; 2],
    /// TTIs of the axis from its first record to its release, each time that it was there.
    present: Vec<(TtiIndex, TtiIndex)>,
    /// Grants of both legs by TTI of the first, with whether they are the first's.
    waiting: BTreeMap<i64, Vec<(bool, Grant)>>,
}

impl Waited {
    const fn of_granted(known: bool) -> Self {
        if known { Self::Granted } else { Self::Ungauged }
    }
}

const fn index(dir: Direction) -> usize {
    match dir {
        Direction::Dl => 0,
        Direction::Ul => 1,
    }
}

/// Whether a block may hold an upload's data.
fn is_upload(grant: &Grant) -> bool {
    let is_new = grant.dir == Direction::Ul && grant.rnti.is_user() && grant.retx != Some(true);
    is_new && grant.data_bytes.is_none_or(|bytes| bytes > CONTROL_BYTES)
}

fn leg_tracker(options: BurstOptions) -> BurstTracker {
    let mut tracker = BurstTracker::new(options);
    tracker.set_leg();
    tracker
}

impl OtherLeg {
    /// A leg without records yet.
    #[must_use]
    pub fn new(options: BurstOptions) -> Self {
        Self {
            options,
            dl: leg_tracker(options),
            ul: UplinkTracker::new(UplinkOptions::default()),
            clock: TtiClock::new(),
            newest_ns: [None; 2],
            released: false,
            leads: false,
            unions: Default::default(),
            waited: Vec::new(),
            evidence: [None; 2],
            sent: [false; 2],
            present: Vec::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Takes a record of this leg. `axis` is the first leg's.
    pub fn push(&mut self, record: &Record, axis: &Timeline) {
        if let Some((position, Some(at))) = place(record) {
            let first_ns = self.newest_ns[0].unwrap_or(i64::MIN);
            self.clock.set_numerology(position.numerology);
            if self.clock.begins_log(position.tti, at.ns) {
                self.begin_log(axis);
                self.leads = first_ns.saturating_sub(at.ns) > LATE_NS;
            }
            if self.leads {
                return;
            }
            self.clock.note(position.tti, at.ns);
            self.clock.forget_before(position.tti);
            // A leg without data is measured, too.
            if !matches!(record, Record::Measurement(_)) {
                self.newest_ns[1] = self.newest_ns[1].max(Some(at.ns));
                self.released = false;
                self.note_present(position.tti, axis);
            }
        }
        if let Record::Grant(grant) = record
            && let Some(tti) = self.on_axis(grant.position.tti, axis, 0)
        {
            let mut grant = grant.clone();
            grant.position.tti = tti;
            grant.position.numerology = axis.numerology();
            self.wait(false, grant);
        }
        if let Record::Grant(grant) = record {
            self.sent[index(Direction::Ul)] |= is_upload(grant);
        }
        self.dl.push(record);
        self.ul.push(record);
    }

    fn note_present(&mut self, tti: TtiIndex, axis: &Timeline) {
        let Some(tti) = self.on_axis(tti, axis, 0) else { return };
        let release = TtiSpan::from_ms(RELEASED_NS / 1_000_000, axis.numerology()).0;
        let end = tti.plus(release);
        match self.present.last_mut().filter(|(_, last)| tti <= *last) {
            Some((_, last)) => *last = end.max(*last),
            None => self.present.push((tti, end)),
        }
    }

    /// Whether it was there in some of these TTIs of the axis.
    fn is_present(&self, start_tti: TtiIndex, end_tti: TtiIndex) -> bool {
        self.present.iter().any(|(from, to)| start_tti < *to && end_tti > *from)
    }

    /// The numerology of this leg's newest TTI.
    #[must_use]
    pub const fn numerology(&self) -> u8 {
        self.clock.numerology()
    }

    /// Holds a grant until those of the other leg have arrived.
    pub fn wait(&mut self, of_first: bool, grant: Grant) {
        self.waiting.entry(grant.position.tti.0).or_default().push((of_first, grant));
    }

    fn restart(&mut self, axis: &Timeline) {
        self.end(axis);
        self.dl = leg_tracker(self.options);
        self.ul = UplinkTracker::new(UplinkOptions::default());
    }

    /// Ends this leg where the clock was set back: its TTIs before have the times of another log.
    fn begin_log(&mut self, axis: &Timeline) {
        self.restart(axis);
        self.clock = TtiClock::new();
        self.newest_ns[1] = None;
    }

    /// Records the TTI and time of a record of the first leg; `axis` does not have it yet.
    pub fn note_first(&mut self, tti: TtiIndex, at: Option<Stamp>, axis: &Timeline) {
        let Some(at) = at else { return };
        if axis.clock().begins_log(tti, at.ns) {
            self.begin_log(axis);
            self.newest_ns[0] = None;
        }
        self.leads = false;
        self.newest_ns[0] = self.newest_ns[0].max(Some(at.ns));
        let silent = self.newest_ns[1].is_some_and(|ns| at.ns.saturating_sub(ns) > RELEASED_NS);
        if silent && !self.released {
            self.released = true;
            self.restart(axis);
        }
    }

    /// The time up to which records of both legs have arrived.
    fn both_ns(&self) -> Option<i64> {
        let newest = self.newest_ns.into_iter().flatten().max()?;
        let oldest = self.newest_ns.into_iter().flatten().min()?;
        Some(oldest.max(newest.saturating_sub(LATE_NS)))
    }

    /// The TTI of the first leg up to which records of both legs have arrived.
    pub fn both(&self, axis: &Timeline) -> Option<TtiIndex> {
        axis.clock().tti_now(self.both_ns()?)
    }

    /// Grants before a TTI, in order.
    pub fn take_grants(&mut self, before: TtiIndex) -> Vec<(bool, Grant)> {
        let rest = self.waiting.split_off(&before.0);
        std::mem::replace(&mut self.waiting, rest).into_values().flatten().collect()
    }

    /// Converts a TTI of this leg to the first leg's axis; `ahead_ns` is added to its time. `None`
    /// while either leg has no time.
    #[must_use]
    pub fn on_axis(&self, tti: TtiIndex, axis: &Timeline, ahead_ns: i64) -> Option<TtiIndex> {
        axis.clock().tti_now(self.clock.ns_at(tti)?.saturating_add(ahead_ns))
    }

    /// Collects the findings of this leg's trackers.
    pub fn absorb(&mut self, axis: &Timeline) {
        while let Some(burst) = self.dl.poll() {
            self.take_burst(burst, axis);
        }
        while let Some(burst) = self.ul.poll() {
            self.take_burst(burst, axis);
        }
        while let Some(run) = self.dl.poll_activity() {
            self.take_activity(Direction::Dl, run, axis);
        }
        while let Some(run) = self.ul.poll_activity() {
            self.take_activity(Direction::Ul, run, axis);
        }
        for (i, found) in [self.dl.summary(), self.ul.summary()].into_iter().enumerate() {
            self.evidence[i] = found.evidence.or(self.evidence[i]);
        }
        self.sent[index(Direction::Dl)] |= self.dl.summary().data_ttis > 0;
        // Waits are known for the first leg only.
        while self.ul.poll_wait().is_some() {}
        let half = TtiSpan(1).ns(axis.numerology()) / 2;
        while let Some((BufferWait { start_tti, end_tti }, known)) = self.ul.poll_granted() {
            let place = |tti| self.on_axis(tti, axis, half);
            if let (Some(start), Some(end)) = (place(start_tti), place(end_tti)) {
                self.waited.push((start.0..end.0, false, Waited::of_granted(known)));
            }
        }
    }

    /// Ends the open findings of this leg.
    pub fn end(&mut self, axis: &Timeline) {
        for burst in self.dl.finish() {
            self.take_burst(burst, axis);
        }
        for burst in self.ul.finish() {
            self.take_burst(burst, axis);
        }
        self.absorb(axis);
    }

    fn take_burst(&mut self, burst: Burst, axis: &Timeline) {
        let half = TtiSpan(1).ns(axis.numerology()) / 2;
        let place = |tti| self.on_axis(tti, axis, half);
        if let (Some(start_tti), Some(end_tti)) = (place(burst.start_tti), place(burst.end_tti))
            && end_tti > start_tti
        {
            if burst.dir == Direction::Ul {
                self.waited.push((start_tti.0..end_tti.0, false, Waited::Burst));
            }
            let union = &mut self.unions[index(burst.dir)];
            union.push_burst(Burst { start_tti, end_tti, ..burst });
        }
    }

    fn take_activity(&mut self, dir: Direction, run: Activity, axis: &Timeline) {
        let end = run.start_tti.plus(run.n_tti);
        // The TTIs of the axis that it overlaps.
        let places = (self.on_axis(run.start_tti, axis, 0), self.on_axis(end, axis, -1));
        if let (Some(start_tti), Some(last)) = places {
            self.unions[index(dir)].push_activity(Activity {
                start_tti,
                n_tti: last.since(start_tti).max(0).saturating_add(1),
                numerology: axis.numerology(),
                ..run
            });
        }
    }

    /// The findings of both legs of a direction, up to where both are decided.
    pub fn join(
        &mut self,
        dir: Direction,
        first: LegFindings,
        decided: Decided,
        axis: &Timeline,
    ) -> (LegFindings, Decided) {
        let both =
            if decided == Decided::ALL { decided } else { decided.min(self.decided(dir, axis)) };
        // Without another leg, waits before bursts are rare; silences are not.
        for burst in first.bursts {
            if burst.opened_by != Bound::Gap || self.is_present(burst.start_tti, burst.end_tti) {
                if dir == Direction::Ul {
                    self.waited.push((burst.start_tti.0..burst.end_tti.0, true, Waited::Burst));
                }
                self.unions[index(dir)].push_burst(burst);
            }
        }
        let of_first =
            first.granted.into_iter().map(|(BufferWait { start_tti, end_tti }, known)| {
                (start_tti.0..end_tti.0, true, Waited::of_granted(known))
            });
        self.waited.extend(of_first);
        if dir == Direction::Dl {
            self.present.retain(|(_, end)| *end > both.bursts);
        }
        let union = &mut self.unions[index(dir)];
        first.runs.into_iter().for_each(|run| union.push_activity(run));
        let bursts = union.poll_bursts(both.bursts);
        let runs = union.poll_activity(both.runs);
        let decided = union.decided(both);
        let mut granted = Vec::new();
        if dir == Direction::Ul {
            bursts.iter().for_each(|burst| granted.extend(self.granted_in(burst)));
            self.waited.retain(|(span, ..)| span.end > decided.bursts.0);
        }
        (LegFindings { bursts, runs, granted }, decided)
    }

    /// The parts of a burst of either leg in which no leg's data waited for capacity, as far as is known.
    fn granted_in(&self, burst: &Burst) -> Vec<(BufferWait, bool)> {
        let mut edges: BTreeMap<i64, Vec<(usize, usize, i32)>> = BTreeMap::new();
        for (span, of_first, what) in &self.waited {
            let from = span.start.max(burst.start_tti.0);
            let to = span.end.min(burst.end_tti.0);
            for (at, step) in [(from, 1), (to, -1)].into_iter().filter(|_| from < to) {
                let edge = (usize::from(*of_first), *what as usize, step);
                edges.entry(at).or_default().push(edge);
            }
        }
        let (mut out, mut open) = (Vec::new(), None);
        let mut legs = [[0_i32; 3]; 2];
        for (at, steps) in edges {
            for (leg, what, step) in steps {
                legs[leg][what] += step;
            }
            let is = |of: fn(&[i32; 3]) -> bool| legs.iter().any(of);
            let known = match () {
                () if is(|[burst, granted, unknown]| burst > granted.max(unknown)) => None,
                () if is(|[.., unknown]| *unknown > 0) => Some(false),
                () => is(|[_, granted, _]| *granted > 0).then_some(true),
            };
            let start_tti = TtiIndex(at);
            if let Some((before, known)) =
                std::mem::replace(&mut open, known.map(|k| (start_tti, k)))
            {
                out.push((BufferWait { start_tti: before, end_tti: start_tti }, known));
            }
        }
        out
    }

    /// How far this leg is decided, on the first leg's axis.
    fn decided(&mut self, dir: Direction, axis: &Timeline) -> Decided {
        // A leg without any timed record delays nothing.
        if self.released || self.newest_ns[1].is_none() {
            let late = |ns: i64| axis.clock().tti_now(ns.saturating_sub(LATE_NS));
            let tti = self.newest_ns[0].and_then(late).unwrap_or(TtiIndex(i64::MIN));
            return Decided { runs: tti, bursts: tti };
        }
        let own = match dir {
            Direction::Dl => self.dl.decided(),
            Direction::Ul => self.ul.decided(),
        };
        let place = |tti: TtiIndex| match tti.0 {
            i64::MIN | i64::MAX => tti,
            _ => self.on_axis(tti, axis, 0).unwrap_or(TtiIndex(i64::MIN)),
        };
        Decided { runs: place(own.runs), bursts: place(own.bursts) }
    }

    /// The evidence of both legs' findings: the weaker of the two, and none if a leg had data and
    /// no evidence.
    pub fn summary(&self, dir: Direction, first: BurstSummary) -> BurstSummary {
        let evidence = match (first.evidence, self.evidence[index(dir)]) {
            (None, _) if first.data_ttis > 0 => None,
            (_, None) if self.sent[index(dir)] => None,
            (Some(a), Some(b)) if a == b => Some(a),
            (Some(Evidence::Grants), Some(_)) | (Some(_), Some(Evidence::Grants)) => {
                Some(Evidence::Grants)
            }
            (Some(_), Some(_)) => Some(Evidence::Fused),
            (one, other) => one.or(other),
        };
        BurstSummary { evidence, ..first }
    }
}
