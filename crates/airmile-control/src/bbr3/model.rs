//! What BBRv3 measures: delivery rate samples (4.1), round trips, and windowed maxima.

use std::collections::VecDeque;

use crate::AckEvent;

const NS: f64 = 1e9;

/// Snapshot of a transmission (4.1.2.2).
#[derive(Debug, Clone, Copy)]
struct Transmission {
    sent_ns: i64,
    first_sent_ns: i64,
    delivered_ns: i64,
    delivered: f64,
    lost: f64,
    tx_in_flight: f64,
    is_app_limited: bool,
}

/// A rate sample (RS); volumes in bytes, rates in bytes a second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RateSample {
    pub(super) rtt_ns: Option<i64>,
    pub(super) delivered: f64,
    /// Bytes delivered when the acknowledged segment was sent, if that is known.
    pub(super) prior_delivered: Option<f64>,
    pub(super) delivery_rate: f64,
    pub(super) is_app_limited: bool,
    pub(super) newly_acked: f64,
    pub(super) lost: f64,
    pub(super) tx_in_flight: f64,
}

/// Delivery rate samples of a connection (C), by the transmission that a segment's round
/// trip refers to.
#[derive(Debug, Clone, Default)]
pub(super) struct RateSampler {
    pub(super) delivered: f64,
    delivered_ns: i64,
    first_sent_ns: i64,
    pub(super) lost: f64,
    pub(super) in_flight: f64,
    /// Bytes delivered at which the application-limited phase ends; 0: there is none.
    pub(super) app_limited: f64,
    sent: VecDeque<Transmission>,
    last: Option<Transmission>,
}

/// Transmissions that wait for an acknowledgement, at most (chosen here: over a gigabyte a round trip).
const MOST_SENT: usize = 1_000_000;

impl RateSampler {
    /// OnPacketSent (4.1.2.2).
    pub(super) fn on_sent(&mut self, now_ns: i64, bytes: u64) {
        if self.in_flight <= 0.0 {
            (self.first_sent_ns, self.delivered_ns) = (now_ns, now_ns);
        }
        self.in_flight += bytes as f64;
        // A peer whose acknowledgements have no round trip takes none out.
        if self.sent.len() >= MOST_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back(Transmission {
            sent_ns: now_ns,
            first_sent_ns: self.first_sent_ns,
            delivered_ns: self.delivered_ns,
            delivered: self.delivered,
            lost: self.lost,
            tx_in_flight: self.in_flight,
            is_app_limited: self.app_limited > 0.0,
        });
    }

    /// MarkConnectionAppLimited (4.1.2.4).
    pub(super) fn mark_app_limited(&mut self) {
        self.app_limited = (self.delivered + self.in_flight).max(1.0);
    }

    /// UpdateRateSample and GenerateRateSample (4.1.2.3). A segment that was sent twice has
    /// no round trip, so its acknowledgement has no rate.
    pub(super) fn on_ack(&mut self, now_ns: i64, ack: &AckEvent) -> RateSample {
        if ack.app_limited {
            self.mark_app_limited();
        }
        self.delivered += ack.acked_bytes as f64;
        self.lost += ack.lost_bytes as f64;
        self.in_flight = ack.pipe_bytes as f64;
        let mut sample = RateSample {
            rtt_ns: ack.rtt_ns,
            newly_acked: ack.acked_bytes as f64,
            ..RateSample::default()
        };
        if self.app_limited > 0.0 && self.delivered > self.app_limited {
            self.app_limited = 0.0;
        }
        let found = ack.rtt_ns.and_then(|rtt_ns| self.take(now_ns - rtt_ns));
        if ack.acked_bytes > 0 {
            self.delivered_ns = now_ns;
        }
        // A loss that comes with no sample of its own refers to the previous one.
        let Some(sent) = found.or(self.last.filter(|_| ack.lost_bytes > 0)) else { return sample };
        (sample.lost, sample.tx_in_flight) = (self.lost - sent.lost, sent.tx_in_flight);
        sample.is_app_limited = sent.is_app_limited;
        let Some(sent) = found else { return sample };
        self.first_sent_ns = sent.sent_ns;
        sample.prior_delivered = Some(sent.delivered);
        sample.delivered = self.delivered - sent.delivered;
        let sending_ns = sent.sent_ns - sent.first_sent_ns;
        let interval_ns = sending_ns.max(now_ns - sent.delivered_ns) as f64;
        if interval_ns > 0.0 {
            sample.delivery_rate = sample.delivered * NS / interval_ns;
        }
        sample
    }

    /// The last transmission at a time, unless one sent later was acknowledged before.
    fn take(&mut self, sent_ns: i64) -> Option<Transmission> {
        let mut found = None;
        while let Some(sent) = self.sent.front().filter(|sent| sent.sent_ns <= sent_ns) {
            found = Some(*sent).filter(|sent| sent.sent_ns == sent_ns);
            self.last = found.or(self.last);
            self.sent.pop_front();
        }
        // Segments of a burst share their time.
        found.or(self.last.filter(|last| last.sent_ns == sent_ns))
    }
}

/// Maximum of a value over a window of virtual time (5.5.5, 5.5.9).
#[derive(Debug, Clone, Default)]
pub(super) struct MaxFilter {
    values: VecDeque<(u64, f64)>,
}

impl MaxFilter {
    /// Adds a value at `time`, and returns the maximum of the last `window` times.
    pub(super) fn push(&mut self, time: u64, value: f64, window: u64) -> f64 {
        while self.values.back().is_some_and(|(_, old)| *old <= value) {
            self.values.pop_back();
        }
        // One that expires with a larger one is never the maximum.
        if self.values.back().is_none_or(|(at, _)| *at != time) {
            self.values.push_back((time, value));
        }
        while self.values.front().is_some_and(|(at, _)| at + window <= time) {
            self.values.pop_front();
        }
        self.values.front().map_or(value, |(_, most)| *most)
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, figure 16): the waits between probes need
/// no better numbers, and the same seed gives the same run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 or 1.
    pub(super) fn bit(&mut self) -> u64 {
        self.next() >> 63
    }

    /// From 0 to 1, without 1.
    pub(super) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_keeps_what_it_may_return() {
        let mut filter = MaxFilter::default();
        for value in (0..10_000).rev() {
            assert_eq!(filter.push(0, f64::from(value), 2), 9_999.0);
        }
        assert_eq!(filter.values.len(), 1);
        assert_eq!([filter.push(1, 5.0, 2), filter.push(2, 3.0, 2)], [9_999.0, 5.0]);
    }
}
