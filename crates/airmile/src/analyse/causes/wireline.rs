//! A slower link before the radio.

use airmile_model::Cause;

use super::{Context, Explain};
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
}
