//! CUBIC (RFC 9438), with HyStart++ (RFC 9406) on request.

use crate::hystart::{CSS_GROWTH_DIVISOR, HyStart, SlowStartGrowth};
use crate::window::CongestionWindow;
use crate::{AckEvent, CongestionEvent, Controller};

/// RFC 9438, 4.6: multiplicative decrease.
const BETA: f64 = 0.7;
/// RFC 9438, 5: aggressiveness, in segments a second cubed.
const C: f64 = 0.4;
/// RFC 9438, 4.3: additive increase that gives Reno's average window.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// RFC 9438, 4.2, equation 2: `K = cbrt((W_max - cwnd_epoch) / C)`, the seconds from the
/// start of an epoch until the window is back at `W_max`; windows in segments.
fn cubic_k(w_max: f64, cwnd_epoch: f64) -> f64 {
    ((w_max - cwnd_epoch) / C).cbrt()
}

/// RFC 9438, 4.2, equation 1: `W_cubic(t) = C * (t - K)^3 + W_max`, in segments, `t`
/// seconds after the start of the epoch.
fn w_cubic(t: f64, k: f64, w_max: f64) -> f64 {
    C * (t - k).powi(3) + w_max
}

/// RFC 9438, 4.3, equation 4: `W_est = W_est + alpha_cubic * segments_acked / cwnd`, the
/// window that Reno would have. `alpha_cubic` is 1 once `W_est` has reached `cwnd_prior`.
fn w_est(w_est: f64, cwnd_prior: f64, segments_acked: f64, cwnd: f64) -> f64 {
    let alpha_cubic = if w_est >= cwnd_prior { 1.0 } else { ALPHA };
    w_est + alpha_cubic * segments_acked / cwnd
}

/// One epoch of congestion avoidance (RFC 9438, 4.2); windows in segments.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start_ns: i64,
    /// Seconds from its start to the plateau ([`cubic_k`]).
    k: f64,
    w_max: f64,
    /// The window that Reno would have ([`w_est`]).
    w_est: f64,
}

/// CUBIC.
#[derive(Debug, Clone)]
pub struct Cubic {
    window: CongestionWindow,
    w_max: f64,
    /// The window just before the last reduction, in segments.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// Parts of a byte by which the window has grown.
    grown: f64,
    hystart: Option<HyStart>,
    use_hystart: bool,
    /// Since when the window has not been used (RFC 9438, 5.8).
    unused_since_ns: Option<i64>,
    before: Option<(f64, f64, Option<Epoch>)>,
}

impl Cubic {
    /// A controller at its start.
    #[must_use]
    pub fn new(mss_bytes: u64, initial_window_bytes: u64, hystart: bool) -> Self {
        Self {
            window: CongestionWindow::new(mss_bytes, initial_window_bytes),
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            grown: 0.0,
            hystart: hystart.then(HyStart::new),
            use_hystart: hystart,
            unused_since_ns: None,
            before: None,
        }
    }

    fn cwnd_segments(&self) -> f64 {
        self.window.cwnd_bytes as f64 / self.window.mss_bytes as f64
    }

    fn begin_epoch(&self, now_ns: i64) -> Epoch {
        let cwnd = self.cwnd_segments();
        // 4.8 and 4.10: without a reduction before it, or beyond the plateau,
        // the epoch begins at its plateau.
        let w_max = self.w_max.max(cwnd);
        Epoch { start_ns: now_ns, k: cubic_k(w_max, cwnd), w_max, w_est: cwnd }
    }

    /// RFC 9438, 4.2 to 4.5.
    fn avoid(&mut self, now_ns: i64, ack: &AckEvent, acked_bytes: u64) {
        let cwnd = self.cwnd_segments();
        let fresh = self.begin_epoch(now_ns);
        let epoch = self.epoch.get_or_insert_with(|| {
            self.w_max = fresh.w_max;
            fresh
        });
        let acked = acked_bytes as f64 / self.window.mss_bytes as f64;
        epoch.w_est = w_est(epoch.w_est, self.cwnd_prior, acked, cwnd);

        let t = (now_ns - epoch.start_ns) as f64 / 1e9;
        let rtt = ack.srtt_ns.unwrap_or(0) as f64 / 1e9;
        let at = |t: f64| w_cubic(t, epoch.k, epoch.w_max);
        let growth = if at(t) < epoch.w_est {
            epoch.w_est - cwnd
        } else {
            let target = at(t + rtt).clamp(cwnd, 1.5 * cwnd);
            (target - cwnd) / cwnd * acked
        };
        self.grown += growth.max(0.0) * self.window.mss_bytes as f64;
        let whole = self.grown.floor();
        self.grown -= whole;
        self.window.cwnd_bytes += whole as u64;
    }

