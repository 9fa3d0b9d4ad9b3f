//! A slower link before the radio.

use airmile_model::Cause;

use super::{Context, Explain, Relief};
use crate::fact::{CauseAdvice, CauseDetail};

pub(super) struct Wireline;

impl Explain for Wireline {
    fn cause(&self) -> Cause {
        Cause::Wireline
    }

    fn detail(&self, _: &Context) -> CauseDetail {
        CauseDetail::Wireline
    }

    fn advice(&self, _: &Context) -> CauseAdvice {
        CauseAdvice::Wireline
    }

    /// What its full queue, or its policer, drops is sent again; a line that costs less than
    /// losses do is not taken for what lost them.
    fn relief(&self, seen: &Context) -> Relief {
        let ns = |cause| seen.split.ns(cause);
        let drops = ns(Cause::Wireline) > ns(Cause::LossRecoveryCongestion);
        let also: &[Cause] =
            if drops { &[Cause::LossRecoveryCongestion, Cause::UndesiredSlowStart] } else { &[] };
        Relief { also, ..Relief::default() }
    }
}
