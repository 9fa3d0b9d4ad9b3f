//! A slower link before the radio.

use airmile_model::Cause;

use super::{Context, Explain};

pub(super) struct Wireline;

impl Explain for Wireline {
    fn cause(&self) -> Cause {
        Cause::Wireline
    }

    fn words(&self, _: &Context) -> String {
        "round trips were long while the downlink queue was empty: packets queued before the base \
         station"
            .into()
    }

    fn next_step(&self, _: &Context) -> String {
        "look at the way to the base station: a rate limit or a slow link; repeat with another \
         server and `airmile diagnose` both"
            .into()
    }
}
