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
        self.count(packet.at_ns, packet.dir == Direction::Ul, bits);
        feedback.push(packet, bits.ecn, bits.ae, &mut self.reported);
        if packet.dir == Direction::Ul && bits.ecn.is_capable() {
            self.accurate |= feedback.source() == EcnSource::AccurateEcn;
            self.echo |= feedback.source() == EcnSource::EcnEcho;
        }
    }

    /// Counts a packet.
    pub fn count(&mut self, at_ns: i64, up: bool, bits: EcnBits) {
        if up { &mut self.up } else { &mut self.down }.push(at_ns, bits.ecn);
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
    if let Some(server) = server {
        let left = |ns| {
            server.line.map_or(ns, |line| line.to_reference(ns)).saturating_sub(server.base_ns)
        };
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
