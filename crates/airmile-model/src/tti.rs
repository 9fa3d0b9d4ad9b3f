//! TTI counters: the wrapping one of the air interface, the unwrapped one of estimators,
//! and the conversion between them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Subframes in one SFN period: 1024 frames of 10 (TS 36.211, 4; TS 36.331, MIB).
pub const TTIS_PER_SFN_PERIOD: i64 = 10_240;

/// A wrapped subframe counter, `SFN * 10 + subframe`, modulo 10240.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tti(u16);

impl Tti {
    /// From a system frame number and subframe. `sfn` is taken modulo 1024, as
    /// several messages store it in a wider field; `None` if `subframe` > 9.
    #[must_use]
    pub const fn new(sfn: u16, subframe: u8) -> Option<Self> {
        if subframe > 9 { None } else { Some(Self((sfn & 0x3ff) * 10 + subframe as u16)) }
    }

    /// From `SFN * 10 + subframe`; `None` at or above 10240.
    #[must_use]
    pub const fn from_count(count: u16) -> Option<Self> {
        if count < 10_240 { Some(Self(count)) } else { None }
    }

    /// The system frame number, 0..1024.
    #[must_use]
    pub const fn sfn(self) -> u16 {
        self.0 / 10
    }

    /// The subframe in the frame, 0..10.
    #[must_use]
    pub const fn subframe(self) -> u8 {
        (self.0 % 10) as u8
    }

    /// `SFN * 10 + subframe`, 0..10240.
    #[must_use]
    pub const fn count(self) -> u16 {
        self.0
    }

    /// TTIs from `earlier` forward to `self`, 0..10240.
    #[must_use]
    pub const fn wrapping_since(self, earlier: Self) -> u16 {
        let wrapped = if self.0 < earlier.0 { 10_240 } else { 0 };
        self.0 + wrapped - earlier.0
    }

    /// The TTI `n` later (or earlier), wrapped.
    #[must_use]
    pub const fn wrapping_add(self, n: i64) -> Self {
        Self((self.0 as i64 + n).rem_euclid(TTIS_PER_SFN_PERIOD) as u16)
    }
}

impl fmt::Display for Tti {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.sfn(), self.subframe())
    }
}

/// An unwrapped TTI: subframes (slots in NR) since the log's own origin.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct TtiIndex(pub i64);

impl TtiIndex {
    /// The wrapped counter of this index.
    #[must_use]
    pub const fn wrapped(self) -> Tti {
        Tti(self.0.rem_euclid(TTIS_PER_SFN_PERIOD) as u16)
    }

    /// TTIs from `earlier` to `self`, saturating.
    #[must_use]
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The index `n` TTIs later, saturating.
    #[must_use]
    pub const fn plus(self, n: i64) -> Self {
        Self(self.0.saturating_add(n))
    }
}

impl fmt::Display for TtiIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The highest numerology defined (TS 38.211, 4.2).
const MAX_NUMEROLOGY: u8 = 6;

/// A length of time as a number of TTIs of one numerology.
///
/// A TTI lasts `1 ms / 2^numerology` (TS 38.211, 4.3.2): an LTE subframe 1 ms, an NR slot
/// less. So a number of TTIs is a time only together with its numerology; conversions
/// between the two use this type. A numerology above 6 counts as 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TtiSpan(pub i64);

impl TtiSpan {
    /// TTIs in whole milliseconds, saturating.
    #[must_use]
    pub const fn from_ms(ms: i64, numerology: u8) -> Self {
        Self(ms.saturating_mul(1 << clamped(numerology)))
    }

    /// The length in ms.
    #[must_use]
    pub fn ms(self, numerology: u8) -> f64 {
        self.0 as f64 / f64::from(1_u32 << clamped(numerology))
    }

    /// The length in nanoseconds, saturating.
    #[must_use]
    pub const fn ns(self, numerology: u8) -> i64 {
        self.0.saturating_mul(1_000_000 >> clamped(numerology))
    }
}

const fn clamped(numerology: u8) -> u8 {
    if numerology > MAX_NUMEROLOGY { MAX_NUMEROLOGY } else { numerology }
}

/// The position of a record on the air: timing segment, cell, numerology, TTI.
///
/// Handovers, jumps of the SFN and jumps of the clock begin a new `timing_segment`; TTIs
/// continue from one to the next by the log's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Position {
    /// Counts up from 0 at each handover and each jump of the SFN or the clock.
    pub timing_segment: u32,
    /// 0 is the primary cell, 1.. the secondary cells.
    pub cell: u8,
    /// NR subcarrier spacing index mu (TS 38.211, 4.2); 0 for LTE. A TTI lasts
    /// `1 ms / 2^numerology`.
    pub numerology: u8,
    /// The unwrapped TTI.
    pub tti: TtiIndex,
}

