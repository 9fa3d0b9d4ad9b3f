//! Whether two lists of arrivals show the same bytes.

use super::arrivals::Arrivals;
use super::line::Aligned;

/// Bin width (chosen here: several times the variation of the delay from the radio to the IP
/// stack, which tethering raises to 10 ms).
const BIN_NS: i64 = 50_000_000;
/// Bytes of the radio for each byte of payload: headers of TCP/IP, PDCP, RLC and MAC, and
/// retransmissions (chosen here; 1.04 to 1.2 on the lab's and other runs).
const HEADERS: f64 = 1.12;
/// Offsets tried on each side of a known one, in half bins.
const NEAR_STEPS: i64 = 4;
const STEP_NS: i64 = BIN_NS / 2;
/// Cost of the maximum offset: of equal matches the nearest one counts (chosen here).
const FAR_COST: f64 = 0.05;
/// An offset at which less than this share of the smaller side's bytes is common time is not
/// tried, except for the clocks' own (chosen here).
const MIN_COMMON: f64 = 0.5;
/// Maximum length compared (chosen here, as for the alignment).
const SPAN_NS: i64 = 120_000_000_000;
/// Minimum common time and bytes on each side for a comparison (chosen here: below it, unrelated
/// runs match by chance).
const MIN_NS: i64 = 1_000_000_000;
const MIN_BYTES: f64 = 100_000.0;
/// Bins of [`Likeness::shape`]: 500 ms (chosen here: a split bearer's receiver holds bytes back for up to
/// 100 ms, until the other leg's came).
const SHAPE_BINS: usize = 10;

/// How far two lists of arrivals agree, over the time that both cover.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likeness {
    /// Share of the smaller side's bytes that the other shows at the same time: about 1 for the
    /// same traffic, even where a filter or holes in a log removed a part of one side.
    pub common: f64,
    /// Share of the bytes that pass in the same 500 ms by the clocks as aligned, or else as they are,
    /// each side's as a share of its own: for bytes that are held back, where no filter removed any.
    pub shape: f64,
    /// Bytes of the reference and of the other in all bins where both show some.
    pub bytes: [u64; 2],
}

impl Likeness {
    /// Bytes of the other for each byte of the reference, where both show some.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        let [reference, other] = self.bytes;
        other as f64 / reference.max(1) as f64
    }
}

/// Compares arrivals at the offset of `aligned` or, without one, at the best within
/// `max_offset_ns`. `None` if they have too little time or too few bytes in common.
#[must_use]
pub fn likeness(
    reference: &Arrivals,
    other: &Arrivals,
    aligned: &Aligned,
    max_offset_ns: i64,
) -> Option<Likeness> {
    let far = |ns: Option<i64>, by_ns: i64| Some(ns?.saturating_add(by_ns));
    let (from, to) =
        far(reference.start_ns(), -max_offset_ns).zip(far(reference.end_ns(), max_offset_ns))?;
    let (from, to) = other.within(from, to).liveliest(SPAN_NS)?;
    let mut moved = Arrivals::new();
    for (at, bytes) in other.within(from, to).points() {
        let at = aligned.as_ref().map_or(*at, |line| line.to_reference(*at));
        moved.add(at, *bytes);
    }
    let steps = if aligned.is_ok() { NEAR_STEPS } else { max_offset_ns / STEP_NS };
    let margin_ns = steps.checked_mul(STEP_NS)?.checked_add(2 * BIN_NS)?;
    let from = moved.start_ns()?.checked_sub(margin_ns)?;
    let to = moved.end_ns()?.checked_add(margin_ns)?;
    let n = usize::try_from(to.checked_sub(from)? / BIN_NS).ok()?.checked_add(2)?;
    let (radio, moved) = (steps_of(reference, from, n), steps_of(&moved, from, n));
    let radio = Bins::new(&radio, 0, n)?;
    let at = |step: i64| Some((step, radio.compare(&Bins::new(&moved, step, n)?, step)?));
    let all: Vec<(i64, Agreement)> = (-steps..=steps).filter_map(at).collect();
    let near = all.iter().filter(|(step, _)| step.abs() <= NEAR_STEPS);
    let shape = near.map(|(_, found)| found.shape).fold(0.0, f64::max);
    let score = |(step, found): &(i64, Agreement)| {
        found.whole - FAR_COST * step.abs() as f64 / steps.max(1) as f64
    };
    let (step, Agreement { common, .. }) =
        all.into_iter().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    Some(Likeness { common, shape, bytes: radio.bytes_in_both(&Bins::new(&moved, step, n)?)? })
}

