//! The pattern of arrivals, which distinguishes an air interface from a wired link, and a
//! queue from a sender's pace.

/// Windows over which a rate is measured (chosen here: some HARQ round trips of 8 ms, TS
/// 36.321, 5.4.2; and a multiple of it).
pub(super) const SHORT_NS: i64 = 100_000_000;
pub(super) const LONG_NS: i64 = 400_000_000;
const PEAK_NS: i64 = 20_000_000;
/// A gap this long is a pause of the sender or the scheduler (chosen here).
const PAUSE_NS: i64 = 200_000_000;
/// Data within this time arrived in one TTI (chosen here: LTE's is 1 ms).
const BATCH_NS: i64 = 750_000;
/// A gap caused by HARQ is at least this long, and the wired link catches up after it
/// within [`CATCH_UP_NS`] (chosen here).
pub(super) const HARQ_GAP_NS: i64 = 6_000_000;
const CATCH_UP_NS: i64 = 12_000_000;
/// Blocks in which arrivals are compared with a straight line (chosen here).
const BLOCK_NS: i64 = 1_000_000_000;
/// Bytes of a whole packet: Ethernet's MTU (RFC 894).
pub(super) const SEGMENT_BYTES: f64 = 1_500.0;
/// Minimum number of samples for a feature (chosen here).
const ENOUGH: usize = 4;

/// The pattern of one or several spans; unknown values are NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ArrivalPattern {
    /// Standard deviation of the rate over its mean, in short and in long windows.
    pub(super) cv_short: f64,
    pub(super) cv_long: f64,
    /// Correlation of the rates of adjacent short windows.
    pub(super) lag: f64,
    /// Share of the time in pauses.
    pub(super) paused: f64,
    /// Bytes of the second half over those of the first, as a logarithm.
    pub(super) growth: f64,
    /// Bytes of a batch in segments of [`SEGMENT_BYTES`], as a logarithm; and their spread.
    pub(super) batch: f64,
    pub(super) batch_cv: f64,
    /// Spread of the gaps between batches.
    pub(super) gap_cv: f64,
    /// Deviation of arrivals from a straight line, in blocks and overall, in ms, as
    /// logarithms.
    pub(super) line_block: f64,
    pub(super) line_whole: f64,
    /// Highest rate over the mean, as a logarithm.
    pub(super) peak: f64,
    /// Share of the bytes delayed by a gap that arrived right after it.
    pub(super) catch_up: f64,
    /// Bytes per second.
    pub(super) rate: f64,
}

/// Gathers the measurements of each stretch without a pause.
#[derive(Debug, Default)]
struct PatternSums {
    short: Vec<Vec<f64>>,
    long: Vec<f64>,
    peaks: Vec<f64>,
    batches: Vec<f64>,
    gaps: Vec<f64>,
    caught: Vec<f64>,
    blocks: Vec<f64>,
    wholes: Vec<f64>,
    growths: Vec<f64>,
    bytes: f64,
    busy_ns: f64,
    paused_ns: f64,
}

impl ArrivalPattern {
    /// From the arrivals (nanoseconds and bytes, in order) of several spans.
    pub(super) fn from_spans<'a>(spans: impl Iterator<Item = &'a [(i64, u32)]>) -> Self {
        let mut all = PatternSums::default();
        for arrivals in spans {
            all.span(arrivals);
        }
        all.pattern()
    }
}

impl PatternSums {
    fn span(&mut self, arrivals: &[(i64, u32)]) {
        let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else { return };
        let middle = first.0.midpoint(last.0);
        let earlier: f64 = sum(arrivals.iter().filter(|a| a.0 <= middle));
        let later: f64 = sum(arrivals.iter().filter(|a| a.0 > middle));
        if arrivals.len() >= ENOUGH {
            self.growths.push(((later + SEGMENT_BYTES) / (earlier + SEGMENT_BYTES)).ln());
        }
        for stretch in arrivals.chunk_by(|a, b| b.0.saturating_sub(a.0) < PAUSE_NS) {
            self.stretch(stretch);
        }
        for pair in arrivals.windows(2) {
            if let [a, b] = pair
                && b.0.saturating_sub(a.0) >= PAUSE_NS
            {
                self.paused_ns += b.0.saturating_sub(a.0) as f64;
            }
        }
    }

