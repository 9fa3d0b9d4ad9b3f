//! Aligns an application's transfers to the bytes received or sent.

use airmile_model::spans::merged;

use super::arrivals::Arrivals;
use super::correlate::{FAR_COST, best_lag};
use super::line::{Aligned, ClockLine, USUAL_DRIFT, Unaligned, through};

/// Bin width of the search, and the length compared (chosen here).
const BIN_NS: i64 = 10_000_000;
const SPAN_NS: i64 = 600_000_000_000;
/// A transfer may pause for about a round trip (chosen here).
const LINGER_BINS: i32 = 8;
/// As for arrivals; transfers are a coarser shape than bytes (chosen here).
const MIN_SCORE: f64 = 0.35;
const LEAD: f64 = 0.02;
/// A pause after a transfer's last byte, by which the end is found (chosen here).
const PAUSE_NS: i64 = 20_000_000;
/// Search range for the last byte around its expected time (chosen here).
const REACH_NS: i64 = 400_000_000;
/// Ends that agree lie within this of a line (chosen here).
const SAME_NS: i64 = 6_000_000;
/// Maximum number of pauses near ends to compare, and of drifts to try (chosen here).
const MAX_CANDIDATES: usize = 2_000;
const MAX_DRIFTS: i64 = 200;
/// Smaller arrivals are no data of a transfer: ACKs, the end of a connection (chosen
/// here).
const MIN_BYTES: u32 = 200;
/// The same of an answer to an upload: the headers of IPv4 and TCP.
const MIN_ANSWER_BYTES: u32 = 40;
/// A quarter of the range of nanoseconds: 73 years.
const FAR_NS: i64 = i64::MAX / 4;
/// With fewer agreeing ends, a clock is moved by at most this (chosen here).
const ENOUGH: usize = 3;
const FEW_OFFSET_NS: i64 = 1_500_000_000;
/// Minimum share of the bytes that pass in transfers by their own clock, or in uploads where their times
/// match, which also pass in them where their ends do (chosen here: a round trip at an end).
const CARRIED: f64 = 0.8;
/// Minimum delay until an application receives its last byte (chosen here).
const FLOOR_NS: i64 = 3_000_000;

/// Aligns the clock of `transfers` (start and end in nanoseconds) to that of the bytes
/// received.
///
/// # Errors
/// No offset matches, or several do; or no transfer's end can be found.
pub fn align_transfers(
    reference: &Arrivals,
    transfers: &[(i64, i64)],
    max_offset_ns: i64,
) -> Aligned {
    let ends = Ends { came: reference, min_bytes: MIN_BYTES, sent: None };
    align(reference, &ends, transfers, max_offset_ns)
}

/// The same of uploads, to the bytes sent and received: an upload ends with the answer, a round trip
/// after its last byte left.
///
/// # Errors
/// No offset matches, or several do; or answers and ends do not agree on one at which the bytes pass.
pub fn align_uploads(
    [sent, came]: [&Arrivals; 2],
    uploads: &[(i64, i64)],
    max_offset_ns: i64,
) -> Aligned {
    let ends = Ends { came, min_bytes: MIN_ANSWER_BYTES, sent: Some(sent) };
    align(sent, &ends, uploads, max_offset_ns)
}

/// The bytes of which the last ones end transfers.
struct Ends<'a> {
    came: &'a Arrivals,
    min_bytes: u32,
    /// Of uploads: their own bytes, all of which left before.
    sent: Option<&'a Arrivals>,
}

