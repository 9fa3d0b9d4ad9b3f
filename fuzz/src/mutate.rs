//! Damage.

use rand::{Rng, RngExt};

/// Damages `bytes` once, by one of several means; `other` is spliced in.
pub fn damage(bytes: &mut Vec<u8>, other: &[u8], rng: &mut impl Rng) {
    if bytes.is_empty() {
        bytes.push(rng.random());
        return;
    }
    let len = bytes.len();
    let at = rng.random_range(0..len);
    match rng.random_range(0..9) {
        // Bit flips.
        0 | 1 => bytes[at] ^= 1 << rng.random_range(0..8),
        2 => bytes[at] = rng.random(),
        // Typical invalid lengths and counts, near the front.
        3 | 4 => {
            let at = rng.random_range(0..len.min(40));
            bytes[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][rng.random_range(0..6)];
        }
        5 => {
            let at = rng.random_range(0..len.min(40));
            let word: u16 = [0, 1, 3, 11, 12, 0x7fff, 0xffff][rng.random_range(0..7)];
            bytes.splice(at..(at + 2).min(len), word.to_le_bytes());
        }
        // Truncation, at the end or out of the middle.
        6 => bytes.truncate(at),
        7 => {
            let end = (at + rng.random_range(1..40)).min(len);
            bytes.drain(at..end);
        }
        // A splice.
        _ => {
            let from = rng.random_range(0..=other.len());
            let to = (from + rng.random_range(0..60)).min(other.len());
            bytes.splice(at..at, other[from..to].iter().copied());
        }
    }
}
