//! Lost and retransmitted segments.

use airmile_model::{Cause, Direction};

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

    /// Drops of a slow line look the same where a queue is not visible, as at a server after a loss.
    fn confidence(&self, seen: &Context) -> f64 {
        let is_seen = seen.finding.dir == Direction::Dl && seen.wire.is_at_phone();
        let may_be_a_line = !is_seen || seen.wire.hides_queues() && !seen.wire.has_server;
        if may_be_a_line { MAY_BE_A_LINE } else { CAUSE_CONFIDENCE }
    }
}
