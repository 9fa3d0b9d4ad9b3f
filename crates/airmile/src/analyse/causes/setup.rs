//! Before the first byte.

use airmile_model::Cause;
use airmile_wire::attribute::Reason;

use super::{Context, Explain, Relief};
use crate::fact::{CauseAdvice, CauseDetail};

pub(super) struct Setup;

impl Explain for Setup {
    fn cause(&self) -> Cause {
        Cause::Setup
    }

    fn detail(&self, seen: &Context) -> CauseDetail {
        let ms = |reason| seen.split.part_ms(Cause::Setup, reason);
        CauseDetail::Setup {
            promotion_ms: ms(Reason::Promotion),
            handshake_ms: ms(Reason::Handshake),
            request_ms: ms(Reason::Request),
        }
    }

    fn advice(&self, seen: &Context) -> CauseAdvice {
        let ms = |reason| seen.split.ms(reason);
        if ms(Reason::Promotion) > ms(Reason::Handshake) + ms(Reason::Request) {
            CauseAdvice::Promotion
        } else {
            CauseAdvice::SetupRoundTrips
        }
    }

    /// Requested data needs a round trip to arrive.
    fn relief(&self, seen: &Context) -> Relief {
        let all_ns = seen.split.ns(Cause::Setup) as f64;
        let asked_ns = seen.split.ms(Reason::Request) * 1e6;
        let stays = if all_ns > 0.0 { (asked_ns / all_ns).min(1.0) } else { 0.0 };
        Relief { stays, ..Relief::default() }
    }
}
