//! Classification of packets by their kind, not by their sender.

use serde::{Deserialize, Serialize};

/// Tiers of the queueing above the gate, in the order of service.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Other traffic depends on it: DNS, acknowledgements, voice.
    Urgent,
    /// All other traffic; sparse flows go ahead of bulk (RFC 8290).
    Normal,
    /// Traffic that yields to all other (RFC 8622).
    Background,
}

impl Tier {
    /// All tiers in the order of service.
    pub const ALL: [Self; 3] = [Self::Urgent, Self::Normal, Self::Background];
}

/// Protocol number of TCP (RFC 9293).
pub const TCP: u8 = 6;

/// Protocol number of UDP (RFC 768).
pub const UDP: u8 = 17;

/// Properties of a packet that do not need its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketInfo {
    /// Flow identifier: equal for the packets of a connection in one direction.
    pub flow: u64,
    /// Remote host: equal for all packets to it, which share a path and its round-trip
    /// time.
    pub far: u64,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Protocol number.
    pub protocol: u8,
    /// Differentiated services code point (RFC 2474).
    pub dscp: u8,
    /// Local port; 0 if there is none.
    pub near_port: u16,
    /// Remote port.
    pub far_port: u16,
    /// Whether it is a TCP acknowledgement without data, SYN, FIN or RST.
    pub pure_ack: bool,
    /// For a TCP segment with data: the sequence number after its data (RFC 9293).
    pub tcp_end: Option<u32>,
}

/// Criteria of the classification. All of them can be switched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClassConfig {
    /// DNS queries go first: port 53 (RFC 1035), and 853 (RFC 7858).
    pub dns: bool,
    /// Acknowledgements without data go first.
    pub pure_acks: bool,
    /// The sender's DSCP applies: EF, VOICE-ADMIT and CS5 to CS7 go first, LE and CS1 last
    /// (RFC 8622; the others as in most home routers).
    pub dscp: bool,
    /// Remote ports that go first.
    pub urgent_ports: Vec<u16>,
    /// Remote ports that go last.
    pub background_ports: Vec<u16>,
}

impl Default for ClassConfig {
    fn default() -> Self {
        Self {
            dns: true,
            pure_acks: true,
            dscp: true,
            urgent_ports: Vec::new(),
            background_ports: Vec::new(),
        }
    }
}

impl ClassConfig {
    /// Disables all criteria.
    #[must_use]
    pub fn none() -> Self {
        Self { dns: false, pure_acks: false, dscp: false, ..Self::default() }
    }

    /// The tier of a packet. A listed port takes precedence; the other criteria apply in
    /// the order of the fields.
    #[must_use]
    pub fn tier(&self, packet: &PacketInfo) -> Tier {
        if self.urgent_ports.contains(&packet.far_port) {
            return Tier::Urgent;
        }
        if self.background_ports.contains(&packet.far_port) {
            return Tier::Background;
        }
        let dns = matches!(packet.far_port, 53 | 853) && matches!(packet.protocol, TCP | UDP);
        if (self.dns && dns) || (self.pure_acks && packet.pure_ack) {
            return Tier::Urgent;
        }
        match packet.dscp {
            // EF 46 (RFC 3246), VOICE-ADMIT 44 (RFC 5865), CS5, CS6, CS7 (RFC 2474).
            46 | 44 | 40 | 48 | 56 if self.dscp => Tier::Urgent,
            // LE 1 (RFC 8622), CS1 8 (RFC 3662).
            1 | 8 if self.dscp => Tier::Background,
            _ => Tier::Normal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_by_what_packets_are() {
        let packet = |protocol, far_port, dscp, pure_ack| PacketInfo {
            protocol,
            far_port,
            dscp,
            pure_ack,
            ..PacketInfo::default()
        };
        let ports = ClassConfig {
            urgent_ports: vec![22],
            background_ports: vec![53, 6881],
            ..ClassConfig::default()
        };
        let (all, none) = (ClassConfig::default(), ClassConfig::none());
        use Tier::{Background, Normal, Urgent};
        for (config, packet, expected) in [
            (&all, packet(TCP, 443, 0, false), Normal),
            (&all, packet(TCP, 443, 0, true), Urgent),
            (&all, packet(UDP, 53, 0, false), Urgent),
            (&all, packet(TCP, 853, 0, false), Urgent),
            (&all, packet(1, 53, 0, false), Normal),
            (&all, packet(UDP, 3478, 46, false), Urgent),
            (&all, packet(TCP, 443, 8, false), Background),
            (&all, packet(TCP, 443, 10, false), Normal),
            (&none, packet(UDP, 53, 46, true), Normal),
            (&ports, packet(TCP, 22, 8, false), Urgent),
            (&ports, packet(UDP, 53, 46, false), Background),
        ] {
            assert_eq!(config.tier(&packet), expected, "{packet:?}");
        }
    }
}
