//! Output of a run while it is running.

use airmile_model::Record;

use crate::net::IpPacket;
use crate::run::{SenderPlace, SenderState};
use crate::transport::tcp::ConnectionEvent;
use crate::user::UserId;

/// Capture point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapturePoint {
    /// At the phone.
    Phone,
    /// At the box, on the base station's side.
    ProxyRan,
    /// At the box, on the server's side.
    ProxyCore,
    /// At the server.
    Server,
}

/// Where a packet was dropped.
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

/// Receives the output of a run. All methods are optional.
pub trait RunSink {
    /// Records of the measured phone's modem log, in time order.
    fn record(&mut self, record: Record) {
        let _ = record;
    }

    /// A packet of the measured phone passes a capture point.
    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        let _ = (at_ns, point, packet);
    }

    /// A packet of a user is dropped.
    fn dropped(&mut self, at_ns: i64, user: UserId, point: DropPoint, packet: &IpPacket) {
        let _ = (at_ns, user, point, packet);
    }

    /// A packet of the measured phone is passed to the firmware's buffer, below a queueing
    /// discipline ([`crate::Scenario::uplink_queue`]).
    fn handed_over(&mut self, at_ns: i64, packet: &IpPacket) {
        let _ = (at_ns, packet);
    }

    /// Bytes in the measured phone's firmware at the start of a TTI.
    fn firmware(&mut self, at_ns: i64, bytes: u64) {
        let _ = (at_ns, bytes);
    }

    /// How often the measured phone's gate has rejected the modem's log, once a TTI.
    fn log_rejections(&mut self, times: u64) {
        let _ = times;
    }

    /// Whether the next two methods are needed.
    fn wants_senders(&self) -> bool {
        false
    }

    /// State of a TCP sender of the measured phone's traffic, once a ms if it changed.
    fn sender_state(&mut self, state: &SenderState) {
        let _ = state;
    }

    /// An event of such a sender, reported at the end of its ms.
    fn sender_event(&mut self, place: SenderPlace, event: &ConnectionEvent) {
        let _ = (place, event);
    }

    /// Whether a run with applications may end early; called once a ms. `all_done`: the
    /// applications of all phones, not only of the measured one, have finished.
    fn has_enough(&mut self, all_done: bool) -> bool {
        let _ = all_done;
        false
    }
}

/// Discards all output.
impl RunSink for () {}
