//! Slow start after idle time.

use airmile_model::Cause;

use super::super::wire::{Restarter, Wire};
use super::{Context, Explain, Relief};

pub(super) struct Restart;

impl Explain for Restart {
    fn cause(&self) -> Cause {
        Cause::SlowStartRestart
    }

    fn whose(&self, wire: &Wire) -> &'static str {
        match wire.restarter {
            Restarter::Middlebox => " by a middlebox",
            Restarter::Sender => " by the server",
            Restarter::SenderOrMiddlebox => " by the server or a middlebox",
        }
    }

    fn words(&self, seen: &Context) -> String {
        let who = match seen.wire.restarter {
            Restarter::Middlebox => {
                "the server's capture has other connections and no restarts: a middlebox on the \
                 way splits the connection and restarts it"
            }
            Restarter::Sender => "the server's capture has the same connections: it is the server",
            Restarter::SenderOrMiddlebox => {
                "the server or a middlebox: a capture at the server tells which"
            }
        };
        format!(
            "after idle time the window began anew and grew round by round, the downlink queue \
             empty in between; {who}"
        )
    }

    fn next_step(&self, seen: &Context) -> String {
        match seen.wire.restarter {
            Restarter::Middlebox => {
                "bypass the middlebox (another port, TLS or QUIC), or keep the \
                window warm between requests; then measure again: `airmile diagnose` with captures \
                of both ports"
                    .into()
            }
            Restarter::Sender => "switch slow start after idle time off at the server (Linux: \
                `sysctl -w net.ipv4.tcp_slow_start_after_idle=0`), or keep the window warm; then \
                measure again"
                .into(),
            Restarter::SenderOrMiddlebox => "capture at the server, too (`tcpdump -s 128`), and \
                give both captures: who restarts is then told"
                .into(),
        }
    }

    /// The window would have been there.
    fn relief(&self, _: &Context) -> Relief {
        Relief { slow_start: false, ..Relief::default() }
    }
}
