//! The verdict over groups of transfers.

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

use super::resample::{Difference, difference, holm};
use super::sample::{
    GroupFinding, Restarts, Sample, behind_pauses, growth_ms, is_by_turns, late_bps, link_demand,
    measure, restart_share, throughput_bps,
};

/// Minimum number of transfers in a group (chosen here: with two groups of four, the
/// minimum p of a test is 2 / 70).
pub const MIN_TRANSFERS: usize = 4;
/// A difference is significant below this p, after Holm.
pub(super) const ALPHA: f64 = 0.05;
/// A rate below this share of another's is throttled (chosen here).
const CAPPED: f64 = 0.85;
/// A throttled group's link demand is lower by at least this (chosen here, as the width
/// of the verdict's band: 75 to 90 %).
const LESS_DEMAND: f64 = 0.10;
/// From this link demand on, the downlink is the limit.
const DOWNLINK_LIMITS: f64 = 0.90;
/// Throughputs within this factor are the same to a user (chosen here).
pub(super) const SAME_FACTOR: f64 = 1.25;
/// Conditions that differ by more are not comparable (chosen here): throughput of the
/// link and sizes by a factor, load by a share, RSRP in dB.
const LINK_FACTOR: f64 = 1.5;
const SIZE_FACTOR: f64 = 1.5;
const LOAD_APART: f64 = 0.20;
const RSRP_APART_DB: f64 = 6.0;

/// The outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonOutcome {
    /// Some groups restart slow start after pauses, others do not.
    Restarts,
    /// Some groups' rates are throttled.
    Throttling,
    /// The groups do not differ noticeably to a user.
    NoDifference,
    /// Undetermined.
    CannotTell,
}

/// A comparison of two groups: the second's values minus the first's.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PairFinding {
    /// The first group, by its index.
    pub a: usize,
    /// The second.
    pub b: usize,
    /// Share of transfers after pauses that began in slow start.
    pub restarts: Option<Difference>,
    /// Link demand, 0 to 1.
    pub link_demand: Option<Difference>,
    /// Natural logarithm of the throughput: 0.1 is 10 % more.
    pub log_throughput: Option<Difference>,
    /// The same of the rate in the second half of transfers.
    pub log_late_rate: Option<Difference>,
    /// Cost of growth after pauses, in ms.
    pub growth_ms: Option<Difference>,
    /// Conditions that differ, in words.
    pub conditions_differ: Vec<String>,
}

/// The verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The outcome.
    pub outcome: ComparisonOutcome,
    /// The groups concerned: those that restart, or are throttled.
    pub about: Vec<usize>,
    /// The groups that they are compared with.
    pub against: Vec<usize>,
    /// Why the outcome is undetermined, or remarks on the verdict.
    pub notes: Vec<String>,
    /// 1 minus the p of the deciding test, or the coverage of its interval; 0 if
    /// undetermined.
    pub confidence: f64,
    /// Whether the groups were measured alternately.
    pub by_turns: bool,
    /// The finding of each group.
    pub groups: Vec<GroupFinding>,
    /// All pairs; p after Holm, over the pairs of each measure.
    pub pairs: Vec<PairFinding>,
}

/// Compares groups.
#[must_use]
pub fn judge(groups: &[Vec<Sample>], seed: u64) -> Judgement {
    let by_turns = is_by_turns(groups);
    let found: Vec<GroupFinding> = groups.iter().map(|group| measure(group, seed)).collect();
    let mut pairs = Vec::new();
    for (b, (of_b, group_b)) in groups.iter().zip(&found).enumerate() {
        for (a, (of_a, group_a)) in groups.iter().zip(&found).enumerate().take(b) {
            let mut pair = hold(of_a, of_b, by_turns, seed);
            (pair.a, pair.b) = (a, b);
            pair.conditions_differ = differ(group_a, group_b);
            pairs.push(pair);
        }
    }
    let measures: [Measure; 5] = [
        |pair| &mut pair.restarts,
        |pair| &mut pair.link_demand,
        |pair| &mut pair.log_throughput,
        |pair| &mut pair.log_late_rate,
        |pair| &mut pair.growth_ms,
    ];
    measures.into_iter().for_each(|measure| correct(&mut pairs, measure));
    let mut judgement = Judgement {
        outcome: ComparisonOutcome::CannotTell,
        about: Vec::new(),
        against: Vec::new(),
        notes: Vec::new(),
        confidence: 0.0,
        by_turns,
        groups: found,
        pairs,
    };
    judgement.conclude();
    judgement
}

/// All measures of two groups.
fn hold(a: &[Sample], b: &[Sample], by_turns: bool, seed: u64) -> PairFinding {
    let all = (&a.iter().collect::<Vec<_>>()[..], &b.iter().collect::<Vec<_>>()[..]);
    let behind = (&behind_pauses(a)[..], &behind_pauses(b)[..]);
    let block = |sample: &Sample| if by_turns { sample.turn } else { 0 };
    let log = |value: Option<f64>| value.filter(|value| *value > 0.0).map(f64::ln);
    PairFinding {
        a: 0,
        b: 0,
        restarts: difference(behind, &block, &restart_share, seed),
        link_demand: difference(all, &block, &link_demand, seed),
        log_throughput: difference(all, &block, &|of: &[&Sample]| log(throughput_bps(of)), seed),
        // The first transfer of a connection may end before its window is open.
        log_late_rate: difference(behind, &block, &|of: &[&Sample]| log(late_bps(of)), seed),
        growth_ms: difference(behind, &block, &growth_ms, seed),
        conditions_differ: Vec::new(),
    }
}

