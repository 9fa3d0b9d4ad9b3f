//! What the modem holds, told by round trips alone: for modems that tell nothing,
//! and while one that does is silent.
//!
//! A packet that was answered has left the modem, and all that was handed over
//! before it. What is handed over and not answered is in the modem or on the way;
//! on the way is the rate times the least round trip.

use serde::{Deserialize, Serialize};

use super::queue::MTU_BYTES;
use super::rate::{RateWindow, bytes_in};

/// Parameters of the control by delay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DelayConfig {
    /// Over so long the rate is measured, in ns (chosen here: several delayed ACKs).
    pub rate_window_ns: i64,
    /// The least round trip holds for so long, in ns; then the modem is left to
    /// run empty for a round trip, with three quarters of what the path holds on
    /// the way, so that it shows again (chosen here; 10 s as BBR has it).
    pub base_ns: i64,
    /// The rate before one was measured, in bytes per second (chosen here: 1 Mbit/s).
    pub start_bytes_per_s: u64,
    /// Without an answer for so long a probe is sent, in ns (chosen here).
    pub probe_after_ns: i64,
    /// Without an answer for so long, probes included, nothing is held back, in ns
    /// (chosen here: ten probes).
    pub give_up_ns: i64,
}

impl Default for DelayConfig {
    fn default() -> Self {
        Self {
            rate_window_ns: 200_000_000,
            base_ns: 10_000_000_000,
            start_bytes_per_s: 125_000,
            probe_after_ns: 200_000_000,
            give_up_ns: 2_000_000_000,
        }
    }
}

/// What marks a packet that was handed over: all bytes up to it, itself included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Mark(pub u64);

/// The least round trip is being looked for.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// The least seen of packets that were handed over meanwhile.
    least_ns: Option<i64>,
    since_ns: i64,
    until_ns: Option<i64>,
}

/// The estimator by round trips.
#[derive(Debug, Clone)]
pub struct Returns {
    config: DelayConfig,
    handed_bytes: u64,
    returned_bytes: u64,
    rate: RateWindow,
    /// The least round trip and when it was seen last.
    base: Option<(i64, i64)>,
    last_rtt_ns: i64,
    returned_ns: Option<i64>,
    /// Since when something is out that was not answered.
    outstanding_since_ns: i64,
    search: Option<Search>,
}

impl Returns {
    /// Before the first packet.
    #[must_use]
    pub fn new(config: DelayConfig) -> Self {
        Self {
            rate: RateWindow::new(config.start_bytes_per_s, config.rate_window_ns),
            config,
            handed_bytes: 0,
            returned_bytes: 0,
            base: None,
            last_rtt_ns: 0,
            returned_ns: None,
            outstanding_since_ns: 0,
            search: None,
        }
    }

    /// A packet of so many IP bytes goes to the modem.
    pub const fn hand_over(&mut self, now_ns: i64, ip_bytes: u32) -> Mark {
        if self.outstanding_bytes() == 0 {
            self.outstanding_since_ns = now_ns;
        }
        self.handed_bytes = self.handed_bytes.saturating_add(ip_bytes as u64);
        Mark(self.handed_bytes)
    }

