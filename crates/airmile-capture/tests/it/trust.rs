//! What a hostile capture can do.

use airmile_capture::packet::scrub::CaptureScrubber;
use airmile_pseudonym::Pseudonyms;

/// A raw-IP capture of one frame.
fn raw_ip(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 101] {
        out.extend(word.to_le_bytes());
    }
    for word in [1_600_000_000, 0, data.len() as u32, data.len() as u32] {
        out.extend(word.to_le_bytes());
    }
    out.extend(data);
    out
}

#[test]
fn scrub_nothing_of_an_unknown_ip_packet_stays() {
    for secret in [*b"PASSWORD", *b"\x4fASSWORD", *b"\x6fASSWORD"] {
        let mut scrubber = CaptureScrubber::new(Pseudonyms::new(&[7; 32]));
        let mut out = Vec::new();
        scrubber.push(&raw_ip(&secret), &mut out, &mut |_| ());
        scrubber.finish(&mut out, &mut |_| ());
        assert!(!out.windows(3).any(|three| secret[1..].windows(3).any(|s| s == three)));
        // The frame is there.
        assert!(out.len() > 24 + 16, "{} bytes", out.len());
    }
}
