//! Copa: Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the
//! Internet", NSDI 2018. The window moves towards the target rate 1 / (delta d_q), where d_q
//! is the measured queueing delay (section 2.1). If the queue has not been nearly empty for
//! five round trips, a flow that fills buffers is assumed, and 1 / delta follows additive
//! increase and multiplicative decrease (2.2).

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::window::CongestionWindow;
use crate::{AckEvent, CongestionEvent, Controller};

/// 1 / delta of the default mode, and its minimum in the competitive one (2.2, delta = 0.5).
const INVERSE_DELTA: f64 = 2.0;
/// Window of RTTmin (2.1).
const MIN_RTT_WINDOW_NS: i64 = 10_000_000_000;
/// Round trips of the window of RTTmax (2.2).
const MAX_RTT_ROUND_TRIPS: i64 = 4;
/// The queue is nearly empty below this share of RTTmax - RTTmin (2.2).
const NEARLY_EMPTY: f64 = 0.1;
/// Round trips without a nearly empty queue until the mode is competitive (2.2).
const COMPETITIVE_ROUND_TRIPS: i64 = 5;
/// Windows in the same direction before the velocity doubles (2.1, step 4).
const STEADY_WINDOWS: u32 = 3;
/// Pace in windows per RTTstanding (2.1).
const PACE: f64 = 2.0;

/// Minimum or maximum of a value over a window of time: the values that may still become
/// it, in order of time.
#[derive(Debug, Clone, Default)]
struct Extreme {
    values: VecDeque<(i64, i64)>,
}

impl Extreme {
    /// Adds a value, and removes those that are older than `window_ns` or that it
    /// supersedes. The first of the rest is the result.
    fn push(&mut self, now_ns: i64, value: i64, window_ns: i64, supersedes: fn(i64, i64) -> bool) {
        while self.values.back().is_some_and(|(_, old)| supersedes(value, *old)) {
            self.values.pop_back();
        }
        self.values.push_back((now_ns, value));
        while self.values.front().is_some_and(|(at_ns, _)| now_ns - at_ns > window_ns) {
            self.values.pop_front();
        }
    }

    fn get(&self) -> Option<i64> {
        self.values.front().map(|(_, value)| *value)
    }
}

/// Direction of the window (2.1, step 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// Copa.
#[derive(Debug, Clone)]
pub struct Copa {
    /// Segment size, and the window before the first RTT sample.
    window: CongestionWindow,
    /// The window in segments, with fractions.
    cwnd: f64,
    standing: Extreme,
    least: Extreme,
    most: Extreme,
    slow_start: bool,
    inverse_delta: f64,
    velocity: f64,
    direction: Option<Direction>,
    /// Windows in this direction.
    steady: u32,
    /// The round ends when the stream is acknowledged up to here; the window at its start.
    round_ends: u64,
    round_cwnd: f64,
    lost_in_round: bool,
    /// The window was the limit in it.
    used_in_round: bool,
    /// When the queue was last nearly empty.
    empty_ns: Option<i64>,
    competitive: bool,
    /// Part of the queueing delay that is the radio's and no queue's, in ns.
    radio_ns: i64,
    /// The window before the last timeout (RFC 4015).
    before: Option<f64>,
}

impl Copa {
    /// A controller at its start. The queueing delay counts beyond `radio_delay_ms`, the delay
    /// that the radio is known to add without a queue (Gandalf, arXiv 2507.00337; Copa: 0).
    #[must_use]
    pub fn new(mss_bytes: u64, initial_window_bytes: u64, radio_delay_ms: u32) -> Self {
        let window = CongestionWindow::new(mss_bytes, initial_window_bytes);
        let cwnd = window.cwnd_bytes as f64 / window.mss_bytes as f64;
        Self {
            window,
            cwnd,
            standing: Extreme::default(),
            least: Extreme::default(),
            most: Extreme::default(),
            slow_start: true,
            inverse_delta: INVERSE_DELTA,
            velocity: 1.0,
            direction: None,
            steady: 0,
            round_ends: 0,
            round_cwnd: cwnd,
            lost_in_round: false,
            used_in_round: false,
            empty_ns: None,
            competitive: false,
            radio_ns: i64::from(radio_delay_ms) * 1_000_000,
            before: None,
        }
    }

