//! Before the first byte.

use airmile_model::Cause;
use airmile_wire::attribute::Reason;

use super::{Context, Explain, Relief};

pub(super) struct Setup;

impl Explain for Setup {
    fn cause(&self) -> Cause {
        Cause::Setup
    }

    fn words(&self, seen: &Context) -> String {
        let ms = |reason| seen.split.ms(reason);
        format!(
            "before its first byte: connecting to the cell ({:.0} ms), handshakes ({:.0} ms), round \
             trips of requests ({:.0} ms)",
            ms(Reason::Promotion),
            ms(Reason::Handshake),
            ms(Reason::Request)
        )
    }

    fn next_step(&self, seen: &Context) -> String {
        let ms = |reason| seen.split.ms(reason);
        if ms(Reason::Promotion) > ms(Reason::Handshake) + ms(Reason::Request) {
            return "the phone was released by the cell before it asked: ask for what comes next \
                before that (after some 10 s of silence, which `airmile radio` shows), or for more \
                at a time"
                .into();
        }
        "save round trips before the first byte: reuse connections, TLS 1.3, 0-RTT, preconnect; \
         `curl -w '%{time_connect} %{time_appconnect} %{time_starttransfer}'` splits them"
            .into()
    }

    /// What is asked for takes a round trip to come.
    fn relief(&self, seen: &Context) -> Relief {
        let all_ns = seen.split.ns(Cause::Setup) as f64;
        let asked_ns = seen.split.ms(Reason::Request) * 1e6;
        let stays = if all_ns > 0.0 { (asked_ns / all_ns).min(1.0) } else { 0.0 };
        Relief { stays, ..Relief::default() }
    }
}
