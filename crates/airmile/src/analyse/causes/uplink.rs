//! An upload on the same phone.

use airmile_model::Cause;
use airmile_wire::attribute::HiddenQueue;

use super::{CAUSE_CONFIDENCE, Context, Explain, Relief, Window};
use crate::fact::{CauseAdvice, CauseDetail};

pub(super) struct UplinkQueue;

impl Explain for UplinkQueue {
    fn cause(&self) -> Cause {
        Cause::UplinkQueue
    }

    fn detail(&self, _: &Context) -> CauseDetail {
        CauseDetail::UplinkQueue
    }

    fn advice(&self, _: &Context) -> CauseAdvice {
        CauseAdvice::UplinkQueue
    }

    /// The measured round trips include the queue, in handshakes and slow starts, too.
    fn relief(&self, _: &Context) -> Relief {
        let also = &[Cause::Setup, Cause::FirstSlowStart, Cause::SlowStartRestart];
        Relief { window: Window::SmallOverEmptyPath, also, ..Relief::default() }
    }

    /// At most the probability of arrivals, if round trips do not show it.
    fn confidence(&self, seen: &Context) -> f64 {
        CAUSE_CONFIDENCE.min(seen.wire.hidden_queue(HiddenQueue::Uplink))
    }
}
