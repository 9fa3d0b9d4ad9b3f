//! Bytes seen at two places without a queue in between: delivered by the radio, and
//! received by the phone's IP stack.

use super::correlate::{FAR_COST, Peak, best_lag};
use super::line::{Aligned, ClockLine, USUAL_DRIFT, Unaligned, through};

/// Bytes within this time are one arrival (chosen here: half a TTI).
const MERGE_NS: i64 = 500_000;
/// Bin width of the coarse search, and the length of log that it compares (chosen here).
const COARSE_BIN_NS: i64 = 10_000_000;
const COARSE_SPAN_NS: i64 = 120_000_000_000;
const MARGIN_NS: i64 = 2_000_000_000;
/// Bin width of the fine search, and the length of the pieces compared (chosen here: the
/// TTI of LTE; a drift of 100 ppm moves a piece's end by 0.4 ms).
const FINE_BIN_NS: i64 = 1_000_000;
const PIECE_NS: i64 = 4_000_000_000;
/// Minimum number of arrivals in a piece (chosen here: fewer match anywhere).
const PIECE_ARRIVALS: usize = 10;
/// Maximum distance of a piece from its expected place (chosen here).
const FINE_REACH: usize = 40;
/// Additional distance allowed for a clock's drift over a silence (chosen here: 100 ppm
/// of an hour).
const MAX_STRAY_NS: i64 = 360_000_000;
/// Maximum number of pieces compared, spread over the log (chosen here).
const MAX_PIECES: usize = 60;
/// Minimum correlation of a match, and its minimum lead over the next best (chosen here;
/// unrelated traffic stays below 0.2; of 660 pieces of 250 runs with NR, those with the lead were at most
/// 4 ms off, and 31 of 52 without were up to 108 ms).
const COARSE_SCORE: f64 = 0.35;
const COARSE_LEAD: f64 = 0.04;
const FINE_SCORE: f64 = 0.35;
const FINE_LEAD: f64 = 0.05;
/// Minimum coarse correlation that places a clock where no piece matches (chosen here: a split bearer's
/// receiver holds back what came before the other leg's bytes, and passes it on in lumps: 175 such runs
/// have 0.58 and more, others of such runs mostly less).
const COARSE_ALONE_SCORE: f64 = 0.57;
/// Error of that place: bytes that wait for the other leg's (chosen here: up to 79 ms in these runs).
const ALONE_ERROR_NS: i64 = 80_000_000;
/// Maximum distance of places that fit equally well, for a place with that error, and as a part of a longer
/// capture: packets at one distance behind a slow line fit at each multiple of it (chosen here: up to 400 ms
/// in such runs of 55 s).
const REPEATS_NS: i64 = 500_000_000;
const REPEATS_PART: i64 = 50;
/// Variation of the delay from the radio to the IP stack (chosen here: HARQ and
/// reordering, one TTI of the bins).
const FLOOR_NS: i64 = 2_000_000;

/// Length of the parts of which each shows the offset by itself, their minimum correlation and lead, and
/// how far they are searched (chosen here: at 0.6 no part of 70 runs strayed, and parts after a jump by
/// 200 ms did in 52 of 55).
const PART_NS: i64 = 2_000_000_000;
const PART_SCORE: f64 = 0.6;
const PART_LEAD: f64 = 0.1;
const PART_REACH_NS: i64 = 10_000_000_000;
/// A part strays if its place differs by more (chosen here: ten bins). One stray part in so few of those
/// that agree is a jump.
const STRAY_NS: f64 = 100e6;
const AGREE_PER_STRAY: usize = 4;

/// Bytes by time of passage, in order.
#[derive(Debug, Clone, Default)]
pub struct Arrivals {
    points: Vec<(i64, u32)>,
}

