//! A transfer on the time axis, and the log events during it.

use std::collections::HashMap;

use airmile_model::{
    AppTransfer, ApplicationLog, PlayerEvent, PlayerEventKind, RatePoint, TtiIndex,
};

use super::{RadioAnalysis, bits_per_s, ms};
use crate::analyse::diagnose::Measures;
use crate::fact::{Fact, FactKind};

/// An index of an application's log: sessions can have thousands of entries of each kind.
pub(in super::super) struct Lookup<'a> {
    log: &'a ApplicationLog,
    by_id: HashMap<&'a str, Vec<&'a AppTransfer>>,
    longest_stall_ns: i64,
    longest_rate_ns: i64,
}

impl<'a> Lookup<'a> {
    pub(in super::super) fn new(log: &'a ApplicationLog) -> Self {
        let mut by_id: HashMap<&str, Vec<&AppTransfer>> = HashMap::new();
        for transfer in &log.transfers {
            by_id.entry(&transfer.id).or_default().push(transfer);
        }
        let longest_stall_ns = log.events.iter().map(stall_ns).max().unwrap_or(0);
        let longest_rate_ns = log.rates.iter().map(long_ns).max().unwrap_or(0);
        Self { log, by_id, longest_stall_ns, longest_rate_ns }
    }

    /// Transfers with a name.
    pub(super) fn named(&self, id: &str) -> impl Iterator<Item = &'a AppTransfer> {
        self.by_id.get(id).into_iter().flatten().copied()
    }

    /// Events that may overlap a span.
    fn events(&self, from_ns: i64, to_ns: i64) -> &'a [PlayerEvent] {
        let events = &self.log.events;
        let from_ns = from_ns.saturating_sub(self.longest_stall_ns);
        let first = events.partition_point(|event| event.at_ns < from_ns);
        let last = events.partition_point(|event| event.at_ns < to_ns).max(first);
        events.get(first..last).unwrap_or_default()
    }

    /// Rates that may overlap a span.
    fn rates(&self, from_ns: i64, to_ns: i64) -> &'a [RatePoint] {
        let rates = &self.log.rates;
        let from_ns = from_ns.saturating_sub(self.longest_rate_ns);
        let first = rates.partition_point(|rate| rate.start_ns < from_ns);
        let last = rates.partition_point(|rate| rate.start_ns < to_ns).max(first);
        rates.get(first..last).unwrap_or_default()
    }
}

/// The length of a stall in nanoseconds; 0 for another event.
fn stall_ns(event: &PlayerEvent) -> i64 {
    match event.kind {
        PlayerEventKind::Stall => (event.value.unwrap_or(0.0) * 1e6) as i64,
        _ => 0,
    }
}

const fn long_ns(rate: &RatePoint) -> i64 {
    rate.end_ns.saturating_sub(rate.start_ns)
}

/// The position of a transfer in time and in TTIs.
pub(super) struct TransferPlace {
    start_ns: i64,
    end_ns: i64,
    pub(super) whole: (TtiIndex, TtiIndex),
}