    /// Adds arrivals without a pause.
    fn stretch(&mut self, arrivals: &[(i64, u32)]) {
        let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else { return };
        let ns = last.0.saturating_sub(first.0);
        self.bytes += sum(arrivals.iter().skip(1));
        self.busy_ns += ns as f64;
        self.short.push(rates(arrivals, SHORT_NS));
        self.long.extend(rates(arrivals, LONG_NS));
        self.peaks.extend(rates(arrivals, PEAK_NS));
        self.wholes.extend(off_line_ms(arrivals));
        let mut from = 0;
        for at in 0..arrivals.len() {
            let begun = arrivals.get(from).map_or(0, |a| a.0);
            if arrivals.get(at).is_some_and(|a| a.0.saturating_sub(begun) >= BLOCK_NS) {
                self.blocks.extend(arrivals.get(from..at).and_then(off_line_ms));
                from = at;
            }
        }
        self.batches(arrivals);
        let mean = sum(arrivals.iter()) / ns.max(1) as f64;
        for (at, pair) in arrivals.windows(2).enumerate() {
            if let [a, b] = pair
                && b.0.saturating_sub(a.0) >= HARQ_GAP_NS
            {
                let until = b.0.saturating_add(CATCH_UP_NS);
                let rest = arrivals.get(at + 1..).unwrap_or_default();
                let came = sum(rest.iter().take_while(|x| x.0 <= until));
                let due = mean * until.saturating_sub(a.0) as f64;
                self.caught.push((came / due.max(1.0)).min(4.0));
            }
        }
    }

    fn batches(&mut self, arrivals: &[(i64, u32)]) {
        let mut last: Option<i64> = None;
        for batch in arrivals.chunk_by(|a, b| b.0.saturating_sub(a.0) < BATCH_NS) {
            self.batches.push(sum(batch.iter()));
            let at = batch.first().map_or(0, |a| a.0);
            if let Some(last) = last {
                self.gaps.push(at.saturating_sub(last) as f64);
            }
            last = Some(at);
        }
    }

    fn pattern(&self) -> ArrivalPattern {
        let short: Vec<f64> = self.short.iter().flatten().copied().collect();
        let mean_batch = mean(&self.batches).unwrap_or(f64::NAN);
        let rate = self.bytes * 1e9 / self.busy_ns.max(1.0);
        let enough = |values: &[f64]| values.len() >= ENOUGH;
        let log_ms = |values: &[f64]| {
            let middle = quantile(values, 0.5).map(|ms| ms.max(0.1).ln());
            middle.filter(|_| !values.is_empty()).unwrap_or(f64::NAN)
        };
        ArrivalPattern {
            cv_short: variation(&short),
            cv_long: variation(&self.long),
            lag: lag(&self.short),
            paused: self.paused_ns / (self.paused_ns + self.busy_ns).max(1.0),
            growth: mean(&self.growths).unwrap_or(f64::NAN),
            batch: (mean_batch / SEGMENT_BYTES).max(0.01).ln(),
            batch_cv: variation(&self.batches),
            gap_cv: variation(&self.gaps),
            line_block: log_ms(&self.blocks),
            line_whole: log_ms(&self.wholes),
            peak: match quantile(&self.peaks, 0.98).zip(mean(&self.peaks)) {
                Some((high, mean)) if enough(&self.peaks) && mean > 0.0 => (high / mean).ln(),
                _ => f64::NAN,
            },
            catch_up: match quantile(&self.caught, 0.5) {
                Some(middle) if enough(&self.caught) => middle,
                _ => f64::NAN,
            },
            rate,
        }
    }
}

fn sum<'a>(arrivals: impl Iterator<Item = &'a (i64, u32)>) -> f64 {
    arrivals.map(|(_, bytes)| f64::from(*bytes)).sum()
}

/// Bytes of each whole window. The first arrival has no wait of its own.
fn rates(arrivals: &[(i64, u32)], window_ns: i64) -> Vec<f64> {
    let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else { return Vec::new() };
    let whole = last.0.saturating_sub(first.0) / window_ns;
    // A stretch has no pauses, so its duration is bounded by its number of arrivals.
    let mut out = vec![0.0; usize::try_from(whole).unwrap_or(0)];
    for (at, bytes) in arrivals.iter().skip(1) {
        // An arrival at the end of a window counts in it.
        let n = at.saturating_sub(first.0).saturating_sub(1).max(0) / window_ns;
        if let Some(slot) = usize::try_from(n).ok().and_then(|n| out.get_mut(n)) {
            *slot += f64::from(*bytes);
        }
    }
    out
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation over the mean.
pub(super) fn variation(values: &[f64]) -> f64 {
    match mean(values) {
        Some(mean) if values.len() >= ENOUGH && mean > 0.0 => {
            let square = |v: &f64| (v - mean) * (v - mean);
            (values.iter().map(square).sum::<f64>() / values.len() as f64).sqrt() / mean
        }
        _ => f64::NAN,
    }
}

/// Correlation of a value with the next one's, over several series.
fn lag(series: &[Vec<f64>]) -> f64 {
    let all: Vec<f64> = series.iter().flatten().copied().collect();
    let Some(mean) = mean(&all).filter(|_| all.len() >= 2 * ENOUGH) else { return f64::NAN };
    let own: f64 = all.iter().map(|v| (v - mean) * (v - mean)).sum();
    let pairs = series.iter().flat_map(|values| values.windows(2));
    let with_next: f64 = pairs
        .map(|pair| match pair {
            [a, b] => (a - mean) * (b - mean),
            _ => 0.0,
        })
        .sum();
    if own > 0.0 { (with_next / own).clamp(-1.0, 1.0) } else { f64::NAN }
}

/// A quantile; the values need no order.
pub(super) fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1) as f64 * q).round() as usize;
    values.get(at).copied()
}

