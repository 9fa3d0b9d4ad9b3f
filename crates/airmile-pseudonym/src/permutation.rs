//! Keyed permutations of numbers: a balanced Feistel network with AES as round function
//! (Luby and Rackoff 1988), iterated until the value is back in range (cycle walking;
//! Black and Rogaway: "Ciphers with Arbitrary Finite Domains", 2002, section 4).

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use super::crypto_pan::halves;
use super::{Identity, KEY_BYTES};

/// Rounds (NIST SP 800-38G asks for ten of FF1).
const ROUNDS: u8 = 10;

/// Constant from which the permutations' key is derived; chosen here.
const KEY_OF: [u8; 16] = *b"airmile feistel1";

/// Permutations of every kind of identity.
#[derive(Clone)]
pub struct Permutation {
    cipher: Aes128,
}

impl Permutation {
    /// With the same key as the addresses; the cipher's own key is derived from it.
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        let cipher = Aes128::new(&Array(halves(key).0));
        let mut own = Array(KEY_OF);
        cipher.encrypt_block(&mut own);
        Self { cipher: Aes128::new(&own) }
    }

    /// The permuted number; one out of the kind's range stays.
    #[must_use]
    pub fn of(&self, identity: Identity, value: u64) -> u64 {
        let limit = identity.limit();
        if value >= limit {
            return value;
        }
        let half = (64 - (limit - 1).leading_zeros()).div_ceil(2);
        // The range is at least a quarter of the network's, and a permutation returns to
        // its starting point.
        let mut walked = self.network(identity, half, value);
        while walked >= limit {
            walked = self.network(identity, half, walked);
        }
        walked
    }

    /// A keyed digest of a text: the first half of AES-CBC-MAC over its length and its bytes (Bellare,
    /// Kilian, Rogaway: "The Security of the Cipher Block Chaining Message Authentication Code", JCSS
    /// 2000: secure where no input is the beginning of another).
    #[must_use]
    pub fn digest(&self, text: &str) -> u64 {
        // No identity has this number.
        let mut state = (0xff << 120 | text.len() as u128).to_be_bytes();
        let encrypt = |state: &mut [u8; 16]| {
            let mut block = Array(*state);
            self.cipher.encrypt_block(&mut block);
            *state = block.0;
        };
        encrypt(&mut state);
        for piece in text.as_bytes().chunks(16) {
            state.iter_mut().zip(piece).for_each(|(byte, own)| *byte ^= own);
            encrypt(&mut state);
        }
        (u128::from_be_bytes(state) >> 64) as u64
    }

    fn network(&self, identity: Identity, half: u32, value: u64) -> u64 {
        let mask = (1 << half) - 1;
        let (mut left, mut right) = (value >> half, value & mask);
        for round in 0..ROUNDS {
            let input = u128::from(identity as u8) << 120 | u128::from(round) << 112;
            let mut block = Array((input | u128::from(right)).to_be_bytes());
            self.cipher.encrypt_block(&mut block);
            let output = u128::from_be_bytes(block.0) as u64 & mask;
            (left, right) = (right, left ^ output);
        }
        left << half | right
    }
}