/// One measure of a pair.
type Measure = fn(&mut PairFinding) -> &mut Option<Difference>;

/// Replaces each p by its value after Holm.
fn correct(pairs: &mut [PairFinding], of: Measure) {
    let ps: Vec<f64> = pairs.iter_mut().filter_map(|pair| of(pair).map(|d| d.p)).collect();
    let mut corrected = holm(&ps).into_iter();
    for difference in pairs.iter_mut().filter_map(|pair| of(pair).as_mut()) {
        difference.p = corrected.next().unwrap_or(difference.p);
    }
}

fn differ(a: &GroupFinding, b: &GroupFinding) -> Vec<String> {
    let mut out = Vec::new();
    let both = |of: fn(&GroupFinding) -> Option<f64>| of(a).zip(of(b));
    let apart = |(a, b): (f64, f64), factor: f64| a.max(b) > factor * a.min(b);
    if let Some(pair) = both(|g| g.link_throughput_bps).filter(|p| apart(*p, LINK_FACTOR)) {
        let mbps = (pair.0 / 1e6, pair.1 / 1e6);
        out.push(format!("what the link carried ({:.1} and {:.1} Mbit/s)", mbps.0, mbps.1));
    }
    if let Some((a, b)) = both(|g| g.others_load).filter(|(a, b)| (a - b).abs() > LOAD_APART) {
        out.push(format!("cell load by other users ({:.0} and {:.0} %)", a * 100.0, b * 100.0));
    }
    if let Some((a, b)) = both(|g| g.rsrp_dbm).filter(|(a, b)| (a - b).abs() > RSRP_APART_DB) {
        out.push(format!("RSRP ({a:.0} and {b:.0} dBm)"));
    }
    if let Some((a, b)) = both(|g| g.bytes).filter(|p| apart(*p, SIZE_FACTOR)) {
        out.push(format!("the transfers' sizes ({:.0} and {:.0} kB)", a / 1e3, b / 1e3));
    }
    out
}

impl Judgement {
    fn conclude(&mut self) {
        let few = self.groups.iter().map(|group| group.transfers).min().unwrap_or_default();
        if self.groups.len() < 2 {
            return self.notes.push("there is only one group: nothing to compare it with".into());
        }
        if few < MIN_TRANSFERS {
            return self.notes.push(format!(
                "too few transfers: a group has {few}, and a test needs at least {MIN_TRANSFERS}"
            ));
        }
        if self.restarts() || self.throttling() || self.is_same() {
            return;
        }
        self.undecided();
    }

    /// Groups that restart, compared with those that do not.
    fn restarts(&mut self) -> bool {
        let of = |wanted| {
            let groups = self.groups.iter().enumerate();
            groups.filter(|(_, g)| g.restarts_slow_start == wanted).map(|(at, _)| at).collect()
        };
        let (about, against): (Vec<usize>, Vec<usize>) = (of(Restarts::Yes), of(Restarts::No));
        let between = self.between(&about, &against, |pair| pair.restarts);
        let Some(worst) = between.into_iter().map(|(p, _)| p).reduce(f64::max) else {
            return false;
        };
        if worst >= ALPHA {
            return false;
        }
        let differ = self.conditions_between(&about);
        if !self.by_turns && !differ.is_empty() {
            self.notes.push(format!("conditions were not the same: {}", differ.join(", ")));
            return false;
        }
        (self.outcome, self.confidence) = (ComparisonOutcome::Restarts, 1.0 - worst);
        (self.about, self.against) = (about, against);
        true
    }

    /// For pairs between two lists of groups: p, and the difference of the first list's
    /// value minus the second's.
    fn between(
        &self,
        about: &[usize],
        against: &[usize],
        of: fn(&PairFinding) -> Option<Difference>,
    ) -> Vec<(f64, f64)> {
        let pairs = self.pairs.iter().filter_map(|pair| {
            let difference = of(pair)?;
            let value = difference.estimate.value;
            if about.contains(&pair.b) && against.contains(&pair.a) {
                Some((difference.p, value))
            } else if about.contains(&pair.a) && against.contains(&pair.b) {
                Some((difference.p, -value))
            } else {
                None
            }
        });
        pairs.collect()
    }

    /// Conditions that differ between these groups and the rest.
    fn conditions_between(&self, about: &[usize]) -> Vec<String> {
        let across = |pair: &&PairFinding| about.contains(&pair.a) != about.contains(&pair.b);
        let pairs = self.pairs.iter().filter(across);
        pairs.flat_map(|pair| pair.conditions_differ.clone()).collect()
    }

