//! The gate's state, and the rate of a shaper that follows it.

use crate::qcut::estimate::Occupancy;
use crate::qcut::log_quality::LogFault;

/// State of the gate, for monitoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GateState {
    /// The modem's occupancy according to its reports.
    pub occupancy: Occupancy,
    /// The modem's occupancy according to round trips: bytes neither acknowledged nor in
    /// flight.
    pub unanswered_bytes: u64,
    /// The limit, in bytes.
    pub limit_bytes: u64,
    /// The rate that the limit is derived from, in bytes per second.
    pub bytes_per_s: u64,
    /// The last round trip below the gate and the minimum, in ns.
    pub round_trips_ns: Option<(i64, i64)>,
    /// Whether the modem is silent or its log rejected, so that round trips are used.
    pub silent: bool,
    /// Why its log is rejected.
    pub log_fault: Option<LogFault>,
    /// Whether there is no evidence, so that nothing is held back.
    pub blind: bool,
}

/// A rate that holds nothing back, in bytes per second: 1 Gbit/s.
pub const OPEN_BYTES_PER_S: u64 = 125_000_000;

/// Time in which the occupancy is to reach the limit, in ns (chosen here: five changes of a
/// rate that is set each 20 ms; a shorter one follows the noise of the estimate).
const HORIZON_NS: i64 = 100_000_000;

/// Minimum rate of a shaper, in bytes per second: a large packet every 100 ms, as for the
/// gate.
const LEAST_BYTES_PER_S: u64 = 15_000;

/// Minimum limit of unanswered bytes at any rate, as for the gate: four large packets.
const LEAST_UNANSWERED_BYTES: u64 = 6_000;

impl GateState {
    /// The rate of a shaper in place of the gate: the modem's rate plus the correction that
    /// brings its buffer to the limit. While the buffer is below the limit the rate is not
    /// lowered: the measurement then shows what senders offered, not what the modem can send.
    #[must_use]
    pub fn shaper_bytes_per_s(&self, has_modem: bool, set_bytes_per_s: u64) -> u64 {
        if self.blind {
            return OPEN_BYTES_PER_S;
        }
        let (occupancy_bytes, limit_bytes) = match has_modem && !self.silent {
            true => (self.occupancy.likely_bytes, self.limit_bytes),
            // Delayed acknowledgements leave a few packets open.
            false => (self.unanswered_bytes, self.limit_bytes.max(LEAST_UNANSWERED_BYTES)),
        };
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let room_bytes = signed(limit_bytes).saturating_sub(signed(occupancy_bytes));
        // Far from the limit the correction must not outweigh the measurement.
        let most = signed(self.bytes_per_s) / 2;
        let towards = (room_bytes.saturating_mul(1_000_000_000) / HORIZON_NS).clamp(-most, most);
        let rate = self.bytes_per_s.saturating_add_signed(towards);
        let rate = if room_bytes > 0 { rate.max(set_bytes_per_s) } else { rate };
        rate.clamp(LEAST_BYTES_PER_S, OPEN_BYTES_PER_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_lead_to_the_limit() {
        let check = |likely_bytes, bytes_per_s, set, expected| {
            let occupancy = Occupancy { low_bytes: 0, likely_bytes, high_bytes: likely_bytes };
            let held =
                GateState { occupancy, bytes_per_s, limit_bytes: 30_000, ..GateState::default() };
            let rate = held.shaper_bytes_per_s(true, set);
            assert_eq!(rate, expected, "{likely_bytes} {bytes_per_s} {set}");
        };
        // 10 kB over or under it in 100 ms are 100 kB/s.
        check(30_000, 1_000_000, 0, 1_000_000);
        check(40_000, 1_000_000, 2_000_000, 900_000);
        check(20_000, 1_000_000, 0, 1_100_000);
        check(900_000, 1_000_000, 0, 500_000);
        check(900_000, 10_000, 0, LEAST_BYTES_PER_S);
        // Senders offer less than the modem could send.
        check(20_000, 100_000, 2_000_000, 2_000_000);
        let blind = GateState { blind: true, ..GateState::default() };
        assert_eq!(blind.shaper_bytes_per_s(false, 0), OPEN_BYTES_PER_S);
    }
}
