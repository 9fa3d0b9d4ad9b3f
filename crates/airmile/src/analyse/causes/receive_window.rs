//! The receiver's buffer.

use airmile_model::Cause;

use super::{Context, Explain};

pub(super) struct ReceiveWindow;

impl Explain for ReceiveWindow {
    fn cause(&self) -> Cause {
        Cause::ReceiveWindow
    }

    fn words(&self, _: &Context) -> String {
        "the phone's receive window was full".into()
    }

    fn next_step(&self, _: &Context) -> String {
        "raise the application's receive buffer (`SO_RCVBUF`), or read faster; `airmile packets` \
         shows the window"
            .into()
    }
}
