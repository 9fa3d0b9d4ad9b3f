//! RRC states of a phone and its discontinuous reception.

use airmile_model::{Direction, TtiIndex};

use crate::phy::Frame;
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
    drx: Option<Drx>,
}

/// DRX in TTIs (TS 36.321, 5.7).
#[derive(Debug, Clone, Copy)]
struct Drx {
    /// drx-InactivityTimer, onDurationTimer, longDRX-Cycle.
    inactivity: i64,
    on: i64,
    cycle: i64,
    /// HARQ RTT Timer (7.7) and drx-RetransmissionTimer.
    harq_rtt: i64,
    retransmission: i64,
}

/// A downlink HARQ process: its carrier and number.
type Process = (u8, u8);

/// The state machine of a phone.
#[derive(Debug, Clone)]
pub(crate) struct Rrc {
    times: Option<Times>,
    state: RrcState,
    /// TTI at which a promotion ends.
    connected_at: i64,
    /// Last TTI with data either way.
    last_data: i64,
    /// Last TTI with an assignment or a grant of a new transmission.
    last_assignment: i64,
    /// Processes whose block was not received: from when, to when (exclusive)
    /// drx-RetransmissionTimer runs.
    retransmissions: Vec<(Process, i64, i64)>,
    /// A scheduling request is pending.
    requests: bool,
    /// Last TTI in which a grant of a retransmission can occur.
    grant_awaited: i64,
    runs: Vec<RrcRun>,
}

impl Rrc {
    pub(crate) fn new(config: Option<&RrcConfig>, first_tti: i64, frame: Frame) -> Self {
        let slots = |ms: u32| i64::from(ms) * frame.slots_per_ms();
        let times = config.map(|config| Times {
            promotion: slots(config.promotion_ms),
            paging: slots(config.paging_ms),
            tail: slots(config.tail_ms),
            drx: config.drx.as_ref().map(|drx| Drx {
                inactivity: slots(drx.inactivity_ms),
                on: slots(drx.on_ms),
                cycle: slots(drx.cycle_ms),
                harq_rtt: frame.harq_round_trip_ttis(),
                retransmission: i64::from(drx.retransmission_ttis),
            }),
        });
        let idle = config.is_some_and(|config| config.starts_idle);
        let state = if idle { RrcState::Idle } else { RrcState::Connected };
        Self {
            times,
            state,
            connected_at: i64::MAX,
            last_data: first_tti,
            last_assignment: first_tti,
            retransmissions: Vec::new(),
            requests: false,
            grant_awaited: i64::MIN,
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

    /// A new transmission was assigned or granted: drx-InactivityTimer starts
    /// again. Retransmissions do not start it.
    pub(crate) const fn on_assignment(&mut self, tti: i64) {
        self.last_assignment = tti;
    }

    /// Data has crossed the air, or waits in the phone.
    pub(crate) const fn on_data(&mut self, tti: i64) {
        self.last_data = tti;
    }

    /// The phone was sent a block: HARQ RTT Timer starts, and after it, if the
    /// block was not received, drx-RetransmissionTimer.
    pub(crate) fn on_downlink(&mut self, tti: i64, process: Process, crc_ok: bool) {
        let Some(drx) = self.times.as_ref().and_then(|times| times.drx) else { return };
        self.retransmissions.retain(|&(of, _, to)| of != process && to > tti);
        if !crc_ok {
            let from = tti + drx.harq_rtt;
            self.retransmissions.push((process, from, from + drx.retransmission));
        }
    }

    /// Whether a scheduling request is pending.
    pub(crate) const fn set_request(&mut self, pending: bool) {
        self.requests = pending;
    }

    /// A grant of an uplink retransmission can occur.
    pub(crate) const fn on_grant_awaited(&mut self, tti: i64) {
        self.grant_awaited = tti;
    }

    /// Begins a TTI, with data waiting for the air or not.
    pub(crate) fn tick(&mut self, tti: i64, waits: bool) {
        if let Some(times) = &self.times {
            match self.state {
                RrcState::Promotion if tti >= self.connected_at => {
                    self.state = RrcState::Connected;
                    self.on_data(tti);
                    self.on_assignment(tti);
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
    /// 36.321, 5.7: on-duration, inactivity or retransmission timer running, a
    /// scheduling request pending, or a grant of a retransmission possible).
    pub(crate) fn hears(&self, tti: i64) -> bool {
        let drx = self.times.as_ref().and_then(|times| times.drx);
        self.is_connected() && drx.is_none_or(|drx| self.is_active(drx, tti))
    }

    fn is_active(&self, drx: Drx, tti: i64) -> bool {
        let awaits = |&(_, from, to): &(Process, i64, i64)| (from..to).contains(&tti);
        tti - self.last_assignment <= drx.inactivity
            || tti.rem_euclid(drx.cycle) < drx.on
            || self.requests
            || self.grant_awaited == tti
            || self.retransmissions.iter().any(awaits)
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

    fn drx(inactivity_ms: u32) -> DrxConfig {
        DrxConfig { inactivity_ms, on_ms: 10, cycle_ms: 160, ..DrxConfig::default() }
    }

    /// TTIs from 400 to 480, between two on-durations, that a phone hears.
    fn heard(blocks: &[(i64, Process, bool)]) -> Vec<i64> {
        let mut rrc = rrc(Some(drx(0)));
        rrc.wake(Direction::Ul, 0);
        let mut heard = Vec::new();
        for tti in 0..480 {
            rrc.tick(tti, false);
            if tti >= 400 && rrc.hears(tti) {
                heard.push(tti);
            }
            for &(_, process, crc_ok) in blocks.iter().filter(|block| block.0 == tti) {
                rrc.on_downlink(tti, process, crc_ok);
            }
        }
        heard
    }

    #[test]
    fn a_block_not_received_is_awaited_for_a_while() {
        assert!(heard(&[]).is_empty());
        assert!(heard(&[(400, (0, 1), true)]).is_empty());
        // HARQ RTT Timer 8, drx-RetransmissionTimer 8.
        let from_408: Vec<i64> = (408..416).collect();
        assert_eq!(heard(&[(400, (0, 1), false)]), from_408);
        // The retransmission stops the timer of its process, and of no other.
        assert_eq!(heard(&[(400, (0, 1), false), (408, (0, 1), true)]), [408]);
        assert_eq!(heard(&[(400, (0, 1), false), (408, (1, 1), true)]), from_408);
        let twice: Vec<i64> = std::iter::once(408).chain(416..424).collect();
        assert_eq!(heard(&[(400, (0, 1), false), (408, (0, 1), false)]), twice);
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
        let mut rrc = rrc(Some(drx(100)));
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
