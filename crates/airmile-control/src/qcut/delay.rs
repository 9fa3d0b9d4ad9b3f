//! Estimates the modem's buffer from round trips alone: for modems that report nothing, and
//! while a reporting modem is silent.
//!
//! A packet that was acknowledged has left the modem, and so have all packets before it.
//! Unacknowledged bytes are in the modem or in flight; in flight is the rate times the
//! minimum round trip to their destination.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::queue::MTU_BYTES;
use super::rate::{RateWindow, bytes_in};

/// Parameters of the control by delay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DelayConfig {
    /// Time over which the rate is measured, in ns (chosen here: several delayed ACKs).
    pub rate_window_ns: i64,
    /// Validity of the minimum round trip, in ns. After it the modem is drained for a round
    /// trip, with three quarters of the path's capacity in flight, so that the minimum
    /// becomes visible again (chosen here; 10 s as in BBR).
    pub base_ns: i64,
    /// Initial rate before the first measurement, in bytes per second (chosen here: 1
    /// Mbit/s).
    pub start_bytes_per_s: u64,
    /// Time without an answer before a probe is sent, in ns (chosen here).
    pub probe_after_ns: i64,
    /// Time without an answer, probes included, after which nothing is held back, in ns
    /// (chosen here: ten probes).
    pub give_up_ns: i64,
    /// The path's round trip from an oracle, in ns: then the rate is the modem log's, and neither
    /// is searched. For experiments, as a bound.
    pub oracle_base_rtt_ns: Option<i64>,
}

impl Default for DelayConfig {
    fn default() -> Self {
        Self {
            rate_window_ns: 200_000_000,
            base_ns: 10_000_000_000,
            start_bytes_per_s: 125_000,
            probe_after_ns: 200_000_000,
            give_up_ns: 2_000_000_000,
            oracle_base_rtt_ns: None,
        }
    }
}

/// Identifies a packet that was passed to the modem: all bytes up to and including it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct HandoverMark(pub u64);

/// The path to a host.
#[derive(Debug, Clone, Copy)]
struct HostPath {
    /// The minimum round trip and when it was last observed.
    least_ns: i64,
    seen_ns: i64,
    answered_ns: i64,
}

/// State of a search for minimum round trips.
#[derive(Debug, Clone, Default)]
struct Search {
    /// The minimum for packets passed to the modem during the search, by destination.
    least_ns: HashMap<u64, i64>,
    since_ns: i64,
    until_ns: Option<i64>,
}

/// This many large packets may be outstanding regardless of measurements (chosen here:
/// twice what delayed acknowledgements leave open. The round trip of single packets that
/// each wait for a grant exceeds the minimum, so a lower limit would keep a slow link
/// empty).
const MIN_PACKETS: u64 = 8;

/// Maximum number of remembered hosts (chosen here).
const MAX_PATHS: usize = 256;

/// Maximum duration of a search, in ns (chosen here): a host that does not answer within it
/// is measured by its next answer.
const MAX_SEARCH_NS: i64 = 2_000_000_000;

/// The estimator from round trips.
#[derive(Debug, Clone)]
pub struct RoundTripEstimator {
    config: DelayConfig,
    handed_bytes: u64,
    returned_bytes: u64,
    rate: RateWindow,
    paths: HashMap<u64, HostPath>,
    /// Moving average of the minimum round trips of recently acknowledged packets: the
    /// packets in flight have the same destinations.
    base_ns: Option<f64>,
    /// Path of the last answer: when its minimum was observed, and that minimum.
    last_path: Option<(i64, i64)>,
    last_rtt_ns: i64,
    returned_ns: Option<i64>,
    /// Since when an unacknowledged packet is outstanding.
    outstanding_since_ns: i64,
    search: Option<Search>,
    /// An oracle's rate, and the rate to convert a time limit, in bytes per second.
    oracle_rates: Option<(u64, u64)>,
}

