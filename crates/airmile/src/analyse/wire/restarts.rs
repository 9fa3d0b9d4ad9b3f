//! The host that restarts slow start after idle time.

use airmile_packets::phone::{Phone, RestartsAtBoth};
use airmile_wire::attribute::CaptureSite;

use crate::fact::Restarter;

/// If the server's own packets show less than this share of the slow starts after idle time that
/// the phone sees, another host causes them (chosen here).
const OWN_RESTARTS: f64 = 0.34;

impl Restarter {
    /// By the capture nearest to the phone, and those at servers, of which `server` has the most of the
    /// phone's data.
    pub(super) fn of<'a>(
        first: &Phone,
        server: Option<&Phone>,
        mut servers: impl Iterator<Item = &'a Phone>,
    ) -> Self {
        // One capture does not show it: a middlebox that splits connections looks like a server to a
        // capture next to it.
        let both = server.filter(|_| first.place != CaptureSite::Server);
        // What looks like a server and has the phone's own connections may be the middlebox.
        let behind = servers.find(|user| first.restarts_before(user));
        both.map_or(Self::SenderOrMiddlebox, |server| {
            Self::by_both(first.restarts_at(behind.unwrap_or(server)))
        })
    }

    /// By the connections that restart as the phone sees them: each port may have another middlebox, or
    /// none.
    const fn by_both(restarts: RestartsAtBoth) -> Self {
        let RestartsAtBoth { connections, at_server, seen, own } = restarts;
        match at_server {
            _ if seen == 0 => Self::SenderOrMiddlebox,
            0 if (own as f64) < seen as f64 * OWN_RESTARTS => Self::Middlebox,
            n if n == connections => Self::Sender,
            _ => Self::SenderOrMiddlebox,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_restarts_by_captures_at_both_ends() {
        let check = |connections, at_server, seen, own, expected| {
            let restarts = RestartsAtBoth { connections, at_server, seen, own };
            assert_eq!(Restarter::by_both(restarts), expected, "{restarts:?}");
        };
        // Nothing restarts, whatever the server does for others.
        check(0, 0, 0, 9, Restarter::SenderOrMiddlebox);
        // The server has the connections that restart.
        check(2, 2, 9, 9, Restarter::Sender);
        check(2, 1, 9, 5, Restarter::SenderOrMiddlebox);
        // It has others, which do not restart, or do so, too.
        check(2, 0, 9, 3, Restarter::Middlebox);
        check(2, 0, 9, 4, Restarter::SenderOrMiddlebox);
    }
}
