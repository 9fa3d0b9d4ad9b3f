//! The receiver's buffer.

use airmile_model::Cause;

use super::{Context, Explain};
use crate::fact::{CauseAdvice, CauseDetail};

pub(super) struct ReceiveWindow;

impl Explain for ReceiveWindow {
    fn cause(&self) -> Cause {
        Cause::ReceiveWindow
    }

    fn detail(&self, _: &Context) -> CauseDetail {
        CauseDetail::ReceiveWindow
    }

    fn advice(&self, _: &Context) -> CauseAdvice {
        CauseAdvice::ReceiveWindow
    }
}