    /// Section 2.1: adds a sample to RTTstanding, RTTmin and RTTmax.
    fn sample(&mut self, now_ns: i64, rtt_ns: i64, srtt_ns: i64) {
        self.standing.push(now_ns, rtt_ns, srtt_ns / 2, |new, old| new <= old);
        self.least.push(now_ns, rtt_ns, MIN_RTT_WINDOW_NS, |new, old| new <= old);
        let window_ns = MAX_RTT_ROUND_TRIPS * srtt_ns;
        self.most.push(now_ns, rtt_ns, window_ns, |new, old| new >= old);
    }

    /// Equation 2: the queueing delay d_q, in ns, without the radio's part.
    fn queueing_ns(&self) -> Option<i64> {
        Some((self.standing.get()? - self.least.get()? - self.radio_ns).max(0))
    }

    /// Equation 1 and step 3: whether the rate cwnd / RTTstanding is above the target
    /// 1 / (delta d_q), both in segments a second.
    fn is_above_target(&self) -> Option<bool> {
        let (standing_ns, queueing_ns) = (self.standing.get()?, self.queueing_ns()?);
        // cwnd / standing > 1 / (delta d_q), without dividing by an empty queue's zero.
        Some(self.cwnd * queueing_ns as f64 > self.inverse_delta * standing_ns as f64)
    }

    /// Section 2.2: chooses the mode.
    fn choose_mode(&mut self, now_ns: i64, srtt_ns: i64) {
        let (Some(queueing_ns), Some(least), Some(most)) =
            (self.queueing_ns(), self.least.get(), self.most.get())
        else {
            return;
        };
        if queueing_ns as f64 <= NEARLY_EMPTY * (most - least) as f64 {
            self.empty_ns = Some(now_ns);
        }
        let since_ns = now_ns - *self.empty_ns.get_or_insert(now_ns);
        self.competitive = since_ns > COMPETITIVE_ROUND_TRIPS * srtt_ns;
        if !self.competitive {
            self.inverse_delta = INVERSE_DELTA;
        }
    }

    /// Step 4, once a window: the velocity, of a window that moved. In competitive mode also the
    /// additive increase of 1 / delta, if the window was used (RFC 7661).
    fn end_round(&mut self) {
        if self.competitive && self.used_in_round && !self.lost_in_round {
            self.inverse_delta += 1.0;
        }
        (self.lost_in_round, self.used_in_round) = (false, false);
        let direction = match self.cwnd.partial_cmp(&self.round_cwnd) {
            Some(Ordering::Greater) => Some(Direction::Up),
            Some(Ordering::Less) => Some(Direction::Down),
            Some(Ordering::Equal) | None => None,
        };
        if direction.is_some() && self.direction == direction {
            self.steady += 1;
            if self.steady > STEADY_WINDOWS {
                self.velocity *= 2.0;
            }
        } else {
            (self.direction, self.steady, self.velocity) = (direction, 1, 1.0);
        }
        self.round_cwnd = self.cwnd;
    }

    fn set_cwnd(&mut self, segments: f64) {
        self.cwnd = segments.max(2.0);
        self.window.cwnd_bytes = (self.cwnd * self.window.mss_bytes as f64) as u64;
    }

    /// A timeout: the paper leaves it to TCP. RFC 5681, 3.1, with Copa's own slow start.
    fn restart(&mut self, segments: f64) {
        self.before.get_or_insert(self.cwnd);
        (self.velocity, self.direction, self.steady) = (1.0, None, 0);
        self.slow_start = true;
        self.cwnd = segments;
        self.window.cwnd_bytes = (segments * self.window.mss_bytes as f64) as u64;
    }
}

