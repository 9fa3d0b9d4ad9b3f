//! What a run leaves while it runs.

use airmile_model::Record;

use crate::net::IpPacket;
use crate::run::{SenderPlace, SenderState};
use crate::transport::tcp::ConnectionEvent;
use crate::user::UserId;

/// Where packets are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapturePoint {
    /// At the phone.
    Phone,
    /// At the box, on the side of the base station.
    ProxyRan,
    /// At the box, on the side of the server.
    ProxyCore,
    /// At the server.
    Server,
}

/// Where a packet came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropPoint {
    /// The user's queue at the base station was full.
    BaseStation,
    /// The phone's own queue was full.
    Phone,
    /// The bottleneck of the core network was full.
    CoreQueue,
    /// Lost in the core network.
    CoreLoss,
}

/// Takes what a run leaves while it runs. Every method may be left out.
pub trait RunSink {
    /// What the measured phone's modem would log, in time order.
    fn record(&mut self, record: Record) {
        let _ = record;
    }

    /// A packet of the measured phone passes a point.
    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        let _ = (at_ns, point, packet);
    }

    /// A packet of a user is dropped.
    fn dropped(&mut self, at_ns: i64, user: UserId, point: DropPoint, packet: &IpPacket) {
        let _ = (at_ns, user, point, packet);
    }

    /// A packet of the measured phone goes to the firmware's buffer, where a
    /// discipline queues above it ([`crate::Scenario::uplink_queue`]).
    fn handed_over(&mut self, at_ns: i64, packet: &IpPacket) {
        let _ = (at_ns, packet);
    }

    /// What the measured phone's firmware holds, in bytes, at the begin of a TTI.
    fn firmware(&mut self, at_ns: i64, bytes: u64) {
        let _ = (at_ns, bytes);
    }

    /// Whether the two below are wanted.
    fn wants_senders(&self) -> bool {
        false
    }

    /// A TCP sender of the measured phone's traffic, once a ms where it changed.
    fn sender_state(&mut self, state: &SenderState) {
        let _ = state;
    }

    /// Something happened to such a sender, told at the end of its ms.
    fn sender_event(&mut self, place: SenderPlace, event: &ConnectionEvent) {
        let _ = (place, event);
    }

    /// Whether a run with applications may end before its time; asked once a ms.
    /// `all_done`: those of every phone, and not of the measured one alone, have done
    /// what they wanted.
    fn has_enough(&mut self, all_done: bool) -> bool {
        let _ = all_done;
        false
    }
}

/// A sink that keeps nothing.
impl RunSink for () {}