impl Position {
    /// A position on the primary LTE cell of timing segment 0.
    #[must_use]
    pub const fn lte(tti: i64) -> Self {
        Self { timing_segment: 0, cell: 0, numerology: 0, tti: TtiIndex(tti) }
    }
}

/// Unwraps TTIs against the log's clock: an idle phone can sleep through many SFN
/// periods, so the previous record alone does not show how many passed.
///
/// With an anchor (time, TTI) the TTI of a record is predicted from its time,
/// and the number of whole periods is the one that brings its counter nearest
/// to the prediction. That is unambiguous while the error stays below half a
/// period, 5.12 s.
#[derive(Debug, Clone)]
pub struct TtiUnwrapper {
    anchor_ns: i64,
    anchor: TtiIndex,
}

/// A residual above this re-anchors as a new timing segment (chosen here: an order of
/// magnitude over the few ms of write jitter in real logs, far below the batching delay
/// that callers must subtract first).
const REANCHOR_TTIS: i64 = 50;

impl TtiUnwrapper {
    /// Anchors at a first record: its index is its own counter.
    #[must_use]
    pub const fn new(at_ns: i64, tti: Tti) -> Self {
        Self { anchor_ns: at_ns, anchor: TtiIndex(tti.0 as i64) }
    }

    /// The clock's prediction of the index at `at_ns`.
    #[must_use]
    pub fn predict(&self, at_ns: i64) -> TtiIndex {
        let elapsed_ms = at_ns.saturating_sub(self.anchor_ns).div_euclid(1_000_000);
        self.anchor.plus(elapsed_ms)
    }

    /// The clock's time at the start of an index.
    #[must_use]
    pub fn time_ns(&self, tti: TtiIndex) -> i64 {
        self.anchor_ns.saturating_add(tti.since(self.anchor).saturating_mul(1_000_000))
    }

    /// Moves the anchor to a record, to follow slow drift.
    pub fn follow(&mut self, at_ns: i64, tti: TtiIndex) {
        self.anchor_ns = at_ns;
        self.anchor = tti;
    }

    /// Maximum deviation of a counter from the clock's prediction within one timing, in TTIs.
    #[must_use]
    pub const fn tolerance() -> i64 {
        REANCHOR_TTIS
    }
}

/// The index congruent to `tti` that is nearest to `predicted`.
#[must_use]
pub fn nearest(predicted: TtiIndex, tti: Tti) -> TtiIndex {
    let ahead = i64::from(tti.wrapping_since(predicted.wrapped()));
    let step = if ahead > TTIS_PER_SFN_PERIOD / 2 { ahead - TTIS_PER_SFN_PERIOD } else { ahead };
    predicted.plus(step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn masks_sfn_and_refuses_bad_subframe() {
        assert_eq!(Tti::new(0x7ff, 9).map(Tti::count), Some(10_239));
        assert_eq!(Tti::new(0, 10), None);
        assert_eq!(Tti::from_count(10_240), None);
    }

    #[test]
    fn a_span_of_ttis_is_a_time_by_its_numerology() {
        for (numerology, ttis) in [(0, 500), (1, 1_000), (3, 4_000), (6, 32_000), (200, 32_000)] {
            let span = TtiSpan::from_ms(500, numerology);
            assert_eq!((span.0, span.ns(numerology)), (ttis, 500_000_000), "{numerology}");
            assert!((span.ms(numerology) - 500.0).abs() < 1e-9, "{numerology}");
        }
        assert_eq!(TtiSpan::from_ms(i64::MAX, 1), TtiSpan(i64::MAX));
        assert_eq!(TtiSpan(1).ns(4), 62_500);
    }

    #[test]
    fn sleeps_through_many_periods() {
        let first = Tti::new(1023, 9).unwrap();
        let unwrapper = TtiUnwrapper::new(0, first);
        // 100 s later, 3 ms off: 9 periods and a part have passed.
        let later = TtiIndex(10_239 + 100_003).wrapped();
        assert_eq!(nearest(unwrapper.predict(100_000_000_000), later), TtiIndex(110_242));
    }

    proptest! {
        #[test]
        fn unwraps_within_half_a_period(start in 0u16..10_240, elapsed in 0i64..100_000_000,
                                        jitter in -5_000i64..5_000) {
            let first = Tti::from_count(start).unwrap();
            let unwrapper = TtiUnwrapper::new(7, first);
            let truth = TtiIndex(i64::from(start) + elapsed);
            let written_ns = 7 + (elapsed + jitter) * 1_000_000;
            prop_assert_eq!(nearest(unwrapper.predict(written_ns), truth.wrapped()), truth);
        }

        #[test]
        fn wrapping_since_inverts_add(a in 0u16..10_240, n in 0i64..10_240) {
            let tti = Tti::from_count(a).unwrap();
            prop_assert_eq!(i64::from(tti.wrapping_add(n).wrapping_since(tti)), n);
        }
    }
}
