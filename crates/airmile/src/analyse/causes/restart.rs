//! Slow start after idle time.

use airmile_model::Cause;

use super::{Context, Explain, Relief, Window};
use crate::fact::{CauseAdvice, CauseDetail};

pub(super) struct Restart;

impl Explain for Restart {
    fn cause(&self) -> Cause {
        Cause::SlowStartRestart
    }

    fn detail(&self, seen: &Context) -> CauseDetail {
        CauseDetail::SlowStartRestart(seen.wire.restarter)
    }

    fn advice(&self, seen: &Context) -> CauseAdvice {
        CauseAdvice::SlowStartRestart(seen.wire.restarter)
    }

    /// The window would have kept its size.
    fn relief(&self, _: &Context) -> Relief {
        Relief { window: Window::Wide, ..Relief::default() }
    }
}