    /// RFC 9438, 4.6 and 4.7.
    fn reduced(&mut self, flight_size_bytes: u64) -> u64 {
        self.before = Some((self.w_max, self.cwnd_prior, self.epoch));
        let cwnd = self.cwnd_segments();
        self.cwnd_prior = cwnd;
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.epoch = None;
        self.grown = 0.0;
        self.hystart = None;
        // 4.6: relative to the bytes in flight, for a sender that was not window-limited;
        // never more than the window.
        let base = flight_size_bytes.min(self.window.cwnd_bytes);
        ((base as f64 * BETA) as u64).max(2 * self.window.mss_bytes)
    }
}

impl Controller for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn on_ack(&mut self, now_ns: i64, ack: &AckEvent) {
        if ack.in_recovery {
            return;
        }
        if !ack.window_limited {
            self.unused_since_ns.get_or_insert(now_ns);
            return;
        }
        if let Some(since_ns) = self.unused_since_ns.take()
            && let Some(epoch) = &mut self.epoch
        {
            // 5.8: time in which the window was not used does not count.
            epoch.start_ns += now_ns - since_ns;
        }
        let mut left = ack.acked_bytes;
        if self.window.in_slow_start() {
            match self.hystart.as_mut().map_or(SlowStartGrowth::Standard, |h| h.on_ack(ack)) {
                SlowStartGrowth::Standard => left = self.window.slow_start(left),
                SlowStartGrowth::Conservative => {
                    self.window.slow_start(left / CSS_GROWTH_DIVISOR);
                    left = 0;
                }
                SlowStartGrowth::Leave => {
                    self.hystart = None;
                    self.window.ssthresh_bytes = self.window.cwnd_bytes;
                }
            }
        }
        if left > 0 && !self.window.in_slow_start() {
            self.avoid(now_ns, ack, left);
        }
    }

    fn on_congestion(&mut self, _now_ns: i64, event: &CongestionEvent) {
        let reduced = self.reduced(event.flight_size_bytes);
        self.window.reduce(reduced, reduced);
    }

    fn on_rto(&mut self, _now_ns: i64, flight_size_bytes: u64, again: bool) {
        let reduced = (!again).then(|| self.reduced(flight_size_bytes));
        self.window.on_timeout(reduced);
        // RFC 9438, 4.8: the epoch after the slow start begins at its plateau,
        // K = 0 and W_max = cwnd, wherever the window was before the timeout.
        self.epoch = None;
        self.w_max = 0.0;
    }

    fn on_persistent_congestion(&mut self, now_ns: i64, flight_size_bytes: u64) {
        self.on_rto(now_ns, flight_size_bytes, false);
        self.window.on_persistent_congestion();
    }

    fn on_spurious(&mut self, _now_ns: i64) {
        if self.window.undo()
            && let Some((w_max, cwnd_prior, epoch)) = self.before.take()
        {
            // 4.9.
            self.w_max = w_max;
            self.cwnd_prior = cwnd_prior;
            self.epoch = epoch;
        }
    }

    fn on_restart(&mut self, _now_ns: i64, idle_ns: i64, rto_ns: i64) {
        self.window.restart(idle_ns, rto_ns);
        self.epoch = None;
        self.unused_since_ns = None;
        self.hystart = self.use_hystart.then(HyStart::new);
    }

    fn on_unused(&mut self, _now_ns: i64, used_bytes: u64) {
        self.window.decay(used_bytes);
    }

    fn on_mss(&mut self, mss_bytes: u64) {
        self.window.set_mss(mss_bytes);
    }

    fn cwnd_bytes(&self) -> u64 {
        self.window.cwnd_bytes
    }

    fn ssthresh_bytes(&self) -> u64 {
        self.window.ssthresh_bytes
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CongestionKind;
    use proptest::prelude::*;

    const MSS: u64 = 1000;
    const RTT_NS: i64 = 100_000_000;

    fn ack(segments: u64) -> AckEvent {
        AckEvent {
            acked_bytes: segments * MSS,
            srtt_ns: Some(RTT_NS),
            window_limited: true,
            ..AckEvent::default()
        }
    }

    fn loss(flight_bytes: u64) -> CongestionEvent {
        let kind = CongestionKind::Loss;
        CongestionEvent { kind, flight_size_bytes: flight_bytes, lost_bytes: MSS }
    }

    /// After a loss at `w_max` segments, the window after `seconds` of round
    /// trips of 100 ms each fully acknowledged.
    fn window_after(w_max: u64, seconds: f64) -> f64 {
        let mut cubic = Cubic::new(MSS, w_max * MSS, false);
        cubic.on_congestion(0, &loss(w_max * MSS));
        let mut now_ns = 0;
        while (now_ns as f64) < seconds * 1e9 {
            let segments = cubic.cwnd_bytes() / MSS;
            for i in 0..segments {
                cubic.on_ack(now_ns + RTT_NS * i as i64 / segments as i64, &ack(1));
            }
            now_ns += RTT_NS;
        }
        cubic.cwnd_bytes() as f64 / MSS as f64
    }

    #[test]
    fn follows_the_curve() {
        // RFC 9438 (1) and (2): W_max 1000, cwnd 700 at t = 0, K = cbrt(300 / 0.4) = 9.09 s.
        let check = |seconds: f64, expected: f64| {
            let got = window_after(1000, seconds);
            assert!((got / expected - 1.0).abs() < 0.02, "{seconds} s: {got}, not {expected}");
        };
        check(2.0, 1000.0 + 0.4 * (2.0f64 - 9.09).powi(3));
        check(5.0, 1000.0 + 0.4 * (5.0f64 - 9.09).powi(3));
        check(9.1, 1000.0);
        check(14.0, 1000.0 + 0.4 * (14.0f64 - 9.09).powi(3));
    }

    #[test]
    fn is_no_slower_than_reno_on_short_paths() {
        // W_max 10, RTT 100 ms: Reno-friendly (4.3): cwnd 7 + 0.53 a round trip,
        // one a round trip beyond 10.
        let got = window_after(10, 3.0);
        let rounds_to_prior = 3.0 / ALPHA;
        let expected = 10.0 + (30.0 - rounds_to_prior);
        assert!((got - expected).abs() < 2.0, "{got}, not {expected}");
    }

    #[test]
    fn converges_fast_and_undoes() {
        let mut cubic = Cubic::new(MSS, 100 * MSS, false);
        cubic.on_congestion(0, &loss(100 * MSS));
        assert_eq!(cubic.cwnd_bytes(), 70 * MSS);
        cubic.on_congestion(0, &loss(70 * MSS));
        // 4.7: w_max = 70 * (1 + 0.7) / 2.
        assert!((cubic.w_max - 59.5).abs() < 1e-9);
        assert_eq!(cubic.cwnd_bytes(), 49 * MSS);
        cubic.on_spurious(0);
        assert_eq!(cubic.cwnd_bytes(), 70 * MSS);
        assert!((cubic.w_max - 100.0).abs() < 1e-9);
    }

    #[test]
    fn after_a_timeout_the_epoch_begins_at_its_plateau() {
        // W_max 100, ssthresh 70: slow start ends at 70 segments, far below.
        let mut cubic = Cubic::new(MSS, 100 * MSS, false);
        cubic.on_rto(0, 100 * MSS, false);
        cubic.on_rto(0, 100 * MSS, true);
        cubic.on_ack(0, &ack(69));
        assert_eq!(cubic.cwnd_bytes(), 70 * MSS);
        cubic.on_ack(0, &ack(1));
        let epoch = cubic.epoch.unwrap();
        assert_eq!((epoch.k, epoch.w_max, epoch.w_est.round()), (0.0, 70.0, 70.0));
        // 4.7 looks back at this epoch's W_max, not at the one before.
        assert_eq!(cubic.w_max, 70.0);
        // 4.9: a spurious timeout restores the old plateau.
        cubic.on_spurious(0);
        assert_eq!((cubic.w_max, cubic.cwnd_bytes()), (0.0, 100 * MSS));
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut cubic = Cubic::new(MSS, 100 * MSS, false);
        cubic.on_congestion(0, &loss(100 * MSS));
        cubic.on_ack(0, &ack(1));
        let before = cubic.cwnd_bytes();
        cubic.on_ack(1_000_000_000, &AckEvent { window_limited: false, ..ack(1) });
        cubic.on_ack(61_000_000_000, &ack(1));
        assert!(cubic.cwnd_bytes() - before < MSS, "60 s unused must not lift the window");
    }

    proptest! {
        #[test]
        fn window_stays_within_reason(events in prop::collection::vec((0u8..5, 1u64..50), 1..300)) {
            let mut cubic = Cubic::new(MSS, 10 * MSS, true);
            let mut now_ns = 0;
            for (kind, n) in events {
                now_ns += n as i64 * 1_000_000;
                let before = cubic.cwnd_bytes();
                match kind {
                    0 => cubic.on_congestion(now_ns, &loss(before)),
                    1 => cubic.on_rto(now_ns, before, n % 2 == 0),
                    2 => cubic.on_restart(now_ns, n as i64 * 100_000_000, 200_000_000),
                    _ => {
                        cubic.on_ack(now_ns, &ack(n));
                        // At most slow start's doubling, or 1.5 a window (4.4).
                        prop_assert!(cubic.cwnd_bytes() <= before + n * MSS);
                    }
                }
                prop_assert!(cubic.cwnd_bytes() >= MSS);
            }
        }
    }
}
