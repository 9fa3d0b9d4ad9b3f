//! When the radio had nothing to do, and what it lost.

use airmile_model::{Direction, TtiIndex, TtiSpan};
use airmile_wire::attribute::SILENCE_NS;

/// When the radio had nothing to do, and what it lost; empty unless lists are kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Silent {
    /// Without scheduling, longer than between the packets of a slow line.
    pub(super) silences: Vec<(TtiIndex, TtiIndex)>,
    /// The log has blocks of the uplink, so that a silence is one of both directions.
    pub(super) sees_uplink: bool,
    /// In bursts of the uplink: nothing shows what the base station had granted, or it had granted all reported data.
    pub(super) granted: [Vec<(TtiIndex, TtiIndex)>; 2],
    last: Option<TtiIndex>,
    pub(super) lost_ttis: Vec<TtiIndex>,
    pub(super) given_up: Vec<TtiIndex>,
}

impl Silent {
    /// Records a TTI in which something was scheduled.
    pub(super) fn busy(&mut self, dir: Direction, tti: TtiIndex, numerology: u8) {
        self.sees_uplink |= dir == Direction::Ul;
        let least = TtiSpan::from_ms(SILENCE_NS / 1_000_000, numerology).0;
        // Before the first one the state of the phone is unknown.
        let since = self.last.unwrap_or(TtiIndex(i64::MIN / 2));
        if tti.0.saturating_sub(since.0) >= least {
            self.silences.push((since, tti));
        }
        self.last = self.last.max(Some(tti));
    }
}
