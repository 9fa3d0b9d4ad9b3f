//! Two series held against each other at every lag.

/// Where one series fits into another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Peak {
    /// Bins that the pattern lies behind its place without a lag.
    pub(super) lag: f64,
    /// Pearson's correlation there, less what its distance costs.
    pub(super) score: f64,
    /// The largest one that is not beside it.
    pub(super) next: f64,
    /// The lag of the place that fits best by its shape alone, if that is elsewhere or
    /// less than [`RIVAL_LEAD`] behind.
    pub(super) rival: Option<f64>,
    /// Whether it is at an end of what was searched.
    pub(super) at_border: bool,
}

/// What the farthest lag costs where clocks may be right already: of traffic that
/// repeats itself, the nearest place is the likeliest (chosen here).
pub(super) const FAR_COST: f64 = 0.1;
/// A place whose correlation is so near to the best one's may be it as well (chosen here).
const RIVAL_LEAD: f64 = 0.04;
/// What is beside a peak and above this share of it belongs to it (chosen here).
const BESIDE_SHARE: f64 = 0.6;

/// The best place of `pattern` in `series`, which has `2 * reach` bins more: lag
/// -`reach` to `reach`, the farthest costing `far_cost` of the score. `None` where
/// either has no shape.
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
    // Most bins are empty in both: only those that are not cost time.
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
    let beside = |scores: &[f64]| hill(scores, at);
    let (from, to) = beside(&scores);
    let elsewhere = scores.iter().enumerate().filter(|(lag, _)| *lag < from || *lag >= to);
    let next = elsewhere.map(|(_, score)| *score).fold(0.0, f64::max);
    let (from, to) = beside(&shapes);
    let elsewhere = shapes.iter().copied().enumerate().filter(|(lag, _)| *lag < from || *lag >= to);
    let least = shapes.get(at)? - RIVAL_LEAD;
    let rival = highest(elsewhere).filter(|(_, shape)| *shape > least);
    let lag = at as f64 + vertex(&scores, at) - reach as f64;
    let rival = rival.map(|(other, _)| other as f64 - reach as f64);
    let at_border = at == 0 || at == 2 * reach;
    let peak = Peak { lag, score, next, rival, at_border };
    (score > 0.0).then_some(peak)
}

fn highest(scores: impl Iterator<Item = (usize, f64)>) -> Option<(usize, f64)> {
    scores.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// From where to where scores belong to the peak at `at`: until the first on each side
/// that is low.
fn hill(scores: &[f64], at: usize) -> (usize, usize) {
    let peak = scores.get(at).copied().unwrap_or(0.0);
    let low = |score: &f64| *score < peak * BESIDE_SHARE;
    let (left, right) = scores.split_at(at);
    let from = left.iter().rposition(low).map_or(0, |below| below + 1);
    let to = right.iter().position(low).map_or(scores.len(), |beyond| at + beyond);
    (from, to)
}

/// Where between bins the parabola through a peak and its neighbours is highest.
fn vertex(scores: &[f64], at: usize) -> f64 {
    let around = at.checked_sub(1).and_then(|left| scores.get(left..at + 2));
    match around {
        Some(&[left, peak, right]) if left - 2.0 * peak + right < 0.0 => {
            (0.5 * (left - right) / (left - 2.0 * peak + right)).clamp(-0.5, 0.5)
        }
        _ => 0.0,
    }
}

/// Sums of any part of a series, and of its squares.
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
