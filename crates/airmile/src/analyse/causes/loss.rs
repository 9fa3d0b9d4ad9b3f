//! Segments that were lost and sent again.

use airmile_model::Cause;

use super::{Context, Explain, Relief};

/// Where they were lost is to be seen in the same files.
const WHERE: &str = "`airmile packets` the same captures, table tcp_events";

/// A timer that duplicate ACKs make needless needs a loss, too.
const RELIEF: Relief =
    Relief { faster: 1.0, stays: 0.0, slow_start: true, also: Some(Cause::UndesiredSlowStart) };

/// The radio lost them.
pub(super) struct Radio;

impl Explain for Radio {
    fn cause(&self) -> Cause {
        Cause::LossRecoveryRadio
    }

    fn words(&self, _: &Context) -> String {
        "segments were sent again that the radio had lost: RLC went on without them, or HARQ gave \
         them up"
            .into()
    }

    fn next_step(&self, _: &Context) -> String {
        format!(
            "the operator's bearer does not repeat what it loses (RLC mode, HARQ): `airmile radio \
             --json` counts it in radio_loss, and {WHERE} shows what it cost; a sender that does \
             not take a loss for congestion (BBR) suffers less"
        )
    }

    fn relief(&self, _: &Context) -> Relief {
        RELIEF
    }
}

/// A queue was full, or a line lost them.
pub(super) struct Congestion;

impl Explain for Congestion {
    fn cause(&self) -> Cause {
        Cause::LossRecoveryCongestion
    }

    fn words(&self, _: &Context) -> String {
        "lost segments were sent again; the radio had not lost them".into()
    }

    fn next_step(&self, _: &Context) -> String {
        format!("see where it is lost: {WHERE}; with a capture at the server, too")
    }

    fn relief(&self, _: &Context) -> Relief {
        RELIEF
    }
}
