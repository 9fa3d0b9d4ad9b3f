//! The receiver's buffer.

use airmile_model::{Cause, Direction};

use super::{CAUSE_CONFIDENCE, Context, Explain, MAY_BE_A_LINE};
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

    /// A proxy before a slow line reads no faster than that.
    fn confidence(&self, seen: &Context) -> f64 {
        let is_upload = seen.finding.dir == Direction::Ul;
        let may_be_a_line = seen.wire.reader_is_slow() && seen.wire.hides_server();
        if is_upload && may_be_a_line { MAY_BE_A_LINE } else { CAUSE_CONFIDENCE }
    }
}
