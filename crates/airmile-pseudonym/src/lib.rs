//! Keyed pseudonyms: the same identity has the same pseudonym in every file scrubbed with
//! the same key, and it cannot be reversed without the key.
//!
//! IP addresses keep their common prefixes ([`CryptoPan`]); identities without structure
//! (MAC addresses, cells, tunnels) are permuted within their own range ([`Permutation`]).

mod addresses;
mod changes;
mod crypto_pan;
mod permutation;

pub use changes::Changes;
pub use crypto_pan::CryptoPan;
pub use permutation::Permutation;

use std::collections::HashMap;
use std::hash::Hash;

/// Bytes of a key: 16 of AES-128, 16 of the padding of Crypto-PAn.
pub const KEY_BYTES: usize = 32;

/// Maximum number of cached pseudonyms of each kind; beyond it the cache is cleared
/// (chosen here: some megabytes).
const KEPT: usize = 1 << 16;

/// A kind of permuted identity; each has its own permutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// A MAC address.
    Mac,
    /// Tunnel endpoint of GTP-U (TS 29.281, 5.1).
    Tunnel,
    /// PPPoE session (RFC 2516, 4).
    Session,
    /// Checksum over removed payload.
    Checksum,
    /// Physical cell identity (TS 36.211, 6.11): 0 to 503.
    PhysicalCell,
    /// Cell identity of 28 bits (TS 36.331, 6.3.4 `CellIdentity`).
    Cell,
    /// Tracking area code (TS 24.301, 9.9.3.32).
    TrackingArea,
    /// C-RNTI (TS 36.321, 7.1).
    Rnti,
}

impl Identity {
    /// The exclusive upper limit of the values.
    const fn limit(self) -> u64 {
        match self {
            // 48 bits, without the bits that mark groups and local addresses.
            Self::Mac => 1 << 46,
            Self::Tunnel => 1 << 32,
            Self::Session | Self::TrackingArea => 1 << 16,
            // 0 means no checksum, and stays.
            Self::Checksum => 0xffff,
            Self::PhysicalCell => 504,
            Self::Cell => 1 << 28,
            // TS 36.321, table 7.1-1: values above it are reserved.
            Self::Rnti => 0xfff4,
        }
    }
}

/// Creates pseudonyms.
#[derive(Clone)]
pub struct Pseudonyms {
    pan: CryptoPan,
    permutation: Permutation,
    v4: HashMap<u32, u32>,
    v6: HashMap<u128, u128>,
    macs: HashMap<[u8; 6], [u8; 6]>,
}

impl std::fmt::Debug for Pseudonyms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is secret.
        f.debug_struct("Pseudonyms").finish_non_exhaustive()
    }
}

impl Pseudonyms {
    /// With a key of random bytes.
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self {
            pan: CryptoPan::new(key),
            permutation: Permutation::new(key),
            v4: HashMap::new(),
            v6: HashMap::new(),
            macs: HashMap::new(),
        }
    }

    /// The pseudonym of an IPv4 address; see [`Self::v6`].
    pub fn v4(&mut self, address: [u8; 4]) -> [u8; 4] {
        let Self { pan, v4, .. } = self;
        let value = u32::from_be_bytes(address);
        kept(v4, value, |value| addresses::v4(pan, value)).to_be_bytes()
    }

    /// The pseudonym of an IPv6 address.
    ///
    /// Addresses that agree in n leading bits have pseudonyms that agree in exactly n.
    /// Private, shared, link-local and group addresses stay in their networks, since
    /// these identify clients; unspecified, loopback (IPv6) and limited broadcast
    /// addresses stay unchanged. As a consequence, addresses whose first bits are those
    /// of such a network keep these bits, and the next one.
    pub fn v6(&mut self, address: [u8; 16]) -> [u8; 16] {
        let Self { pan, v6, .. } = self;
        let value = u128::from_be_bytes(address);
        kept(v6, value, |value| addresses::v6(pan, value)).to_be_bytes()
    }

    /// The pseudonym of a MAC address. The bits that mark groups and locally administered
    /// addresses stay (IEEE 802, 8.2), as do all zeros and all ones.
    pub fn mac(&mut self, address: [u8; 6]) -> [u8; 6] {
        if address == [0; 6] || address == [0xff; 6] {
            return address;
        }
        let Self { permutation, macs, .. } = self;
        kept(macs, address, |[a, b, c, d, e, f]| {
            let bits = u64::from_be_bytes([0, 0, a >> 2, b, c, d, e, f]);
            let [.., x, b, c, d, e, f] = permutation.of(Identity::Mac, bits).to_be_bytes();
            [x << 2 | a & 3, b, c, d, e, f]
        })
    }

    /// The pseudonym of a numeric identity; a number out of range stays.
    #[must_use]
    pub fn number(&self, identity: Identity, value: u64) -> u64 {
        self.permutation.of(identity, value)
    }

    /// The pseudonym of a text, such as the name of a host.
    #[must_use]
    pub fn text(&self, text: &str) -> u64 {
        self.permutation.digest(text)
    }

    /// The pseudonym of a checksum: equal ones stay equal, and 0, which means none, stays.
    #[must_use]
    pub fn checksum(&self, checksum: u16) -> u16 {
        match checksum.checked_sub(1) {
            None => 0,
            Some(value) => self.number(Identity::Checksum, value.into()) as u16 + 1,
        }
    }
}

fn kept<T: Copy + Eq + Hash>(kept: &mut HashMap<T, T>, value: T, make: impl Fn(T) -> T) -> T {
    if let Some(&known) = kept.get(&value) {
        return known;
    }
    if kept.len() >= KEPT {
        kept.clear();
    }
    let made = make(value);
    kept.insert(value, made);
    made
}

#[cfg(test)]
mod tests;
