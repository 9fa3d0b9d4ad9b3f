//! RRC states of a phone and its discontinuous reception.

use airmile_model::{Direction, TtiIndex};

use crate::frame::Frame;
use crate::scenario::RrcConfig;

/// RRC state, with the promotion between idle and connected apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RrcState {
    /// No connection.
    Idle,
    /// A packet waits for the connection.
    Promotion,
    /// Connected.
    Connected,
}

/// A state from a TTI on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RrcRun {
    /// First TTI.
    pub tti: TtiIndex,
    /// TTIs that it holds for.
    pub n_tti: u32,
    /// State.
    pub state: RrcState,
}

/// Times of an [`RrcConfig`] in TTIs.
#[derive(Debug, Clone)]
struct Times {
    promotion: i64,
    paging: i64,
    tail: i64,
    /// Inactivity timer, on-duration, cycle.
    drx: Option<(i64, i64, i64)>,
}

/// The state machine of a phone.
#[derive(Debug, Clone)]
pub(crate) struct Rrc {
    times: Option<Times>,
    state: RrcState,
    /// TTI at which a promotion ends.
    connected_at: i64,
    /// Last TTI with data either way.
    last_data: i64,
    /// Last TTI with an assignment or a grant, for data or not.
    last_assignment: i64,
    runs: Vec<RrcRun>,
}

impl Rrc {
    pub(crate) fn new(config: Option<&RrcConfig>, first_tti: i64, frame: Frame) -> Self {
        let slots = |ms: u32| i64::from(ms) * frame.slots_per_ms();
        let times = config.map(|config| Times {
            promotion: slots(config.promotion_ms),
            paging: slots(config.paging_ms),
            tail: slots(config.tail_ms),
            drx: config
                .drx
                .as_ref()
                .map(|drx| (slots(drx.inactivity_ms), slots(drx.on_ms), slots(drx.cycle_ms))),
        });
        let idle = config.is_some_and(|config| config.starts_idle);
        let state = if idle { RrcState::Idle } else { RrcState::Connected };
        Self {
            times,
            state,
            connected_at: i64::MAX,
            last_data: first_tti,
            last_assignment: first_tti,
            runs: Vec::new(),
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.state == RrcState::Connected
    }

    /// A packet has come: in idle, the phone is paged (downlink) or asks for a
    /// connection at once (uplink).
    pub(crate) fn wake(&mut self, dir: Direction, tti: i64) {
        let Some(times) = self.times.as_ref().filter(|_| self.state == RrcState::Idle) else {
            return;
        };
        let paged_in = match dir {
            Direction::Dl => (times.paging - tti.rem_euclid(times.paging)) % times.paging,
            Direction::Ul => 0,
        };
        self.state = RrcState::Promotion;
        self.connected_at = tti + paged_in + times.promotion;
    }

    /// The phone was assigned something, as a timing advance command.
    pub(crate) const fn on_assignment(&mut self, tti: i64) {
        self.last_assignment = tti;
    }

    /// Data has crossed the air, or the phone has asked to send.
    pub(crate) const fn on_data(&mut self, tti: i64) {
        self.last_data = tti;
        self.last_assignment = tti;
    }

    /// Begins a TTI, with data waiting for the air or not.
    pub(crate) fn tick(&mut self, tti: i64, waits: bool) {
        if let Some(times) = &self.times {
            match self.state {
                RrcState::Promotion if tti >= self.connected_at => {
                    self.state = RrcState::Connected;
                    self.on_data(tti);
                }
                RrcState::Connected if !waits && tti - self.last_data >= times.tail => {
                    self.state = RrcState::Idle;
                }
                _ => {}
            }
        }
        match self.runs.last_mut() {
            Some(run) if run.state == self.state => run.n_tti += 1,
            _ => self.runs.push(RrcRun { tti: TtiIndex(tti), n_tti: 1, state: self.state }),
        }
    }

    /// Whether the phone listens for assignments in a TTI (Active Time of TS
    /// 36.321, 5.7: on-duration, or inactivity timer running).
    pub(crate) fn hears(&self, tti: i64) -> bool {
        let drx = self.times.as_ref().and_then(|times| times.drx);
        self.is_connected()
            && drx.is_none_or(|(inactivity, on, cycle)| {
                tti - self.last_assignment <= inactivity || tti.rem_euclid(cycle) < on
            })
    }

    pub(crate) fn into_runs(self) -> Vec<RrcRun> {
        self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{DrxConfig, Scenario};

    fn rrc(drx: Option<DrxConfig>) -> Rrc {
        let config =
            RrcConfig { starts_idle: true, promotion_ms: 100, paging_ms: 320, tail_ms: 1_000, drx };
        Rrc::new(Some(&config), 0, Frame::new(&Scenario::default()))
    }

    #[test]
    fn a_packet_in_idle_waits_for_promotion_and_paging() {
        // Direction, TTI of the packet, first connected TTI.
        for (dir, tti, expected) in
            [(Direction::Ul, 10, 110), (Direction::Dl, 10, 420), (Direction::Dl, 640, 740)]
        {
            let mut rrc = rrc(None);
            rrc.wake(dir, tti);
            let first = (tti..).find(|&tti| {
                rrc.tick(tti, true);
                rrc.is_connected()
            });
            assert_eq!(first, Some(expected), "{dir} {tti}");
        }
    }

    #[test]
    fn the_tail_ends_after_a_second_and_drx_wakes_each_cycle() {
        let mut rrc = rrc(Some(DrxConfig { inactivity_ms: 100, on_ms: 10, cycle_ms: 160 }));
        rrc.wake(Direction::Ul, 0);
        let mut heard = Vec::new();
        for tti in 0..2_000 {
            rrc.tick(tti, false);
            if rrc.hears(tti) {
                heard.push(tti);
            }
        }
        let runs: Vec<_> = rrc.into_runs().iter().map(|run| (run.state, run.n_tti)).collect();
        let expected =
            [(RrcState::Promotion, 100), (RrcState::Connected, 1_000), (RrcState::Idle, 900)];
        assert_eq!(runs, expected);
        // 100 to 200 by inactivity, then 320, 480, 640, 800, 960, each 10 TTIs.
        assert_eq!(heard.len(), 101 + 5 * 10);
        assert!(heard.contains(&320) && !heard.contains(&330) && !heard.contains(&1_120));
    }
}
