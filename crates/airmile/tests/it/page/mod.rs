//! Reads the content of pages in tests.

use std::io::Read;

use flate2::read::GzDecoder;

/// Unpacks gzip in base64.
pub fn unpacked(base64: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut packed = Vec::new();
    for four in base64.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four.iter().fold(0_u32, |bits, c| bits << 6 | u32::from(digit(*c)));
        let bits = bits << (6 * (4 - four.len()));
        packed.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    let mut out = Vec::new();
    GzDecoder::new(packed.as_slice()).read_to_end(&mut out).unwrap();
    out
}