    /// A packet was answered that was handed over at `handed_ns`.
    pub fn answered(&mut self, now_ns: i64, handed_ns: i64, mark: Mark) {
        let rtt_ns = now_ns.saturating_sub(handed_ns);
        if rtt_ns < 0 || mark.0 > self.handed_bytes {
            return;
        }
        self.last_rtt_ns = rtt_ns;
        if self.base.is_none_or(|(base, _)| rtt_ns <= base) {
            self.base = Some((rtt_ns, now_ns));
        }
        if let Some(search) = &mut self.search
            && handed_ns >= search.since_ns
        {
            search.least_ns = Some(search.least_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
        }
        if mark.0 > self.returned_bytes {
            let bytes = mark.0 - self.returned_bytes;
            let from_ns = self.returned_ns.unwrap_or(handed_ns).min(now_ns.saturating_sub(1));
            self.rate.sent((from_ns, now_ns), bytes, 0);
            self.returned_bytes = mark.0;
        }
        self.returned_ns = Some(now_ns);
        self.outstanding_since_ns = now_ns;
        self.rate.measure(now_ns, self.occupancy_bytes());
    }

    /// Whether one more packet may go where the modem may hold so many bytes.
    #[must_use]
    pub fn has_room(&mut self, now_ns: i64, limit_bytes: u64) -> bool {
        let Some((base_ns, seen_ns)) = self.base else {
            // Nothing is known: the initial window (RFC 6928).
            return self.outstanding_bytes() < 10 * u64::from(MTU_BYTES);
        };
        let on_the_way = bytes_in(base_ns, self.bytes_per_s());
        if self.search.is_none() && now_ns.saturating_sub(seen_ns) > self.config.base_ns {
            self.search = Some(Search { least_ns: None, since_ns: now_ns, until_ns: None });
        }
        let least = 4 * u64::from(MTU_BYTES);
        let Some(mut search) = self.search else {
            return self.outstanding_bytes() < on_the_way.saturating_add(limit_bytes).max(least);
        };
        let part = (on_the_way / 4 * 3).max(least);
        if search.until_ns.is_none() && self.outstanding_bytes() <= part {
            // What leaves from here on waits behind nothing.
            search = Search {
                least_ns: None,
                since_ns: now_ns,
                until_ns: Some(now_ns.saturating_add(base_ns.saturating_mul(2))),
            };
        }
        self.search = Some(search);
        if search.until_ns.is_some_and(|until| now_ns >= until) {
            let least_ns = search.least_ns.unwrap_or(base_ns);
            self.base = Some((least_ns, now_ns));
            self.search = None;
        }
        self.outstanding_bytes() < part
    }

    /// Bytes that were handed over and not answered.
    #[must_use]
    pub const fn outstanding_bytes(&self) -> u64 {
        self.handed_bytes.saturating_sub(self.returned_bytes)
    }

    /// Of them, what is likely in the modem.
    #[must_use]
    pub fn occupancy_bytes(&self) -> u64 {
        let base_ns = self.base.map_or(0, |(base, _)| base);
        self.outstanding_bytes().saturating_sub(bytes_in(base_ns, self.bytes_per_s()))
    }

    /// The rate at which answers come, in bytes per second.
    #[must_use]
    pub const fn bytes_per_s(&self) -> u64 {
        self.rate.bytes_per_s()
    }

    /// Whether the gate lets less wait than fills grants: the rate is then not lowered
    /// by what little is sent.
    pub const fn set_starved(&mut self, starved: bool) {
        self.rate.set_starved(starved);
    }

    /// The rate of which a limit in time is to be, which looks for more at times.
    #[must_use]
    pub const fn sought_bytes_per_s(&self, now_ns: i64) -> u64 {
        self.rate.sought_bytes_per_s(now_ns)
    }

    /// The last round trip and the least one, in ns.
    #[must_use]
    pub fn round_trips_ns(&self) -> Option<(i64, i64)> {
        self.base.map(|(base, _)| (self.last_rtt_ns, base))
    }

    /// For how long something has been out without any answer, in ns.
    #[must_use]
    pub const fn silent_for_ns(&self, now_ns: i64) -> i64 {
        if self.outstanding_bytes() == 0 {
            return 0;
        }
        now_ns.saturating_sub(self.outstanding_since_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A modem of a constant rate before a path of 40 ms; gives bytes in it and
    /// bytes that left, each ms.
    fn run(bytes_per_ms: u64, limit: impl Fn(u64) -> u64, ms: i64) -> (Vec<u64>, u64) {
        let mut returns = Returns::new(DelayConfig::default());
        let (mut queue, mut held, mut gone) = (std::collections::VecDeque::new(), 0, 0);
        let mut way = std::collections::VecDeque::new();
        let (mut credit, mut seen) = (0, Vec::new());
        for now in (0..ms).map(|ms| ms * MS) {
            while way.front().is_some_and(|(due, _, _)| *due <= now) {
                let (_, handed, mark) = way.pop_front().unwrap();
                returns.answered(now, handed, mark);
            }
            while returns.has_room(now, limit(returns.bytes_per_s())) {
                queue.push_back((now, returns.hand_over(now, 1_500)));
                held += 1_500;
            }
            credit += bytes_per_ms;
            while credit >= 1_500 && !queue.is_empty() {
                let (handed, mark) = queue.pop_front().unwrap();
                way.push_back((now + 40 * MS, handed, mark));
                credit -= 1_500;
                held -= 1_500;
                gone += 1_500;
            }
            credit = credit.min(1_500);
            seen.push(held);
        }
        (seen, gone)
    }

    #[test]
    fn holds_the_limit_at_the_full_rate() {
        // 8 Mbit/s: 20 ms are 20 kB; 10 s could send 10 MB.
        let (held, gone) = run(1_000, |rate| bytes_in(20 * MS, rate), 10_000);
        let most = held[2_000..].iter().max().unwrap();
        assert!((15_000..30_000).contains(most), "{most}");
        assert!(gone > 9_500_000, "{gone}");
    }

    #[test]
    fn searches_for_the_least_round_trip_cost_little() {
        // 30 s: the modem is never empty but for the searches; the rate holds.
        let (held, gone) = run(1_000, |rate| bytes_in(20 * MS, rate), 30_000);
        let most = held[20_000..].iter().max().unwrap();
        assert!(*most < 33_000 && gone > 29_000_000, "{most} {gone}");
    }

    #[test]
    fn answers_that_cannot_be_change_nothing() {
        let mut returns = Returns::new(DelayConfig::default());
        let mark = returns.hand_over(0, 1_000);
        returns.answered(10 * MS, 20 * MS, mark);
        returns.answered(10 * MS, 0, Mark(5_000));
        assert_eq!((returns.outstanding_bytes(), returns.round_trips_ns()), (1_000, None));
        returns.answered(30 * MS, 0, mark);
        assert_eq!((returns.outstanding_bytes(), returns.silent_for_ns(99 * MS)), (0, 0));
        assert_eq!(returns.round_trips_ns(), Some((30 * MS, 30 * MS)));
    }
}
