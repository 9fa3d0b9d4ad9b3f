//! Lost and retransmitted segments.

use airmile_model::{Cause, Direction};
use airmile_wire::attribute::HiddenQueue;

use super::{CAUSE_CONFIDENCE, Context, Explain, MAY_BE_A_LINE, Relief, Window};
use crate::fact::{CauseAdvice, CauseDetail};

/// A timeout that duplicate ACKs make unnecessary needs a loss, too.
const RELIEF: Relief =
    Relief { faster: 1.0, stays: 0.0, window: Window::Small, also: &[Cause::UndesiredSlowStart] };

/// Lost by the radio.
pub(super) struct Radio;

impl Explain for Radio {
    fn cause(&self) -> Cause {
        Cause::LossRecoveryRadio
    }

    fn detail(&self, _: &Context) -> CauseDetail {
        CauseDetail::LossRecoveryRadio
    }

    fn advice(&self, _: &Context) -> CauseAdvice {
        CauseAdvice::LossRecoveryRadio
    }

    fn relief(&self, _: &Context) -> Relief {
        RELIEF
    }
}

/// Lost in a full queue or on a wire.
pub(super) struct Congestion;

impl Explain for Congestion {
    fn cause(&self) -> Cause {
        Cause::LossRecoveryCongestion
    }

    fn detail(&self, _: &Context) -> CauseDetail {
        CauseDetail::LossRecoveryCongestion
    }

    fn advice(&self, _: &Context) -> CauseAdvice {
        CauseAdvice::LossRecoveryCongestion
    }

    fn relief(&self, _: &Context) -> Relief {
        RELIEF
    }

    /// Drops of a slow line look the same where a queue is not visible, as at a server after a loss, or
    /// too short.
    fn confidence(&self, seen: &Context) -> f64 {
        let is_seen = seen.finding.dir == Direction::Dl && seen.wire.is_at_phone();
        let drops = seen.wire.hidden_queue(HiddenQueue::Downlink) < 1.0;
        let may_be_a_line = !is_seen || drops || seen.wire.hides_queues() && !seen.wire.has_server;
        if may_be_a_line { MAY_BE_A_LINE } else { CAUSE_CONFIDENCE }
    }
}

#[cfg(test)]
mod tests {
    use super::super::split::{Split, example_finding};
    use super::*;
    use crate::analyse::wire::Wire;

    /// Both captures show no queue of it, which may be too short to show.
    #[test]
    fn a_line_that_arrivals_indicate_may_have_dropped_them() {
        let (split, finding) =
            (Split::example(&[(Cause::LossRecoveryCongestion, 900)]), example_finding());
        let mut wire = Wire::example();
        for (found, confidence) in
            [(None, CAUSE_CONFIDENCE), (Some((HiddenQueue::Downlink, 0.8)), MAY_BE_A_LINE)]
        {
            wire.set_hidden_queue(found);
            let seen = Context { split: &split, finding: &finding, wire: &wire };
            assert_eq!(Congestion.confidence(&seen), confidence);
        }
    }
}