/// Bytes of each step in the time of `n` bins.
fn steps_of(arrivals: &Arrivals, from_ns: i64, n: usize) -> Vec<f64> {
    let mut steps = vec![0.0; 2 * n];
    let to_ns = from_ns.saturating_add((n as i64).saturating_mul(BIN_NS));
    for (at, bytes) in arrivals.within(from_ns, to_ns).points() {
        let step = usize::try_from((at - from_ns) / STEP_NS).unwrap_or(usize::MAX);
        if let Some(slot) = steps.get_mut(step) {
            *slot += f64::from(*bytes);
        }
    }
    steps
}

/// Bytes in bins of [`BIN_NS`], and the first and the last bin with any.
struct Bins {
    bytes: Vec<f64>,
    covered: (usize, usize),
    total: f64,
}

impl Bins {
    /// From the bytes of each step, later by a number of steps.
    fn new(steps: &[f64], later: i64, n: usize) -> Option<Self> {
        let of =
            |at: i64| usize::try_from(at).ok().and_then(|at| steps.get(at)).copied().unwrap_or(0.0);
        let first = |bin: usize| 2 * bin as i64 - later;
        let bytes: Vec<f64> = (0..n).map(|bin| of(first(bin)) + of(first(bin) + 1)).collect();
        let covered =
            (bytes.iter().position(|one| *one > 0.0)?, bytes.iter().rposition(|one| *one > 0.0)?);
        let total = bytes.iter().sum();
        Some(Self { bytes, covered, total })
    }

    /// The bins of both in the time that both cover.
    fn common<'a>(&'a self, other: &'a Self) -> Option<(&'a [f64], &'a [f64])> {
        let from = self.covered.0.max(other.covered.0);
        let to = self.covered.1.min(other.covered.1);
        self.bytes.get(from..=to).zip(other.bytes.get(from..=to))
    }

    /// How far both agree in the time that both cover.
    fn compare(&self, other: &Self, step: i64) -> Option<Agreement> {
        let (mine, theirs) = self.common(other)?;
        let (own, their): (f64, f64) = (mine.iter().sum(), theirs.iter().sum());
        let is_own_clock = step.abs() <= NEAR_STEPS;
        let enough = own.min(their) >= MIN_COMMON * self.total.min(other.total);
        let long = mine.len().checked_sub(1)? as i64 * BIN_NS >= MIN_NS;
        if own.min(their) < MIN_BYTES || !long || !(enough || is_own_clock) {
            return None;
        }
        let both: f64 = mine.iter().zip(theirs).map(|(a, b)| a.min(b * HEADERS)).sum();
        let share = |bytes: &[f64], all: f64| bytes.iter().sum::<f64>() / all;
        let wide = mine.chunks(SHAPE_BINS).zip(theirs.chunks(SHAPE_BINS));
        Some(Agreement {
            whole: both / own.max(their * HEADERS),
            common: (both / own.min(their)).min(1.0),
            shape: wide.map(|(a, b)| share(a, own).min(share(b, their))).sum(),
        })
    }

    /// Bytes of each in all bins where both have some there or next to them.
    fn bytes_in_both(&self, other: &Self) -> Option<[u64; 2]> {
        let (mine, theirs) = self.common(other)?;
        let busy = |bytes: &[f64], at: usize| {
            let around = bytes.get(at.saturating_sub(1)..(at + 2).min(bytes.len()));
            around.is_some_and(|around| around.iter().any(|one| *one > 0.0))
        };
        let in_both = (0..mine.len()).filter(|at| busy(mine, *at) && busy(theirs, *at));
        let bytes = in_both.fold([0.0, 0.0], |[a, b], at| {
            let of = |bytes: &[f64]| bytes.get(at).copied().unwrap_or(0.0);
            [a + of(mine), b + of(theirs)]
        });
        Some(bytes.map(|one| one as u64))
    }
}

/// Shares that agree at an offset: as of [`Likeness`], and of the larger side's bytes, by which an
/// offset is chosen.
struct Agreement {
    whole: f64,
    common: f64,
    shape: f64,
}

#[cfg(test)]
mod tests {
    use super::super::Unaligned;
    use super::*;

    const MS: i64 = 1_000_000;

