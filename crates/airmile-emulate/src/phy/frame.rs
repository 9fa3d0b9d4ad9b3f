//! Division of time into TTIs, and their directions.

use crate::scenario::{LinkConfig, RlcConfig, Scenario};

/// TTIs from a transmission to its retransmission, or to the next use of the process, and
/// number of processes: with FDD 4 TTIs to the feedback, 4 to the reaction (TS 36.213, 7.3
/// and 8.3).
pub(crate) const FDD_ROUND_TRIP_TTIS: i64 = 8;

/// The same for a TDD pattern of 10 subframes (TS 36.213, table 7-1 has up to 15 processes,
/// table 8-1 has 10 TTIs for patterns with this period).
pub(crate) const TDD_ROUND_TRIP_TTIS: i64 = 10;

/// Subframes of a frame (TS 36.211, 4).
const SUBFRAMES: i64 = 10;

/// TTIs from a grant to its transmission with FDD, and the minimum with TDD (TS 36.213, 8).
pub(crate) const GRANT_TTIS: i64 = 4;

/// TDD patterns and, for each uplink subframe from 0 on, the TTIs from grant to
/// transmission (TS 36.211, table 4.2-2; TS 36.213, table 8-2 inverted, with k = 7 for
/// subframes 3 and 8 of configuration 0, whose grants set the UL index's last bit).
const UPLINK_LEADS: [(&[u8; 10], [i64; 10]); 7] = [
    (b"DSUUUDSUUU", [0, 0, 6, 7, 4, 0, 0, 6, 7, 4]),
    (b"DSUUDDSUUD", [0, 0, 6, 4, 0, 0, 0, 6, 4, 0]),
    (b"DSUDDDSUDD", [0, 0, 4, 0, 0, 0, 0, 4, 0, 0]),
    (b"DSUUUDDDDD", [0, 0, 4, 4, 4, 0, 0, 0, 0, 0]),
    (b"DSUUDDDDDD", [0, 0, 4, 4, 0, 0, 0, 0, 0, 0]),
    (b"DSUDDDDDDD", [0, 0, 4, 0, 0, 0, 0, 0, 0, 0]),
    (b"DSUUUDSUUD", [0, 0, 7, 7, 5, 0, 0, 7, 7, 0]),
];

/// A TDD pattern, by TTI of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pattern {
    /// Which TTIs carry downlink and uplink data.
    dl: [bool; 10],
    ul: [bool; 10],
    /// TTIs from a grant to its uplink TTI.
    leads: [i64; 10],
}

impl Pattern {
    fn new(text: &str, numerology: u8) -> Self {
        let text = text.as_bytes();
        let letters: [u8; 10] =
            std::array::from_fn(|n| text.get(n % text.len().max(1)).copied().unwrap_or(b'D'));
        let is = |letter: u8| letters.map(|other| other == letter);
        let known =
            UPLINK_LEADS.iter().find(|(pattern, _)| numerology == 0 && **pattern == letters);
        // Any other pattern: the last D or S that is early enough (chosen here).
        let nearest = |at: usize| {
            let grants = |lead: &i64| {
                let from = (at as i64 - lead).rem_euclid(SUBFRAMES);
                letters[from as usize] != b'U'
            };
            (GRANT_TTIS..GRANT_TTIS + SUBFRAMES).find(grants).unwrap_or(GRANT_TTIS)
        };
        let leads = known.map_or_else(|| std::array::from_fn(nearest), |(_, leads)| *leads);
        Self { dl: is(b'D'), ul: is(b'U'), leads }
    }
}

/// TTI length and duplex pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    numerology: u8,
    /// Start of TTI index 0.
    epoch_ns: i64,
    pattern: Option<Pattern>,
    first_tti: i64,
}

