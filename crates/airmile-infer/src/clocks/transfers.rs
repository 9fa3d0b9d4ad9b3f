//! An application's transfers over the bytes that came meanwhile.

use super::arrivals::Arrivals;
use super::correlate::{FAR_COST, best_lag};
use super::line::{ClockLine, through};

/// Bins in which transfers are looked for, and how much is compared (chosen here).
const BIN_NS: i64 = 10_000_000;
const SPAN_NS: i64 = 600_000_000_000;
/// A transfer pauses for a round trip now and then (chosen here).
const LINGER_BINS: i32 = 8;
/// As for arrivals; transfers are a coarser shape than bytes (chosen here).
const MIN_SCORE: f64 = 0.35;
const LEAD: f64 = 0.02;
/// A pause behind a transfer's last byte, by which it is known (chosen here).
const PAUSE_NS: i64 = 20_000_000;
/// How far from where it is expected the last byte is looked for (chosen here).
const REACH_NS: i64 = 400_000_000;
/// Ends that say the same do so within this, and what clocks usually gain over
/// the time (chosen here).
const SAME_NS: i64 = 6_000_000;
const USUAL_DRIFT: f64 = 100e-6;
/// Less at once is no data of a transfer: ACKs, the end of a connection (chosen here).
const MIN_BYTES: u32 = 200;
/// A quarter of what nanoseconds can count: 73 years.
const FAR_NS: i64 = i64::MAX / 4;
/// Fewer ends that agree move a clock by no more than this (chosen here).
const ENOUGH: usize = 3;
const FEW_OFFSET_NS: i64 = 1_500_000_000;
/// An application hears of its last byte this much later, or more (chosen here).
const FLOOR_NS: i64 = 3_000_000;

/// The line of the clock of `transfers` (start and end in nanoseconds) over that
/// of the bytes that came; `None` where they do not look alike, or no transfer's
/// end can be told.
#[must_use]
pub fn of_transfers(
    reference: &Arrivals,
    transfers: &[(i64, i64)],
    max_offset_ns: i64,
) -> Option<ClockLine> {
    // A table may hold any number; no clock shows times so far from 1970.
    let sane = |(start, end): &(i64, i64)| -FAR_NS < *start && start <= end && *end < FAR_NS;
    let transfers: Vec<(i64, i64)> = transfers.iter().copied().filter(sane).collect();
    // Few transfers fit many places: only near ones are looked at.
    let few = transfers.len() < ENOUGH;
    let max_offset_ns = if few { max_offset_ns.min(FEW_OFFSET_NS) } else { max_offset_ns };
    let start = transfers.iter().map(|t| t.0).min()?;
    let end = transfers.iter().map(|t| t.1).max()?;
    // Some time before and after them, in which nothing should have come.
    let margin = (end - start).clamp(1_000_000_000, 10_000_000_000);
    let (from, to) = (start - margin, end.min(start + SPAN_NS) + margin);
    let n = usize::try_from((to - from) / BIN_NS).ok()?;
    let reach = usize::try_from(max_offset_ns / BIN_NS).ok()?;
    let series = busy(reference, from - max_offset_ns, n + 2 * reach);
    let peak = best_lag(&series, &under_way(&transfers, from, n), reach, FAR_COST)?;
    if peak.score < MIN_SCORE || peak.score - peak.next < LEAD || peak.at_border {
        return None;
    }
    let offset_ns = -((peak.lag * BIN_NS as f64) as i64);
    let candidates: Vec<(i64, i64)> = transfers
        .iter()
        .flat_map(|(_, end)| pauses(reference, end - offset_ns).map(move |last| (last, end - last)))
        .collect();
    let apart = SAME_NS + ((end - start) as f64 * USUAL_DRIFT) as i64;
    let samples = densest(&candidates, apart, offset_ns);
    let line = through(&samples, FLOOR_NS)?;
    (samples.len() >= ENOUGH || line.offset_ns.abs() <= FEW_OFFSET_NS).then_some(line)
}

/// The candidates `(time, offset)` on which the most agree to `apart`: where several
/// ends are near, the wrong ones differ from transfer to transfer.
fn densest(candidates: &[(i64, i64)], apart: i64, expected_ns: i64) -> Vec<(i64, i64)> {
    let mut offsets: Vec<i64> = candidates.iter().map(|candidate| candidate.1).collect();
    offsets.sort_unstable();
    let best = offsets
        .iter()
        .enumerate()
        .map(|(i, from)| {
            let n = offsets.partition_point(|offset| offset - from <= apart) - i;
            (n, std::cmp::Reverse((from - expected_ns).abs()), *from)
        })
        .max();
    let Some((_, _, from)) = best else { return Vec::new() };
    let near = candidates.iter().filter(|(_, offset)| (from..=from + apart).contains(offset));
    let mut samples: Vec<(i64, i64)> = near.copied().collect();
    samples.sort_unstable();
    samples
}

/// 1 in the bins in or just before which something came.
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

/// 1 in the bins in which a transfer was under way.
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

/// The last arrivals of data before pauses near a time.
fn pauses(reference: &Arrivals, near_ns: i64) -> impl Iterator<Item = i64> {
    let points = reference.points();
    let first = points.partition_point(|point| point.0 < near_ns - REACH_NS);
    let data = move || points.iter().skip(first).filter(|(_, bytes)| *bytes >= MIN_BYTES);
    data()
        .zip(data().skip(1).map(|(at, _)| *at).chain([i64::MAX]))
        .map(|((at, _), next)| (*at, next))
        .take_while(move |(at, _)| *at <= near_ns + REACH_NS)
        .filter(|(at, next)| next.saturating_sub(*at) >= PAUSE_NS)
        .map(|(at, _)| at)
}
