//! One clock as a line over another.

/// Evidence over less time than this tells no drift (chosen here: 50 ppm are
/// 1.5 ms by then).
const MIN_DRIFT_SPAN_NS: i64 = 30_000_000_000;
/// Of more samples, so many spread over all are taken: their pairs are compared
/// (chosen here).
const MAX_SAMPLES: usize = 400;
/// No clock drifts by more (chosen here: crystals keep within 100 ppm).
const MAX_DRIFT: f64 = 500e-6;
/// What clocks usually gain or lose at most: a drift that is not told may be this.
pub(super) const USUAL_DRIFT: f64 = 100e-6;
/// Fewer samples than this have no spread to speak of: the farthest counts (chosen here).
const FEW_SAMPLES: usize = 8;
/// Quantile of the normal distribution for 95 %.
const Z: f64 = 1.96;

/// How another clock stands against the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockLine {
    /// The middle of the evidence, in nanoseconds on the reference clock.
    pub at_ns: i64,
    /// What the other clock shows more there, in nanoseconds.
    pub offset_ns: i64,
    /// What it gains, in millionths; 0 where the evidence is too short to tell.
    pub drift_ppm: f64,
    /// How long the evidence goes on before and after that, in nanoseconds.
    pub half_span_ns: i64,
    /// The offset is right within this over all of the evidence, in nanoseconds.
    pub error_ns: i64,
    /// Pieces of evidence.
    pub n: usize,
    /// Another offset that fits nearly as well, in nanoseconds: the traffic repeats
    /// itself, and the nearest was taken.
    pub rival_ns: Option<i64>,
}

/// A clock's line, or why there is none.
pub type Aligned = Result<ClockLine, Unaligned>;

/// Why a clock could not be held against another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unaligned {
    /// One of both shows nothing, or nothing at the same time within the largest offset.
    Nothing,
    /// What both show does not look alike at any offset.
    Unlike,
    /// Several offsets fit as well as one another.
    Ambiguous,
    /// It fits best at the largest offset that is looked for: farther may be better.
    TooFar,
    /// No packets that passed both places went both ways within a second.
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

    /// What the other clock shows more at a time of the reference, in nanoseconds.
    #[must_use]
    pub fn offset_at_ns(&self, reference_ns: i64) -> i64 {
        let gained = reference_ns.saturating_sub(self.at_ns) as f64 * self.drift_ppm * 1e-6;
        self.offset_ns.saturating_add(gained.round() as i64)
    }

    /// The line of a third clock, of which `next` is the line over this other one.
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

    /// Whether the clocks differ by more than the error of telling it, anywhere in the evidence.
    #[must_use]
    pub fn differs(&self) -> bool {
        let gained = self.half_span_ns as f64 * self.drift_ppm.abs() * 1e-6;
        self.offset_ns.unsigned_abs() as f64 + gained > self.error_ns as f64
    }
}

/// The line through offsets `(reference time, other - reference)` that ignores
/// outliers: the median of the slopes of all pairs (Theil and Sen), the median of
/// what is left. The error holds at the ends of the evidence: `floor_ns`, that of the
/// median (1.96 standard errors by the median deviation), and half of the evidence
/// at the slope's own (Sen 1968, by Kendall's statistic) or, where none is told, at
/// what clocks usually drift.
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
    let slope = if long { Slope::from_samples(samples) } else { Slope::untold() };
    let gained = |at: i64| ((at - at_ns) as f64 * slope.drift).round() as i64;
    let mut rest: Vec<i64> = samples.iter().map(|(at, offset)| offset - gained(*at)).collect();
    let offset_ns = median(&mut rest)?;
    let mut off: Vec<i64> = rest.iter().map(|rest| (rest - offset_ns).abs()).collect();
    let n = samples.len();
    let middle = median(&mut off)? as f64;
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

/// A drift, and how far off it may be.
struct Slope {
    drift: f64,
    error: f64,
}

impl Slope {
    const fn untold() -> Self {
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

fn median(values: &mut [i64]) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
