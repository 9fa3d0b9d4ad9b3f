//! Converts TTIs to the log's clock.

use airmile_model::{Stamp, TtiIndex, TtiSpan};

/// Anchors are this far apart: the drift in between is far below a TTI.
const ANCHOR_SPACING_NS: i64 = 1_000_000_000;

/// Gives the time of a TTI from the nearest earlier record that has both; without any timed record,
/// the time is the TTI's count from 0.
#[derive(Default)]
pub struct TtiClock {
    /// `(TTI, nanoseconds)`, by TTI.
    anchors: Vec<(i64, i64)>,
    numerology: u8,
}

impl TtiClock {
    /// Sets the numerology of grants, which also applies to bursts and transfers, as in
    /// `airmile_radio::transfer`.
    pub const fn set_numerology(&mut self, numerology: u8) {
        self.numerology = numerology;
    }

    /// Adds the time of a record; returns it if it is the first known one.
    pub fn note(&mut self, TtiIndex(tti): TtiIndex, at: Option<Stamp>) -> Option<u64> {
        let at = at?;
        let first = self.anchors.is_empty();
        let is_due = |&(last, ns): &(i64, i64)| {
            let since = TtiSpan(tti.saturating_sub(last));
            since.0 > 0 && since.ends_at_anchor(self.numerology, (ns, at.ns), ANCHOR_SPACING_NS)
        };
        if self.anchors.last().is_none_or(is_due) {
            self.anchors.push((tti, at.ns));
        }
        first.then(|| u64::try_from(at.ns).unwrap_or_default())
    }

    #[cfg(test)]
    pub const fn anchors(&self) -> usize {
        self.anchors.len()
    }

    /// A TTI's length in nanoseconds: `1 ms / 2^numerology` (TS 38.211, 4.3.2).
    pub const fn tti_ns(&self) -> i64 {
        TtiSpan(1).ns(self.numerology)
    }

    /// Start of a TTI in nanoseconds; traces have no times before 0.
    pub fn ns(&self, tti: i64) -> u64 {
        let after = self.anchors.partition_point(|anchor| anchor.0 <= tti);
        let (from, at_ns) = self.anchors.get(after.saturating_sub(1)).copied().unwrap_or_default();
        let ns = at_ns.saturating_add(tti.saturating_sub(from).saturating_mul(self.tti_ns()));
        u64::try_from(ns).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttis_lie_on_the_clock() {
        let mut clock = TtiClock::default();
        assert_eq!(clock.ns(7), 7_000_000);
        let note =
            |clock: &mut TtiClock, tti, ns| clock.note(TtiIndex(tti), Some(Stamp::modem(ns)));
        assert_eq!(note(&mut clock, 100, 5_000_000_000), Some(5_000_000_000));
        assert_eq!(note(&mut clock, 200, 5_100_500_000), None);
        assert_eq!(clock.ns(200), 5_100_000_000, "too near for an anchor");
        note(&mut clock, 1_200, 6_100_200_000);
        for (tti, ns) in [
            (99, 4_999_000_000),
            (100, 5_000_000_000),
            (1_199, 6_099_000_000),
            (1_200, 6_100_200_000),
            (1_210, 6_110_200_000),
        ] {
            assert_eq!(clock.ns(tti), ns, "{tti}");
        }
    }
}
