//! The same segments in two captures, in both directions.

use std::collections::BTreeMap;

use super::line::{Aligned, ClockLine, USUAL_DRIFT, Unaligned, through};

/// The fastest packet of each direction is searched in bins of this width (chosen here: a
/// drift of 500 ppm is half a millisecond in it).
const BIN_NS: i64 = 1_000_000_000;
/// Where seconds without a queue are rare, bins are widened up to this (chosen here:
/// enough to have the fastest packet of each direction at different times).
const LONGEST_BIN_NS: i64 = 64_000_000_000;
/// Where none of these has both directions, as of an upload that is answered at its end, one is widened up
/// to this (chosen here).
const ANY_BIN_NS: i64 = 4_096_000_000_000;
/// Evidence that covers less of the time gives no error for its ends (chosen here).
const COVERS: f64 = 0.6;
/// Bins whose fastest round trip is this near to the fastest of all had no queue (chosen
/// here: the variation by a scheduling request and a HARQ retransmission).
const NO_QUEUE_NS: i64 = 4_000_000;
/// Usual variation of a round trip, by waiting for a grant (chosen here: proxies of the lab exceed none
/// of their round trips, other runs exceed them by nearly the whole part beyond the proxy).
const JITTER_NS: i64 = 15_000_000;

/// The same byte of a connection at two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointPair {
    /// When it passed at the reference, in nanoseconds on its clock.
    pub reference_ns: i64,
    /// When it passed at the other place, in nanoseconds on that clock.
    pub other_ns: i64,
    /// Whether it went from the reference to the other place.
    pub outward: bool,
}

/// Aligns the other place's clock.
///
/// In each second (or a longer bin, if queues leave few of them) the fastest packet of
/// each direction bounds the offset, as nothing arrives before it was sent. Both
/// directions are assumed to take equally long, which is wrong by half of their sum at
/// most: that is `error_ns`. Seconds with a queue in either direction are left out, as by
/// the clock filter of NTP (RFC 5905, 10).
///
/// # Errors
///
/// Nothing passed both places, or no second has both directions.
pub fn between_points(pairs: &[PointPair]) -> Aligned {
    if pairs.is_empty() {
        return Err(Unaligned::Nothing);
    }
    fastest_of_both(pairs).ok_or(Unaligned::OneWay)
}

/// Whether a proxy between the places may split the connection that passed both: to the other place and
/// back then takes as long as both parts together, the round trip from the reference and that from the
/// other place. If it is shorter, each had the whole way, as in different runs. `None` if nothing passed
/// both, or one way alone.
#[must_use]
pub fn may_be_split(pairs: &[PointPair], [near_ns, far_ns]: [i64; 2]) -> Option<bool> {
    let (_, both_ns) = bin_widths_ns().find_map(|bin_ns| without_queue(pairs, bin_ns, |_| 0))?;
    let over_ns = near_ns.saturating_add(far_ns).saturating_sub(both_ns);
    Some(over_ns <= JITTER_NS.max(far_ns / 2))
}

/// Longer bins have both directions where queues leave few packets without delay.
fn bin_widths_ns() -> impl Iterator<Item = i64> {
    std::iter::successors(Some(BIN_NS), |ns| Some(ns * 4)).take_while(|ns| *ns <= ANY_BIN_NS)
}

fn fastest_of_both(pairs: &[PointPair]) -> Option<ClockLine> {
    let first_ns = pairs.iter().map(|pair| pair.reference_ns).min()?;
    let last_ns = pairs.iter().map(|pair| pair.reference_ns).max()?;
    let covers =
        |line: &ClockLine| 2.0 * line.half_span_ns as f64 >= (last_ns - first_ns) as f64 * COVERS;
    let mut best: Option<ClockLine> = None;
    for bin_ns in bin_widths_ns() {
        let is_wide = bin_ns > LONGEST_BIN_NS;
        if is_wide && best.is_some() {
            break;
        }
        let drifted_ns = if is_wide { (bin_ns as f64 * USUAL_DRIFT) as i64 } else { 0 };
        // The known drift moves nothing within a bin.
        let drift = best.map_or(0.0, |line| line.drift_ppm * 1e-6);
        let gained = |at_ns: i64| ((at_ns - first_ns) as f64 * drift).round() as i64;
        if let Some((samples, fastest)) = without_queue(pairs, bin_ns, gained)
            && let Some(line) = through(&samples, fastest / 2 + drifted_ns)
        {
            let rank = |line: &ClockLine| (!covers(line), line.error_ns);
            if best.is_none_or(|best| rank(&line) < rank(&best)) {
                best = Some(line);
            }
        }
    }
    best.map(|line| ClockLine { n: pairs.len(), ..line })
}

/// `(reference time, other - reference)` of bins without a queue, and the fastest round
/// trip; `None` if no bin has both directions.
fn without_queue(
    pairs: &[PointPair],
    bin_ns: i64,
    gained: impl Fn(i64) -> i64,
) -> Option<(Vec<(i64, i64)>, i64)> {
    let mut bins: BTreeMap<i64, DelayBin> = BTreeMap::new();
    for pair in pairs {
        let later = pair.other_ns - pair.reference_ns - gained(pair.reference_ns);
        bins.entry(pair.reference_ns.div_euclid(bin_ns)).or_default().apply(pair.outward, later);
    }
    let both = bins.iter().filter_map(|(bin, ways)| Some((*bin, ways.out?, ways.back?)));
    // A negative round trip comes from mismatched bytes.
    let both: Vec<(i64, i64, i64)> = both.filter(|(_, out, back)| out + back >= 0).collect();
    let fastest = both.iter().map(|(_, out, back)| out + back).min()?;
    let samples = both
        .iter()
        .filter(|(_, out, back)| out + back <= fastest + NO_QUEUE_NS)
        .map(|(bin, out, back)| {
            let at_ns = bin * bin_ns + bin_ns / 2;
            (at_ns, (out - back) / 2 + gained(at_ns))
        })
        .collect();
    Some((samples, fastest))
}

/// The fastest packet of each direction, by two clocks.
#[derive(Default)]
struct DelayBin {
    out: Option<i64>,
    back: Option<i64>,
}

impl DelayBin {
    fn apply(&mut self, outward: bool, later: i64) {
        let (way, took) = if outward { (&mut self.out, later) } else { (&mut self.back, -later) };
        *way = Some(way.map_or(took, |least| least.min(took)));
    }
}
