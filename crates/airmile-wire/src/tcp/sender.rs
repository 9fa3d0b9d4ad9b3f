//! The sender's window by its flight size, its phase, and the congestion control that it
//! resembles.

use airmile_model::{CongestionControl, SenderPhase};

/// Models one sender.
#[derive(Debug, Clone, Default)]
pub(super) struct SenderWindow {
    phase: SenderPhase,
    /// Flight at the beginning of this round and of the one before.
    round_until: i64,
    round_flight: i64,
    flat_rounds: u8,
    /// Flights around loss recoveries.
    cuts: Option<Box<Cuts>>,
}

/// Flight after a loss over the flight before it.
#[derive(Debug, Clone, Copy, Default)]
struct Cuts {
    flight_before_loss: i64,
    n: u32,
    sum: f64,
    square: f64,
}

/// The sender's state at one segment.
pub(super) struct SendState {
    pub(super) in_recovery: bool,
    pub(super) after_timeout: bool,
    /// Nothing was sent for an RTO, and nothing was in flight.
    pub(super) was_idle: bool,
    /// Bytes in flight, this segment included.
    pub(super) flight: i64,
    pub(super) acked: i64,
    pub(super) next: i64,
}

impl SenderWindow {
    /// Takes a sent segment; returns the phase it was sent in.
    #[inline(always)]
    pub(super) fn push(&mut self, state: &SendState) -> SenderPhase {
        let was = self.phase;
        self.phase = if state.after_timeout {
            SenderPhase::AfterTimeout
        } else if state.in_recovery {
            SenderPhase::Recovery
        } else if state.was_idle {
            SenderPhase::AfterIdle
        } else {
            match was {
                SenderPhase::Recovery | SenderPhase::AfterTimeout => {
                    SenderPhase::CongestionAvoidance
                }
                other => other,
            }
        };
        if self.phase == SenderPhase::Recovery && was != SenderPhase::Recovery {
            let before = self.round_flight.max(state.flight);
            self.cuts.get_or_insert_default().flight_before_loss = before;
        }
        if was == SenderPhase::Recovery && self.phase == SenderPhase::CongestionAvoidance {
            self.cut(state.flight);
        }
        self.round(state);
        self.phase
    }

    /// Checks once per RTT whether the flight still doubles.
    #[inline]
    fn round(&mut self, state: &SendState) {
        if state.acked < self.round_until {
            return;
        }
        self.round_until = state.next;
        // Slow start grows by half in a round even with delayed ACKs.
        let grows = state.flight * 10 >= self.round_flight * 13;
        self.round_flight = state.flight;
        self.flat_rounds = if grows { 0 } else { self.flat_rounds.saturating_add(1) };
        if self.flat_rounds >= 3
            && matches!(self.phase, SenderPhase::SlowStart | SenderPhase::AfterIdle)
        {
            self.phase = SenderPhase::CongestionAvoidance;
        }
    }

    fn cut(&mut self, flight: i64) {
        if let Some(cuts) = self.cuts.as_mut().filter(|cuts| cuts.flight_before_loss > 0) {
            let share = flight as f64 / cuts.flight_before_loss as f64;
            cuts.n += 1;
            cuts.sum += share;
            cuts.square += share * share;
        }
    }

    /// The congestion control that it resembles, and the confidence, by the reduction of
    /// the flight at a loss: to 0.7 (CUBIC, RFC 9438, 4.6), to 0.5 (Reno, RFC 5681, 3.2),
    /// hardly (BBR does not react to single losses).
    pub(super) fn guess(&self) -> (CongestionControl, f64) {
        let Some(cuts) = self.cuts.as_ref().filter(|cuts| cuts.n > 0) else {
            return (CongestionControl::Unknown, 0.0);
        };
        let n = f64::from(cuts.n);
        let mean = cuts.sum / n;
        let spread = (cuts.square / n - mean * mean).max(0.0).sqrt();
        let (name, centre) = match mean {
            m if m >= 0.85 => (CongestionControl::Bbr, 1.0),
            m if m >= 0.6 => (CongestionControl::Cubic, 0.7),
            m if m >= 0.35 => (CongestionControl::Reno, 0.5),
            _ => return (CongestionControl::Unknown, 0.0),
        };
        let fit = (1.0 - ((mean.min(1.0) - centre).abs() + spread) / 0.3).max(0.0);
        (name, fit * n / (n + 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(keep: f64, expected: CongestionControl) {
        let mut sender = SenderWindow::default();
        let mut next = 0;
        for round in 0..30_i64 {
            let in_recovery = round % 6 == 5;
            let flight = if round % 6 == 0 { (100_000.0 * keep) as i64 } else { 100_000 };
            let acked = next;
            next += flight;
            let state = SendState {
                in_recovery,
                after_timeout: false,
                was_idle: false,
                flight,
                acked,
                next,
            };
            sender.push(&state);
        }
        assert_eq!(sender.guess().0, expected);
    }

    #[test]
    fn by_what_a_loss_leaves() {
        check(0.7, CongestionControl::Cubic);
        check(0.5, CongestionControl::Reno);
        check(1.0, CongestionControl::Bbr);
        assert_eq!(SenderWindow::default().guess(), (CongestionControl::Unknown, 0.0));
    }
}
