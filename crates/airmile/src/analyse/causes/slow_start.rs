//! Slow starts that are no restarts: the connection's own, and those behind a timer
//! that need not have gone off.

use airmile_model::Cause;

use super::{Context, Explain, Relief};

pub(super) struct Undesired;

impl Explain for Undesired {
    fn cause(&self) -> Cause {
        Cause::UndesiredSlowStart
    }

    fn words(&self, _: &Context) -> String {
        "the timer went off although duplicate ACKs had told of the loss, and a slow start followed"
            .into()
    }

    fn next_step(&self, _: &Context) -> String {
        "let the server take round trips from SACK and duplicate ACKs (RACK-TLP, RFC 8985; Linux: \
         `sysctl -w net.ipv4.tcp_recovery=1`), and raise its least RTO (`ip route change … rto_min \
         500ms`)"
            .into()
    }
}

pub(super) struct First;

impl Explain for First {
    fn cause(&self) -> Cause {
        Cause::FirstSlowStart
    }

    fn words(&self, _: &Context) -> String {
        "the connection's first slow start waited for ACKs".into()
    }

    fn next_step(&self, _: &Context) -> String {
        "reuse connections, or raise the server's initial window (Linux: `ip route change … initcwnd \
         30`); fewer and larger requests"
            .into()
    }

    fn relief(&self, _: &Context) -> Relief {
        Relief { slow_start: false, ..Relief::default() }
    }
}