impl RoundTripEstimator {
    /// An estimator before the first packet.
    #[must_use]
    pub fn new(config: DelayConfig) -> Self {
        Self {
            rate: RateWindow::new(config.start_bytes_per_s, config.rate_window_ns),
            config,
            handed_bytes: 0,
            returned_bytes: 0,
            paths: HashMap::new(),
            base_ns: None,
            last_path: None,
            last_rtt_ns: 0,
            returned_ns: None,
            outstanding_since_ns: 0,
            search: None,
            oracle_rates: None,
        }
    }

    /// Whether an oracle gives the path's round trip and the rate.
    pub(super) const fn has_oracle(&self) -> bool {
        self.config.oracle_base_rtt_ns.is_some()
    }

    /// An oracle's rate, and the rate to convert a time limit into bytes.
    pub(super) const fn set_oracle_rates(&mut self, bytes_per_s: u64, sought_bytes_per_s: u64) {
        self.oracle_rates = Some((bytes_per_s, sought_bytes_per_s));
    }

    /// Accounts for a packet passed to the modem.
    pub const fn hand_over(&mut self, now_ns: i64, ip_bytes: u32) -> HandoverMark {
        if self.outstanding_bytes() == 0 {
            self.outstanding_since_ns = now_ns;
        }
        self.handed_bytes = self.handed_bytes.saturating_add(ip_bytes as u64);
        HandoverMark(self.handed_bytes)
    }

    /// Processes the answer to a packet for a host that was passed to the modem at
    /// `handed_ns`.
    pub fn answered(&mut self, now_ns: i64, handed_ns: i64, mark: HandoverMark, far: u64) {
        let rtt_ns = now_ns.saturating_sub(handed_ns);
        if rtt_ns < 0 || mark.0 > self.handed_bytes {
            return;
        }
        self.last_rtt_ns = rtt_ns;
        let path = self.path(now_ns, far, rtt_ns);
        self.last_path = Some((path.seen_ns, path.least_ns));
        if let Some(search) = &mut self.search
            && handed_ns >= search.since_ns
        {
            let least = search.least_ns.entry(far).or_insert(rtt_ns);
            *least = rtt_ns.min(*least);
        }
        self.note_base(path.least_ns, mark);
        self.returned_ns.get_or_insert(handed_ns);
        self.returned(now_ns, mark);
    }

    /// All bytes up to a mark have left the modem.
    pub fn returned(&mut self, now_ns: i64, mark: HandoverMark) {
        if mark.0 > self.handed_bytes {
            return;
        }
        if mark.0 > self.returned_bytes {
            let bytes = mark.0 - self.returned_bytes;
            let from_ns = self.returned_ns.unwrap_or(now_ns).min(now_ns.saturating_sub(1));
            self.rate.sent((from_ns, now_ns), bytes, 0);
            self.returned_bytes = mark.0;
        }
        self.returned_ns = Some(now_ns);
        self.outstanding_since_ns = now_ns;
        self.rate.measure(now_ns, self.occupancy_bytes(), 0);
    }

    /// The path to a host, updated with a round trip.
    fn path(&mut self, now_ns: i64, far: u64, rtt_ns: i64) -> HostPath {
        if self.paths.len() >= MAX_PATHS && !self.paths.contains_key(&far) {
            let oldest = self.paths.iter().min_by_key(|(_, path)| path.answered_ns);
            if let Some(oldest) = oldest.map(|(far, _)| *far) {
                self.paths.remove(&oldest);
            }
        }
        let new = HostPath { least_ns: rtt_ns, seen_ns: now_ns, answered_ns: now_ns };
        let path = self.paths.entry(far).or_insert(new);
        path.answered_ns = now_ns;
        if rtt_ns <= path.least_ns {
            (path.least_ns, path.seen_ns) = (rtt_ns, now_ns);
        }
        *path
    }

    /// Moves the average by the acknowledged share of the outstanding bytes.
    fn note_base(&mut self, least_ns: i64, mark: HandoverMark) {
        let least_ns = least_ns as f64;
        let answered = mark.0.saturating_sub(self.returned_bytes) as f64;
        let out = self.outstanding_bytes().max(4 * u64::from(MTU_BYTES)) as f64;
        self.base_ns = Some(match self.base_ns {
            Some(mean) => mean + (least_ns - mean) * (answered / out).min(1.0),
            None => least_ns,
        });
    }

