//! Packet captures: containers to frames, frames to packets.
//!
//! [`CaptureReader`] takes the bytes of a pcap or pcapng file in pieces of any size and
//! returns frames; [`dissect`] reads the headers of one frame. Both borrow from their
//! input, and neither allocates per packet.

mod capture;
mod common;
mod dissect;
mod ip;
mod pcap;
mod pcapng;
mod phone_vpn;
mod reassembly;
pub mod scrub;
mod tcp;
mod tunnel;

pub use capture::{CaptureFormat, CaptureReader, Captured, Frame};
pub use dissect::{Unread, dissect, dissect_with};
pub use pcap::pcap_boundary;
pub use phone_vpn::{VpnSign, vpn_sign};
pub use reassembly::{Dissector, FragmentCounts};

/// Supported link types (the IANA/tcpdump registry of LINKTYPE values).
pub mod link {
    /// BSD loopback, host byte order.
    pub const NULL: u32 = 0;
    /// Ethernet.
    pub const ETHERNET: u32 = 1;
    /// PPP, possibly with HDLC's address and control bytes.
    pub const PPP: u32 = 9;
    /// Raw IP, as some systems number it.
    pub const RAW_12: u32 = 12;
    /// Raw IP, as OpenBSD numbers it.
    pub const RAW_14: u32 = 14;
    /// PPP in HDLC-like framing.
    pub const PPP_HDLC: u32 = 50;
    /// Raw IP.
    pub const RAW: u32 = 101;
    /// OpenBSD loopback, network byte order.
    pub const LOOP: u32 = 108;
    /// Linux cooked capture.
    pub const LINUX_SLL: u32 = 113;
    /// The second number for private use, under which macOS writes [`PKTAP`].
    pub const USER2: u32 = 149;
    /// Raw IPv4.
    pub const IPV4: u32 = 228;
    /// Raw IPv6.
    pub const IPV6: u32 = 229;
    /// Linux netfilter log.
    pub const NFLOG: u32 = 239;
    /// macOS: process and interface, then a frame of the link type in the header.
    pub const PKTAP: u32 = 258;
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: u32 = 276;
}
