//! Congestion marks on the packets of one user in one capture.

use super::CaptureSite;
use super::ecn::{EcnBins, EcnFeedback};
use crate::clocks::ClockLine;
use crate::tcp::TracedPacket;
use airmile_model::packet::{Ecn, Packet};
use airmile_model::{Direction, EcnSource};

/// The bits of a packet that ECN uses.
#[derive(Debug, Clone, Copy, Default)]
pub struct EcnBits {
    ecn: Ecn,
    ae: bool,
}

impl EcnBits {
    /// Those of a packet.
    #[must_use]
    pub fn of(packet: &Packet<'_>) -> Self {
        Self { ecn: packet.ecn, ae: packet.tcp().is_some_and(|tcp| tcp.ae) }
    }
}

/// Packets of one user, as captured.
#[derive(Debug, Clone, Default)]
pub struct UserEcn {
    /// Packets from the user.
    up: EcnBins,
    /// The same, as its servers report them.
    reported: EcnBins,
    /// Packets towards the user.
    down: EcnBins,
    /// Connections that sent ECN-capable packets and whose server reports marks exactly, or by an echo.
    accurate: bool,
    echo: bool,
}

impl UserEcn {
    /// Counts a packet of TCP, and the marks that it reports.
    pub fn push(&mut self, packet: &TracedPacket, bits: EcnBits, feedback: &mut EcnFeedback) {
        self.count(packet.at_ns, packet.dir == Direction::Ul, bits, feedback);
        feedback.push(packet, bits.ecn, bits.ae, &mut self.reported);
        if packet.dir == Direction::Ul && bits.ecn.is_capable() {
            self.accurate |= feedback.source() == EcnSource::AccurateEcn;
            self.echo |= feedback.source() == EcnSource::EcnEcho;
        }
    }

    /// Counts a packet of a connection.
    pub fn count(&mut self, at_ns: i64, up: bool, bits: EcnBits, connection: &mut EcnFeedback) {
        if up {
            connection.count(bits.ecn);
            self.up.push(at_ns, bits.ecn);
        } else {
            self.down.push(at_ns, bits.ecn);
        }
    }

    /// Adds a later part.
    pub fn append(&mut self, next: &Self) {
        self.up.add(&next.up);
        self.reported.add(&next.reported);
        self.down.add(&next.down);
        self.accurate |= next.accurate;
        self.echo |= next.echo;
    }
}

/// ECN-capable packets in one direction, and marks among them.
#[derive(Debug)]
pub struct EcnPath {
    /// Direction of the packets.
    pub dir: Direction,
    /// When the packets passed the queue.
    pub counts: EcnBins,
    /// What shows the marks.
    pub source: EcnSource,
    /// No packet arrived ECN-capable: a host on the way clears the field.
    pub cleared: bool,
}

/// A server's capture of the same packets: its clock, and the delay of a packet without a queue.
#[derive(Debug, Clone, Copy)]
pub struct ArrivedEcn<'a> {
    /// What it shows of the phone.
    pub ecn: &'a UserEcn,
    /// Its clock, if that differs.
    pub line: Option<&'a ClockLine>,
    /// The delay in nanoseconds.
    pub base_ns: i64,
    /// ECN-capable packets of the connections that both captures have: sent, and as they arrived.
    pub shared: (u64, u64),
}

/// The paths of a phone by the capture nearest to it, which was taken at `place`, and by its server's.
#[must_use]
pub fn ecn_paths(
    first: UserEcn,
    place: CaptureSite,
    server: Option<ArrivedEcn<'_>>,
) -> Vec<EcnPath> {
    let (source, counts) = match (first.accurate, first.echo) {
        _ if place != CaptureSite::Phone => (EcnSource::Arrivals, first.up),
        (_, true) => (EcnSource::EcnEcho, first.reported),
        (true, false) => (EcnSource::AccurateEcn, first.reported),
        (false, false) => (EcnSource::Unknown, first.up),
    };
    let mut up = EcnPath { dir: Direction::Ul, counts, source, cleared: false };
    // Without a common connection that asked for it, the server's capture shows nothing.
    if let Some(server) = server.filter(|server| server.shared.0 > 0) {
        let left = |ns| {
            server.line.map_or(ns, |line| line.to_reference(ns)).saturating_sub(server.base_ns)
        };
        up.source = EcnSource::Arrivals;
        up.cleared = server.shared.1 == 0;
        if !up.cleared {
            up.counts = server.ecn.up.moved(left);
        }
    }
    let counts = if place == CaptureSite::Phone { first.down } else { EcnBins::default() };
    let down = EcnPath { dir: Direction::Dl, counts, source: EcnSource::Arrivals, cleared: false };
    [up, down].into_iter().filter(|path| path.counts.total().capable > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(n: i64, ecn: Ecn) -> UserEcn {
        let (mut user, mut connection) = (UserEcn::default(), EcnFeedback::default());
        (0..n).for_each(|at| user.count(at, true, EcnBits { ecn, ae: false }, &mut connection));
        user
    }

    /// A server's capture tells of the connections that it has, and only of these.
    #[test]
    fn only_common_connections_show_that_the_field_is_cleared() {
        let path = |shared, arrived| {
            let ecn = &user(arrived, Ecn::Ce);
            let server = ArrivedEcn { ecn, line: None, base_ns: 0, shared };
            let mut paths = ecn_paths(user(9, Ecn::Ect0), CaptureSite::Phone, Some(server));
            let up = paths.remove(0);
            (up.source, up.cleared, up.counts.total().marked)
        };
        assert_eq!(path((9, 9), 9), (EcnSource::Arrivals, false, 9));
        assert_eq!(path((9, 0), 0), (EcnSource::Arrivals, true, 0));
        // The phone sent them to another server.
        assert_eq!(path((0, 0), 0), (EcnSource::Unknown, false, 0));
        assert_eq!(path((0, 0), 5), (EcnSource::Unknown, false, 0));
    }
}
