//! Verus: a window for a target delay, from a profile of the delay observed at each window
//! (Zaki et al., "Adaptive Congestion Control for Unpredictable Cellular Networks", SIGCOMM
//! 2015, section 4). The profile is learnt in slow start and kept up to date; each epoch
//! moves the target by a step, depending on the trend of the delay.
//!
//! The paper's epochs are 5 ms; the CLAW paper's setup uses 500 ms (MobiSys 2017, 6).

use std::collections::VecDeque;

use crate::window::CongestionWindow;
use crate::{AckEvent, CongestionEvent, Controller};

const MS: f64 = 1e6;

/// Weight of an epoch's highest delay in the mean (4.1.1, equation 1; chosen here, as the
/// paper leaves it open).
const ALPHA: f64 = 0.7;
/// Ratio of highest to minimum delay above which the target is lowered (4.1.2, R = 2).
const RATIO: f64 = 2.0;
/// Steps of the target (4.1.2: 1 ms down while the delay grows, otherwise 2 ms).
const DELTA_1_NS: f64 = MS;
const DELTA_2_NS: f64 = 2.0 * MS;
/// Slow start ends when the delay is this multiple of the minimum (4.2, N = 15).
const SLOW_START_RATIO: f64 = 15.0;
/// Factor of the window after a loss (4.3.3: M = 0.5).
const LOSS: f64 = 0.5;
/// Weight of a new delay in the profile (4.2, the moving average; chosen here).
const PROFILE: f64 = 0.2;
/// Maximum points of the profile; the oldest are dropped first (chosen here).
const POINTS: usize = 256;

/// A window in segments and the delay observed with it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ProfilePoint {
    segments: u64,
    delay_ns: f64,
}

/// Verus.
#[derive(Debug, Clone)]
pub struct Verus {
    window: CongestionWindow,
    epoch_ns: i64,
    epoch_ends_ns: Option<i64>,
    profile: VecDeque<ProfilePoint>,
    /// Highest delay of this epoch, and the mean of the epochs' highest delays.
    highest_ns: Option<f64>,
    mean_ns: Option<f64>,
    least_ns: Option<f64>,
    aim_ns: f64,
    slow_start: bool,
}

impl Verus {
    /// A controller at its start, with epochs of this length in ms.
    #[must_use]
    pub fn new(mss_bytes: u64, initial_window_bytes: u64, epoch_ms: u32) -> Self {
        Self {
            window: CongestionWindow::new(mss_bytes, initial_window_bytes),
            epoch_ns: i64::from(epoch_ms.max(1)) * 1_000_000,
            epoch_ends_ns: None,
            profile: VecDeque::new(),
            highest_ns: None,
            mean_ns: None,
            least_ns: None,
            aim_ns: 0.0,
            slow_start: true,
        }
    }

    /// Adds a delay sample with its window to the profile.
    fn learn(&mut self, rtt_ns: i64, flight_size_bytes: u64) {
        let delay_ns = rtt_ns as f64;
        self.least_ns = Some(self.least_ns.map_or(delay_ns, |least| least.min(delay_ns)));
        self.highest_ns = Some(self.highest_ns.map_or(delay_ns, |most| most.max(delay_ns)));
        let segments = (flight_size_bytes / self.window.mss_bytes).max(1);
        match self.profile.iter_mut().find(|point| point.segments == segments) {
            Some(point) => point.delay_ns += PROFILE * (delay_ns - point.delay_ns),
            None => {
                if self.profile.len() >= POINTS {
                    self.profile.pop_front();
                }
                self.profile.push_back(ProfilePoint { segments, delay_ns });
            }
        }
    }

    /// The largest window whose delay does not exceed the target; linear between points of
    /// the profile and beyond its last.
    fn window_of(&self, aim_ns: f64) -> Option<f64> {
        let mut points: Vec<ProfilePoint> = self.profile.iter().copied().collect();
        points.sort_by_key(|point| point.segments);
        let at = points.iter().rposition(|point| point.delay_ns <= aim_ns);
        let Some(at) = at else { return points.first().map(|point| point.segments as f64) };
        let below = points[at];
        let (from, to) = match points.get(at + 1) {
            Some(above) => (below, *above),
            None if at > 0 => (points[at - 1], below),
            None => return Some(below.segments as f64),
        };
        let slope = (to.delay_ns - from.delay_ns) / (to.segments - from.segments).max(1) as f64;
        let more = if slope > 0.0 { (aim_ns - below.delay_ns) / slope } else { 1.0 };
        // Extrapolates to at most 1.5 times the largest observed window.
        let below = below.segments as f64;
        Some((below + more).min(below * 1.5 + 1.0))
    }

    /// Applies equations 1 to 5 at the end of an epoch.
    fn end_epoch(&mut self) {
        let Some(highest) = self.highest_ns.take() else { return };
        let Some(least) = self.least_ns else { return };
        let before = self.mean_ns.unwrap_or(highest);
        let mean = ALPHA.mul_add(highest - before, before);
        self.mean_ns = Some(mean);
        if self.slow_start {
            return;
        }
        self.aim_ns = if mean / least > RATIO {
            (self.aim_ns - DELTA_2_NS).max(least)
        } else if mean > before {
            (self.aim_ns - DELTA_1_NS).max(least)
        } else {
            self.aim_ns + DELTA_2_NS
        };
        if let Some(segments) = self.window_of(self.aim_ns) {
            let bytes = (segments * self.window.mss_bytes as f64) as u64;
            self.window.cwnd_bytes = bytes.max(2 * self.window.mss_bytes);
        }
    }

