//! CoDel (RFC 8289): drops packets depending on how long they have waited.

use serde::{Deserialize, Serialize};

/// Parameters of CoDel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CodelConfig {
    /// Acceptable standing delay, in ns (RFC 8289, 4.3: 5 ms).
    pub target_ns: i64,
    /// Time for which the target must be exceeded, in ns (RFC 8289, 4.3: 100 ms).
    pub interval_ns: i64,
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self { target_ns: 5_000_000, interval_ns: 100_000_000 }
    }
}

/// The state of one queue (RFC 8289, 5.1). The queue's owner asks it before each packet
/// that it dequeues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Codel {
    /// When the delay will have exceeded the target for an interval.
    first_above_ns: Option<i64>,
    /// Whether packets are being dropped, and when the next drop is due.
    dropping: bool,
    drop_next_ns: i64,
    /// Drops of this dropping phase, continued from the last one if that ended recently.
    count: u64,
    last_count: u64,
}

impl Codel {
    /// Whether to drop the packet at the head, which has waited for `sojourn_ns`, instead
    /// of sending it. Ask again for each following packet until the answer is no. `little`:
    /// at most one packet of the maximum size waits; then none is dropped (RFC 8289, 5.4).
    pub fn drops(
        &mut self,
        now_ns: i64,
        sojourn_ns: i64,
        little: bool,
        config: &CodelConfig,
    ) -> bool {
        let too_long = self.is_too_long(now_ns, sojourn_ns, little, config);
        if self.dropping {
            if !too_long {
                self.dropping = false;
                return false;
            }
            if now_ns < self.drop_next_ns {
                return false;
            }
            self.count += 1;
            self.drop_next_ns = control_law(self.drop_next_ns, self.count, config.interval_ns);
            return true;
        }
        if !too_long {
            return false;
        }
        self.dropping = true;
        // If the last dropping phase ended recently, its rate is a good first guess (RFC
        // 8289, 5.5).
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now_ns - self.drop_next_ns < 16 * config.interval_ns;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next_ns = control_law(now_ns, self.count, config.interval_ns);
        self.last_count = self.count;
        true
    }

    /// Resets the state after the queue has run empty.
    pub const fn emptied(&mut self) {
        self.first_above_ns = None;
        self.dropping = false;
    }

    /// `dodequeue` of RFC 8289, 5.4.
    const fn is_too_long(
        &mut self,
        now_ns: i64,
        sojourn_ns: i64,
        little: bool,
        config: &CodelConfig,
    ) -> bool {
        if sojourn_ns < config.target_ns || little {
            self.first_above_ns = None;
            return false;
        }
        match self.first_above_ns {
            None => {
                self.first_above_ns = Some(now_ns + config.interval_ns);
                false
            }
            Some(first_above_ns) => now_ns >= first_above_ns,
        }
    }
}

/// Time of the next drop: the interval over the square root of the count (RFC 8289, 5.3),
/// in whole ns.
fn control_law(from_ns: i64, count: u64, interval_ns: i64) -> i64 {
    let interval_ns = interval_ns.clamp(1, 3_000_000_000).unsigned_abs();
    let step_ns = (interval_ns * interval_ns / count.max(1)).isqrt();
    from_ns.saturating_add(i64::try_from(step_ns).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn drops_come_closer_by_the_square_root() {
        // 10 ms of delay from the first packet on, one packet a ms: the first drop comes
        // one interval later, at 100 ms; then at 100 + 100 = 200 (count 1 sets the next),
        // then in steps of 100/sqrt(2), 100/sqrt(3), 100/sqrt(4).
        let config = CodelConfig::default();
        let mut codel = Codel::default();
        let mut at = Vec::new();
        for ms in 0..450 {
            if codel.drops(ms * MS, 10 * MS, false, &config) {
                at.push(ms);
            }
        }
        // 200 + 70.7 = 270.7, + 57.7 = 328.4, + 50 = 378.4, + 44.7 = 423.2.
        assert_eq!(at, [100, 200, 271, 329, 379, 424]);
    }

    #[test]
    fn a_short_delay_or_a_short_queue_ends_it() {
        let config = CodelConfig::default();
        for (sojourn_ms, little) in [(4, false), (50, true)] {
            let mut codel = Codel::default();
            let dropped =
                (0..1_000).any(|ms| codel.drops(ms * MS, sojourn_ms * MS, little, &config));
            assert!(!dropped, "{sojourn_ms} ms, {little}");
        }
        let mut codel = Codel::default();
        let mut drops =
            |ms: i64, sojourn_ms: i64| codel.drops(ms * MS, sojourn_ms * MS, false, &config);
        assert!(!drops(0, 9) && drops(100, 9), "an interval above");
        assert!(!drops(101, 2), "below: it ends");
        assert!(!drops(102, 9) && !drops(201, 9), "and must be above for an interval again");
        assert!(drops(202, 9));
    }
}
