//! Captures made by a phone itself without root.
//!
//! PCAPdroid is a VPN on the phone: it terminates each connection there and opens another
//! one to the server, so such a capture contains connections that never leave the phone.
//! It is recognised by the trailer that it can append to a frame, and by the address that
//! it assigns to the phone (both according to its public documentation; no such capture
//! was available). Other such applications for Android give all packets the same two hardware
//! addresses (by public captures).

use std::net::Ipv4Addr;

use super::{Frame, link};

/// The trailer: magic, user id, name of the application (20 bytes), check sum.
const TRAILER_BYTES: usize = 32;
const TRAILER_MAGIC: [u8; 4] = [0x01, 0x07, 0x20, 0x21];
/// The phone's address on the VPN.
const VPN_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 215, 173, 1);
/// The hardware addresses of both ends, in either order.
const VPN_ENDS: [[u8; 6]; 2] = [[0, 0x1a, 0x11, 0, 0, 1], [0, 0x1a, 0x11, 0, 0, 2]];

/// The sign that the phone's own VPN captured a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VpnSign {
    /// By PCAPdroid's trailer.
    Trailer,
    /// By the address of PCAPdroid's VPN.
    Address,
    /// By hardware addresses that no adapter has.
    Hardware,
}

/// Whether a frame comes from a VPN on a phone that captures without root.
#[must_use]
pub fn vpn_sign(frame: &Frame<'_>) -> Option<VpnSign> {
    let data = frame.data;
    let whole = data.len() as u64 == u64::from(frame.wire_bytes);
    let trailer = data.len().checked_sub(TRAILER_BYTES).and_then(|at| data.get(at..at + 4));
    if whole && trailer == Some(&TRAILER_MAGIC) {
        return Some(VpnSign::Trailer);
    }
    let [one, other] = VPN_ENDS;
    let is_between = |ends: [[u8; 6]; 2]| data.starts_with(ends.as_flattened());
    if frame.link == link::ETHERNET && (is_between([one, other]) || is_between([other, one])) {
        return Some(VpnSign::Hardware);
    }
    let ip = match frame.link {
        link::RAW | link::RAW_12 | link::RAW_14 | link::IPV4 => data,
        link::ETHERNET if data.get(12..14) == Some(&[8, 0]) => data.get(14..)?,
        _ => return None,
    };
    let address = |at: usize| ip.get(at..at + 4) == Some(&VPN_ADDRESS.octets());
    let is_ipv4 = ip.first().is_some_and(|byte| byte >> 4 == 4);
    (is_ipv4 && (address(12) || address(16))).then_some(VpnSign::Address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(link: u32, data: &[u8]) -> Frame<'_> {
        let wire_bytes = data.len() as u32;
        Frame { offset: 0, at_ns: 0, interface: 0, link, wire_bytes, data }
    }

    /// An IPv4 header without options, from one address to another.
    fn header(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
        let mut out = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0];
        out.extend(source);
        out.extend(destination);
        out
    }

    #[test]
    fn the_trailer_and_the_address_show_the_vpn() {
        let plain = header([192, 168, 1, 7], [192, 0, 2, 1]);
        assert_eq!(vpn_sign(&frame(link::RAW, &plain)), None);
        let mut marked = plain.clone();
        marked.extend(TRAILER_MAGIC);
        marked.extend([0; 28]);
        assert_eq!(vpn_sign(&frame(link::RAW, &marked)), Some(VpnSign::Trailer));
        // A truncated frame has no trailer.
        let cut = Frame { wire_bytes: 1_000, ..frame(link::RAW, &marked) };
        assert_eq!(vpn_sign(&cut), None);
        for ip in
            [header([10, 215, 173, 1], [192, 0, 2, 1]), header([192, 0, 2, 1], [10, 215, 173, 1])]
        {
            assert_eq!(vpn_sign(&frame(link::RAW, &ip)), Some(VpnSign::Address));
            let ethernet = [&[0; 12][..], &[8, 0], &ip].concat();
            assert_eq!(vpn_sign(&frame(link::ETHERNET, &ethernet)), Some(VpnSign::Address));
        }
        let [one, other] = VPN_ENDS;
        for (ends, expected) in [
            ([one, other], Some(VpnSign::Hardware)),
            ([other, one], Some(VpnSign::Hardware)),
            ([one, one], None),
        ] {
            let ethernet = [ends.as_flattened(), &[8, 0], &plain].concat();
            assert_eq!(vpn_sign(&frame(link::ETHERNET, &ethernet)), expected);
        }
        assert_eq!(vpn_sign(&frame(link::RAW, &[0x45])), None);
        assert_eq!(vpn_sign(&frame(link::RAW, &[])), None);
    }
}