impl Arrivals {
    /// Nothing has passed yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { points: Vec::new() }
    }

    /// Adds bytes; a time before the last one counts as the last one.
    pub fn add(&mut self, at_ns: i64, bytes: u32) {
        match self.points.last_mut() {
            _ if bytes == 0 => {}
            Some((last, sum)) if at_ns.saturating_sub(*last) < MERGE_NS => {
                *sum = sum.saturating_add(bytes)
            }
            _ => self.points.push((at_ns, bytes)),
        }
    }

    /// Appends later arrivals; returns `false`, without a change, if they are not later.
    pub fn append(&mut self, later: &Self) -> bool {
        let after = self.end_ns().is_none_or(|end| later.start_ns().is_none_or(|from| from >= end));
        if after {
            self.points.extend_from_slice(&later.points);
        }
        after
    }

    /// Merged with another list from the same place.
    #[must_use]
    pub fn merged(self, other: &Self) -> Self {
        let mut points = self.points;
        points.extend_from_slice(&other.points);
        points.sort_unstable();
        let mut out = Self::new();
        points.into_iter().for_each(|(at, bytes)| out.add(at, bytes));
        out
    }

    /// The arrivals in a span.
    pub(super) fn within(&self, from_ns: i64, to_ns: i64) -> Self {
        let first = self.points.partition_point(|point| point.0 < from_ns);
        let last = self.points.partition_point(|point| point.0 <= to_ns).max(first);
        Self { points: self.points.get(first..last).unwrap_or_default().to_vec() }
    }

    /// The arrivals: nanoseconds and bytes.
    #[must_use]
    pub fn points(&self) -> &[(i64, u32)] {
        &self.points
    }

    /// Time of the first bytes, in nanoseconds.
    #[must_use]
    pub fn start_ns(&self) -> Option<i64> {
        self.points.first().map(|point| point.0)
    }

    /// Time of the last bytes, in nanoseconds.
    #[must_use]
    pub fn end_ns(&self) -> Option<i64> {
        self.points.last().map(|point| point.0)
    }

    /// Square root of the bytes per bin from a time on: the shape of a burst counts more
    /// than its height, since headers and padding are on one side only.
    pub(super) fn bins(&self, from_ns: i64, bin_ns: i64, n: usize) -> Vec<f32> {
        let mut out = vec![0.0_f32; n];
        let first = self.points.partition_point(|point| point.0 < from_ns);
        for (at, bytes) in self.points.iter().skip(first) {
            let bin = usize::try_from((at - from_ns) / bin_ns).unwrap_or(usize::MAX);
            let Some(slot) = out.get_mut(bin) else { break };
            *slot += *bytes as f32;
        }
        out.iter_mut().for_each(|slot| *slot = slot.sqrt());
        out
    }

    /// When pieces with arrivals begin; of very long lists some of them.
    fn begins(&self, piece_ns: i64) -> Vec<i64> {
        let start = self.start_ns().unwrap_or(0);
        let mut all: Vec<i64> =
            self.points.iter().map(|(at, _)| at - (at - start) % piece_ns).collect();
        all.dedup();
        let step = all.len().div_ceil(MAX_PIECES).max(1);
        all.into_iter().step_by(step).collect()
    }

    /// The span of the log with the most starts and ends, which is the easiest to match.
    pub(super) fn liveliest(&self, span_ns: i64) -> Option<(i64, i64)> {
        const PAUSE_NS: i64 = 50_000_000;
        let (start, end) = (self.start_ns()?, self.end_ns()?);
        if end.saturating_sub(start) <= span_ns {
            return Some((start, end.saturating_add(1)));
        }
        let starts: Vec<i64> = self
            .points
            .windows(2)
            .filter_map(|pair| match pair {
                [(last, _), (at, _)] if at.saturating_sub(*last) >= PAUSE_NS => Some(*at),
                _ => None,
            })
            .collect();
        let most = starts
            .iter()
            .enumerate()
            .map(|(i, from)| {
                (
                    starts.partition_point(|at| *at < from.saturating_add(span_ns)) - i,
                    std::cmp::Reverse(*from),
                )
            })
            .max();
        let from = most.map_or(start, |(_, from)| from.0).min(end - span_ns);
        Some((from, from + span_ns))
    }
}

