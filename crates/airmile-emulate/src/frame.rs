//! How time is cut into TTIs, and which way each can carry data.

use crate::harq::{FDD_ROUND_TRIP_TTIS, TDD_ROUND_TRIP_TTIS};
use crate::scenario::{LinkConfig, RlcConfig, Scenario};

/// Subframes of a frame (TS 36.211, 4).
const SUBFRAMES: i64 = 10;

/// TTI length and duplex pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    numerology: u8,
    /// When TTI index 0 began.
    epoch_ns: i64,
    /// Which TTIs of ten carry downlink, and uplink data.
    pattern: Option<([bool; 10], [bool; 10])>,
}

impl Frame {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let pattern = scenario.cell.tdd.as_deref().map(|text| {
            let is = |letter: u8| {
                let at = |n: usize| text.as_bytes().get(n % text.len().max(1)) == Some(&letter);
                std::array::from_fn(at)
            };
            (is(b'D'), is(b'U'))
        });
        Self { numerology: scenario.cell.numerology, epoch_ns: scenario.epoch_ns, pattern }
    }

    /// TTIs in a millisecond (TS 38.211, table 4.3.2-1).
    pub(crate) const fn slots_per_ms(self) -> i64 {
        1 << self.numerology
    }

    /// Nanoseconds of a TTI.
    pub(crate) const fn slot_ns(self) -> i64 {
        1_000_000 >> self.numerology
    }

    /// Start of a TTI in ns since the Unix epoch.
    pub(crate) const fn start_ns(self, tti: i64) -> i64 {
        self.epoch_ns + tti * self.slot_ns()
    }

    /// The TTI that a time lies in, and the first that begins no earlier.
    pub(crate) const fn ttis_at(self, at_ns: i64) -> (i64, i64) {
        let since = at_ns - self.epoch_ns;
        let slot_ns = self.slot_ns();
        (since.div_euclid(slot_ns), (since + slot_ns - 1).div_euclid(slot_ns))
    }

    pub(crate) const fn epoch_ns(self) -> i64 {
        self.epoch_ns
    }

    /// The millisecond that a TTI lies in.
    pub(crate) const fn ms(self, tti: i64) -> i64 {
        tti.div_euclid(self.slots_per_ms())
    }

    pub(crate) const fn numerology(self) -> u8 {
        self.numerology
    }

    pub(crate) fn is_downlink(self, tti: i64) -> bool {
        self.pattern.is_none_or(|(dl, _)| dl[tti.rem_euclid(SUBFRAMES) as usize])
    }

    pub(crate) fn is_uplink(self, tti: i64) -> bool {
        self.pattern.is_none_or(|(_, ul)| ul[tti.rem_euclid(SUBFRAMES) as usize])
    }

    pub(crate) const fn harq_round_trip_ttis(self) -> i64 {
        if self.pattern.is_some() { TDD_ROUND_TRIP_TTIS } else { FDD_ROUND_TRIP_TTIS }
    }

    /// A link whose times are in TTIs.
    pub(crate) fn scaled_link(self, link: &LinkConfig) -> LinkConfig {
        let slots = self.slots_per_ms() as f64;
        LinkConfig {
            fading_coherence_ms: link.fading_coherence_ms * slots,
            shadowing_coherence_ms: link.shadowing_coherence_ms * slots,
            ..link.clone()
        }
    }

    /// RLC whose timers are in TTIs.
    pub(crate) fn scaled_rlc(self, rlc: &RlcConfig) -> RlcConfig {
        let slots = self.slots_per_ms() as u32;
        RlcConfig {
            t_poll_retransmit_ms: rlc.t_poll_retransmit_ms.saturating_mul(slots),
            t_reordering_ms: rlc.t_reordering_ms.saturating_mul(slots),
            t_status_prohibit_ms: rlc.t_status_prohibit_ms.saturating_mul(slots),
            ..rlc.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::CellConfig;

    #[test]
    fn a_pattern_repeats_and_slots_halve() {
        let cell =
            CellConfig { numerology: 1, tdd: Some("DSUUD".to_owned()), ..CellConfig::default() };
        let frame = Frame::new(&Scenario { cell, ..Scenario::default() });
        let which: String = (0..10)
            .map(|tti| match (frame.is_downlink(tti), frame.is_uplink(tti)) {
                (true, false) => 'D',
                (false, true) => 'U',
                _ => '-',
            })
            .collect();
        assert_eq!(which, "D-UUDD-UUD");
        assert_eq!((frame.slot_ns(), frame.slots_per_ms(), frame.ms(5)), (500_000, 2, 2));
    }
}
