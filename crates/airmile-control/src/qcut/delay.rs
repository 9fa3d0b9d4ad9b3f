//! What the modem holds, told by round trips alone: for modems that tell nothing,
//! and while one that does is silent.
//!
//! A packet that was answered has left the modem, and all that was handed over
//! before it. What is handed over and not answered is in the modem or on the way;
//! on the way is the rate times the least round trip to whom it is for.

use std::collections::HashMap;

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
pub struct HandoverMark(pub u64);

/// The path to a host.
#[derive(Debug, Clone, Copy)]
struct HostPath {
    /// The least round trip and when it was seen last.
    least_ns: i64,
    seen_ns: i64,
    answered_ns: i64,
}

/// Least round trips are being looked for.
#[derive(Debug, Clone, Default)]
struct Search {
    /// The least seen of packets that were handed over meanwhile, by whom they were for.
    least_ns: HashMap<u64, i64>,
    since_ns: i64,
    until_ns: Option<i64>,
}

/// So many large packets may be out whatever is measured (chosen here: twice what
/// delayed acknowledgements leave open; a round trip of single packets that wait for a
/// grant each is longer than the least one, so that less would keep a slow link empty).
const MIN_PACKETS: u64 = 8;

/// Hosts that are remembered at most (chosen here).
const MAX_PATHS: usize = 256;

/// A search ends after so long at the latest, in ns (chosen here): whoever does not
/// answer within it is measured by his next answer.
const MAX_SEARCH_NS: i64 = 2_000_000_000;

/// The estimator by round trips.
#[derive(Debug, Clone)]
pub struct RoundTripEstimator {
    config: DelayConfig,
    handed_bytes: u64,
    returned_bytes: u64,
    rate: RateWindow,
    paths: HashMap<u64, HostPath>,
    /// The mean of the least round trips of what was answered of late: what is on the
    /// way is for the same hosts.
    base_ns: Option<f64>,
    /// The path of the last answer: when its least was seen, and that least.
    last_path: Option<(i64, i64)>,
    last_rtt_ns: i64,
    returned_ns: Option<i64>,
    /// Since when something is out that was not answered.
    outstanding_since_ns: i64,
    search: Option<Search>,
}