fn align(
    reference: &Arrivals,
    ends: &Ends<'_>,
    transfers: &[(i64, i64)],
    max_offset_ns: i64,
) -> Aligned {
    // A table may hold any number; no clock is that far from 1970.
    let sane = |(start, end): &(i64, i64)| -FAR_NS < *start && start <= end && *end < FAR_NS;
    let transfers: Vec<(i64, i64)> = transfers.iter().copied().filter(sane).collect();
    // Few transfers match many places: only near ones are considered.
    let few = transfers.len() < ENOUGH;
    let max_offset_ns = if few { max_offset_ns.min(FEW_OFFSET_NS) } else { max_offset_ns };
    let (start, end) =
        most_within(reference, &transfers, max_offset_ns).ok_or(Unaligned::Nothing)?;
    // A margin before and after them, in which nothing should have arrived.
    let margin = (end - start).clamp(1_000_000_000, 10_000_000_000);
    let (from, to) = (start - margin, end.min(start + SPAN_NS) + margin);
    let bins = |span: i64| usize::try_from(span / BIN_NS).map_err(|_| Unaligned::Nothing);
    let (n, reach) = (bins(to - from)?, bins(max_offset_ns)?);
    let series = busy(reference, from - max_offset_ns, n + 2 * reach);
    let peak = best_lag(&series, &under_way(&transfers, from, n), reach, FAR_COST)
        .filter(|peak| peak.score >= MIN_SCORE)
        .ok_or(Unaligned::Unlike)?;
    if peak.at_border {
        return Err(Unaligned::TooFar);
    }
    if peak.score - peak.next < LEAD {
        return Err(Unaligned::Ambiguous);
    }
    let offset_ns = |lag: f64| -((lag * BIN_NS as f64) as i64);
    let expected = offset_ns(peak.lag);
    let middle = start + (end - start) / 2;
    let near = |end: i64| {
        let strayed = ((end - middle).abs() as f64 * USUAL_DRIFT) as i64;
        ends.pauses(end - expected, REACH_NS + strayed)
    };
    let candidates: Vec<(i64, i64)> = transfers
        .iter()
        .flat_map(|(_, end)| near(*end).map(move |last| (last, end - last)))
        .collect();
    let (samples, spread_ns) = on_a_line(&candidates, expected);
    // Any pause of the answers is near some end: most uploads must have the same offset.
    let n_ends = || transfers.iter().filter(|(_, end)| near(*end).next().is_some()).count();
    if ends.sent.is_some() && 2 * samples.len() <= n_ends() {
        return Err(Unaligned::Unlike);
    }
    let mut line = through(&samples, FLOOR_NS).ok_or(Unaligned::Unlike)?;
    line.error_ns = line.error_ns.max(spread_ns);
    if samples.len() < ENOUGH && line.offset_ns.abs() > FEW_OFFSET_NS {
        return Err(Unaligned::Unlike);
    }
    // A pause near an end may be any other one.
    let active = merged(transfers.clone());
    let carried = |to_reference: &dyn Fn(i64) -> i64| {
        let of = |(start, end): &(i64, i64)| {
            let inside = reference.within(to_reference(*start), to_reference(*end));
            inside.points().iter().map(|(_, bytes)| f64::from(*bytes)).sum::<f64>()
        };
        active.iter().map(of).sum::<f64>()
    };
    let matched = if ends.sent.is_some() { carried(&|ns| ns - expected) } else { 0.0 };
    let most = matched.max(carried(&|ns| ns));
    if carried(&|ns| line.to_reference(ns)) < CARRIED * most {
        return Err(Unaligned::Unlike);
    }
    Ok(ClockLine { rival_ns: peak.rival.map(offset_ns), ..line })
}

/// The [`SPAN_NS`] with the most transfer starts, among transfers that the reference can
/// have covered: from the first start to the last end.
fn most_within(
    reference: &Arrivals,
    transfers: &[(i64, i64)],
    max_offset_ns: i64,
) -> Option<(i64, i64)> {
    let watched = reference.start_ns()?.saturating_sub(max_offset_ns)
        ..=reference.end_ns()?.saturating_add(max_offset_ns);
    let mut inside: Vec<(i64, i64)> =
        transfers.iter().copied().filter(|(start, _)| watched.contains(start)).collect();
    inside.sort_unstable();
    let reached = |from: i64| inside.partition_point(|(start, _)| *start <= from + SPAN_NS);
    let (first, last) = inside
        .iter()
        .enumerate()
        .map(|(i, (start, _))| (i, reached(*start)))
        .max_by_key(|(i, last)| (last - i, std::cmp::Reverse(*i)))?;
    let part = inside.get(first..last)?;
    Some((part.first()?.0, part.iter().map(|transfer| transfer.1).max()?))
}

