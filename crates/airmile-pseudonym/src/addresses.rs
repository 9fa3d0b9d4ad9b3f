//! Crypto-PAn with networks that are preserved.
//!
//! Whether a bit is flipped depends only on the bits before it; if these are the
//! beginning of a preserved network, it is not flipped. So a network maps onto itself, no
//! other address maps into it, and prefixes are preserved exactly.

use super::CryptoPan;

/// Preserved IPv4 networks: address and prefix in bits.
const V4: [(u32, u32); 9] = [
    (0x0000_0000, 32), // unspecified (RFC 1122, 3.2.1.3)
    (0x0a00_0000, 8),  // private (RFC 1918)
    (0x6440_0000, 10), // shared (RFC 6598)
    (0x7f00_0000, 8),  // loopback (RFC 1122)
    (0xa9fe_0000, 16), // link-local (RFC 3927)
    (0xac10_0000, 12), // private (RFC 1918)
    (0xc0a8_0000, 16), // private (RFC 1918)
    (0xe000_0000, 4),  // groups (RFC 5771)
    (0xffff_ffff, 32), // limited broadcast (RFC 919)
];

/// Preserved IPv6 networks.
const V6: [(u128, u32); 4] = [
    (0, 127),            // unspecified and loopback (RFC 4291, 2.5.2, 2.5.3)
    (0xfc00 << 112, 7),  // unique local (RFC 4193)
    (0xfe80 << 112, 64), // link-local (RFC 4291, 2.5.6)
    (0xff00 << 112, 8),  // groups (RFC 4291, 2.7)
];

/// Networks whose last 32 bits are an IPv4 address: mapped (RFC 4291, 2.5.5.2)
/// and translated (RFC 6052, 2.1).
const V4_WITHIN: [u128; 2] = [0xffff << 32, 0x0064_ff9b << 96];

pub(super) fn v4(pan: &CryptoPan, address: u32) -> u32 {
    let kept = V4
        .iter()
        .map(|&(network, bits)| kept_bits(u128::from(address ^ network) << 96, bits))
        .max()
        .unwrap_or(0);
    let stay = u32::MAX.checked_shr(kept).unwrap_or(0);
    address ^ ((pan.flips(u128::from(address) << 96, 32) >> 96) as u32 & stay)
}

pub(super) fn v6(pan: &CryptoPan, address: u128) -> u128 {
    if V4_WITHIN.contains(&(address & !0xffff_ffff)) {
        return address & !0xffff_ffff | u128::from(v4(pan, address as u32));
    }
    let within = V4_WITHIN.iter().map(|&network| (network, 96));
    let mut kept = V6
        .iter()
        .copied()
        .chain(within)
        .map(|(network, bits)| kept_bits(address ^ network, bits))
        .max()
        .unwrap_or(0);
    // Flags and scope of a group (RFC 4291, 2.7).
    if address >> 120 == 0xff {
        kept = kept.max(16);
    }
    // Unspecified and loopback differ in their last bit, which also stays.
    if address >> 1 == 0 {
        return address;
    }
    address ^ (pan.flips(address, 128) & u128::MAX.checked_shr(kept).unwrap_or(0))
}

/// Number of leading bits kept for a network of `bits`, given how an address differs from
/// it: those that agree, and the next one.
fn kept_bits(difference: u128, bits: u32) -> u32 {
    (difference.leading_zeros() + 1).min(bits)
}
