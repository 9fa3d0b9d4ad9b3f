//! Who restarts slow start after idle time.

use airmile_packets::phone::RestartsAtBoth;

use crate::fact::Restarter;

/// If the server's own packets show less than this share of the slow starts after idle time that
/// the phone sees, another host causes them (chosen here).
const OWN_RESTARTS: f64 = 0.34;

impl Restarter {
    /// By the connections that restart, in captures at both ends.
    pub(super) fn by_both(restarts: RestartsAtBoth) -> Self {
        let RestartsAtBoth { connections, at_server, seen, own } = restarts;
        match at_server {
            _ if seen == 0 => Self::SenderOrMiddlebox,
            0 if (own as f64) < seen as f64 * OWN_RESTARTS => Self::Middlebox,
            n if n == connections => Self::Sender,
            _ => Self::SenderOrMiddlebox,
        }
    }
}