impl Frame {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let numerology = scenario.cell.numerology;
        let pattern = scenario.cell.tdd.as_deref().map(|text| Pattern::new(text, numerology));
        let first_tti = i64::from(scenario.first_tti);
        Self { numerology, epoch_ns: scenario.epoch_ns, pattern, first_tti }
    }

    /// The frame of a split bearer's leg: its first TTI also starts with the run, whose
    /// start is given in TTIs of LTE.
    pub(crate) fn of_leg(scenario: &Scenario) -> Self {
        let frame = Self::new(scenario);
        Self { first_tti: i64::from(scenario.first_tti) << frame.numerology, ..frame }
    }

    /// The first TTI of the run.
    pub(crate) const fn first_tti(self) -> i64 {
        self.first_tti
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

    /// The TTI that contains a time, and the first that starts no earlier.
    pub(crate) const fn ttis_at(self, at_ns: i64) -> (i64, i64) {
        let since = at_ns - self.epoch_ns;
        let slot_ns = self.slot_ns();
        (since.div_euclid(slot_ns), (since + slot_ns - 1).div_euclid(slot_ns))
    }

    pub(crate) const fn epoch_ns(self) -> i64 {
        self.epoch_ns
    }

    /// The millisecond that contains a TTI.
    pub(crate) const fn ms(self, tti: i64) -> i64 {
        tti.div_euclid(self.slots_per_ms())
    }

    /// The millisecond of the run that contains a TTI.
    pub(crate) const fn run_ms(self, tti: i64) -> i64 {
        (tti - self.first_tti).div_euclid(self.slots_per_ms())
    }

    pub(crate) const fn numerology(self) -> u8 {
        self.numerology
    }

    pub(crate) fn is_downlink(self, tti: i64) -> bool {
        self.pattern.is_none_or(|pattern| pattern.dl[tti.rem_euclid(SUBFRAMES) as usize])
    }

    pub(crate) fn is_uplink(self, tti: i64) -> bool {
        self.pattern.is_none_or(|pattern| pattern.ul[tti.rem_euclid(SUBFRAMES) as usize])
    }

    /// The uplink TTIs granted in a TTI, in order.
    pub(crate) fn granted_from(self, tti: i64) -> Vec<i64> {
        let Some(pattern) = self.pattern else { return vec![tti + GRANT_TTIS] };
        let lead = |at: i64| pattern.leads[at.rem_euclid(SUBFRAMES) as usize];
        (tti + GRANT_TTIS..tti + GRANT_TTIS + SUBFRAMES)
            .filter(|&at| self.is_uplink(at) && lead(at) == at - tti)
            .collect()
    }

    pub(crate) const fn harq_round_trip_ttis(self) -> i64 {
        if self.pattern.is_some() { TDD_ROUND_TRIP_TTIS } else { FDD_ROUND_TRIP_TTIS }
    }

    /// A link configuration with times in TTIs.
    pub(crate) fn scaled_link(self, link: &LinkConfig) -> LinkConfig {
        let slots = self.slots_per_ms() as f64;
        LinkConfig {
            fading_coherence_ms: link.fading_coherence_ms * slots,
            shadowing_coherence_ms: link.shadowing_coherence_ms * slots,
            ..link.clone()
        }
    }

    /// An RLC configuration with timers in TTIs.
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
    use proptest::prelude::*;

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

    fn of(tdd: &str, numerology: u8) -> Frame {
        let cell = CellConfig { numerology, tdd: Some(tdd.to_owned()), ..CellConfig::default() };
        Frame::new(&Scenario { cell, ..Scenario::default() })
    }

    /// TS 36.213, table 8-2, by hand: pairs of grant and transmission of a frame.
    #[test]
    fn grants_lead_as_table_8_2_says() {
        let check = |tdd: &str, expected: &[(i64, &[i64])]| {
            let frame = of(tdd, 0);
            let got: Vec<(i64, Vec<i64>)> = (0..10)
                .map(|tti| (tti, frame.granted_from(tti)))
                .filter(|(_, at)| !at.is_empty())
                .collect();
            let expected: Vec<(i64, Vec<i64>)> =
                expected.iter().map(|&(tti, at)| (tti, at.to_vec())).collect();
            assert_eq!(got, expected, "{tdd}");
        };
        check("DSUUU", &[(0, &[4]), (1, &[7, 8]), (5, &[9]), (6, &[12, 13])]);
        check("DSUUDDSUUD", &[(1, &[7]), (4, &[8]), (6, &[12]), (9, &[13])]);
        check("DSUDD", &[(3, &[7]), (8, &[12])]);
        check("DSUUUDDDDD", &[(0, &[4]), (8, &[12]), (9, &[13])]);
        check("DSUUDDDDDD", &[(8, &[12]), (9, &[13])]);
        check("DSUDDDDDDD", &[(8, &[12])]);
        check("DSUUUDSUUD", &[(0, &[7]), (1, &[8]), (5, &[12]), (6, &[13]), (9, &[14])]);
        // Not a configuration of LTE: 4, 5 or 6 TTIs before.
        check("DDDSU", &[(0, &[4]), (5, &[9])]);
        check("UUUUD", &[(4, &[8, 10, 11, 12]), (9, &[13, 15, 16, 17])]);
    }

    proptest! {
        /// Each uplink TTI has one grant, from a D or S at least 4 TTIs before.
        #[test]
        fn no_grant_leaves_in_an_uplink_tti(
            letters in prop::collection::vec(prop::sample::select(vec!['D', 'S', 'U']), 5),
            twice in any::<bool>(),
            numerology in 0u8..3,
        ) {
            let text: String = letters.iter().collect();
            prop_assume!(text.contains('D') && text.contains('U'));
            let text = if twice { text.repeat(2) } else { text };
            let frame = of(&text, numerology);
            let mut granted = std::collections::BTreeMap::new();
            for tti in 0..40 {
                for at in frame.granted_from(tti) {
                    prop_assert!(!frame.is_uplink(tti) && frame.is_uplink(at) && at - tti >= 4);
                    prop_assert_eq!(granted.insert(at, tti), None);
                }
            }
            for at in (20..40).filter(|&at| frame.is_uplink(at)) {
                prop_assert!(granted.contains_key(&at), "{} {}", text, at);
            }
        }
    }
}
