//! Crypto-PAn: prefix-preserving pseudonyms of addresses (Xu, Fan, Ammar, Moon:
//! "Prefix-Preserving IP Address Anonymization: Measurement-based Security
//! Evaluation and a New Cryptography-based Scheme", ICNP 2002, section 4).

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use super::KEY_BYTES;

/// Maximum bits of an address.
const MAX_BITS: usize = 128;

/// The scheme under a key.
#[derive(Clone)]
pub struct CryptoPan {
    cipher: Aes128,
    pad: u128,
}

impl CryptoPan {
    /// The first half of the key is the cipher's; the second half, encrypted, is the
    /// padding (as in the authors' implementation).
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        let (cipher, pad) = halves(key);
        let cipher = Aes128::new(&Array(cipher));
        let mut block = Array(pad);
        cipher.encrypt_block(&mut block);
        Self { cipher, pad: u128::from_be_bytes(block.0) }
    }

    /// The pseudonym of an IPv4 address.
    #[must_use]
    pub fn v4(&self, address: u32) -> u32 {
        address ^ (self.flips(u128::from(address) << 96, 32) >> 96) as u32
    }

    /// The pseudonym of an IPv6 address.
    #[must_use]
    pub fn v6(&self, address: u128) -> u128 {
        address ^ self.flips(address, 128)
    }

    /// Which of the first `bits` of a left-aligned address are flipped: bit i if the
    /// cipher's first bit over the i bits before it and the padding after them is set
    /// (equation 1: `f_i(a_1 ... a_i) = L(R(P(a_1 ... a_i), k))`).
    pub(super) fn flips(&self, address: u128, bits: usize) -> u128 {
        let mut blocks = [Array([0; 16]); MAX_BITS];
        let blocks = &mut blocks[..bits.min(MAX_BITS)];
        for (i, block) in blocks.iter_mut().enumerate() {
            let prefix = u128::MAX.checked_shl(128 - i as u32).unwrap_or(0);
            block.0 = (address & prefix | self.pad & !prefix).to_be_bytes();
        }
        self.cipher.encrypt_blocks(blocks);
        blocks
            .iter()
            .enumerate()
            .fold(0, |flips, (i, block)| flips | u128::from(block.0[0] >> 7) << (127 - i))
    }
}

/// A key's two halves.
pub(super) fn halves(key: &[u8; KEY_BYTES]) -> ([u8; 16], [u8; 16]) {
    let value = |half: &[u8]| half.iter().fold(0_u128, |sum, &byte| sum << 8 | u128::from(byte));
    let (first, second) = key.split_at(16);
    (value(first).to_be_bytes(), value(second).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// The key of the authors' sample.
    const KEY: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    /// Addresses of the authors' sample, and their pseudonyms.
    const SAMPLE: [(&str, &str); 10] = [
        ("128.11.68.132", "135.242.180.132"),
        ("129.118.74.4", "134.136.186.123"),
        ("130.132.252.244", "133.68.164.234"),
        ("141.223.7.43", "141.167.8.160"),
        ("141.233.145.108", "141.129.237.235"),
        ("152.163.225.39", "151.140.114.167"),
        ("156.29.3.236", "147.225.12.42"),
        ("165.247.96.84", "162.9.99.234"),
        ("166.107.77.190", "160.132.178.185"),
        ("192.102.249.13", "252.138.62.131"),
    ];

    #[test]
    fn addresses_of_the_published_sample() {
        let pan = CryptoPan::new(&KEY);
        for (raw, expected) in SAMPLE {
            let raw: Ipv4Addr = raw.parse().unwrap();
            assert_eq!(Ipv4Addr::from(pan.v4(raw.into())).to_string(), expected);
        }
    }

    /// A property of the scheme: the cipher's inputs for two neighbouring bits are the same where the
    /// first one equals the padding's.
    #[test]
    fn neighbouring_bits_of_the_published_sample_flip_together() {
        let pad = (CryptoPan::new(&KEY).pad >> 96) as u32;
        for (raw, expected) in SAMPLE {
            let [raw, expected] =
                [raw, expected].map(|text| u32::from(text.parse::<Ipv4Addr>().unwrap()));
            let flips = raw ^ expected;
            let same_input = !(raw ^ pad);
            assert_eq!((flips ^ flips << 1) & same_input & !1, 0, "{raw:x} became {expected:x}");
        }
    }

    #[test]
    fn ipv6_goes_on_with_the_same_bits() {
        let pan = CryptoPan::new(&KEY);
        for (raw, expected) in [
            ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
            ("::2", "78ff:f001:9fc0:20df:8380:b1f1:704:ef"),
            ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
        ] {
            let raw: Ipv6Addr = raw.parse().unwrap();
            assert_eq!(Ipv6Addr::from(pan.v6(raw.into())).to_string(), expected);
        }
    }
}
