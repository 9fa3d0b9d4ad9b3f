//! Words to well-spread words.

/// Folds the 128-bit product of two words, each with an odd constant (from the
/// binary digits of the golden ratio and of the square root of 3) on it.
#[inline]
pub(super) const fn mix(a: u64, b: u64) -> u64 {
    let product = (a ^ 0x9e37_79b9_7f4a_7c15) as u128 * (b ^ 0xbb67_ae85_84ca_a73b) as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses and ports that count up fill buckets evenly.
    #[test]
    fn neighbours_are_spread() {
        let mut buckets = [0_u32; 256];
        for n in 0..65_536_u64 {
            buckets[(mix(n, 443) >> 57) as usize * 2] += 1;
            buckets[(mix(7, n << 16) % 128) as usize * 2 + 1] += 1;
        }
        assert!(buckets.iter().all(|n| (256..1024).contains(n)), "{buckets:?}");
    }
}
