//! Round-trip time and retransmission timeout (RFC 6298).

use crate::scenario::RtoConfig;

/// The timeout after a SYN was lost (RFC 6298, 5.7).
const FALLBACK_NS: i64 = 3_000_000_000;

/// The estimator of one connection.
#[derive(Debug, Clone)]
pub(crate) struct RttEstimator {
    config: RtoConfig,
    /// G of RFC 6298: the granularity of the clock.
    granularity_ns: i64,
    pub(crate) srtt_ns: Option<i64>,
    pub(crate) rttvar_ns: i64,
    pub(crate) min_rtt_ns: Option<i64>,
    pub(crate) latest_ns: Option<i64>,
    /// Consecutive timeouts.
    pub(crate) backoff: u32,
    /// Minimum timeout until data is measured.
    fallback_ns: i64,
}

impl RttEstimator {
    pub(crate) fn new(config: RtoConfig, granularity_ns: i64) -> Self {
        Self {
            config,
            granularity_ns,
            srtt_ns: None,
            rttvar_ns: 0,
            min_rtt_ns: None,
            latest_ns: None,
            backoff: 0,
            fallback_ns: 0,
        }
    }

    /// The handshake is done after a lost SYN: (5.7).
    pub(crate) const fn fall_back(&mut self) {
        self.backoff = 0;
        self.fallback_ns = FALLBACK_NS;
    }

    /// A sample: (2.2) and (2.3). It ends the backoff (Karn's rule).
    pub(crate) fn sample(&mut self, rtt_ns: i64) {
        let rtt_ns = rtt_ns.max(0);
        self.latest_ns = Some(rtt_ns);
        self.min_rtt_ns = Some(self.min_rtt_ns.map_or(rtt_ns, |min| min.min(rtt_ns)));
        match self.srtt_ns {
            None => {
                self.srtt_ns = Some(rtt_ns);
                self.rttvar_ns = rtt_ns / 2;
            }
            Some(srtt_ns) => {
                self.rttvar_ns = (3 * self.rttvar_ns + (srtt_ns - rtt_ns).abs()) / 4;
                self.srtt_ns = Some((7 * srtt_ns + rtt_ns) / 8);
            }
        }
        self.backoff = 0;
        self.fallback_ns = 0;
    }

    /// The timeout without backoff.
    fn base_ns(&self) -> i64 {
        self.measured_ns().max(self.fallback_ns)
    }

    fn measured_ns(&self) -> i64 {
        let Some(srtt_ns) = self.srtt_ns else {
            return self.config.initial_ns;
        };
        let above_ns = self.granularity_ns.max(4 * self.rttvar_ns);
        if self.config.min_is_above_srtt {
            srtt_ns + above_ns.max(self.config.min_ns)
        } else {
            (srtt_ns + above_ns).max(self.config.min_ns)
        }
    }

    /// The current timeout: (2.1) to (2.5) and (5.5).
    pub(crate) fn rto_ns(&self) -> i64 {
        let factor = 1i64 << self.backoff.min(30);
        self.base_ns().saturating_mul(factor).min(self.config.max_ns)
    }

    /// Whether there were too many consecutive timeouts.
    pub(crate) fn gives_up(&self) -> bool {
        self.backoff > self.config.max_retries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn check(config: RtoConfig, granularity_ms: i64, samples_ms: &[i64], rto_ms: f64) {
        let mut rtt = RttEstimator::new(config, granularity_ms * MS);
        samples_ms.iter().for_each(|ms| rtt.sample(ms * MS));
        let got = rtt.rto_ns() as f64 / MS as f64;
        assert!((got - rto_ms).abs() < 0.001, "{samples_ms:?}: {got} ms, not {rto_ms}");
    }

    #[test]
    fn rfc_6298_by_hand() {
        let rfc = RtoConfig::of_rfc;
        check(rfc(), 1, &[], 1000.0);
        // (2.2): 600 + 4 * 300.
        check(rfc(), 1, &[600], 1800.0);
        // (2.3): rttvar = 3/4 * 300 + 1/4 * |600 - 1000| = 325; srtt = 650.
        check(rfc(), 1, &[600, 1000], 650.0 + 4.0 * 325.0);
        // (2.4): 100 + 4 * 50 rounded up to 1 s.
        check(rfc(), 1, &[100], 1000.0);
        // G exceeds a variance that has decayed: 2000 + 100.
        check(rfc(), 100, &[2000; 60], 2100.0);
    }

    #[test]
    fn linux_keeps_200_ms_above_srtt() {
        check(RtoConfig::default(), 1, &[50; 60], 250.0);
        check(RtoConfig::default(), 1, &[600], 1800.0);
    }

    #[test]
    fn backs_off_until_a_measurement() {
        let mut rtt = RttEstimator::new(RtoConfig::default(), MS);
        rtt.sample(600 * MS);
        rtt.backoff = 3;
        assert_eq!(rtt.rto_ns(), 8 * 1800 * MS);
        rtt.backoff = 20;
        assert_eq!(rtt.rto_ns(), 120_000 * MS);
        assert!(rtt.gives_up());
        rtt.sample(600 * MS);
        assert_eq!(rtt.backoff, 0);
    }
}
