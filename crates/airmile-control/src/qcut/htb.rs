//! A model of the kernel's HTB in place of the gate, with a rate that follows the modem's log, as
//! `airmile qcut run --deploy htb` sets it.

use super::class::PacketInfo;
use super::codel::CodelConfig;
use super::gate_controller::{OPEN_BYTES_PER_S, Qcut};
use super::queue::{FlowQueues, QueueConfig};

/// Initial rate, the minimum share by which a change is applied, and the burst, as in
/// `airmile-qcut`.
const START_BYTES_PER_S: u64 = 250_000;
const WORTH_A_CHANGE: u64 = 50;
const BURST_NS: i64 = 2_000_000;
const LEAST_BURST_BYTES: i64 = 3_100;

/// Three classes, each with fq_codel: a token bucket over the tiers of the queueing, which
/// leaves to lower tiers the same share as the classes.
#[derive(Debug, Clone)]
pub struct Htb<P> {
    queues: FlowQueues<(PacketInfo, P)>,
    bytes_per_s: u64,
    every_ns: i64,
    due_ns: i64,
    /// Bytes that may pass, by a time.
    tokens: i64,
    filled_ns: i64,
}

impl<P> Htb<P> {
    /// Classes without packets, with a rate that changes at most this often.
    #[must_use]
    pub fn new(every_ms: u32, packets: u32) -> Self {
        let codel = Some(CodelConfig::default());
        let max_packets = packets as usize;
        Self {
            queues: FlowQueues::new(QueueConfig { codel, max_packets, ..QueueConfig::default() }),
            bytes_per_s: START_BYTES_PER_S,
            every_ns: i64::from(every_ms.max(1)) * 1_000_000,
            due_ns: i64::MIN,
            tokens: 0,
            filled_ns: i64::MIN,
        }
    }

    /// Queues a packet.
    pub fn push(&mut self, now_ns: i64, info: PacketInfo, packet: P) {
        self.queues.push(now_ns, &info, (info, packet));
    }

    /// The next packet, if the rate admits one; `gate` measures.
    pub fn pop<Q>(&mut self, now_ns: i64, gate: &mut Qcut<Q>) -> Option<P> {
        if self.due_ns <= now_ns {
            self.due_ns = now_ns + self.every_ns;
            let rate = gate.held(now_ns).shaper_bytes_per_s(true, self.bytes_per_s);
            if rate.abs_diff(self.bytes_per_s) >= self.bytes_per_s / WORTH_A_CHANGE {
                self.bytes_per_s = rate;
            }
        }
        self.fill(now_ns);
        if self.tokens <= 0 {
            return None;
        }
        let (info, packet) = self.queues.pop(now_ns)?;
        self.tokens -= i64::from(info.bytes);
        gate.passed(now_ns, &info);
        Some(packet)
    }

    /// Adds the tokens since the last call, up to the burst.
    fn fill(&mut self, now_ns: i64) {
        let rate = i64::try_from(self.bytes_per_s.min(OPEN_BYTES_PER_S)).unwrap_or(i64::MAX);
        let bytes_in = |time_ns: i64| rate.saturating_mul(time_ns) / 1_000_000_000;
        let most = bytes_in(BURST_NS).max(LEAST_BURST_BYTES);
        // A second fills every burst.
        let since_ns = now_ns.saturating_sub(self.filled_ns).clamp(0, 1_000_000_000);
        self.tokens = self.tokens.saturating_add(bytes_in(since_ns)).min(most);
        self.filled_ns = now_ns;
    }

    /// A packet that was dropped.
    pub fn poll_dropped(&mut self) -> Option<P> {
        self.queues.poll_dropped().map(|(_, (_, packet))| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qcut::QcutConfig;

    #[test]
    fn packets_pass_at_the_rate_small_flows_first() {
        let info = |flow, bytes| PacketInfo { flow, bytes, ..PacketInfo::default() };
        let mut gate: Qcut<()> = Qcut::new(QcutConfig::default());
        let mut htb = Htb::new(20, 1_000);
        (0..400).for_each(|_| htb.push(0, info(1, 1_500), 1_500));
        let mut bytes: u64 = 0;
        for ms in 0..100 {
            if ms == 50 {
                htb.push(ms * 1_000_000, info(2, 100), 100);
            }
            while let Some(passed) = htb.pop(ms * 1_000_000, &mut gate) {
                bytes += passed;
            }
            if ms == 59 {
                assert_eq!(bytes % 1_500, 100, "the small one has passed");
            }
        }
        // Nothing is reported: half over the gate's first 1 Mbit/s, as there is room.
        assert!((15_000..30_000).contains(&bytes), "{bytes}");
    }
}