/// Root mean square deviation of arrivals from the straight line from first to last, in
/// ms: how much earlier or later bytes arrived than at a constant rate.
fn off_line_ms(arrivals: &[(i64, u32)]) -> Option<f64> {
    let (first, last) = (arrivals.first()?, arrivals.last()?);
    let total: f64 = sum(arrivals.iter().skip(1));
    let ns = last.0.saturating_sub(first.0) as f64;
    if arrivals.len() < 2 * ENOUGH || total <= 0.0 || ns <= 0.0 {
        return None;
    }
    let (mut before, mut square) = (0.0, 0.0);
    for (at, bytes) in arrivals.iter().skip(1) {
        before += f64::from(*bytes);
        let off = at.saturating_sub(first.0) as f64 - ns * before / total;
        square += off * off;
    }
    Some((square / (arrivals.len() - 1) as f64).sqrt() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment every `gap_us`, except for the delays of `late`.
    fn paced(n: i64, gap_us: i64, late: impl Fn(i64) -> i64) -> Vec<(i64, u32)> {
        let mut list: Vec<(i64, u32)> =
            (0..n).map(|k| ((k * gap_us + late(k)) * 1_000, 1_500)).collect();
        list.sort_unstable();
        list
    }

    #[test]
    fn one_rate_is_one_rate() {
        let list = paced(4_000, 1_000, |_| 0);
        let pattern = ArrivalPattern::from_spans(std::iter::once(list.as_slice()));
        assert!(pattern.cv_short < 0.01 && pattern.line_whole <= 0.11_f64.ln(), "{pattern:?}");
        assert!((pattern.rate - 1.5e6).abs() < 1e3 && pattern.paused == 0.0, "{pattern:?}");
        assert!(pattern.growth.abs() < 0.01 && pattern.peak.abs() < 0.01, "{pattern:?}");
    }

    /// Data delayed by HARQ for 8 ms arrives right after it, and the line stays straight.
    #[test]
    fn a_wire_makes_up_for_the_air() {
        let list = paced(4_000, 1_000, |k| if k % 50 < 8 { 8_000 - (k % 50) * 1_000 } else { 0 });
        let pattern = ArrivalPattern::from_spans(std::iter::once(list.as_slice()));
        assert!((pattern.catch_up - 1.0).abs() < 0.1, "{pattern:?}");
        assert!(pattern.line_whole < 8.0_f64.ln() && pattern.cv_short < 0.1, "{pattern:?}");
    }

    /// A rate that halves and doubles each second is not a wired link's.
    #[test]
    fn the_air_comes_and_goes() {
        let mut at = 0;
        let list: Vec<(i64, u32)> = (0..4_000)
            .map(|k| {
                at += if k / 500 % 2 == 0 { 1_000_000 } else { 3_000_000 };
                (at, 1_500)
            })
            .collect();
        let pattern = ArrivalPattern::from_spans(std::iter::once(list.as_slice()));
        assert!(pattern.cv_short > 0.4 && pattern.lag > 0.7, "{pattern:?}");
        assert!(pattern.line_whole > 100.0_f64.ln(), "{pattern:?}");
    }

    #[test]
    fn pauses_and_too_little() {
        let list = [(0, 1_500), (1_000_000, 1_500), (1_001_000_000, 1_500)];
        let pattern = ArrivalPattern::from_spans(std::iter::once(list.as_slice()));
        assert!((pattern.paused - 1_000.0 / 1_001.0).abs() < 1e-9, "{pattern:?}");
        assert!(pattern.cv_short.is_nan() && pattern.lag.is_nan() && pattern.catch_up.is_nan());
        let nothing = ArrivalPattern::from_spans(std::iter::empty());
        assert!(nothing.paused == 0.0 && nothing.line_whole.is_nan());
    }
}
