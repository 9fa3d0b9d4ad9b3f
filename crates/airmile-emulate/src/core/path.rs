//! A direction of the core network: a bottleneck with a queue, then delay,
//! jitter and loss.

use airmile_model::units::MS_NS;

use crate::random::Random;
use crate::scenario::{PathConfig, RateLimit};

/// Outcome of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathOutcome {
    /// It arrives at this time.
    At(i64),
    /// The queue was full.
    Overflow,
    /// It was lost in transit.
    Lost,
}

/// A direction of the core network.
#[derive(Debug, Clone)]
pub(crate) struct CorePath {
    delay_ns: i64,
    config: PathConfig,
    start_ns: i64,
    /// When the bottleneck will have sent its whole queue.
    busy_until_ns: i64,
    last_arrival_ns: i64,
    losses: Random,
    jitter: Random,
}

impl CorePath {
    pub(crate) fn new(
        delay_ns: i64,
        config: PathConfig,
        start_ns: i64,
        (losses, jitter): (Random, Random),
    ) -> Self {
        Self {
            delay_ns,
            config,
            start_ns,
            busy_until_ns: i64::MIN,
            last_arrival_ns: i64::MIN,
            losses,
            jitter,
        }
    }

    /// The bottleneck at a time, if any.
    fn limit(&self, now_ns: i64) -> Option<&RateLimit> {
        let since = now_ns - self.start_ns;
        let holds = |limit: &&RateLimit| {
            since >= i64::from(limit.from_ms) * MS_NS
                && limit.to_ms.is_none_or(|to| since < i64::from(to) * MS_NS)
        };
        self.config.limit.as_ref().filter(holds)
    }

    /// Sends a packet.
    pub(crate) fn carry(&mut self, now_ns: i64, bytes: u32) -> PathOutcome {
        let mut leaves_ns = now_ns;
        if let Some(&RateLimit { rate_bps, queue_bytes, .. }) = self.limit(now_ns) {
            let ns_of = |bytes: u64| {
                (u128::from(bytes) * 8_000_000_000 / u128::from(rate_bps.max(1))) as i64
            };
            let begins_ns = self.busy_until_ns.max(now_ns);
            if begins_ns - now_ns > ns_of(queue_bytes) {
                return PathOutcome::Overflow;
            }
            leaves_ns = begins_ns + ns_of(bytes.into());
            self.busy_until_ns = leaves_ns;
        }
        if self.config.loss > 0.0 && self.losses.chance(self.config.loss) {
            return PathOutcome::Lost;
        }
        let jitter_ns = if self.config.jitter_ms > 0.0 {
            (-(1.0 - self.jitter.uniform()).ln() * self.config.jitter_ms * MS_NS as f64) as i64
        } else {
            0
        };
        // Packets stay in order.
        self.last_arrival_ns = self.last_arrival_ns.max(leaves_ns + self.delay_ns + jitter_ns);
        PathOutcome::At(self.last_arrival_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams() -> (Random, Random) {
        (Random::new(1, 1), Random::new(1, 2))
    }

    #[test]
    fn a_bottleneck_spaces_packets_and_drops_what_does_not_fit() {
        let limit =
            RateLimit { rate_bps: 12_000_000, queue_bytes: 3_000, from_ms: 0, to_ms: Some(100) };
        let config = PathConfig { limit: Some(limit), ..PathConfig::default() };
        let mut path = CorePath::new(10 * MS_NS, config, 0, streams());
        // 1500 bytes take 1 ms; one is in transmission and two wait.
        let got: Vec<_> = (0..5).map(|_| path.carry(0, 1_500)).collect();
        let at = |ms: i64| PathOutcome::At(ms * MS_NS);
        assert_eq!(got, [at(11), at(12), at(13), PathOutcome::Overflow, PathOutcome::Overflow]);
        // The limit has ended.
        assert_eq!(path.carry(100 * MS_NS, 1_500), at(110));
    }

    #[test]
    fn loses_its_share_and_keeps_the_order() {
        let config = PathConfig { loss: 0.1, jitter_ms: 5.0, limit: None };
        let mut path = CorePath::new(0, config, 0, streams());
        let all: Vec<_> = (0..10_000).map(|n| path.carry(n * MS_NS, 100)).collect();
        let arrivals: Vec<i64> = all
            .iter()
            .filter_map(|carried| if let PathOutcome::At(ns) = carried { Some(*ns) } else { None })
            .collect();
        assert!(arrivals.is_sorted());
        assert!((8_900..9_100).contains(&arrivals.len()), "{}", arrivals.len());
    }
}
