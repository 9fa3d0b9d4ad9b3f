//! A run whose measured phone, server and box are outside: real hosts that exchange packets
//! as bytes. Its driver provides the time, a TTI at a time, and the packets.
//!
//! Packets are taken at the start of a TTI and returned after it: for outside hosts the
//! clock ticks in TTIs, and packets are delayed by up to one.

mod exchange;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

use airmile_model::TtiIndex;

use crate::cell::RadioAccess;
use crate::host::{self, OutsideHost, ScenarioHost};
use crate::net::{IPV4_HEADER_BYTES, IpPacket, Transport};
use crate::phy::Frame;
use crate::run::RunOutcome;
use crate::run::{CapturePoint, Node, RunSink, Simulation};
use crate::scenario::{Scenario, ScenarioError};
use crate::user::UserId;
use exchange::Exchanges;

/// The measured phone's address.
pub const PHONE_ADDRESS: Ipv4Addr = host::PHONE;

/// Its server's address.
pub const SERVER_ADDRESS: Ipv4Addr = host::server_address(0);

/// Bytes that are not a packet of the emulated network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPacket {
    /// Another version of IP, or not IP.
    #[error("byte 0, IP version: {0}, and only 4 is supported")]
    Version(u8),
    /// The length in the header differs from the actual length.
    #[error("byte 2, IPv4 total length: {told} bytes declared, {there} present")]
    Length {
        /// Length in the header.
        told: usize,
        /// Actual length.
        there: usize,
    },
}

/// A run with hosts outside.
///
/// For each TTI: [`push`](Self::push) the hosts' packets, call [`step`](Self::step), then
/// [`poll`](Self::poll) until it returns `None`. Call [`finish`](Self::finish) at the end.
#[derive(Debug)]
pub struct Bridge {
    simulation: Simulation<ScenarioHost>,
    frame: Frame,
    exchanges: Exchanges,
    arrived: VecDeque<(CapturePoint, Vec<u8>)>,
}

impl Bridge {
    /// A run before its first TTI. The scenario's own applications and traffic do not run;
    /// its other users do.
    ///
    /// # Errors
    /// A scenario that cannot be run.
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        scenario.validate()?;
        let frame = RadioAccess::frame(scenario);
        let mut users = host::users(scenario, frame.start_ns(frame.first_tti()));
        let outside = || ScenarioHost::Outside(OutsideHost::default());
        if let Some(measured) = users.first_mut() {
            measured.phone = outside();
            measured.server = outside();
            measured.proxy = scenario.proxy.as_ref().map(|_| outside());
        }
        let simulation = Simulation::new(scenario, users)?;
        Ok(Self { simulation, frame, exchanges: Exchanges::default(), arrived: VecDeque::new() })
    }

    /// Start of the next TTI in ns since the Unix epoch.
    #[must_use]
    pub const fn now_ns(&self) -> i64 {
        self.simulation.now_ns()
    }

    /// The next TTI.
    #[must_use]
    pub const fn tti(&self) -> TtiIndex {
        self.simulation.tti()
    }

    /// Length of a TTI in ns.
    #[must_use]
    pub const fn slot_ns(&self) -> i64 {
        self.frame.slot_ns()
    }

    /// A packet that a host sends now on one of its interfaces.
    ///
    /// # Errors
    /// The bytes are not an IPv4 packet; nothing is sent.
    pub fn push(&mut self, from: CapturePoint, bytes: Vec<u8>) -> Result<(), NoPacket> {
        let packet = read(bytes)?;
        if from == CapturePoint::Phone {
            self.exchanges.sent(self.simulation.now_ns(), &packet);
        }
        let node = match from {
            CapturePoint::Phone => Node::Phone,
            CapturePoint::ProxyRan | CapturePoint::ProxyCore => Node::Proxy,
            CapturePoint::Server => Node::Server,
        };
        self.simulation.send(UserId::MEASURED, node, packet);
        Ok(())
    }

    /// Simulates all events up to the start of the next TTI, and that TTI.
    pub fn step(&mut self, sink: &mut impl RunSink) {
        self.simulation.step(sink);
        for node in [Node::Phone, Node::Proxy, Node::Server] {
            let host = match node {
                Node::Phone => self.simulation.phone(UserId::MEASURED),
                Node::Proxy => self.simulation.proxy(UserId::MEASURED),
                Node::Server => self.simulation.server(UserId::MEASURED),
            };
            let Some(ScenarioHost::Outside(host)) = host else { continue };
            for (at_ns, packet) in host.arrived.drain(..) {
                if node == Node::Phone {
                    self.exchanges.received(at_ns, &packet);
                }
                let at = match node {
                    Node::Phone => CapturePoint::Phone,
                    Node::Server => CapturePoint::Server,
                    Node::Proxy if *packet.dst.ip() == PHONE_ADDRESS => CapturePoint::ProxyCore,
                    Node::Proxy => CapturePoint::ProxyRan,
                };
                if let Transport::Raw(bytes) = packet.transport {
                    self.arrived.push_back((at, bytes));
                }
            }
        }
    }

    /// A packet that has arrived at an interface of a host.
    pub fn poll(&mut self) -> Option<(CapturePoint, Vec<u8>)> {
        self.arrived.pop_front()
    }

    /// Ends the run. Its transfers are the exchanges observed at the phone.
    #[must_use]
    pub fn finish(self) -> RunOutcome {
        RunOutcome::from_simulation(
            self.simulation.finish(),
            self.frame,
            self.exchanges.into_app_log(),
        )
    }
}

/// Parses a packet's addresses, and its ports if it has any.
fn read(bytes: Vec<u8>) -> Result<IpPacket, NoPacket> {
    let version = bytes.first().map_or(0, |first| first >> 4);
    if version != 4 {
        return Err(NoPacket::Version(version));
    }
    let there = bytes.len();
    let word = |at: usize| match bytes.get(at..at + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    };
    let told = usize::from(word(2));
    if told != there || there < IPV4_HEADER_BYTES as usize {
        return Err(NoPacket::Length { told, there });
    }
    let address = |at: usize| Ipv4Addr::from(u32::from(word(at)) << 16 | u32::from(word(at + 2)));
    let header = usize::from(bytes[0] & 0xf) * 4;
    // TCP and UDP begin with their ports; later fragments have none.
    let has_ports = matches!(bytes[9], 6 | 17) && word(6) & 0x1fff == 0;
    let port = |at: usize| if has_ports { word(header + at) } else { 0 };
    let src = SocketAddrV4::new(address(12), port(0));
    let dst = SocketAddrV4::new(address(16), port(2));
    Ok(IpPacket { src, dst, ip_id: word(4), transport: Transport::Raw(bytes) })
}

#[cfg(test)]
mod tests;