    fn leave_slow_start(&mut self) {
        if self.slow_start {
            self.slow_start = false;
            self.aim_ns = self.mean_ns.or(self.highest_ns).unwrap_or(0.0);
        }
    }

    fn lose(&mut self, least_bytes: u64) {
        self.leave_slow_start();
        let bytes = (self.window.cwnd_bytes as f64 * LOSS) as u64;
        let bytes = bytes.max(2 * self.window.mss_bytes);
        self.window.reduce(bytes, bytes.min(least_bytes));
    }
}

impl Controller for Verus {
    fn name(&self) -> &'static str {
        "verus"
    }

    fn on_ack(&mut self, now_ns: i64, ack: &AckEvent) {
        if let Some(rtt_ns) = ack.rtt_ns.filter(|rtt_ns| *rtt_ns > 0) {
            self.learn(rtt_ns, ack.flight_size_bytes);
        }
        let ends_ns = *self.epoch_ends_ns.get_or_insert(now_ns + self.epoch_ns);
        if now_ns >= ends_ns {
            self.epoch_ends_ns = Some(now_ns + self.epoch_ns);
            self.end_epoch();
        }
        if !self.slow_start || ack.in_recovery || !ack.window_limited {
            return;
        }
        self.window.cwnd_bytes += ack.acked_bytes;
        if let (Some(highest), Some(least)) = (self.highest_ns, self.least_ns)
            && highest > SLOW_START_RATIO * least
        {
            self.leave_slow_start();
        }
    }

    fn on_congestion(&mut self, _now_ns: i64, _event: &CongestionEvent) {
        self.lose(u64::MAX);
    }

    fn on_rto(&mut self, _now_ns: i64, _flight_size_bytes: u64, _again: bool) {
        self.lose(self.window.mss_bytes);
    }

    fn on_persistent_congestion(&mut self, _now_ns: i64, _flight_size_bytes: u64) {
        self.lose(2 * self.window.mss_bytes);
    }

    fn on_spurious(&mut self, _now_ns: i64) {
        self.window.undo();
    }

    fn on_restart(&mut self, _now_ns: i64, idle_ns: i64, rto_ns: i64) {
        self.window.restart(idle_ns, rto_ns);
    }

    fn on_mss(&mut self, mss_bytes: u64) {
        self.window.set_mss(mss_bytes);
    }

    fn cwnd_bytes(&self) -> u64 {
        self.window.cwnd_bytes
    }

    fn ssthresh_bytes(&self) -> u64 {
        if self.slow_start { u64::MAX } else { self.window.cwnd_bytes }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    #[test]
    fn the_profile_by_hand() {
        let mut verus = Verus::new(MSS, 10 * MSS, 500);
        for (segments, ms) in [(10, 50), (20, 60), (40, 100)] {
            verus.learn(ms * 1_000_000, segments * MSS);
        }
        let of = |ms: f64| verus.window_of(ms * MS).unwrap();
        // Slope 2 ms between 20 and 40 segments; below the first point the first applies;
        // beyond the last at most 1.5 times.
        assert_eq!((of(80.0), of(40.0), of(110.0), of(900.0)), (30.0, 10.0, 45.0, 61.0));
    }

    #[test]
    fn the_aim_follows_the_delay() {
        let mut verus = Verus::new(MSS, 20 * MSS, 500);
        let mut ack = |at_ms: i64, rtt_ms: i64, segments: u64| {
            let ack = AckEvent {
                acked_bytes: MSS,
                rtt_ns: Some(rtt_ms * 1_000_000),
                flight_size_bytes: segments * MSS,
                window_limited: true,
                ..AckEvent::default()
            };
            verus.on_ack(at_ms * 1_000_000, &ack);
            (verus.cwnd_bytes() / MSS, verus.slow_start, verus.aim_ns / MS)
        };
        assert_eq!(ack(0, 50, 10), (21, true, 0.0));
        // 15 times the least ends slow start.
        assert_eq!(ack(100, 760, 40), (22, false, 760.0));
        // The epoch's highest, 760 ms, is more than twice the least: 2 ms down.
        let (_, _, aim_ms) = ack(500, 60, 20);
        assert_eq!(aim_ms, 758.0);
        // Less than twice the least, and falling: 2 ms up.
        let mut aim_ms = 0.0;
        for n in 2..9 {
            (_, _, aim_ms) = ack(500 * n, 55, 15);
        }
        assert!(aim_ms > 740.0, "{aim_ms}");
    }

    #[test]
    fn losses_halve() {
        let mut verus = Verus::new(MSS, 20 * MSS, 500);
        verus.on_congestion(
            0,
            &CongestionEvent {
                kind: crate::CongestionKind::Loss,
                flight_size_bytes: 20 * MSS,
                lost_bytes: MSS,
            },
        );
        assert_eq!(verus.cwnd_bytes(), 10 * MSS);
        verus.on_rto(0, 10 * MSS, false);
        assert_eq!(verus.cwnd_bytes(), MSS);
    }
}
