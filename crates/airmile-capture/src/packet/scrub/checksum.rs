//! The Internet checksum (RFC 1071), with incremental updates (RFC 1624).

/// The one's complement sum of 16-bit words, not yet folded; an odd byte counts
/// as the high one of its word.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    bytes
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |&low| u32::from(low)))
        .sum()
}

const fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// Whether the sum over all data covered by a checksum, itself included, shows that it is
/// right (RFC 1071, 1).
pub(super) const fn is_right(sum: u32) -> bool {
    fold(sum) == u16::MAX
}

/// A checksum after words that summed up to `before` now sum up to `after`
/// (RFC 1624, equation 3: `HC' = ~(~HC + ~m + m')`).
pub(super) const fn updated(checksum: u16, before: u32, after: u32) -> u16 {
    let (before, after) = (fold(before), fold(after));
    if before == after {
        return checksum;
    }
    !fold(!checksum as u32 + !before as u32 + after as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_rfc_1624() {
        // Section 4: HC = 0xdd2f, m = 0x5555 becomes m' = 0x3285, HC' = 0x0000.
        assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn right_stays_right_and_wrong_as_wrong(
            before in prop::collection::vec(1u8.., 20), after in prop::collection::vec(1u8.., 20),
            wrong_by: u16,
        ) {
            let right = |bytes: &[u8]| !fold(sum(bytes));
            let checksum = fold(u32::from(right(&before)) + u32::from(wrong_by));
            let expected = fold(u32::from(right(&after)) + u32::from(wrong_by));
            let is = updated(checksum, sum(&before), sum(&after));
            // 0 and 0xffff are the same number.
            prop_assert_eq!(is % 0xffff, expected % 0xffff);
        }
    }
}