impl RoundTripEstimator {
    /// Before the first packet.
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
        }
    }

    /// A packet of so many IP bytes goes to the modem.
    pub const fn hand_over(&mut self, now_ns: i64, ip_bytes: u32) -> HandoverMark {
        if self.outstanding_bytes() == 0 {
            self.outstanding_since_ns = now_ns;
        }
        self.handed_bytes = self.handed_bytes.saturating_add(ip_bytes as u64);
        HandoverMark(self.handed_bytes)
    }

    /// A packet for a host was answered that was handed over at `handed_ns`.
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
        if mark.0 > self.returned_bytes {
            let bytes = mark.0 - self.returned_bytes;
            let from_ns = self.returned_ns.unwrap_or(handed_ns).min(now_ns.saturating_sub(1));
            self.rate.sent((from_ns, now_ns), bytes, 0);
            self.returned_bytes = mark.0;
        }
        self.returned_ns = Some(now_ns);
        self.outstanding_since_ns = now_ns;
        self.rate.measure(now_ns, self.occupancy_bytes(), 0);
    }

    /// The path to a host, with a round trip of it.
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

    /// The mean moves by the share that was answered of what was out.
    fn note_base(&mut self, least_ns: i64, mark: HandoverMark) {
        let least_ns = least_ns as f64;
        let answered = mark.0.saturating_sub(self.returned_bytes) as f64;
        let out = self.outstanding_bytes().max(4 * u64::from(MTU_BYTES)) as f64;
        self.base_ns = Some(match self.base_ns {
            Some(mean) => mean + (least_ns - mean) * (answered / out).min(1.0),
            None => least_ns,
        });
    }

    /// Whether one more packet may go where the modem may hold so many bytes.
    #[must_use]
    pub fn has_room(&mut self, now_ns: i64, limit_bytes: u64) -> bool {
        let (Some((seen_ns, _)), Some(base_ns)) = (self.last_path, self.base()) else {
            // Nothing is known: the initial window (RFC 6928).
            return self.outstanding_bytes() < 10 * u64::from(MTU_BYTES);
        };
        let on_the_way = bytes_in(base_ns, self.bytes_per_s());
        if self.search.is_none() && now_ns.saturating_sub(seen_ns) > self.config.base_ns {
            self.search = Some(Search { since_ns: now_ns, ..Search::default() });
        }
        let least = MIN_PACKETS * u64::from(MTU_BYTES);
        let outstanding = self.outstanding_bytes();
        let Some(search) = &mut self.search else {
            return outstanding < on_the_way.saturating_add(limit_bytes).max(least);
        };
        let part = (on_the_way / 4 * 3).max(least);
        if search.until_ns.is_none() && outstanding <= part {
            // What leaves from here on waits behind nothing.
            let until_ns = Some(now_ns.saturating_add(base_ns.saturating_mul(2)));
            *search = Search { least_ns: HashMap::new(), since_ns: now_ns, until_ns };
        }
        // Not before somebody has answered what left in it, who may be far.
        let is_answered = !search.least_ns.is_empty();
        let is_late = now_ns.saturating_sub(search.since_ns) > MAX_SEARCH_NS;
        if is_late || (is_answered && search.until_ns.is_some_and(|until| now_ns >= until)) {
            self.end_search(now_ns);
        }
        outstanding < part
    }

    /// What was found counts, and who did not answer is forgotten if his least is old.
    fn end_search(&mut self, now_ns: i64) {
        let Some(search) = self.search.take() else { return };
        let oldest_ns = now_ns.saturating_sub(self.config.base_ns);
        self.paths
            .retain(|far, path| search.least_ns.contains_key(far) || path.seen_ns >= oldest_ns);
        for (far, least_ns) in search.least_ns {
            let path = HostPath { least_ns, seen_ns: now_ns, answered_ns: now_ns };
            self.paths.insert(far, path);
        }
        // Until the next answer tells of its own.
        self.last_path = self.last_path.map(|(_, least_ns)| (now_ns, least_ns));
    }

    /// The mean of the least round trips, in ns.
    fn base(&self) -> Option<i64> {
        self.base_ns.map(|base| base as i64)
    }

    /// Bytes that were handed over and not answered.
    #[must_use]
    pub const fn outstanding_bytes(&self) -> u64 {
        self.handed_bytes.saturating_sub(self.returned_bytes)
    }

    /// Of them, what is likely in the modem.
    #[must_use]
    pub fn occupancy_bytes(&self) -> u64 {
        let base_ns = self.base().unwrap_or(0);
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
    pub fn sought_bytes_per_s(&self, now_ns: i64) -> u64 {
        self.rate.sought_bytes_per_s(now_ns)
    }

    /// Bytes that were answered.
    pub(super) const fn returned_bytes(&self) -> u64 {
        self.returned_bytes
    }

    /// The last round trip and the least one, in ns.
    #[must_use]
    pub fn round_trips_ns(&self) -> Option<(i64, i64)> {
        self.last_path.map(|(_, least_ns)| (self.last_rtt_ns, least_ns))
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
        // 30 s: the modem is never empty but for the searches; the rate holds.
        let (held, gone) = run(1_000, |rate| bytes_in(20 * MS, rate), 30_000);
        let most = held[20_000..].iter().max().unwrap();
        assert!(*most < 33_000 && gone > 29_000_000, "{most} {gone}");
    }

    #[test]
    fn a_near_host_does_not_hold_up_a_far_one() {
        let mut returns = RoundTripEstimator::new(DelayConfig::default());
        let mark = returns.hand_over(0, 100);
        returns.answered(20 * MS, 0, mark, 1);
        // 200 ms away, 8 Mbit/s: the rate is found, and no more than twice the limit is
        // held once it is.
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
