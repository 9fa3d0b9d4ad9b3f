//! The kernel's TCP: `claw`, a congestion control in BPF, for servers that are not to be
//! changed (nginx, Apache, ...), and the option that a phone's own TCP writes.
//!
//! Built with the feature `bpf` alone, as it needs clang; see docs/claw.md.

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

/// What becomes CLAW's.
#[derive(Debug)]
pub struct AttachOptions {
    /// Connections of this control group; of that of all: of the network namespace that we
    /// are in.
    pub cgroup: ControlGroup,
    /// Connections to clients in this network alone.
    pub clients: Option<ClientNetwork>,
    /// Where to listen for reports over UDP; none: options of TCP alone.
    pub reports: Option<SocketAddr>,
    /// A key that clients have.
    pub shared_key: Option<FeedbackKey>,
    /// What reports may set.
    pub limits: OperatorLimits,
    /// Measure how long each ACK takes in BPF.
    pub measure: bool,
}

/// An address and how many of its bits count, as IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientNetwork {
    pub(crate) address: u128,
    pub(crate) mask: u128,
}

impl ClientNetwork {
    /// Reads `ADDRESS/BITS`, or an address alone.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::Option(format!("{text}: give a network as 192.0.2.0/24"));
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

/// As the kernel's part has addresses.
pub(crate) const fn as_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// How it went.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Connections that `claw` was begun on.
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
    /// The largest window in bytes that a client has set on a connection.
    pub most_client_window_bytes: u64,
    /// Times that a client was not believed any more for a while.
    pub withdrawn: u64,
    /// Losses that were the radio's, and were not answered by a smaller window.
    pub radio_losses_excused: u64,
    /// Reports over UDP taken.
    pub reports: u64,
    /// Reports and hellos of another key.
    pub forged: u64,
    /// Reports that were there already.
    pub replayed: u64,
    /// Reports that were more than a session may send.
    pub too_many: u64,
    /// Datagrams that came to the port of reports, and the bytes of them.
    pub datagrams: u64,
    /// Bytes of those, without the headers of UDP and IP.
    pub datagram_bytes: u64,
    /// Median of an ACK's time in BPF, in ns, to 16 ns.
    pub ack_p50_ns: Option<u64>,
    /// 99th percentile of it.
    pub ack_p99_ns: Option<u64>,
    /// What the kernel itself accounts to each program (`bpf_stats`), where it is measured.
    pub programs: BTreeMap<String, ProgramTime>,
}

/// A program's time, as the kernel accounts for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ProgramTime {
    /// How often it ran.
    pub runs: u64,
    /// Mean of its time in ns.
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
