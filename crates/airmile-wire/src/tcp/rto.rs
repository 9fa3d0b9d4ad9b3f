//! Retransmission timers by RFC 6298, in nanoseconds.

use super::opt64::Opt64;

/// Linux's minimum RTO (also named in the paper's section 5).
pub const LINUX_MIN_RTO_NS: i64 = 200_000_000;

/// The least time since its last data after which a sender may restart slow start, on a path of a round
/// trip: its retransmission timer (RFC 5681, 4.1), which Linux sets to at least its minimum beyond the
/// smoothed round trip (`__tcp_set_rto`).
#[must_use]
pub const fn may_restart_after_ns(rtt_ns: i64) -> i64 {
    rtt_ns.saturating_add(LINUX_MIN_RTO_NS)
}

/// Smoothed RTT and its variation (RFC 6298, 2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RtoEstimator {
    srtt_ns: Opt64,
    rttvar_ns: i64,
}

impl RtoEstimator {
    /// Takes a sample (2.2, 2.3; alpha 1/8, beta 1/4).
    pub fn push(&mut self, rtt_ns: i64) {
        let Some(srtt) = self.srtt_ns.get() else {
            (self.srtt_ns, self.rttvar_ns) = (Opt64::some(rtt_ns), rtt_ns / 2);
            return;
        };
        self.rttvar_ns = self.rttvar_ns - self.rttvar_ns / 4 + (srtt - rtt_ns).abs() / 4;
        self.srtt_ns = Opt64::some(srtt - srtt / 8 + rtt_ns / 8);
    }

    /// Smoothed RTT.
    #[must_use]
    pub const fn srtt_ns(&self) -> Option<i64> {
        self.srtt_ns.get()
    }

    /// SRTT + 4 RTTVAR without a minimum, with `beyond_ns` added to every RTT.
    #[must_use]
    pub fn rto_ns(&self, beyond_ns: i64) -> Option<i64> {
        self.srtt_ns.get().map(|srtt| srtt + 4 * self.rttvar_ns + beyond_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_second_sample() {
        let mut rto = RtoEstimator::default();
        assert_eq!(rto.rto_ns(0), None);
        rto.push(800);
        assert_eq!(rto.rto_ns(0), Some(800 + 4 * 400));
        rto.push(1600);
        // RTTVAR 3/4 400 + 1/4 800 = 500, SRTT 7/8 800 + 1/8 1600 = 900.
        assert_eq!((rto.srtt_ns(), rto.rto_ns(50)), (Some(900), Some(900 + 2000 + 50)));
    }
}
