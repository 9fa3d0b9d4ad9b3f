//! Slow starts: the connection's first, and one after an unnecessary timeout.

use airmile_model::Cause;

use super::{Context, Explain, Relief, Window};
use crate::fact::{CauseAdvice, CauseDetail};

pub(super) struct Undesired;

impl Explain for Undesired {
    fn cause(&self) -> Cause {
        Cause::UndesiredSlowStart
    }

    fn detail(&self, _: &Context) -> CauseDetail {
        CauseDetail::UndesiredSlowStart
    }

    fn advice(&self, _: &Context) -> CauseAdvice {
        CauseAdvice::UndesiredSlowStart
    }
}

pub(super) struct First;

impl Explain for First {
    fn cause(&self) -> Cause {
        Cause::FirstSlowStart
    }

    fn detail(&self, _: &Context) -> CauseDetail {
        CauseDetail::FirstSlowStart
    }

    fn advice(&self, _: &Context) -> CauseAdvice {
        CauseAdvice::FirstSlowStart
    }

    /// The receiver's window, which grows with the data received, still limits the sender.
    fn relief(&self, _: &Context) -> Relief {
        Relief { window: Window::Receivers, ..Relief::default() }
    }
}
