//! The baseline without access to the modem: a shaper whose rate is controlled by probes,
//! as in cake-autorate with its published defaults. Written from its published parameters;
//! what those leave open is chosen here.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::rate::transmission_time_ns;

/// Parameters, with cake-autorate's defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AutorateConfig {
    /// Hosts that are probed.
    pub reflectors: u32,
    /// Time between two probes of one host, in ns.
    pub probe_every_ns: i64,
    /// A delay of more than this over the minimum counts as late, in ns.
    pub late_ns: i64,
    /// The queue is too long if this many of the last `samples` are late.
    pub late_samples: usize,
    /// Number of recent samples considered.
    pub samples: usize,
    /// Minimum and maximum factor when the queue is too long.
    pub down: (f64, f64),
    /// Maximum factor when the link is well used and the queue short.
    pub up: f64,
    /// The link counts as well used above this share of the rate.
    pub high_load: f64,
    /// Minimum time between two steps down, in ns.
    pub refractory_ns: i64,
    /// Time over which the load is measured, in ns (chosen here).
    pub load_window_ns: i64,
    /// Minimum rate in bit/s; the user has to know the three rates.
    pub least_bps: u64,
    /// Initial rate in bit/s.
    pub start_bps: u64,
    /// Maximum rate in bit/s.
    pub most_bps: u64,
}

impl Default for AutorateConfig {
    fn default() -> Self {
        Self {
            reflectors: 6,
            probe_every_ns: 300_000_000,
            late_ns: 30_000_000,
            late_samples: 3,
            samples: 6,
            down: (0.75, 0.99),
            up: 1.04,
            high_load: 0.75,
            refractory_ns: 300_000_000,
            load_window_ns: 200_000_000,
            // Chosen here, for a typical LTE uplink.
            least_bps: 500_000,
            start_bps: 5_000_000,
            most_bps: 50_000_000,
        }
    }
}

/// The shaper and its rate control.
#[derive(Debug, Clone)]
pub struct Autorate {
    config: AutorateConfig,
    rate_bps: f64,
    /// Minimum round trip so far, the baseline of delays.
    base_ns: Option<i64>,
    delays_ns: VecDeque<i64>,
    /// Bytes sent, by time.
    sent: VecDeque<(i64, u64)>,
    lowered_ns: Option<i64>,
    probe_due_ns: Option<i64>,
    next_ns: i64,
}

impl Autorate {
    /// A shaper at its start.
    #[must_use]
    pub fn new(config: AutorateConfig) -> Self {
        Self {
            rate_bps: config.start_bps as f64,
            config,
            base_ns: None,
            delays_ns: VecDeque::new(),
            sent: VecDeque::new(),
            lowered_ns: None,
            probe_due_ns: None,
            next_ns: i64::MIN,
        }
    }

    /// When the next packet may be sent; a time in the past means at once.
    #[must_use]
    pub const fn next_ns(&self) -> i64 {
        self.next_ns
    }

    /// Accounts for a packet that is sent.
    pub fn hand_over(&mut self, now_ns: i64, ip_bytes: u32) {
        let takes_ns = transmission_time_ns(ip_bytes.into(), self.bytes_per_s());
        // Catches up with 1 ms at most, since callers poll no more often.
        self.next_ns = self.next_ns.max(now_ns.saturating_sub(1_000_000)).saturating_add(takes_ns);
        self.sent.push_back((now_ns, ip_bytes.into()));
        let from_ns = now_ns.saturating_sub(self.config.load_window_ns);
        while self.sent.front().is_some_and(|(at, _)| *at < from_ns) {
            self.sent.pop_front();
        }
    }

    /// Whether to send a probe now; the reflectors take turns.
    pub fn poll_probe(&mut self, now_ns: i64) -> bool {
        let every_ns = self.config.probe_every_ns / i64::from(self.config.reflectors.max(1));
        let due = self.probe_due_ns.is_none_or(|due| due <= now_ns);
        if due {
            self.probe_due_ns = Some(now_ns.saturating_add(every_ns.max(1_000_000)));
        }
        due
    }

    /// When the next probe is due.
    #[must_use]
    pub const fn probe_due_ns(&self) -> Option<i64> {
        self.probe_due_ns
    }