/// Aligns `other`'s clock to the `reference`'s, where both saw the same bytes at most
/// `max_offset_ns` apart.
///
/// # Errors
/// No offset matches, several do, or parts match at different ones.
pub fn between_arrivals(reference: &Arrivals, other: &Arrivals, max_offset_ns: i64) -> Aligned {
    let span = reference.start_ns().zip(reference.end_ns()).ok_or(Unaligned::Nothing)?;
    // Bytes outside the reference's time range are no evidence.
    let other =
        &other.within(span.0.saturating_sub(max_offset_ns), span.1.saturating_add(max_offset_ns));
    let (from, to) = other.liveliest(COARSE_SPAN_NS).ok_or(Unaligned::Nothing)?;
    // The silence around a steady stream shows where it begins and ends.
    let margin = ((to - from) / 2).min(MARGIN_NS);
    let around = (from - margin, to + margin);
    let search =
        Search { offset_ns: 0, bin_ns: COARSE_BIN_NS, reach_ns: max_offset_ns, far_cost: FAR_COST };
    let peak = place(reference, other, around, &search)
        .filter(|peak| peak.score >= COARSE_SCORE)
        .ok_or(Unaligned::Unlike)?;
    if peak.at_border {
        return Err(Unaligned::TooFar);
    }
    let offset_ns = |lag: f64| -((lag * COARSE_BIN_NS as f64) as i64);
    let repeats = peak.score - peak.next < COARSE_LEAD;
    let unsure_ns = if repeats { -offset_ns(peak.reach) } else { 0 };
    if unsure_ns > REPEATS_NS.max((to - from) / REPEATS_PART) {
        return Err(Unaligned::Ambiguous);
    }
    let coarse_ns = offset_ns(peak.lag);
    let samples = pieces(reference, other, (from, to), coarse_ns);
    // A link that is never idle delivers the same in each TTI: its pieces match nowhere.
    let alone = || {
        let sample = (from + (to - from) / 2 - coarse_ns, coarse_ns);
        let line = through(&[sample], ALONE_ERROR_NS)?;
        (peak.score >= COARSE_ALONE_SCORE).then_some(ClockLine { n: 0, ..line })
    };
    let line = through(&samples, FLOOR_NS).or_else(alone).ok_or(Unaligned::Unlike)?;
    if jumps(reference, other, &line) {
        return Err(Unaligned::Jumps);
    }
    let rival_ns = peak.rival.filter(|_| !repeats).map(offset_ns);
    Ok(ClockLine { error_ns: line.error_ns.saturating_add(unsure_ns), rival_ns, ..line })
}

/// Where bytes are searched.
struct Search {
    /// The expected offset of `other` from the reference.
    offset_ns: i64,
    bin_ns: i64,
    /// Maximum distance from it.
    reach_ns: i64,
    /// See [`best_lag`].
    far_cost: f64,
}

/// Finds the bytes of a span of `other` in the reference; the lag is how much earlier than expected they
/// are there.
fn place(
    reference: &Arrivals,
    other: &Arrivals,
    (from, to): (i64, i64),
    search: &Search,
) -> Option<Peak> {
    let Search { offset_ns, bin_ns, reach_ns, far_cost } = *search;
    let n = usize::try_from((to - from) / bin_ns).ok()?;
    let reach = usize::try_from(reach_ns / bin_ns).ok()?;
    let pattern = other.bins(from, bin_ns, n);
    let first = from.checked_sub(offset_ns)?.checked_sub(reach as i64 * bin_ns)?;
    best_lag(&reference.bins(first, bin_ns, n + 2 * reach), &pattern, reach, far_cost)
}

