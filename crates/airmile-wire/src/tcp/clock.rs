//! Time stamp clocks: G, the duration of a tick (paper 6.1, equation 3, which the paper
//! prints inverted).

use super::opt64::Opt64;

/// Packets this far apart give G within 0.1 % (the paper's delta_G).
pub const DELTA_G_NS: i64 = 3_000_000_000;

/// Common tick durations, in nanoseconds (1000, 250, 100 and 10 Hz).
const USUAL_NS: [f64; 4] = [1e6, 4e6, 1e7, 1e8];
/// G within this share of a common tick snaps to it (chosen here: the delay of the link
/// varies by less than 150 ms in delta_G).
const SNAP: f64 = 0.05;

/// The same for a short flow: common ticks differ by a factor of 2.5 or more, and delays
/// vary by tens of milliseconds (chosen here).
const SNAP_SHORT: f64 = 0.3;
/// Minimum span and ticks for that (chosen here).
const SHORT_NS: i64 = 100_000_000;
const SHORT_TICKS: u32 = 10;

/// Estimates G from the time stamps of one sender.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TickClock {
    first_ns: Opt64,
    last_ns: i64,
    first_ticks: u32,
    last_ticks: u32,
    broken: bool,
}

impl TickClock {
    /// Takes a time stamp and when it passed.
    #[inline]
    pub(crate) fn push(&mut self, at_ns: i64, value: u32) {
        if self.first_ns.is_none() {
            (self.first_ns, self.first_ticks) = (Opt64::some(at_ns), value);
        } else if value.wrapping_sub(self.last_ticks).cast_signed() < 0 {
            // Reordered, or no clock.
            self.broken |= self.last_ticks.wrapping_sub(value) > 1 << 20;
            return;
        }
        (self.last_ns, self.last_ticks) = (at_ns, value);
    }

    /// Whether any time stamp came.
    pub(super) const fn is_seen(&self) -> bool {
        self.first_ns.is_some()
    }

    /// Time since the first sample.
    pub(super) fn span_ns(&self) -> i64 {
        self.first_ns.get().map_or(0, |at| self.last_ns - at)
    }

    /// Measured nanoseconds per tick, once delta_G has passed.
    pub(super) fn measured_ns(&self) -> Option<f64> {
        let at = self.first_ns.get()?;
        let ticks = self.last_ticks.wrapping_sub(self.first_ticks);
        if self.broken || ticks < 10 || self.last_ns - at < DELTA_G_NS {
            return None;
        }
        Some((self.last_ns - at) as f64 / f64::from(ticks))
    }

    /// Mean nanoseconds per tick of a flow of any length that is not too short.
    pub(crate) fn mean_ns(&self) -> Option<f64> {
        let at = self.first_ns.get()?;
        let ticks = self.last_ticks.wrapping_sub(self.first_ticks);
        if self.broken || ticks < SHORT_TICKS || self.last_ns - at < SHORT_NS {
            return None;
        }
        Some((self.last_ns - at) as f64 / f64::from(ticks))
    }

    /// The common tick that a flow too short for delta_G matches, if any.
    pub(super) fn likely_ns(&self) -> Option<f64> {
        usual_near(self.mean_ns()?, SNAP_SHORT)
    }

    /// Nanoseconds per tick: a common tick if the measured one is near to it.
    pub(super) fn tick_ns(&self) -> Option<f64> {
        self.measured_ns().map(snap)
    }
}

fn snap(measured: f64) -> f64 {
    usual_near(measured, SNAP).unwrap_or(measured)
}

/// The common tick that a clock has whose measure a queue that grew or drained may have
/// stretched.
pub(super) fn common_tick_ns(measured: f64) -> Option<f64> {
    usual_near(measured, SNAP_SHORT)
}

fn usual_near(measured: f64, within: f64) -> Option<f64> {
    USUAL_NS.iter().find(|usual| (measured / **usual - 1.0).abs() <= within).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tick_ns: i64, seconds: i64, expected: Option<f64>) {
        let mut clock = TickClock::default();
        for n in 0..=seconds * 10 {
            let (sent, delay) = (n * 100_000_000, (n % 7) * 5_000_000);
            clock.push(sent + delay, ((sent / tick_ns) as u32).wrapping_add(u32::MAX - 40));
        }
        assert_eq!(clock.tick_ns(), expected, "{tick_ns}");
    }

    #[test]
    fn usual_ticks_are_exact_across_the_wrap() {
        check(1_000_000, 4, Some(1e6));
        check(4_000_000, 4, Some(4e6));
        check(10_000_000, 4, Some(1e7));
        check(100_000_000, 4, Some(1e8));
    }

    #[test]
    fn a_short_flow_fits_a_usual_tick() {
        let mut clock = TickClock::default();
        (0..40).for_each(|n| clock.push(n * 10_000_000 + (n % 3) * 9_000_000, n as u32 * 10));
        assert_eq!((clock.tick_ns(), clock.likely_ns()), (None, Some(1e6)));
    }

    #[test]
    fn too_short_is_unknown() {
        check(1_000_000, 2, None);
    }
}