    /// A probe was answered after `rtt_ns`. All delay above the minimum is attributed to
    /// the uplink, the best case for the baseline.
    pub fn answered(&mut self, now_ns: i64, rtt_ns: i64) {
        let base_ns = self.base_ns.map_or(rtt_ns, |base| base.min(rtt_ns));
        self.base_ns = Some(base_ns);
        self.delays_ns.push_back(rtt_ns.saturating_sub(base_ns));
        if self.delays_ns.len() > self.config.samples.max(1) {
            self.delays_ns.pop_front();
        }
        let late = self.delays_ns.iter().filter(|delay| **delay > self.config.late_ns).count();
        let mean = self.delays_ns.iter().map(|ns| *ns as f64).sum::<f64>()
            / self.delays_ns.len().max(1) as f64;
        let over = mean / self.config.late_ns.max(1) as f64;
        let rests =
            self.lowered_ns.is_some_and(|at| now_ns.saturating_sub(at) < self.config.refractory_ns);
        if late >= self.config.late_samples {
            if !rests {
                // Linear from the maximum factor at the threshold to the minimum at twice
                // the threshold (the ends are published, the line is chosen here).
                let (least, most) = self.config.down;
                self.rate_bps *= (most - (most - least) * (over - 1.0).clamp(0.0, 1.0)).min(1.0);
                self.lowered_ns = Some(now_ns);
            }
        } else if !rests && self.load(now_ns) > self.config.high_load {
            self.rate_bps *= 1.0 + (self.config.up - 1.0) * (1.0 - over).clamp(0.0, 1.0);
        }
        let (least, most) = (self.config.least_bps as f64, self.config.most_bps as f64);
        self.rate_bps = self.rate_bps.max(least).min(most.max(least));
    }

    /// The rate, in bytes per second.
    #[must_use]
    pub const fn bytes_per_s(&self) -> u64 {
        (self.rate_bps / 8.0) as u64
    }

    fn load(&self, now_ns: i64) -> f64 {
        let from_ns = now_ns.saturating_sub(self.config.load_window_ns);
        let bytes: u64 = self.sent.iter().filter(|(at, _)| *at >= from_ns).map(|(_, b)| b).sum();
        let seconds = self.config.load_window_ns.max(1) as f64 / 1e9;
        bytes as f64 * 8.0 / seconds / self.rate_bps.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn steps_are_those_of_the_defaults() {
        let mut rate = Autorate::new(AutorateConfig::default());
        // A load of 100 %: 125 kB in 200 ms at 5 Mbit/s.
        let load = |rate: &mut Autorate, now: i64| {
            let bytes = (rate.bytes_per_s() / 5) as u32;
            rate.sent.clear();
            rate.hand_over(now, bytes);
        };
        load(&mut rate, 0);
        rate.answered(0, 40 * MS);
        assert_eq!(rate.bytes_per_s(), 650_000, "up by 4 %");
        // Two late samples of 60 ms over: no step down yet, and the mean prevents a step
        // up.
        for n in 1..=2 {
            load(&mut rate, n * 50 * MS);
            rate.answered(n * 50 * MS, 100 * MS);
        }
        assert_eq!(rate.bytes_per_s(), 650_000);
        // The third: the mean is 45 ms, half way from 0.99 to 0.75.
        rate.answered(150 * MS, 100 * MS);
        assert_eq!(rate.bytes_per_s(), 565_500);
        // No step for 300 ms, then the mean is at twice the threshold.
        for n in 4..9 {
            rate.answered(n * 50 * MS, 100 * MS);
        }
        assert_eq!(rate.bytes_per_s(), 565_500);
        rate.answered(450 * MS, 100 * MS);
        assert_eq!(rate.bytes_per_s(), 424_125);
    }

    #[test]
    fn probes_take_turns_and_packets_are_spaced() {
        let mut rate = Autorate::new(AutorateConfig::default());
        let probes = (0..1_000).filter(|ms| rate.poll_probe(ms * MS)).count();
        assert_eq!(probes, 20, "six each 300 ms");
        // 6,250 bytes are 10 ms at 5 Mbit/s.
        rate.hand_over(1_000 * MS, 6_250);
        assert_eq!(rate.next_ns(), 1_009 * MS);
        rate.hand_over(1_009 * MS, 6_250);
        assert_eq!(rate.next_ns(), 1_019 * MS);
    }
}