impl TransferPlace {
    pub(super) fn new(
        id: &str,
        measures: &Measures,
        answer: &RadioAnalysis,
        logs: &[Lookup<'_>],
    ) -> Self {
        let whole = (measures.start_tti, measures.end_tti);
        let times = measures.start_us.zip(measures.end_us);
        let unplaced = || {
            let mut all = logs.iter().flat_map(|one| one.named(id));
            all.next().filter(|_| answer.alone).map(|own| (own.start_ns, own.end_ns))
        };
        let by_time =
            times.map(|(from, to)| (from.saturating_mul(1_000), to.saturating_mul(1_000)));
        let (start_ns, end_ns) = by_time.or_else(unplaced).unwrap_or((0, 0));
        Self { start_ns, end_ns, whole }
    }

    /// Whether a time overlaps it.
    pub(super) const fn touches(&self, from_ns: i64, to_ns: i64) -> bool {
        from_ns < self.end_ns && to_ns > self.start_ns
    }

    fn tti(&self, ns: i64) -> TtiIndex {
        let n_tti = self.whole.1.since(self.whole.0) as f64;
        let length = self.end_ns.saturating_sub(self.start_ns).max(1) as f64;
        let share = ns.saturating_sub(self.start_ns) as f64 / length;
        TtiIndex(self.whole.0.0 + (share.clamp(0.0, 1.0) * n_tti) as i64)
    }

    /// Adds the player's events during the transfer; returns its stalls, and their ms inside.
    pub(super) fn player(&self, application: &Lookup<'_>, facts: &mut Vec<Fact>) -> (u64, f64) {
        let (mut n, mut stalled_ns, mut first) = (0_u64, 0, None);
        let (mut switches, mut bps) = (0_u64, None);
        let mut least: Option<f64> = None;
        for event in application.events(self.start_ns, self.end_ns) {
            let inside = event.at_ns >= self.start_ns && event.at_ns < self.end_ns;
            match event.kind {
                PlayerEventKind::Stall => {
                    let end_ns = event.at_ns.saturating_add(stall_ns(event));
                    if inside || self.touches(event.at_ns, end_ns) {
                        let (from, to) = (event.at_ns.max(self.start_ns), end_ns.min(self.end_ns));
                        // It ended as the transfer began, or began as it ended.
                        if to <= from && end_ns > event.at_ns {
                            continue;
                        }
                        n += 1;
                        stalled_ns += to.saturating_sub(from).max(0);
                        first.get_or_insert((from, to.max(from)));
                    }
                }
                PlayerEventKind::Switch if inside => {
                    switches += 1;
                    bps = event.value;
                }
                PlayerEventKind::Buffer if inside => {
                    least = event.value.map(|ms| least.map_or(ms, |l| l.min(ms))).or(least);
                }
                _ => {}
            }
        }
        let stalled_ms = ms(stalled_ns);
        if let Some((from, to)) = first {
            let range = (self.tti(from), self.tti(to));
            facts.push(Fact::new(FactKind::Stalls { count: n, stalled_ms }, range));
        }
        if let Some(bps) = bps {
            facts.push(Fact::new(FactKind::BitrateSwitches { count: switches, bps }, self.whole));
        }
        if let Some(ms) = least {
            facts.push(Fact::new(FactKind::LeastBuffer { ms }, self.whole));
        }
        (n, stalled_ms)
    }

    /// Adds rates, losses and round trips during the transfer, of a speed test or a connection.
    pub(super) fn rates(&self, application: &Lookup<'_>, facts: &mut Vec<Fact>) {
        let longest_ns = application.longest_rate_ns;
        let near = application.rates(self.start_ns, self.end_ns).iter();
        let touched: Vec<&RatePoint> =
            near.filter(|rate| self.touches(rate.start_ns, rate.end_ns)).collect();
        // Intervals that are completely inside, except the partial second at the end of a test.
        let whole = touched.iter().filter(|rate| {
            let inside = rate.start_ns >= self.start_ns && rate.end_ns <= self.end_ns;
            inside && long_ns(rate) >= longest_ns / 2
        });
        let bps: Vec<f64> = whole.map(|rate| bits_per_s(rate.bytes, long_ns(rate))).collect();
        let least_bps = bps.iter().copied().reduce(f64::min);
        let most_bps = bps.iter().copied().reduce(f64::max);
        let range = least_bps.zip(most_bps).filter(|_| bps.len() >= 2);
        let lost = touched.iter().filter_map(|rate| rate.retransmits);
        let retransmits = lost.reduce(u64::saturating_add).filter(|n| *n > 0);
        let rtts = || touched.iter().filter_map(|rate| rate.rtt_us);
        let rtt_us = rtts().reduce(f64::min).zip(rtts().reduce(f64::max));
        if range.is_some() || retransmits.is_some() || rtt_us.is_some() {
            let kind = FactKind::IntervalRates { bps: range, retransmits, rtt_us, least_bps };
            facts.push(Fact::new(kind, self.whole));
        }
    }
}