    /// Groups whose rate stays below the best one's until the end of transfers.
    fn throttling(&mut self) -> bool {
        let rate = |group: &GroupFinding| group.late_rate_bps.map_or(0.0, |rate| rate.value);
        let best = (0..self.groups.len())
            .max_by(|a, b| {
                let of = |at: &usize| self.groups.get(*at).map_or(0.0, rate);
                of(a).total_cmp(&of(b))
            })
            .unwrap_or_default();
        let held: Vec<(usize, f64)> = (0..self.groups.len())
            .filter(|at| *at != best)
            .filter_map(|at| Some((at, self.is_held_down(at, best)?)))
            .collect();
        let Some(worst) = held.iter().map(|(_, p)| *p).reduce(f64::max) else { return false };
        let about: Vec<usize> = held.iter().map(|(at, _)| *at).collect();
        let against: Vec<usize> = (0..self.groups.len()).filter(|at| !about.contains(at)).collect();
        let differ = self.conditions_between(&about);
        if !differ.is_empty() {
            self.notes.push(format!("conditions were not the same: {}", differ.join(", ")));
            return false;
        }
        let seen = about
            .iter()
            .all(|at| self.groups.get(*at).is_some_and(|group| group.link_demand.is_some()));
        if !seen && !self.by_turns {
            self.notes.push(
                "rates differ, and nothing shows the radio's part in it: log the modem, or take \
                 the runs by turns"
                    .into(),
            );
            return false;
        }
        (self.outcome, self.confidence) = (ComparisonOutcome::Throttling, 1.0 - worst);
        (self.about, self.against) = (about, against);
        true
    }

    /// p, if a group's rate is throttled compared with another's.
    fn is_held_down(&self, at: usize, best: usize) -> Option<f64> {
        let (group, other) = (self.groups.get(at)?, self.groups.get(best)?);
        let (p, less) = self.between(&[at], &[best], |pair| pair.log_late_rate).first().copied()?;
        if p >= ALPHA || less > CAPPED.ln() || group.restarts_slow_start != Restarts::No {
            return None;
        }
        if group.link_demand.is_some_and(|demand| demand.value >= DOWNLINK_LIMITS) {
            return None;
        }
        if let (Some(own), Some(others)) = (group.link_demand, other.link_demand) {
            // A queue that is as full points to the downlink.
            let as_full = own.value > others.value - LESS_DEMAND;
            return (!as_full).then_some(p);
        }
        Some(p)
    }

    /// Whether all groups are the same to a user.
    fn is_same(&mut self) -> bool {
        let limit = SAME_FACTOR.ln();
        let within = self.pairs.iter().all(|pair| {
            let interval = pair.log_throughput.and_then(|d| d.estimate.low.zip(d.estimate.high));
            interval.is_some_and(|(low, high)| low > -limit && high < limit)
        });
        let differ = self.pairs.iter().any(|pair| {
            let measures = [pair.restarts, pair.link_demand, pair.log_late_rate];
            measures.iter().flatten().any(|difference| difference.p < ALPHA)
        });
        if !within || differ {
            return false;
        }
        (self.outcome, self.confidence) = (ComparisonOutcome::NoDifference, 0.95);
        let all = |wanted| self.groups.iter().all(|g| g.restarts_slow_start == wanted);
        if all(Restarts::Yes) {
            self.notes.push(
                "all of them restart slow start after pauses: the server does it, or a middlebox \
                 on all of their paths"
                    .into(),
            );
        }
        true
    }

    /// Adds the reason why there is no verdict.
    fn undecided(&mut self) {
        let sure: Vec<&PairFinding> = self
            .pairs
            .iter()
            .filter(|pair| {
                let measures = [pair.log_throughput, pair.link_demand, pair.restarts];
                measures.iter().flatten().any(|difference| difference.p < ALPHA)
            })
            .collect();
        if sure.is_empty() {
            // With enough transfers, an interval lacks turns.
            let mut rates = self.pairs.iter().filter_map(|pair| pair.log_throughput);
            let few = if rates.any(|of| of.estimate.low.is_none()) { "turns" } else { "transfers" };
            self.notes.push(format!(
                "too few {few}: the groups may differ by a quarter or more, or not at all"
            ));
        } else {
            let differ: Vec<String> =
                sure.iter().flat_map(|pair| pair.conditions_differ.clone()).collect();
            self.notes.push(if differ.is_empty() {
                "the groups differ by more than chance, but not in slow-start restarts or in a \
                 rate limit"
                    .to_owned()
            } else {
                format!("the groups differ, and so do conditions: {}", differ.join(", "))
            });
        }
        let is_unknown = self.groups.iter().any(|g| g.restarts_slow_start == Restarts::Unknown);
        if is_unknown && self.groups.iter().all(|g| g.behind_pauses < MIN_TRANSFERS) {
            self.notes.push(
                "too few transfers follow a pause of a second on an open connection: restarts of \
                 slow start cannot be seen"
                    .into(),
            );
        } else if is_unknown {
            self.notes.push(
                "not every group shows whether slow start restarts: that takes packets at the phone, of \
                 several transfers behind a pause"
                    .into(),
            );
        }
    }
}
