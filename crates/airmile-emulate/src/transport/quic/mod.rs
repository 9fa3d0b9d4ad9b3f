//! QUIC in virtual time: `quinn-proto` behind [`Host`](crate::net::Host) and
//! [`Sockets`](crate::workload::Sockets), with a session that encrypts nothing,
//! so that the same seed gives the same packet times and sizes.
//!
//! Not so with [`QuicControl::Bbr`], which draws where its cycle begins from the
//! system's random numbers.

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
            // One datagram a packet.
            .enable_segmentation_offload(false);
        Arc::new(transport)
    }
}
