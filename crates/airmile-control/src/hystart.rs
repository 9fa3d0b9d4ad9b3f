//! HyStart++ (RFC 9406): leave slow start when the round-trip time rises,
//! before the queue overflows.

use crate::AckEvent;

// RFC 9406, 4.3.
const MIN_RTT_THRESH_NS: i64 = 4_000_000;
const MAX_RTT_THRESH_NS: i64 = 16_000_000;
const MIN_RTT_DIVISOR: i64 = 8;
const N_RTT_SAMPLE: u32 = 8;
pub(crate) const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// How slow start handles an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlowStartGrowth {
    /// Counts it fully.
    Standard,
    /// Conservative slow start: counts a quarter (RFC 9406, 4.2).
    Conservative,
    /// Switches to congestion avoidance.
    Leave,
}

#[derive(Debug, Clone, Copy)]
struct RttRound {
    min_rtt_ns: i64,
    samples: u32,
}

const NO_SAMPLES: RttRound = RttRound { min_rtt_ns: i64::MAX, samples: 0 };

/// The state of HyStart++ within one slow start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HyStart {
    round_end: u64,
    last: RttRound,
    current: RttRound,
    css: Option<Css>,
}

/// Conservative slow start.
#[derive(Debug, Clone, Copy)]
struct Css {
    baseline_min_rtt_ns: i64,
    rounds: u32,
}

impl HyStart {
    pub(crate) fn new() -> Self {
        Self { round_end: 0, last: NO_SAMPLES, current: NO_SAMPLES, css: None }
    }

    /// Processes one acknowledgement within slow start (RFC 9406, 4.2).
    pub(crate) fn on_ack(&mut self, ack: &AckEvent) -> SlowStartGrowth {
        if ack.acked_to >= self.round_end {
            if self.round_end > 0
                && let Some(css) = &mut self.css
            {
                css.rounds += 1;
                if css.rounds >= CSS_ROUNDS {
                    return SlowStartGrowth::Leave;
                }
            }
            self.round_end = ack.sent_to;
            self.last = self.current;
            self.current = NO_SAMPLES;
        }
        if let Some(rtt_ns) = ack.rtt_ns {
            self.current.min_rtt_ns = self.current.min_rtt_ns.min(rtt_ns);
            self.current.samples += 1;
        }
        if self.current.samples < N_RTT_SAMPLE {
            return self.growth();
        }
        match &self.css {
            None if self.last.samples > 0 => {
                let thresh_ns = (self.last.min_rtt_ns / MIN_RTT_DIVISOR)
                    .clamp(MIN_RTT_THRESH_NS, MAX_RTT_THRESH_NS);
                if self.current.min_rtt_ns >= self.last.min_rtt_ns.saturating_add(thresh_ns) {
                    let baseline_min_rtt_ns = self.current.min_rtt_ns;
                    self.css = Some(Css { baseline_min_rtt_ns, rounds: 0 });
                }
            }
            // The rise was a passing one: back to slow start.
            Some(css) if self.current.min_rtt_ns < css.baseline_min_rtt_ns => self.css = None,
            _ => {}
        }
        self.growth()
    }

    fn growth(&self) -> SlowStartGrowth {
        if self.css.is_some() { SlowStartGrowth::Conservative } else { SlowStartGrowth::Standard }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs rounds of ten acknowledgements with the given round-trip times; returns the
    /// result of the last acknowledgement of each.
    fn rounds(rtts_ms: &[i64]) -> Vec<SlowStartGrowth> {
        let mut hystart = HyStart::new();
        let mut given = Vec::new();
        for (round, rtt_ms) in rtts_ms.iter().enumerate() {
            let start = 10 * (round as u64 + 1);
            let mut growth = SlowStartGrowth::Standard;
            for i in 0..10 {
                growth = hystart.on_ack(&AckEvent {
                    rtt_ns: Some(rtt_ms * 1_000_000),
                    acked_to: start + i,
                    sent_to: start + 10,
                    ..AckEvent::default()
                });
                if growth == SlowStartGrowth::Leave {
                    break;
                }
            }
            given.push(growth);
        }
        given
    }

    #[test]
    fn leaves_after_five_slow_rounds_or_returns() {
        use SlowStartGrowth::{Conservative, Leave, Standard};
        let check =
            |rtts_ms: &[i64], expected: &[SlowStartGrowth]| assert_eq!(rounds(rtts_ms), expected);
        // The threshold for 40 ms is 40 / 8 = 5 ms.
        check(&[40, 44, 44], &[Standard, Standard, Standard]);
        check(&[40, 45, 46], &[Standard, Conservative, Conservative]);
        check(&[40, 45, 44], &[Standard, Conservative, Standard]);
        check(
            &[40, 45, 46, 47, 48, 49, 50],
            &[
                Standard,
                Conservative,
                Conservative,
                Conservative,
                Conservative,
                Conservative,
                Leave,
            ],
        );
    }
}
