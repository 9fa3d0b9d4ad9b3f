//! CLAW in the kernel's TCP: `claw`, a congestion control in BPF for unmodified servers
//! (nginx, Apache, ...), and the option written by a phone's own TCP.
//!
//! Requires the feature `bpf`, as it needs clang; see docs/claw.md.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use airmile_control::claw::OperatorLimits;
use airmile_control::claw::feedback::FeedbackKey;
use serde::Serialize;

use crate::error::{Error, Result};

#[cfg(feature = "bpf")]
mod control_group;
#[cfg(test)]
mod limits;
#[cfg(feature = "bpf")]
mod loader;
#[cfg(feature = "bpf")]
mod maps;
#[cfg(feature = "bpf")]
mod stats;
#[cfg(not(feature = "bpf"))]
mod without;

#[cfg(feature = "bpf")]
pub use control_group::ControlGroup;
#[cfg(feature = "bpf")]
pub use loader::{Attached, OptionWriter};
#[cfg(not(feature = "bpf"))]
pub use without::{Attached, ControlGroup, OptionWriter};

/// Which connections use CLAW, and how.
#[derive(Debug)]
pub struct AttachOptions {
    /// Connections of this control group; for the root group: of the current network
    /// namespace.
    pub cgroup: ControlGroup,
    /// Only connections to clients in this network.
    pub clients: Option<ClientNetwork>,
    /// Address for reports over UDP; `None`: only TCP options.
    pub reports: Option<SocketAddr>,
    /// A key shared with clients.
    pub shared_key: Option<FeedbackKey>,
    /// Limits on feedback.
    pub limits: OperatorLimits,
    /// Measure the time per ACK in BPF.
    pub measure: bool,
}

/// An address and its prefix length, as IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientNetwork {
    pub(crate) address: u128,
    pub(crate) mask: u128,
}

impl ClientNetwork {
    /// Parses `ADDRESS/BITS`, or an address alone.
    ///
    /// # Errors
    /// It is not a network.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::Option(format!("{text}: use a network such as 192.0.2.0/24"));
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits: u32 = if bits.is_empty() { most } else { bits.parse().map_err(|_| wrong())? };
        if bits > most {
            return Err(wrong());
        }
        let mask = u128::MAX.checked_shl(most - bits).unwrap_or(0);
        let address = u128::from(as_ipv6(address));
        // All IPv4 addresses have the same first 96 bits.
        let mask = if most == 32 { mask | u128::MAX << 32 } else { mask };
        Ok(Self { address: address & mask, mask })
    }
}

/// An address in the form of the BPF maps.
pub(crate) const fn as_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Counters of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Connections that started with `claw`.
    pub connections: u64,
    /// ACKs.
    pub acks: u64,
    /// ACKs with a client's window in use.
    pub acks_with_client_window: u64,
    /// Options read.
    pub options_read: u64,
    /// Options written.
    pub options_written: u64,
    /// ACKs without room for an option.
    pub options_without_room: u64,
    /// The largest window that a client has set on a connection, in bytes.
    pub most_client_window_bytes: u64,
    /// Times that trust in a client was withdrawn.
    pub withdrawn: u64,
    /// Losses excused as the radio's, without a smaller window.
    pub radio_losses_excused: u64,
    /// Reports accepted over UDP.
    pub reports: u64,
    /// Reports and hellos with another key.
    pub forged: u64,
    /// Replayed reports.
    pub replayed: u64,
    /// Reports beyond a session's rate.
    pub too_many: u64,
    /// Datagrams received on the port for reports.
    pub datagrams: u64,
    /// Their bytes, without the headers of UDP and IP.
    pub datagram_bytes: u64,
    /// Median time per ACK in BPF, in ns, to 16 ns.
    pub ack_p50_ns: Option<u64>,
    /// 99th percentile of it.
    pub ack_p99_ns: Option<u64>,
    /// The kernel's own accounting for each program (`bpf_stats`), if enabled.
    pub programs: BTreeMap<String, ProgramTime>,
}

/// A program's run time by the kernel's accounting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ProgramTime {
    /// Number of runs.
    pub runs: u64,
    /// Mean run time in ns.
    pub mean_ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let check = |text: &str, expected: Option<(&str, u32)>| {
            let expected = expected.map(|(address, bits)| ClientNetwork {
                address: address.parse::<Ipv6Addr>().unwrap().into(),
                mask: u128::MAX.checked_shl(128 - bits).unwrap_or(0),
            });
            assert_eq!(ClientNetwork::parse(text).ok(), expected, "{text}");
        };
        check("192.0.2.9/24", Some(("::ffff:192.0.2.0", 120)));
        check("192.0.2.9", Some(("::ffff:192.0.2.9", 128)));
        check("0.0.0.0/0", Some(("::ffff:0.0.0.0", 96)));
        check("2001:db8::1/32", Some(("2001:db8::", 32)));
        check("::/0", Some(("::", 0)));
        for wrong in ["", "192.0.2.0/33", "192.0.2/24", "::/129", "192.0.2.0/x"] {
            check(wrong, None);
        }
    }
}
