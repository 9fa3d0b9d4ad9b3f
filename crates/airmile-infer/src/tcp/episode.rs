//! Bursts of duplicate ACKs, and whether a slow start followed (paper 5).

use super::rto::{LINUX_MIN_RTO_NS, RtoEstimator};

/// R_ss above this: a slow start followed (paper 5).
pub const R_SS_BAR: f64 = 1.5;
/// theta's window in nanoseconds (paper 5).
const THETA_NS: i64 = 100_000_000;
/// Fewer duplicate ACKs are no burst: RFC 5681's threshold.
const MIN_DUP_ACKS: u32 = 3;

/// A burst of duplicate ACKs, over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Episode {
    pub(super) last_dup_ns: i64,
    pub(super) dup_acks: u32,
    pub(super) offset: i64,
    pub(super) flight: i64,
    bytes: [i64; 2],
    pub(super) rtt_before_ns: Option<i64>,
    pub(super) rtt_during_ns: Option<i64>,
    pub(super) rtt_retx_ns: Option<i64>,
    rto_before: RtoEstimator,
    rto_with: RtoEstimator,
    beyond_ns: i64,
}

impl Episode {
    /// theta[100, 200] / theta[0, 100]; `None` where nothing passed in the first.
    pub(super) fn r_ss(&self) -> Option<f64> {
        (self.bytes[0] > 0).then(|| self.bytes[1] as f64 / self.bytes[0] as f64)
    }

    /// Whether a slow start followed.
    pub(super) fn is_slow_start(&self) -> bool {
        self.r_ss().map_or(self.bytes[1] > 0, |r| r > R_SS_BAR)
    }

    pub(super) fn rto_ns(&self) -> Option<i64> {
        self.rto_before.rto_ns(self.beyond_ns)
    }

    pub(super) fn rto_with_ns(&self) -> Option<i64> {
        self.rto_with.rto_ns(self.beyond_ns)
    }

    /// Whether the timer went off before the retransmission's ACK, and would
    /// not have, had the duplicate ACKs counted. `None`: it did not go off.
    pub(super) fn avoided(&self, min_rto_ns: i64) -> Option<bool> {
        let retx = self.rtt_retx_ns? + self.beyond_ns;
        let without = self.rto_ns()?.max(min_rto_ns);
        let with = self.rto_with_ns()?.max(min_rto_ns);
        (retx > without).then_some(retx <= with)
    }
}

/// Watches one stream for bursts.
#[derive(Debug, Default)]
pub(super) struct Episodes {
    open: Option<Box<Episode>>,
    pub(super) slow_starts: u64,
}

/// What is known when a duplicate ACK passes.
pub(super) struct DupAck {
    pub(super) at_ns: i64,
    pub(super) offset: i64,
    pub(super) flight: i64,
    /// RTT of the segment behind it.
    pub(super) rtt_ns: Option<i64>,
    pub(super) rto: RtoEstimator,
    pub(super) beyond_ns: i64,
}

impl Episodes {
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Takes a duplicate ACK; gives the burst before, where this begins another.
    pub(super) fn dup_ack(&mut self, dup: &DupAck, last_rtt: Option<i64>) -> Option<Episode> {
        let over = match &self.open {
            Some(open) if open.offset != dup.offset => self.close(),
            _ => None,
        };
        let open = self.open.get_or_insert_with(|| {
            Box::new(Episode {
                last_dup_ns: dup.at_ns,
                dup_acks: 0,
                offset: dup.offset,
                flight: dup.flight,
                bytes: [0; 2],
                rtt_before_ns: last_rtt,
                rtt_during_ns: None,
                rtt_retx_ns: None,
                rto_before: dup.rto,
                rto_with: dup.rto,
                beyond_ns: dup.beyond_ns,
            })
        });
        open.last_dup_ns = dup.at_ns;
        open.dup_acks += 1;
        open.bytes = [0; 2];
        if let Some(rtt) = dup.rtt_ns {
            open.rtt_during_ns = Some(rtt);
            open.rto_with.push(rtt);
        }
        over
    }

    /// Takes the ACK that ended the burst: the RTT of the retransmission.
    pub(super) fn repaired(&mut self, rtt_ns: Option<i64>) {
        if let Some(open) = &mut self.open
            && open.rtt_retx_ns.is_none()
        {
            open.rtt_retx_ns = rtt_ns;
        }
    }

    /// Takes data of the stream; gives a burst that is over.
    pub(super) fn data(&mut self, at_ns: i64, bytes: i64) -> Option<Episode> {
        let open = self.open.as_mut()?;
        let since = at_ns - open.last_dup_ns;
        match since.div_euclid(THETA_NS) {
            0 => open.bytes[0] += bytes,
            1 => open.bytes[1] += bytes,
            _ if open.rtt_retx_ns.is_some() || since > 10 * THETA_NS => return self.close(),
            _ => {}
        }
        None
    }

    /// Ends the burst.
    pub(super) fn close(&mut self) -> Option<Episode> {
        let over = *self.open.take()?;
        if over.dup_acks < MIN_DUP_ACKS {
            return None;
        }
        self.slow_starts += u64::from(over.is_slow_start());
        Some(over)
    }
}

/// Least RTO that `avoided` of a row is told for.
pub(super) const MIN_RTO_NS: i64 = LINUX_MIN_RTO_NS;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn dup(at_ms: i64, rtt_ms: i64, rto: RtoEstimator) -> DupAck {
        let at_ns = at_ms * MS;
        DupAck { at_ns, offset: 7, flight: 500_000, rtt_ns: Some(rtt_ms * MS), rto, beyond_ns: 0 }
    }

    /// Figure 16 of the paper: 262 ms before, 356 ms for the retransmission.
    #[test]
    fn a_slow_start_that_samples_of_duplicate_acks_avoid() {
        let mut rto = RtoEstimator::default();
        (0..60).for_each(|_| rto.push(262 * MS));
        let mut episodes = Episodes::default();
        for n in 0..20 {
            assert_eq!(episodes.dup_ack(&dup(n * 10, 262 + 5 * n, rto), Some(262 * MS)), None);
        }
        episodes.repaired(Some(356 * MS));
        let last = 190;
        episodes.data((last + 50) * MS, 1000);
        episodes.data((last + 150) * MS, 3700);
        let over = episodes.data((last + 201) * MS, 1000).unwrap();
        assert_eq!((over.dup_acks, over.r_ss(), over.is_slow_start()), (20, Some(3.7), true));
        assert_eq!(over.avoided(LINUX_MIN_RTO_NS), Some(true));
        assert_eq!(over.avoided(1000 * MS), None, "a minimum of 1 s is not reached");
        assert_eq!(episodes.slow_starts, 1);
    }

    #[test]
    fn few_duplicate_acks_are_no_burst() {
        let mut episodes = Episodes::default();
        episodes.dup_ack(&dup(0, 10, RtoEstimator::default()), None);
        assert_eq!(episodes.close(), None);
    }
}