    /// Whether one more packet may be sent if the modem may hold `limit` bytes.
    #[must_use]
    pub fn has_room(&mut self, now_ns: i64, limit_bytes: u64) -> bool {
        let (Some((seen_ns, _)), Some(base_ns)) = (self.last_path, self.base()) else {
            // Nothing is known yet: the initial window (RFC 6928).
            return self.outstanding_bytes() < 10 * u64::from(MTU_BYTES);
        };
        let on_the_way = bytes_in(base_ns, self.bytes_per_s());
        let is_old = now_ns.saturating_sub(seen_ns) > self.config.base_ns && !self.has_oracle();
        if self.search.is_none() && is_old {
            self.search = Some(Search { since_ns: now_ns, ..Search::default() });
        }
        let least = MIN_PACKETS * u64::from(MTU_BYTES);
        let outstanding = self.outstanding_bytes();
        let Some(search) = &mut self.search else {
            return outstanding < on_the_way.saturating_add(limit_bytes).max(least);
        };
        let part = (on_the_way / 4 * 3).max(least);
        if search.until_ns.is_none() && outstanding <= part {
            // Packets that leave from here on find an empty queue.
            let until_ns = Some(now_ns.saturating_add(base_ns.saturating_mul(2)));
            *search = Search { least_ns: HashMap::new(), since_ns: now_ns, until_ns };
        }
        // Not before a packet of the search is acknowledged; its host may be far away.
        let is_answered = !search.least_ns.is_empty();
        let is_late = now_ns.saturating_sub(search.since_ns) > MAX_SEARCH_NS;
        if is_late || (is_answered && search.until_ns.is_some_and(|until| now_ns >= until)) {
            self.end_search(now_ns);
        }
        outstanding < part
    }

    /// Applies the minima found; forgets hosts that did not answer and whose minimum is
    /// old.
    fn end_search(&mut self, now_ns: i64) {
        let Some(search) = self.search.take() else { return };
        let oldest_ns = now_ns.saturating_sub(self.config.base_ns);
        self.paths
            .retain(|far, path| search.least_ns.contains_key(far) || path.seen_ns >= oldest_ns);
        for (far, least_ns) in search.least_ns {
            let path = HostPath { least_ns, seen_ns: now_ns, answered_ns: now_ns };
            self.paths.insert(far, path);
        }
        // Valid until the next answer brings its own.
        self.last_path = self.last_path.map(|(_, least_ns)| (now_ns, least_ns));
    }

    /// Moving average of the minimum round trips, in ns.
    fn base(&self) -> Option<i64> {
        self.config.oracle_base_rtt_ns.or(self.base_ns.map(|base| base as i64))
    }

    /// Bytes passed to the modem and not acknowledged.
    #[must_use]
    pub const fn outstanding_bytes(&self) -> u64 {
        self.handed_bytes.saturating_sub(self.returned_bytes)
    }

    /// Estimate of how many of them are in the modem.
    #[must_use]
    pub fn occupancy_bytes(&self) -> u64 {
        let base_ns = self.base().unwrap_or(0);
        self.outstanding_bytes().saturating_sub(bytes_in(base_ns, self.bytes_per_s()))
    }

    /// The rate of acknowledged bytes, in bytes per second.
    #[must_use]
    pub const fn bytes_per_s(&self) -> u64 {
        match self.oracle_rates {
            Some((bytes_per_s, _)) => bytes_per_s,
            None => self.rate.bytes_per_s(),
        }
    }

    /// Sets whether the gate keeps the buffer too small to fill grants: low usage then does
    /// not lower the rate.
    pub const fn set_starved(&mut self, starved: bool) {
        self.rate.set_starved(starved);
    }

