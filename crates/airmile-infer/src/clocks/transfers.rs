//! An application's transfers over the bytes that came meanwhile.

use super::arrivals::Arrivals;
use super::correlate::best_lag;
use super::line::{ClockLine, median, through};

/// Bins in which transfers are looked for, and how much is compared (chosen here).
const BIN_NS: i64 = 10_000_000;
const SPAN_NS: i64 = 600_000_000_000;
/// A transfer pauses for a round trip now and then (chosen here).
const LINGER_BINS: i32 = 8;
/// As for arrivals; transfers are a coarser shape than bytes (chosen here).
const MIN_SCORE: f64 = 0.35;
const LEAD: f64 = 0.02;
/// A pause behind a transfer's last byte, by which it is known (chosen here).
const PAUSE_NS: i64 = 50_000_000;
/// How far from where it is expected the last byte is looked for (chosen here).
const REACH_NS: i64 = 150_000_000;
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
    let start = transfers.iter().map(|t| t.0).min()?;
    let end = transfers.iter().map(|t| t.1).max()?;
    // Some time before and after them, in which nothing should have come.
    let margin = (end - start).clamp(1_000_000_000, 10_000_000_000);
    let (from, to) = (start - margin, end.min(start + SPAN_NS) + margin);
    let n = usize::try_from((to - from) / BIN_NS).ok()?;
    let reach = usize::try_from(max_offset_ns / BIN_NS).ok()?;
    let series = busy(reference, from - max_offset_ns, n + 2 * reach);
    let peak = best_lag(&series, &under_way(transfers, from, n), reach)?;
    if peak.score < MIN_SCORE || peak.score - peak.next < LEAD || peak.at_border {
        return None;
    }
    let offset_ns = -((peak.lag * BIN_NS as f64) as i64);
    let mut samples: Vec<(i64, i64)> = transfers
        .iter()
        .filter_map(|(_, end)| {
            let last = last_before_pause(reference, end - offset_ns)?;
            Some((last, end - last))
        })
        .collect();
    samples.sort_unstable();
    let mut offsets: Vec<i64> = samples.iter().map(|sample| sample.1).collect();
    let middle = median(&mut offsets)?;
    samples.retain(|(_, offset)| (offset - middle).abs() < REACH_NS / 2);
    through(&samples, FLOOR_NS)
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

/// The last arrival before a pause near a time, the nearest to it.
fn last_before_pause(reference: &Arrivals, near_ns: i64) -> Option<i64> {
    let points = reference.points();
    let first = points.partition_point(|point| point.0 < near_ns - REACH_NS);
    let around = points.get(first..)?.iter().enumerate();
    around
        .take_while(|(_, (at, _))| *at <= near_ns + REACH_NS)
        .filter(|(i, (at, _))| {
            points.get(first + i + 1).is_none_or(|(next, _)| next - at >= PAUSE_NS)
        })
        .map(|(_, (at, _))| *at)
        .min_by_key(|at| (at - near_ns).abs())
}
