//! RRC states of a phone, and its discontinuous reception.

use airmile_model::{Direction, TtiIndex};

use crate::phy::Frame;
use crate::scenario::RrcConfig;

/// RRC state, with the promotion from idle to connected as a separate state.
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
    /// Length in TTIs.
    pub n_tti: u32,
    /// State.
    pub state: RrcState,
}

/// Times of an [`RrcConfig`], in TTIs.
#[derive(Debug, Clone)]
struct Times {
    promotion: i64,
    paging: i64,
    tail: i64,
    drx: Option<Drx>,
}

/// DRX parameters in TTIs (TS 36.321, 5.7).
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
    /// Processes whose block was not received: start and end (exclusive) of
    /// drx-RetransmissionTimer.
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

    /// A packet arrived: in idle, the phone is paged (downlink) or requests a connection at
    /// once (uplink).
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

    /// A new transmission was assigned or granted: drx-InactivityTimer restarts.
    /// Retransmissions do not restart it.
    pub(crate) const fn on_assignment(&mut self, tti: i64) {
        self.last_assignment = tti;
    }

    /// Data was transferred, or waits in the phone.
    pub(crate) const fn on_data(&mut self, tti: i64) {
        self.last_data = tti;
    }

    /// A block was sent to the phone: HARQ RTT Timer starts, followed by
    /// drx-RetransmissionTimer if the block was not received.
    pub(crate) fn on_downlink(&mut self, tti: i64, process: Process, crc_ok: bool) {
        let Some(drx) = self.times.as_ref().and_then(|times| times.drx) else { return };
        self.retransmissions.retain(|&(of, _, to)| of != process && to > tti);
        if !crc_ok {
            let from = tti + drx.harq_rtt;
            self.retransmissions.push((process, from, from + drx.retransmission));
        }
    }

    /// Sets whether a scheduling request is pending.
    pub(crate) const fn set_request(&mut self, pending: bool) {
        self.requests = pending;
    }

    /// A grant for an uplink retransmission can occur.
    pub(crate) const fn on_grant_awaited(&mut self, tti: i64) {
        self.grant_awaited = tti;
    }

    /// Starts a TTI, with data waiting for transmission or not.
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

    /// Whether the phone monitors the PDCCH in a TTI (Active Time of TS 36.321, 5.7:
    /// on-duration, inactivity or retransmission timer running, a scheduling request
    /// pending, or a grant for a retransmission possible).
    pub(crate) fn monitors_pdcch(&self, tti: i64) -> bool {
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

    /// TTIs from 400 to 480, between two on-durations, in which a phone monitors the PDCCH.
    fn monitored(blocks: &[(i64, Process, bool)]) -> Vec<i64> {
        let mut rrc = rrc(Some(drx(0)));
        rrc.wake(Direction::Ul, 0);
        let mut monitored = Vec::new();
        for tti in 0..480 {
            rrc.tick(tti, false);
            if tti >= 400 && rrc.monitors_pdcch(tti) {
                monitored.push(tti);
            }
            for &(_, process, crc_ok) in blocks.iter().filter(|block| block.0 == tti) {
                rrc.on_downlink(tti, process, crc_ok);
            }
        }
        monitored
    }

    #[test]
    fn a_block_not_received_is_awaited_for_a_while() {
        assert!(monitored(&[]).is_empty());
        assert!(monitored(&[(400, (0, 1), true)]).is_empty());
        // HARQ RTT Timer 8, drx-RetransmissionTimer 8.
        let from_408: Vec<i64> = (408..416).collect();
        assert_eq!(monitored(&[(400, (0, 1), false)]), from_408);
        // The retransmission stops only the timer of its own process.
        assert_eq!(monitored(&[(400, (0, 1), false), (408, (0, 1), true)]), [408]);
        assert_eq!(monitored(&[(400, (0, 1), false), (408, (1, 1), true)]), from_408);
        let twice: Vec<i64> = std::iter::once(408).chain(416..424).collect();
        assert_eq!(monitored(&[(400, (0, 1), false), (408, (0, 1), false)]), twice);
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
        let mut monitored = Vec::new();
        for tti in 0..2_000 {
            rrc.tick(tti, false);
            if rrc.monitors_pdcch(tti) {
                monitored.push(tti);
            }
        }
        let runs: Vec<_> = rrc.into_runs().iter().map(|run| (run.state, run.n_tti)).collect();
        let expected =
            [(RrcState::Promotion, 100), (RrcState::Connected, 1_000), (RrcState::Idle, 900)];
        assert_eq!(runs, expected);
        // 100 to 200 by inactivity, then 320, 480, 640, 800, 960, each 10 TTIs.
        assert_eq!(monitored.len(), 101 + 5 * 10);
        assert!(
            monitored.contains(&320) && !monitored.contains(&330) && !monitored.contains(&1_120)
        );
    }
}
