//! What a transfer takes at least over a link of a rate.

/// Initial window of a connection in segments (RFC 6928).
const INITIAL_SEGMENTS: u64 = 10;
/// Bytes of a segment (an Ethernet MTU without headers and time stamps).
const SEGMENT_BYTES: u64 = 1_448;

/// Nanoseconds from the first byte to the last over a link of `bps` bits per second.
/// From the connection's start on (`round_trip_ns`) the window grows by a factor of
/// two a round trip (RFC 5681, 3.1), and a round takes a round trip until the window
/// fills the link.
#[must_use]
pub fn min_duration_ns(bytes: u64, bps: f64, round_trip_ns: Option<i64>) -> i64 {
    let takes = |bytes: u64| bytes as f64 * 8e9 / bps.max(1.0);
    let mut left = bytes;
    let mut total = 0.0;
    let mut window = INITIAL_SEGMENTS * SEGMENT_BYTES;
    if let Some(round_trip_ns) = round_trip_ns {
        while left > window && takes(window) < round_trip_ns as f64 {
            total += round_trip_ns as f64;
            left -= window;
            window = window.saturating_mul(2);
        }
    }
    (total + takes(left)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: u64, mbps: f64, round_trip_ms: Option<i64>, expected_ms: i64) {
        let ns = min_duration_ns(bytes, mbps * 1e6, round_trip_ms.map(|ms| ms * 1_000_000));
        assert_eq!(ns / 1_000_000, expected_ms);
    }

    #[test]
    fn a_window_that_doubles() {
        // In the middle of a connection the link alone counts.
        check(1_000_000, 8.0, None, 1_000);
        // One window.
        check(14_480, 8.0, Some(100), 14);
        // Rounds of 14480, 28960 and 57920 bytes; of 115840 the link takes 116 ms.
        check(1_000_000, 8.0, Some(100), 300 + 898);
        // A link that the first window fills.
        check(1_000_000, 1.0, Some(100), 8_000);
    }
}
