//! What QUIC hosts are set to.

use airmile_control::ControllerKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which congestion control a QUIC host uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