/// The largest set of candidates `(time, offset)` that lie within [`SAME_NS`] of one
/// line, at any drift that clocks have: where several ends are near, the wrong ones vary
/// from transfer to transfer. Also how far from it the farthest other set is that is nearly as
/// large (two thirds, chosen here): any of them may be the right one.
fn on_a_line(candidates: &[(i64, i64)], expected_ns: i64) -> (Vec<(i64, i64)>, i64) {
    let step = candidates.len().div_ceil(MAX_CANDIDATES).max(1);
    let some: Vec<(i64, i64)> = candidates.iter().copied().step_by(step).collect();
    let (Some(first), Some(last)) =
        (some.iter().map(|c| c.0).min(), some.iter().map(|c| c.0).max())
    else {
        return (Vec::new(), 0);
    };
    let (middle, half) = (first + (last - first) / 2, ((last - first) / 2).max(1) as f64);
    // Adjacent drifts move an end by half of the tolerance.
    let n_drifts = ((half * USUAL_DRIFT / (SAME_NS / 2) as f64) as i64).min(MAX_DRIFTS);
    let turned = |(at, offset): &(i64, i64), drift: f64| {
        offset - ((at - middle) as f64 * drift).round() as i64
    };
    let drift_of = |step: i64| step as f64 * USUAL_DRIFT / n_drifts.max(1) as f64;
    let best = (-n_drifts..=n_drifts)
        .filter_map(|step| {
            let offsets = some.iter().map(|candidate| turned(candidate, drift_of(step)));
            let (n, from) = densest(offsets.collect(), expected_ns)?;
            let far = (from - expected_ns).abs();
            Some((n, std::cmp::Reverse((step.abs(), far)), step, from))
        })
        .max();
    let Some((n, _, step, from)) = best else { return (Vec::new(), 0) };
    let offsets = some.iter().map(|candidate| turned(candidate, drift_of(step)));
    let spread_ns = farthest(offsets.collect(), (n * 2 / 3).max(1), from);
    let on = |candidate: &&(i64, i64)| {
        (from..=from + SAME_NS).contains(&turned(candidate, drift_of(step)))
    };
    let mut samples: Vec<(i64, i64)> = candidates.iter().filter(on).copied().collect();
    samples.sort_unstable();
    (samples, spread_ns)
}

/// The densest window of [`SAME_NS`]: number of offsets in it, and where it starts; of
/// several, the nearest to the expected offset.
fn densest(mut offsets: Vec<i64>, expected_ns: i64) -> Option<(usize, i64)> {
    offsets.sort_unstable();
    let within = |(i, from): (usize, &i64)| {
        let n = offsets.partition_point(|offset| offset - from <= SAME_NS) - i;
        (n, std::cmp::Reverse((from - expected_ns).abs()), *from)
    };
    offsets.iter().enumerate().map(within).max().map(|(n, _, from)| (n, from))
}

/// How far from `best_ns` the farthest window is that begins beyond its end, or ends before it, and
/// has at least `n` offsets; 0 without one.
fn farthest(mut offsets: Vec<i64>, n: usize, best_ns: i64) -> i64 {
    offsets.sort_unstable();
    let apart = |from: &i64| (from - best_ns).abs();
    let others = offsets.iter().enumerate().filter(|(i, from)| {
        apart(from) > SAME_NS
            && offsets.partition_point(|offset| offset - **from <= SAME_NS) - i >= n
    });
    others.map(|(_, from)| apart(from)).max().unwrap_or(0)
}

/// 1 in the bins in which, or just before which, data arrived.
fn busy(reference: &Arrivals, from_ns: i64, n: usize) -> Vec<f32> {
    let bins = reference.bins(from_ns, BIN_NS, n);
    let mut left = 0;
    let mut out = Vec::with_capacity(n);
    for bytes in bins {
        left = if bytes > 0.0 { LINGER_BINS } else { left - 1 };
        out.push(f32::from(left > 0));
    }
    out
}

/// 1 in the bins in which a transfer was in progress.
fn under_way(transfers: &[(i64, i64)], from_ns: i64, n: usize) -> Vec<f32> {
    let mut bins = vec![0.0_f32; n];
    for (start, end) in transfers {
        let bin = |at: i64| usize::try_from((at - from_ns) / BIN_NS).unwrap_or(0).min(n);
        if let Some(span) = bins.get_mut(bin(*start)..bin(*end).max(bin(*start))) {
            span.fill(1.0);
        }
    }
    bins
}

impl Ends<'_> {
    /// The last arrivals before pauses, within `reach_ns` of a time.
    fn pauses(&self, near_ns: i64, reach_ns: i64) -> impl Iterator<Item = i64> {
        let data = large(self.came, near_ns - reach_ns, self.min_bytes);
        let later = large(self.came, near_ns - reach_ns, self.min_bytes).skip(1);
        data.zip(later.chain([i64::MAX]))
            .take_while(move |(at, _)| *at <= near_ns + reach_ns)
            .filter(|(at, next)| next.saturating_sub(*at) >= PAUSE_NS)
            .map(|(at, _)| at)
            .filter(|at| self.sent.is_none_or(|sent| !goes_on(sent, *at)))
    }
}

/// Whether data of an upload left within a pause.
fn goes_on(sent: &Arrivals, from_ns: i64) -> bool {
    large(sent, from_ns, MIN_BYTES).next().is_some_and(|at| at - from_ns < PAUSE_NS)
}

/// The arrivals from a time on that have a number of bytes or more.
fn large(of: &Arrivals, from_ns: i64, min_bytes: u32) -> impl Iterator<Item = i64> {
    let points = of.points();
    let first = points.partition_point(|point| point.0 < from_ns);
    points.iter().skip(first).filter(move |(_, bytes)| *bytes >= min_bytes).map(|(at, _)| *at)
}
