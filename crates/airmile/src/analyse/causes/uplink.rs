//! An upload on the same phone.

use airmile_model::Cause;

use super::{Context, Explain, Relief};

pub(super) struct UplinkQueue;

impl Explain for UplinkQueue {
    fn cause(&self) -> Cause {
        Cause::UplinkQueue
    }

    fn words(&self, _: &Context) -> String {
        "round trips were long while the phone itself sent: requests and ACKs queued behind its \
         upload"
            .into()
    }

    fn next_step(&self, _: &Context) -> String {
        "hold the phone's upload back while it downloads, or shorten its queue; `airmile radio` \
         shows the uplink's buffer (sched_wait_ms)"
            .into()
    }

    /// The round trips that were seen are the queue's own.
    fn relief(&self, _: &Context) -> Relief {
        Relief { slow_start: false, ..Relief::default() }
    }
}