    /// Bursts and pauses of lengths that depend on the seed.
    fn traffic(seed: i64, n: i64, bytes: u32) -> Vec<(i64, u32)> {
        let mut at = 0;
        let burst = |n: i64| {
            at += (100 + (n * n * seed) % 97 * 9) * MS;
            (0..30 + n * seed % 50)
                .map(|_| {
                    at += 2 * MS;
                    (at, bytes)
                })
                .collect::<Vec<_>>()
        };
        (0..n).flat_map(burst).collect()
    }

    fn seen(points: &[(i64, u32)], later_ns: i64) -> Arrivals {
        let mut out = Arrivals::new();
        points.iter().for_each(|(at, bytes)| out.add(at + later_ns, *bytes));
        out
    }

    fn found(reference: &Arrivals, other: &Arrivals) -> Likeness {
        likeness(reference, other, &Err(Unaligned::Unlike), 5_000 * MS).unwrap()
    }

    #[test]
    fn the_same_bytes_are_alike_also_filtered_late_or_with_holes() {
        let all = traffic(7, 60, 1_100);
        let radio = seen(&all, 0);
        assert!(found(&radio, &seen(&traffic(7, 60, 1_000), 8 * MS)).common > 0.95);
        // Another clock.
        assert!(found(&radio, &seen(&traffic(7, 60, 1_000), 2_300 * MS)).common > 0.95);
        // Two of five seconds are not in the capture; it begins late.
        let some: Vec<_> = traffic(7, 60, 1_000)
            .into_iter()
            .filter(|(at, _)| at / (1_000 * MS) % 5 < 3 && *at > 9_000 * MS)
            .collect();
        assert!(found(&radio, &seen(&some, 8 * MS)).common > 0.9);
        // The log lacks 200 ms of each second.
        let holed: Vec<_> =
            all.iter().copied().filter(|(at, _)| at % (1_000 * MS) > 200 * MS).collect();
        let like = found(&seen(&holed, 0), &seen(&traffic(7, 60, 1_000), 8 * MS));
        assert!(like.common > 0.9 && like.ratio() < 1.3, "{like:?}");
        // A part of the traffic is all in the other, which shows more.
        let part: Vec<_> = all.iter().copied().step_by(3).collect();
        let like = found(&radio, &seen(&part, 0));
        assert!(like.common > 0.95 && like.ratio() < 0.5, "{like:?}");
    }

    /// A split bearer's receiver passes bytes on in lumps.
    #[test]
    fn bytes_that_are_held_back_keep_their_shape() {
        let lumps = |mut seed: i64| {
            let points = traffic(seed, 60, 1_000).into_iter().map(|(at, bytes)| {
                seed = seed * 16_807 % 2_147_483_647;
                (at - at % (120 * MS) + 120 * MS + seed % 20 * MS, bytes)
            });
            let mut points: Vec<_> = points.collect();
            points.sort_unstable();
            points
        };
        let shape_of = |seed| found(&seen(&traffic(7, 60, 1_100), 0), &seen(&lumps(seed), 0)).shape;
        assert!(shape_of(7) > 0.92, "{}", shape_of(7));
        assert!(shape_of(11) < 0.8, "{}", shape_of(11));
    }

    #[test]
    fn other_bytes_are_not() {
        let radio = seen(&traffic(7, 60, 1_100), 0);
        let like = found(&radio, &seen(&traffic(11, 60, 1_000), 0));
        assert!(like.common < 0.85, "{like:?}");
        // Steady streams agree at each offset, but not in their rates.
        let steady = |bytes| (0..5_000).map(|n| (n * 2 * MS, bytes)).collect::<Vec<_>>();
        let like = found(&seen(&steady(1_000), 0), &seen(&steady(2_000), 0));
        assert!(like.ratio() > 1.9, "{like:?}");
    }

    #[test]
    fn too_little_is_not_compared() {
        let radio = seen(&traffic(7, 60, 1_100), 0);
        let few = seen(&traffic(7, 60, 1_100)[..20], 0);
        assert_eq!(likeness(&radio, &few, &Err(Unaligned::Unlike), 5_000 * MS), None);
        let ends = [(i64::MIN, 200_000), (i64::MAX, 200_000)];
        let mut far = Arrivals::new();
        ends.iter().for_each(|(at, bytes)| far.add(*at, *bytes));
        assert_eq!(likeness(&radio, &far, &Err(Unaligned::Unlike), 5_000 * MS), None);
        assert_eq!(likeness(&far, &far, &Err(Unaligned::Unlike), 5_000 * MS), None);
    }
}
