//! The same segments at two captures, in both directions.

use super::line::{ClockLine, MAX_DRIFT, MIN_DRIFT_SPAN_NS};

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

/// The line of the other place's clock. Nothing arrives before it was sent: what
/// goes out bounds the offset from above, what comes in from below, and the
/// fastest of both ways are taken as equally long, which is wrong by at most
/// `error_ns`. `None` where one way has no pair.
///
/// The drift is that of the line under all delays that is nearest to them (the
/// edge of the lower convex hull over the middle; Moon, Skelly and Towsley, 1999).
#[must_use]
pub fn between_points(pairs: &[PointPair]) -> Option<ClockLine> {
    let first = pairs.iter().map(|pair| pair.reference_ns).min()?;
    let last = pairs.iter().map(|pair| pair.reference_ns).max()?;
    let at_ns = first + (last - first) / 2;
    let out = Delays::of(pairs, true);
    let back = Delays::of(pairs, false);
    let mut slopes: Vec<f64> = Vec::new();
    if last - first >= MIN_DRIFT_SPAN_NS {
        slopes.extend(out.slope(at_ns));
        slopes.extend(back.slope(at_ns).map(|slope| -slope));
    }
    let drift = match slopes.len() {
        0 => 0.0,
        n => (slopes.iter().sum::<f64>() / n as f64).clamp(-MAX_DRIFT, MAX_DRIFT),
    };
    let most = out.least(at_ns, drift)?;
    let least = back.least(at_ns, -drift)?.checked_neg()?;
    let half = (most - least) / 2;
    Some(ClockLine {
        at_ns,
        offset_ns: least + half,
        drift_ppm: drift * 1e6,
        // Two ways that cross say that the line is not straight.
        error_ns: half.abs().max(1),
        n: pairs.len(),
    })
}

/// Times that a way took by two clocks: `(reference time, how long)`.
struct Delays(Vec<(i64, i64)>);

impl Delays {
    fn of(pairs: &[PointPair], outward: bool) -> Self {
        let of = pairs.iter().filter(|pair| pair.outward == outward).map(|pair| {
            let later = pair.other_ns - pair.reference_ns;
            (pair.reference_ns, if outward { later } else { -later })
        });
        let mut delays: Vec<(i64, i64)> = of.collect();
        delays.sort_unstable();
        Self(delays)
    }

    /// The shortest, as it would be in the middle.
    fn least(&self, at_ns: i64, slope: f64) -> Option<i64> {
        let flat = |(at, ns): &(i64, i64)| ns - ((at - at_ns) as f64 * slope).round() as i64;
        self.0.iter().map(flat).min()
    }

    /// Slope of the lower hull's edge over the middle.
    fn slope(&self, at_ns: i64) -> Option<f64> {
        let mut hull: Vec<(i64, i64)> = Vec::new();
        for &point in &self.0 {
            while let [.., a, b] = hull.as_slice()
                && turns_down(*a, *b, point)
            {
                hull.pop();
            }
            hull.push(point);
        }
        let edge = hull.windows(2).find(|edge| matches!(edge, [_, b] if b.0 >= at_ns))?;
        match edge {
            [a, b] if b.0 > a.0 => Some((b.1 - a.1) as f64 / (b.0 - a.0) as f64),
            _ => None,
        }
    }
}

/// Whether `b` is not below the line from `a` to `c`.
fn turns_down(a: (i64, i64), b: (i64, i64), c: (i64, i64)) -> bool {
    let cross = |p: (i64, i64), q: (i64, i64)| {
        i128::from(p.0 - a.0) * i128::from(q.1 - a.1)
            - i128::from(q.0 - a.0) * i128::from(p.1 - a.1)
    };
    cross(b, c) <= 0
}
