//! Configuration of QUIC hosts.

use airmile_control::ControllerKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Congestion control of a QUIC host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuicControl {
    /// quinn's CUBIC.
    QuinnCubic,
    /// quinn's NewReno.
    QuinnNewReno,
    /// quinn's BBR.
    Bbr,
    /// One of airmile's controllers.
    #[serde(untagged)]
    Ours(ControllerKind),
}

/// Configuration of a QUIC host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuicConfig {
    /// Congestion control.
    pub control: QuicControl,
    /// Flow control limit of a stream, in bytes.
    pub stream_receive_window_bytes: u32,
    /// Flow control limit of the connection, in bytes.
    pub receive_window_bytes: u32,
    /// Bytes that the application may write beyond the acknowledged ones.
    pub send_window_bytes: u64,
    /// Maximum number of streams that the peer may open.
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
