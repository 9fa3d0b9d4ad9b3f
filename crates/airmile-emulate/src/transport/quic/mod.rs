//! QUIC in virtual time: `quinn-proto` with the interfaces [`Host`](crate::net::Host) and
//! [`Sockets`](crate::workload::Sockets), and a session without encryption, so that the
//! same seed gives the same packet times and sizes.
//!
//! Except for [`QuicControl::Bbr`], which draws the start of its cycle from the system's
//! random numbers.

mod clock;
mod control;
mod crypto;
mod host;
mod sockets;

use std::sync::Arc;

use quinn_proto::{TransportConfig, VarInt, congestion};

pub use host::{QuicHost, QuicSnapshot};

pub use crate::scenario::{QuicConfig, QuicControl};

impl QuicConfig {
    fn transport(&self, made: control::Made) -> Arc<TransportConfig> {
        let mut transport = TransportConfig::default();
        match self.control {
            QuicControl::QuinnCubic => transport
                .congestion_controller_factory(Arc::new(congestion::CubicConfig::default())),
            QuicControl::QuinnNewReno => transport
                .congestion_controller_factory(Arc::new(congestion::NewRenoConfig::default())),
            QuicControl::Bbr => {
                transport.congestion_controller_factory(Arc::new(congestion::BbrConfig::default()))
            }
            QuicControl::Ours(kind) => {
                transport.congestion_controller_factory(Arc::new(control::Factory { kind, made }))
            }
        };
        transport
            .stream_receive_window(VarInt::from_u32(self.stream_receive_window_bytes))
            .receive_window(VarInt::from_u32(self.receive_window_bytes))
            .send_window(self.send_window_bytes)
            .max_concurrent_bidi_streams(VarInt::from_u32(self.max_streams))
            // One datagram per packet.
            .enable_segmentation_offload(false);
        Arc::new(transport)
    }
}