    /// The rate to convert a time limit into bytes; it probes for more bandwidth at times.
    #[must_use]
    pub fn sought_bytes_per_s(&self, now_ns: i64) -> u64 {
        self.oracle_rates.map_or_else(|| self.rate.sought_bytes_per_s(now_ns), |(_, sought)| sought)
    }

    /// Total bytes acknowledged.
    pub(super) const fn returned_bytes(&self) -> u64 {
        self.returned_bytes
    }

    /// The last round trip and the minimum, in ns.
    #[must_use]
    pub fn round_trips_ns(&self) -> Option<(i64, i64)> {
        self.last_path.map(|(_, least_ns)| (self.last_rtt_ns, least_ns))
    }

    /// For how long a packet has been outstanding without any answer, in ns.
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

    /// A modem of constant rate before a path of 40 ms; returns the bytes in it each ms and
    /// the bytes that left.
    fn run(bytes_per_ms: u64, limit: impl Fn(u64) -> u64, ms: i64) -> (Vec<u64>, u64) {
        let mut returns = RoundTripEstimator::new(DelayConfig::default());
        run_by(&mut returns, bytes_per_ms, limit, (0, ms), 40)
    }

    fn run_by(
        returns: &mut RoundTripEstimator,
        bytes_per_ms: u64,
        limit: impl Fn(u64) -> u64,
        (from_ms, to_ms): (i64, i64),
        path_ms: i64,
    ) -> (Vec<u64>, u64) {
        let (mut queue, mut held, mut gone) = (std::collections::VecDeque::new(), 0, 0);
        let mut way = std::collections::VecDeque::new();
        let (mut credit, mut seen) = (0, Vec::new());
        for now in (from_ms..to_ms).map(|ms| ms * MS) {
            while way.front().is_some_and(|(due, _, _)| *due <= now) {
                let (_, handed, mark) = way.pop_front().unwrap();
                returns.answered(now, handed, mark, 0);
            }
            while returns.has_room(now, limit(returns.bytes_per_s())) {
                queue.push_back((now, returns.hand_over(now, 1_500)));
                held += 1_500;
            }
            credit += bytes_per_ms;
            while credit >= 1_500 && !queue.is_empty() {
                let (handed, mark) = queue.pop_front().unwrap();
                way.push_back((now + path_ms * MS, handed, mark));
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
        // 30 s: the modem is never empty except during searches; the rate is kept.
        let (held, gone) = run(1_000, |rate| bytes_in(20 * MS, rate), 30_000);
        let most = held[20_000..].iter().max().unwrap();
        assert!(*most < 33_000 && gone > 29_000_000, "{most} {gone}");
    }

    #[test]
    fn a_near_host_does_not_hold_up_a_far_one() {
        let mut returns = RoundTripEstimator::new(DelayConfig::default());
        let mark = returns.hand_over(0, 100);
        returns.answered(20 * MS, 0, mark, 1);
        // 200 ms away, 8 Mbit/s: the rate is found, and then at most twice the limit is
        // held.
        let limit = |rate| bytes_in(20 * MS, rate);
        let (held, gone) = run_by(&mut returns, 1_000, limit, (100, 20_100), 200);
        assert!(gone > 15_000_000, "{gone}");
        let most = held[5_000..].iter().enumerate().max_by_key(|(_, held)| **held).unwrap();
        assert!(*most.1 < 90_000, "{most:?}");
    }

    #[test]
    fn answers_that_cannot_be_change_nothing() {
        let mut returns = RoundTripEstimator::new(DelayConfig::default());
        let mark = returns.hand_over(0, 1_000);
        returns.answered(10 * MS, 20 * MS, mark, 0);
        returns.answered(10 * MS, 0, HandoverMark(5_000), 0);
        assert_eq!((returns.outstanding_bytes(), returns.round_trips_ns()), (1_000, None));
        returns.answered(30 * MS, 0, mark, 0);
        assert_eq!((returns.outstanding_bytes(), returns.silent_for_ns(99 * MS)), (0, 0));
        assert_eq!(returns.round_trips_ns(), Some((30 * MS, 30 * MS)));
    }
}
