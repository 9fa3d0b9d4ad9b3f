//! One clock as a line over another.

use airmile_model::median::upper_median;

/// Evidence over a shorter time gives no drift (chosen here: 50 ppm are 1.5 ms by then).
const MIN_DRIFT_SPAN_NS: i64 = 30_000_000_000;
/// Maximum number of samples, spread over all, whose pairs are compared (chosen here).
const MAX_SAMPLES: usize = 400;
/// Maximum plausible drift of a clock (chosen here: crystals keep within 100 ppm).
const MAX_DRIFT: f64 = 500e-6;
/// Usual maximum drift of clocks, assumed where the drift is unknown.
pub(super) const USUAL_DRIFT: f64 = 100e-6;
/// With fewer samples, the farthest one sets the error instead of the spread (chosen
/// here).
const FEW_SAMPLES: usize = 8;
/// Quantile of the normal distribution for 95 %.
const Z: f64 = 1.96;

/// Another clock, relative to the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockLine {
    /// The middle of the evidence, in nanoseconds on the reference clock.
    pub at_ns: i64,
    /// Offset of the other clock at that time, in nanoseconds; positive if it is ahead.
    pub offset_ns: i64,
    /// Its drift in ppm; 0 if the evidence is too short.
    pub drift_ppm: f64,
    /// Extent of the evidence before and after that time, in nanoseconds.
    pub half_span_ns: i64,
    /// Maximum error of the offset over all of the evidence, in nanoseconds.
    pub error_ns: i64,
    /// Pieces of evidence; 0 if only the beginnings and ends of the traffic match.
    pub n: usize,
    /// Another offset that fits nearly as well, in nanoseconds: the traffic is periodic,
    /// and the nearest offset was taken.
    pub rival_ns: Option<i64>,
}

/// A clock's line, or why there is none.
pub type Aligned = Result<ClockLine, Unaligned>;

/// Why a clock could not be aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unaligned {
    /// One of the two has no data, or none at the same time within the maximum offset.
    Nothing,
    /// The two do not match at any offset.
    Unlike,
    /// Several offsets match equally well.
    Ambiguous,
    /// The best match is at the maximum offset searched: a larger one may be better.
    TooFar,
    /// Parts match at offsets that differ, as after a clock was set.
    Jumps,
    /// No packets seen at both places in both directions within a second.
    OneWay,
}

impl ClockLine {
    /// The other clock's time on the reference clock, in nanoseconds.
    #[must_use]
    pub fn to_reference(&self, other_ns: i64) -> i64 {
        let since = other_ns.saturating_sub(self.at_ns).saturating_sub(self.offset_ns);
        let drift = self.drift_ppm * 1e-6;
        let gained = since as f64 * (drift / (1.0 + drift));
        self.at_ns.saturating_add(since).saturating_sub(gained.round() as i64)
    }

    /// Offset of the other clock at a time of the reference, in nanoseconds.
    #[must_use]
    pub fn offset_at_ns(&self, reference_ns: i64) -> i64 {
        let gained = reference_ns.saturating_sub(self.at_ns) as f64 * self.drift_ppm * 1e-6;
        self.offset_ns.saturating_add(gained.round() as i64)
    }

    /// Composes two lines: `next` is the line of a third clock over this other one.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        let other_ns = self.at_ns.saturating_add(self.offset_ns);
        Self {
            at_ns: self.at_ns,
            offset_ns: self.offset_ns.saturating_add(next.offset_at_ns(other_ns)),
            drift_ppm: self.drift_ppm + next.drift_ppm,
            half_span_ns: self.half_span_ns.min(next.half_span_ns),
            error_ns: self.error_ns.saturating_add(next.error_ns),
            n: self.n.min(next.n),
            rival_ns: None,
        }
    }

    /// Whether the clocks differ by more than the error, anywhere in the evidence.
    #[must_use]
    pub fn differs(&self) -> bool {
        let gained = self.half_span_ns as f64 * self.drift_ppm.abs() * 1e-6;
        self.offset_ns.unsigned_abs() as f64 + gained > self.error_ns as f64
    }
}

/// Fits a line through offsets `(reference time, other - reference)`, robust to outliers:
/// the median of the slopes of all pairs (Theil and Sen), then the median of the
/// residuals. The error holds at the ends of the evidence: `floor_ns`, plus that of the
/// median (1.96 standard errors by the median deviation), plus half of the evidence times
/// the slope's own error (Sen 1968, by Kendall's statistic) or, without a slope, times
/// the usual drift of clocks.
pub(super) fn through(samples: &[(i64, i64)], floor_ns: i64) -> Option<ClockLine> {
    let thinned: Vec<(i64, i64)>;
    let step = samples.len().div_ceil(MAX_SAMPLES).max(1);
    let samples = if step > 1 {
        thinned = samples.iter().step_by(step).copied().collect();
        &thinned
    } else {
        samples
    };
    let (first, last) = (samples.first()?.0, samples.last()?.0);
    let at_ns = first + (last - first) / 2;
    let long = last - first >= MIN_DRIFT_SPAN_NS && samples.len() >= 4;
    let slope = if long { Slope::from_samples(samples) } else { Slope::unknown() };
    let gained = |at: i64| ((at - at_ns) as f64 * slope.drift).round() as i64;
    let mut rest: Vec<i64> = samples.iter().map(|(at, offset)| offset - gained(*at)).collect();
    let offset_ns = upper_median(&mut rest, i64::cmp)?;
    let mut off: Vec<i64> = rest.iter().map(|rest| (rest - offset_ns).abs()).collect();
    let n = samples.len();
    let middle = upper_median(&mut off, i64::cmp)? as f64;
    let spread = if n < FEW_SAMPLES {
        off.last().copied().unwrap_or(0) as f64
    } else {
        // The median is 1.25 times as uncertain as the mean.
        Z * 1.253 * 1.4826 * middle / (n as f64).sqrt()
    };
    let half_span_ns = (last - first) / 2;
    let turn = slope.error * half_span_ns as f64;
    let error_ns = floor_ns.saturating_add((spread + turn).ceil() as i64);
    let drift_ppm = slope.drift * 1e6;
    Some(ClockLine { at_ns, offset_ns, drift_ppm, half_span_ns, error_ns, n, rival_ns: None })
}

/// A drift, and its error.
struct Slope {
    drift: f64,
    error: f64,
}

impl Slope {
    const fn unknown() -> Self {
        Self { drift: 0.0, error: USUAL_DRIFT }
    }

    /// The median of the slopes of all pairs, and half of its interval at 95 %.
    fn from_samples(samples: &[(i64, i64)]) -> Self {
        let mut slopes = Vec::with_capacity(samples.len() * samples.len() / 2);
        for (i, (t, offset)) in samples.iter().enumerate() {
            for (later, other) in samples.iter().skip(i + 1) {
                if later > t {
                    slopes.push((other - offset) as f64 / (later - t) as f64);
                }
            }
        }
        slopes.sort_by(f64::total_cmp);
        let n = samples.len() as f64;
        let apart = Z * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
        let at = |rank: f64| {
            let last = slopes.len().saturating_sub(1);
            slopes.get((rank.max(0.0) as usize).min(last)).copied().unwrap_or(0.0)
        };
        let count = slopes.len() as f64;
        let (low, high) = (at((count - apart) / 2.0), at((count + apart) / 2.0));
        let drift = at(count / 2.0).clamp(-MAX_DRIFT, MAX_DRIFT);
        Self { drift, error: ((high - low) / 2.0).min(MAX_DRIFT) }
    }
}
