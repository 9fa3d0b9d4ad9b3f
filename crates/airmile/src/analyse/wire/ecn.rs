//! Congestion marks on the packets of one user in one capture.

use airmile_model::packet::{Ecn, Packet};
use airmile_model::{Direction, EcnSource};
use airmile_wire::attribute::{CaptureSite, EcnBins, EcnFeedback};
use airmile_wire::clocks::ClockLine;
use airmile_wire::tcp::TracedPacket;

use super::on_reference;

/// The bits of a packet that ECN uses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EcnBits {
    ecn: Ecn,
    ae: bool,
}

impl EcnBits {
    pub(super) fn of(packet: &Packet<'_>) -> Self {
        Self { ecn: packet.ecn, ae: packet.tcp().is_some_and(|tcp| tcp.ae) }
    }
}

/// Packets of one user, as captured.
#[derive(Debug, Clone, Default)]
pub(super) struct UserEcn {
    /// Packets from the user. Captured at the phone, also with the marks that the servers reported.
    up: EcnBins,
    /// Packets towards the user.
    down: EcnBins,
    /// Connections that sent ECN-capable packets and whose server reports marks exactly, or by an echo.
    accurate: bool,
    echo: bool,
}

impl UserEcn {
    /// Counts a packet of TCP, and the marks that it reports.
    pub(super) fn push(
        &mut self,
        packet: &TracedPacket,
        bits: EcnBits,
        feedback: &mut EcnFeedback,
    ) {
        self.count(packet.at_ns, packet.dir == Direction::Ul, bits);
        feedback.push(packet, bits.ecn, bits.ae, &mut self.up);
        if packet.dir == Direction::Ul && bits.ecn.is_capable() {
            self.accurate |= feedback.source() == EcnSource::AccurateEcn;
            self.echo |= feedback.source() == EcnSource::EcnEcho;
        }
    }

    /// Counts a packet.
    pub(super) fn count(&mut self, at_ns: i64, up: bool, bits: EcnBits) {
        if up { &mut self.up } else { &mut self.down }.push(at_ns, bits.ecn);
    }

    /// Adds a later part.
    pub(super) fn append(&mut self, next: &Self) {
        self.up.add(&next.up);
        self.down.add(&next.down);
        self.accurate |= next.accurate;
        self.echo |= next.echo;
    }
}

/// ECN-capable packets in one direction, and marks among them.
#[derive(Debug)]
pub(crate) struct EcnPath {
    pub(crate) dir: Direction,
    pub(crate) counts: EcnBins,
    /// What shows the marks.
    pub(crate) source: EcnSource,
    /// No packet arrived ECN-capable: a host on the way clears the field.
    pub(crate) cleared: bool,
}

/// A server's capture of the same packets: its clock, and the delay of a packet without a queue.
#[derive(Clone, Copy)]
pub(super) struct Arrived<'a> {
    pub(super) ecn: &'a UserEcn,
    pub(super) line: Option<&'a ClockLine>,
    pub(super) base_ns: i64,
}

/// The paths of a phone by the capture nearest to it, and by its server's.
pub(super) fn paths(
    first: UserEcn,
    place: CaptureSite,
    server: Option<Arrived<'_>>,
) -> Vec<EcnPath> {
    let reported = match (first.accurate, first.echo) {
        (_, true) => EcnSource::EcnEcho,
        (true, false) => EcnSource::AccurateEcn,
        (false, false) => EcnSource::Unknown,
    };
    let mut up = EcnPath {
        dir: Direction::Ul,
        counts: first.up,
        source: if place == CaptureSite::Phone { reported } else { EcnSource::Arrivals },
        cleared: false,
    };
    if let Some(server) = server {
        let left = |ns| on_reference(server.line, ns).saturating_sub(server.base_ns);
        let arrived = server.ecn.up.moved(left);
        up.source = EcnSource::Arrivals;
        up.cleared = arrived.total().capable == 0;
        if !up.cleared {
            up.counts = arrived;
        }
    }
    let counts = if place == CaptureSite::Phone { first.down } else { EcnBins::default() };
    let down = EcnPath { dir: Direction::Dl, counts, source: EcnSource::Arrivals, cleared: false };
    [up, down].into_iter().filter(|path| path.counts.total().capable > 0).collect()
}