/// `(reference time, other - reference)` of pieces of the log, starting with those that
/// gave the offset and following its drift from there.
fn pieces(
    reference: &Arrivals,
    other: &Arrivals,
    (from, to): (i64, i64),
    offset_ns: i64,
) -> Vec<(i64, i64)> {
    let Some(end) = other.end_ns() else { return Vec::new() };
    let middle = from + (to - from) / 2;
    let mut all = other.begins(PIECE_NS);
    // Nearest first: the drift is then known for the far ones.
    all.sort_by_key(|at| (at - middle).abs());
    let mut out: Vec<(i64, i64)> = Vec::new();
    for at in all {
        let line = through(&out, 0);
        let expected = line.map_or(offset_ns, |line| line.offset_at_ns(at - line.offset_ns));
        let nearest = out.iter().map(|(found, _)| (at - found).abs()).min().unwrap_or(0);
        let strayed = (nearest as f64 * USUAL_DRIFT) as i64;
        let reach_ns = FINE_REACH as i64 * FINE_BIN_NS + strayed.min(MAX_STRAY_NS);
        let span = (at, at + PIECE_NS.min(end - at + FINE_BIN_NS));
        if other.within(span.0, span.1).points.len() < PIECE_ARRIVALS {
            continue;
        }
        let search = Search { offset_ns: expected, bin_ns: FINE_BIN_NS, reach_ns, far_cost: 0.0 };
        let peak = place(reference, other, span, &search);
        let clear = |p: &Peak| p.score >= FINE_SCORE && p.score - p.next >= FINE_LEAD;
        if let Some(peak) = peak.filter(clear).filter(|p| !p.at_border) {
            let offset = expected - (peak.lag * FINE_BIN_NS as f64).round() as i64;
            out.push((span.0 + (span.1 - span.0) / 2 - offset, offset));
            out.sort_unstable();
        }
    }
    out
}

/// Whether parts of `other` clearly match elsewhere than by `line`, as after a clock was set.
fn jumps(reference: &Arrivals, other: &Arrivals, line: &ClockLine) -> bool {
    let Some(end) = other.end_ns() else { return false };
    let begins = other.begins(PART_NS).into_iter().filter(|at| end - at >= PART_NS / 2);
    let clear_lag = |at: i64| {
        let span = (at, at + PART_NS.min(end - at + FINE_BIN_NS));
        let offset_ns = line.offset_at_ns(at - line.offset_ns);
        let (bin_ns, reach_ns) = (COARSE_BIN_NS, PART_REACH_NS);
        let search = Search { offset_ns, bin_ns, reach_ns, far_cost: 0.0 };
        let peak = place(reference, other, span, &search)?;
        let is_clear = peak.score >= PART_SCORE && peak.score - peak.next >= PART_LEAD;
        (is_clear && !peak.at_border).then_some(peak.lag * COARSE_BIN_NS as f64)
    };
    let lags: Vec<f64> = begins.filter_map(clear_lag).collect();
    let strays = |lag: &f64| lag.abs() > STRAY_NS;
    let agree = lags.iter().filter(|lag| !strays(lag)).count();
    // A clock that was set stays so: a part alone between others strays by chance.
    let stays = |n: &usize| {
        let at = |n: Option<usize>| n.and_then(|n| lags.get(n));
        let strays_with = |lag: &f64, other: Option<&f64>| match other {
            Some(other) if agree == 0 => (other - lag).abs() <= STRAY_NS,
            other => agree > 0 && other.is_none_or(strays),
        };
        let near = [n.checked_sub(1), n.checked_add(1)].map(at);
        at(Some(*n)).is_some_and(|lag| strays(lag) && near.iter().any(|one| strays_with(lag, *one)))
    };
    let stray = (0..lags.len()).filter(stays).count();
    stray > 0 && stray * AGREE_PER_STRAY >= agree
}