impl Controller for Copa {
    fn name(&self) -> &'static str {
        "copa"
    }

    fn on_ack(&mut self, now_ns: i64, ack: &AckEvent) {
        if let (Some(rtt_ns), Some(srtt_ns)) = (ack.rtt_ns.filter(|ns| *ns > 0), ack.srtt_ns) {
            self.sample(now_ns, rtt_ns, srtt_ns);
            self.choose_mode(now_ns, srtt_ns);
        }
        self.used_in_round |= ack.window_limited;
        if ack.acked_to >= self.round_ends {
            self.round_ends = ack.sent_to;
            if self.slow_start {
                self.round_cwnd = self.cwnd;
            } else {
                self.end_round();
            }
        }
        let Some(above) = self.is_above_target() else { return };
        let acked = ack.acked_bytes as f64 / self.window.mss_bytes as f64;
        if self.slow_start && above {
            self.slow_start = false;
            self.before = None;
        }
        // RFC 7661: an unused window carries no information about the path.
        let grows = ack.window_limited;
        let step = self.velocity * self.inverse_delta * acked / self.cwnd;
        match (above, self.slow_start) {
            (true, _) => self.set_cwnd(self.cwnd - step),
            (false, true) if grows => self.set_cwnd(self.cwnd + acked),
            (false, false) if grows => self.set_cwnd(self.cwnd + step),
            (false, _) => {}
        }
    }

    fn on_congestion(&mut self, _now_ns: i64, _event: &CongestionEvent) {
        // 2.2: losses count in competitive mode only.
        self.lost_in_round = true;
        if self.competitive {
            self.inverse_delta = (self.inverse_delta / 2.0).max(INVERSE_DELTA);
        }
    }

    fn on_rto(&mut self, _now_ns: i64, _flight_size_bytes: u64, _again: bool) {
        self.restart(1.0);
    }

    fn on_persistent_congestion(&mut self, _now_ns: i64, _flight_size_bytes: u64) {
        self.restart(2.0);
    }

    fn on_spurious(&mut self, _now_ns: i64) {
        if let Some(cwnd) = self.before.take() {
            self.slow_start = false;
            self.set_cwnd(self.cwnd.max(cwnd));
        }
    }

    fn on_restart(&mut self, _now_ns: i64, idle_ns: i64, rto_ns: i64) {
        self.window.restart(idle_ns, rto_ns);
        self.cwnd = self.window.cwnd_bytes as f64 / self.window.mss_bytes as f64;
        (self.velocity, self.direction, self.steady) = (1.0, None, 0);
    }

    fn on_mss(&mut self, mss_bytes: u64) {
        self.window.set_mss(mss_bytes);
        self.cwnd = self.window.cwnd_bytes as f64 / self.window.mss_bytes as f64;
    }

    fn cwnd_bytes(&self) -> u64 {
        self.window.cwnd_bytes
    }

    fn ssthresh_bytes(&self) -> u64 {
        if self.slow_start { u64::MAX } else { self.window.cwnd_bytes }
    }

    fn pacing_rate_bps(&self) -> Option<u64> {
        let standing_ns = self.standing.get()?;
        let bits = PACE * self.window.cwnd_bytes as f64 * 8.0;
        Some((bits * 1e9 / standing_ns as f64) as u64)
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::{MSS, Pipe};

    const MS: i64 = 1_000_000;

    /// An acknowledgement of a segment; `sent_to` 0 ends no round.
    fn ack(rtt_ms: i64, srtt_ms: i64, acked_to: u64, sent_to: u64) -> AckEvent {
        AckEvent {
            acked_bytes: MSS,
            rtt_ns: Some(rtt_ms * MS),
            srtt_ns: Some(srtt_ms * MS),
            acked_to,
            sent_to,
            window_limited: true,
            ..AckEvent::default()
        }
    }

    /// Past slow start with a window in segments, RTTmin 100 ms, and a round that does not
    /// end.
    fn copa(segments: f64) -> Copa {
        let mut copa = Copa::new(MSS, 10 * MSS, 0);
        copa.sample(0, 100 * MS, 100 * MS);
        copa.slow_start = false;
        copa.round_ends = u64::MAX;
        copa.set_cwnd(segments);
        copa
    }

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-9, "{got}, not {expected}");
    }

    /// Section 2.1, steps 1 to 3: d_q = 110 - 100 ms, delta 0.5, target 1 / (0.5 * 0.01) =
    /// 200 segments a second, at which 22 segments are in flight.
    #[test]
    fn the_window_moves_towards_the_target() {
        // 21 / 0.11 = 191: up by 1 / (0.5 * 21). 23 / 0.11 = 209: down by 1 / (0.5 * 23).
        for (segments, expected) in [(21.0, 21.0 + 2.0 / 21.0), (23.0, 23.0 - 2.0 / 23.0)] {
            let mut copa = copa(segments);
            copa.on_ack(200 * MS, &ack(110, 100, 0, 0));
            near(copa.cwnd, expected);
        }
        // An empty queue has no finite target.
        let mut copa = copa(1_000.0);
        copa.on_ack(200 * MS, &ack(100, 100, 0, 0));
        near(copa.cwnd, 1_000.0 + 2.0 / 1_000.0);
        // The pace is two windows per RTTstanding: 2 * 1,000 kB * 8 in 100 ms.
        assert_eq!(copa.pacing_rate_bps(), Some(160_000_320));
        // A window that was not used does not grow.
        copa.on_ack(200 * MS, &AckEvent { window_limited: false, ..ack(100, 100, 0, 0) });
        near(copa.cwnd, 1_000.0 + 2.0 / 1_000.0);
    }

    /// Of 14 ms of delay 8 are the radio's: the target is 1 / (0.5 * 0.006) = 333 segments a
    /// second, or 38 in 114 ms.
    #[test]
    fn the_radios_delay_is_no_queue() {
        for (radio_ms, segments, sign) in [(8, 37.0, 1.0), (8, 39.0, -1.0), (0, 37.0, -1.0)] {
            let mut copa = Copa { radio_ns: radio_ms * MS, ..copa(segments) };
            copa.on_ack(200 * MS, &ack(114, 100, 0, 0));
            near(copa.cwnd, segments + sign * 2.0 / segments);
        }
    }

    /// Section 2.1: RTTstanding is the minimum over half a smoothed round trip, RTTmin over
    /// 10 s.
    #[test]
    fn round_trips_leave_their_windows() {
        let mut copa = copa(20.0);
        copa.on_ack(1_000 * MS, &ack(110, 100, 0, 0));
        copa.on_ack(1_040 * MS, &ack(150, 100, 0, 0));
        assert_eq!(copa.queueing_ns(), Some(10 * MS));
        copa.on_ack(1_060 * MS, &ack(150, 100, 0, 0));
        assert_eq!(copa.queueing_ns(), Some(50 * MS));
        copa.on_ack(10_001 * MS, &ack(150, 100, 0, 0));
        assert_eq!(copa.queueing_ns(), Some(40 * MS));
    }

    /// Section 2.1, step 4: from the fourth window in a direction on, the velocity doubles;
    /// another direction resets it.
    #[test]
    fn the_velocity_doubles_after_three_windows() {
        let mut copa = copa(20.0);
        let mut velocities = Vec::new();
        for change in [1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 1.0] {
            copa.set_cwnd(copa.cwnd + change);
            copa.end_round();
            velocities.push(copa.velocity);
        }
        assert_eq!(velocities, [1.0, 1.0, 1.0, 2.0, 4.0, 1.0, 1.0, 1.0]);
    }

    /// What the application leaves unused tells nothing: an unchanged window has no direction, and
    /// 1 / delta does not grow.
    #[test]
    fn an_unused_window_neither_speeds_up_nor_competes() {
        let mut copa = copa(20.0);
        copa.competitive = true;
        (0..1_000).for_each(|_| copa.end_round());
        assert_eq!((copa.velocity, copa.inverse_delta), (1.0, INVERSE_DELTA));
        copa.set_cwnd(21.0);
        copa.end_round();
        copa.end_round();
        assert_eq!((copa.velocity, copa.direction), (1.0, None));
    }

    /// Section 2.1, step 5: a segment more for each one acknowledged, until the rate is above
    /// the target: with d_q 10 ms, above 22 segments.
    #[test]
    fn slow_start_ends_at_the_target() {
        let mut copa = Copa::new(MSS, 20 * MSS, 0);
        copa.on_ack(0, &ack(100, 100, 0, u64::MAX));
        copa.on_ack(200 * MS, &ack(110, 100, 1, 0));
        assert_eq!((copa.cwnd_bytes(), copa.in_slow_start()), (22 * MSS, true));
        copa.on_ack(201 * MS, &ack(110, 100, 2, 0));
        assert_eq!((copa.cwnd_bytes(), copa.in_slow_start()), (23 * MSS, true));
        copa.on_ack(202 * MS, &ack(110, 100, 3, 0));
        assert!(!copa.in_slow_start());
        near(copa.cwnd, 23.0 - 2.0 / 23.0);
    }

    /// Section 2.2: nearly empty is below a tenth of the oscillation (here 6 of 60 ms); five
    /// round trips without it are competition, in which 1 / delta grows by one in a round
    /// trip, and a loss halves it.
    #[test]
    fn competes_with_flows_that_fill_buffers() {
        let mut copa = copa(20.0);
        let mut at = |ms: i64, rtt_ms: i64| {
            copa.on_ack(ms * MS, &ack(rtt_ms, 100, 0, 0));
            (copa.competitive, copa.inverse_delta)
        };
        assert_eq!(at(100, 105), (false, 2.0));
        // From now on the queue holds 40 to 60 ms.
        assert_eq!(at(200, 160), (false, 2.0));
        assert_eq!(at(500, 140), (false, 2.0));
        assert_eq!(at(601, 150), (true, 2.0));
        for _ in 0..3 {
            copa.used_in_round = true;
            copa.end_round();
        }
        assert_eq!(copa.inverse_delta, 5.0);
        let loss = CongestionEvent {
            kind: crate::CongestionKind::Loss,
            flight_size_bytes: 20 * MSS,
            lost_bytes: MSS,
        };
        let before = copa.cwnd_bytes();
        copa.on_congestion(0, &loss);
        copa.end_round();
        assert_eq!((copa.inverse_delta, copa.cwnd_bytes()), (2.5, before));
        copa.on_congestion(0, &loss);
        assert_eq!(copa.inverse_delta, INVERSE_DELTA);
        copa.end_round();
        copa.end_round();
        // A nearly empty queue ends it, and resets delta.
        copa.on_ack(700 * MS, &ack(102, 100, 0, 0));
        assert_eq!((copa.competitive, copa.inverse_delta), (false, 2.0));
    }

    /// Section 2.1 and figure 1: alone on 10 Mbit/s and 50 ms with a deep queue, the window
    /// swings about the 2 / delta segments that equation 1 allows, and the queue empties.
    #[test]
    fn holds_some_segments_on_a_fixed_path() {
        let mut pipe = Pipe::new(10_000_000, 50, 2_000_000);
        let mut copa = Copa::new(MSS, 10 * MSS, 0);
        pipe.run(&mut copa, 5.0, |_, _| {});
        let (mut queue, mut seen, before) = (Vec::new(), 0.0, pipe.acked_bytes);
        pipe.run(&mut copa, 20.0, |pipe, _| {
            queue.push(pipe.queue_ns() as f64 * 10e6 / 8e9 / MSS as f64);
            seen += 1.0;
        });
        let mean = queue.iter().sum::<f64>() / seen;
        let most = queue.iter().copied().fold(0.0, f64::max);
        let rate = (pipe.acked_bytes - before) as f64 * 8.0 / 20.0;
        assert!((0.5..6.0).contains(&mean) && most < 15.0, "{mean} {most}");
        assert!(queue.iter().any(|waiting| *waiting < 1.0) && rate > 0.9e7, "{rate}");
        assert!(!copa.competitive);
    }

    #[test]
    fn a_timeout_starts_again_and_a_spurious_one_does_not() {
        let mut copa = copa(20.0);
        copa.on_rto(0, 20 * MSS, false);
        assert_eq!((copa.cwnd_bytes(), copa.in_slow_start()), (MSS, true));
        copa.on_spurious(0);
        assert_eq!((copa.cwnd_bytes(), copa.in_slow_start()), (20 * MSS, false));
    }
}
