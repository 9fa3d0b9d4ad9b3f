//! A slower link before the radio.

use airmile_model::{Cause, Direction};
use airmile_wire::attribute::{HiddenQueue, Reason};

use super::{CAUSE_CONFIDENCE, Context, Explain, MAY_BE_A_LINE, Relief};
use crate::fact::{CauseAdvice, CauseDetail};

pub(super) struct Wireline;

impl Explain for Wireline {
    fn cause(&self) -> Cause {
        Cause::Wireline
    }

    fn detail(&self, seen: &Context) -> CauseDetail {
        let up_ms = seen.split.part_ms(Cause::Wireline, Reason::QueueUp);
        CauseDetail::Wireline { acks: 2.0 * up_ms > seen.split.ns(Cause::Wireline) as f64 / 1e6 }
    }

    fn advice(&self, _: &Context) -> CauseAdvice {
        CauseAdvice::Wireline
    }

    /// Packets dropped by its full queue or policer are retransmitted; a link that costs less than
    /// the losses is not assumed to have caused them.
    fn relief(&self, seen: &Context) -> Relief {
        let ns = |cause| seen.split.ns(cause);
        let drops = ns(Cause::Wireline) > ns(Cause::LossRecoveryCongestion);
        let also: &[Cause] =
            if drops { &[Cause::LossRecoveryCongestion, Cause::UndesiredSlowStart] } else { &[] };
        Relief { also, ..Relief::default() }
    }

    /// At most the probability of arrivals, if round trips do not show it.
    fn confidence(&self, seen: &Context) -> f64 {
        let by_pace_ms = seen.split.part_ms(Cause::Wireline, Reason::PathPace);
        // The phone knows the round trips of what it sent.
        let measured = seen.wire.has_server || seen.finding.dir == Direction::Ul;
        if 2.0 * by_pace_ms > seen.split.ns(Cause::Wireline) as f64 / 1e6 {
            MAY_BE_A_LINE
        } else if measured {
            CAUSE_CONFIDENCE
        } else {
            CAUSE_CONFIDENCE.min(seen.wire.hidden_queue(HiddenQueue::Downlink))
        }
    }
}
