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

use airmile_control::ControllerKind;
use quinn_proto::{TransportConfig, VarInt, congestion};
use serde::{Deserialize, Serialize};

pub use host::{QuicHost, QuicSnapshot};

/// Which congestion control a QUIC host uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuicControl {
    /// quinn's CUBIC.
    QuinnCubic,
    /// quinn's NewReno.
    QuinnNewReno,
    /// quinn's BBR.
    Bbr,
    /// One of ours.
    #[serde(untagged)]
    Ours(ControllerKind),
}

/// What a QUIC host is set to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuicConfig {
    /// Congestion control.
    pub control: QuicControl,
    /// What the peer may send on one stream beyond what is read, in bytes.
    pub stream_receive_window_bytes: u32,
    /// And on the connection.
    pub receive_window_bytes: u32,
    /// What the application may write beyond what is acknowledged.
    pub send_window_bytes: u64,
    /// Streams that the peer may have open.
    pub max_streams: u32,
}

impl Default for QuicConfig {
    fn default() -> Self {
        Self {
            control: QuicControl::QuinnCubic,
            // As browsers: 6 MB a stream, 15 MB a connection (chosen here).
            stream_receive_window_bytes: 6 << 20,
            receive_window_bytes: 15 << 20,
            send_window_bytes: 10 << 20,
            max_streams: 100,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_have_names() {
        let check = |text: &str, control: QuicControl| {
            let config: QuicConfig = serde_json::from_str(text).unwrap();
            assert_eq!(config.control, control, "{text}");
            let again = serde_json::to_string(&config).unwrap();
            assert_eq!(serde_json::from_str::<QuicConfig>(&again).unwrap(), config);
        };
        check("{}", QuicControl::QuinnCubic);
        check(r#"{"control": "bbr"}"#, QuicControl::Bbr);
        check(r#"{"control": "quinn-new-reno"}"#, QuicControl::QuinnNewReno);
        check(
            r#"{"control": {"name": "cubic", "hystart": true}}"#,
            QuicControl::Ours(ControllerKind::Cubic { hystart: true }),
        );
        assert!(serde_json::from_str::<QuicConfig>(r#"{"control": "vegas"}"#).is_err());
    }
}
