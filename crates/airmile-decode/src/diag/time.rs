//! DIAG time stamps.
//!
//! A stamp counts from 1980-01-06T00:00:00 without leap seconds; modems set it from
//! network or GPS-corrected time and all tools treat it as UTC. Its upper 48 bits are
//! ticks of 1.25 ms; its lower 16 bits are 1/32 chips of 1.2288 Mcps, 0 to 49151, of
//! which 49152 make a tick.

use airmile_model::Stamp;

/// 1980-01-06T00:00:00Z in seconds since the Unix epoch.
const EPOCH_S: i64 = 315_964_800;
const TICK_NS: i128 = 1_250_000;
/// 1/32 chips in a tick.
const FRAC_PER_TICK: i128 = 49_152;

/// Nanoseconds since the Unix epoch, rounded down; saturates far beyond any
/// date that a log can have.
#[must_use]
pub fn unix_ns(ts_raw: u64) -> i64 {
    let ticks = i128::from(ts_raw >> 16);
    let frac = i128::from(ts_raw & 0xffff);
    let ns = i128::from(EPOCH_S) * 1_000_000_000 + ticks * TICK_NS + frac * TICK_NS / FRAC_PER_TICK;
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// The stamp on the modem's clock.
#[must_use]
pub fn stamp(ts_raw: u64) -> Stamp {
    Stamp::modem(unix_ns(ts_raw))
}

/// The first stamp that is not before a time; times before 1980-01-06 give 0.
#[must_use]
pub fn from_unix_ns(ns: i64) -> u64 {
    let since = (i128::from(ns) - i128::from(EPOCH_S) * 1_000_000_000).max(0);
    let (mut ticks, rest) = (since / TICK_NS, since % TICK_NS);
    let mut frac = (rest * FRAC_PER_TICK + TICK_NS - 1) / TICK_NS;
    if frac == FRAC_PER_TICK {
        ticks += 1;
        frac = 0;
    }
    (ticks as u64) << 16 | frac as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_and_a_part_of_one() {
        // 2020-01-01T00:00:00.05Z is 1261872000.05 s, 800 ticks each, after the
        // epoch: 1009497600040 = 0xeb0abef028. 0x3001 is 12289: a quarter of a
        // tick, 312500 ns, and 1/49152 of one, 25 ns.
        let ns = unix_ns(0x00eb_0abe_f028_3001);
        assert_eq!(ns, 1_577_836_800_050_000_000 + 12_289 * 1_250_000 / 49_152);
        assert_eq!(ns, 1_577_836_800_050_312_525);
    }

    proptest! {
        #[test]
        fn both_ways(ticks in 0u64..1 << 42, frac in 0u64..49_152) {
            let raw = ticks << 16 | frac;
            prop_assert_eq!(from_unix_ns(unix_ns(raw)), raw);
        }

        #[test]
        fn never_early_and_at_most_26_ns_late(ns in 315_964_800_000_000_000i64..i64::MAX / 2) {
            let back = unix_ns(from_unix_ns(ns));
            prop_assert!((0..=26).contains(&(back - ns)));
        }
    }
}
