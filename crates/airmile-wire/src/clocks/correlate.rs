//! Cross-correlation of two series.

/// Where one series matches another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Peak {
    /// Lag in bins of the pattern after its expected place.
    pub(super) lag: f64,
    /// Pearson's correlation at that lag, minus the cost of its distance.
    pub(super) score: f64,
    /// The best correlation outside this peak.
    pub(super) next: f64,
    /// Distance to the farthest lag whose score is less than [`RIVAL_LEAD`] lower, in bins.
    pub(super) reach: f64,
    /// The lag that matches best by shape alone, if it is elsewhere or less than
    /// [`RIVAL_LEAD`] lower.
    pub(super) rival: Option<f64>,
    /// Whether the lag is at an end of the search range.
    pub(super) at_border: bool,
}

/// Cost of the maximum lag, for clocks that may already be aligned: for periodic traffic
/// the nearest match is the likeliest (chosen here).
pub(super) const FAR_COST: f64 = 0.1;
/// A match whose correlation is this near to the best may be the true one (chosen here).
const RIVAL_LEAD: f64 = 0.04;
/// Neighbours of a peak above this share of it belong to it (chosen here).
const HILL_SHARE: f64 = 0.6;

/// The best match of `pattern` in `series`, which has `2 * reach` bins more: lag -`reach`
/// to `reach`, the maximum lag costing `far_cost` of the score. `None` if either is
/// constant.
pub(super) fn best_lag(
    series: &[f32],
    pattern: &[f32],
    reach: usize,
    far_cost: f64,
) -> Option<Peak> {
    let n = pattern.len();
    if n == 0 || series.len() < n + 2 * reach {
        return None;
    }
    let mean = pattern.iter().map(|v| f64::from(*v)).sum::<f64>() / n as f64;
    // Most bins are empty in both: skip them to save time.
    let filled: Vec<(usize, f64)> = pattern
        .iter()
        .enumerate()
        .filter(|(_, v)| **v != 0.0)
        .map(|(at, v)| (at, f64::from(*v)))
        .collect();
    let norm = filled.iter().map(|(_, v)| v * v).sum::<f64>() - n as f64 * mean * mean;
    let sums = Sums::from_series(series);
    let shapes: Vec<f64> = (0..=2 * reach)
        .map(|lag| {
            let (sum, squares) = sums.within(lag, lag + n);
            let spread = squares - sum * sum / n as f64;
            if norm <= f64::EPSILON || spread <= f64::EPSILON {
                return 0.0;
            }
            let product: f64 = filled
                .iter()
                .map(|(at, v)| v * f64::from(series.get(lag + at).copied().unwrap_or(0.0)))
                .sum();
            (product - mean * sum) / (norm * spread).sqrt()
        })
        .collect();
    let cost = |lag: usize| lag.abs_diff(reach) as f64 / reach.max(1) as f64 * far_cost;
    let scores: Vec<f64> = shapes.iter().enumerate().map(|(lag, r)| r - cost(lag)).collect();
    let (at, score) = highest(scores.iter().copied().enumerate())?;
    let hill_at = |scores: &[f64]| hill(scores, at);
    let (from, to) = hill_at(&scores);
    let elsewhere = scores.iter().enumerate().filter(|(lag, _)| *lag < from || *lag >= to);
    let next = elsewhere.map(|(_, score)| *score).fold(0.0, f64::max);
    let (from, to) = hill_at(&shapes);
    let elsewhere = shapes.iter().copied().enumerate().filter(|(lag, _)| *lag < from || *lag >= to);
    let least = shapes.get(at)? - RIVAL_LEAD;
    let rival = highest(elsewhere).filter(|(_, shape)| *shape > least);
    let lag = at as f64 + vertex(&scores, at) - reach as f64;
    let rival = rival.map(|(other, _)| other as f64 - reach as f64);
    let alike = scores.iter().enumerate().filter(|(_, other)| **other > score - RIVAL_LEAD);
    let farthest = alike.map(|(other, _)| other.abs_diff(at)).max().unwrap_or(0) as f64;
    let at_border = at == 0 || at == 2 * reach;
    let peak = Peak { lag, score, next, reach: farthest, rival, at_border };
    (score > 0.0).then_some(peak)
}

fn highest(scores: impl Iterator<Item = (usize, f64)>) -> Option<(usize, f64)> {
    scores.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The range of scores that belong to the peak at `at`: until the first low score on each
/// side.
fn hill(scores: &[f64], at: usize) -> (usize, usize) {
    let peak = scores.get(at).copied().unwrap_or(0.0);
    let low = |score: &f64| *score < peak * HILL_SHARE;
    let (left, right) = scores.split_at(at);
    let from = left.iter().rposition(low).map_or(0, |below| below + 1);
    let to = right.iter().position(low).map_or(scores.len(), |beyond| at + beyond);
    (from, to)
}

/// Position between bins of the vertex of a parabola through a peak and its neighbours.
fn vertex(scores: &[f64], at: usize) -> f64 {
    let around = at.checked_sub(1).and_then(|left| scores.get(left..at + 2));
    match around {
        Some(&[left, peak, right]) if left - 2.0 * peak + right < 0.0 => {
            (0.5 * (left - right) / (left - 2.0 * peak + right)).clamp(-0.5, 0.5)
        }
        _ => 0.0,
    }
}

/// Prefix sums of a series, and of its squares.
struct Sums(Vec<(f64, f64)>);

impl Sums {
    fn from_series(series: &[f32]) -> Self {
        let mut sums = Vec::with_capacity(series.len() + 1);
        let mut so_far = (0.0, 0.0);
        sums.push(so_far);
        for value in series {
            let value = f64::from(*value);
            so_far = (so_far.0 + value, so_far.1 + value * value);
            sums.push(so_far);
        }
        Self(sums)
    }

    fn within(&self, from: usize, to: usize) -> (f64, f64) {
        match (self.0.get(from), self.0.get(to)) {
            (Some(from), Some(to)) => (to.0 - from.0, to.1 - from.1),
            _ => (0.0, 0.0),
        }
    }
}
