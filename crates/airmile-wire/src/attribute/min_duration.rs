//! What a transfer takes at least over a link of a rate.

/// Initial window of a connection in segments (RFC 6928).
const INITIAL_SEGMENTS: u64 = 10;
/// Bytes of a segment (an Ethernet MTU without headers and time stamps).
const SEGMENT_BYTES: u64 = 1_448;

/// A receiver's window grows to twice what came in a round trip, and this (dynamic right-sizing:
/// Fisk and Feng, LACSI 2001; Linux, `tcp_rcv_space_adjust`). It is measured once the round trip is
/// over, so the round after it was sent without.
const GROWTH_SEGMENTS: u64 = 16;

/// A receive window, from when on the sender could have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveWindow {
    /// Bytes that the receiver had when it advertised the window.
    pub received_bytes: u64,
    /// The window in bytes.
    pub window_bytes: u64,
}

/// What holds a sender back beside the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendWindow<'a> {
    /// Nothing.
    Wide,
    /// A window that begins small and grows by a factor of two a round trip (RFC 5681, 3.1),
    /// of so many nanoseconds.
    SlowStart(i64),
    /// The receiver's window, as it grew with what was received (in order), over round trips
    /// of so many nanoseconds.
    Receivers(i64, &'a [ReceiveWindow]),
}

impl SendWindow<'_> {
    /// The window in bytes after so many rounds and bytes, of which the round before the last had
    /// some, and what a round takes in nanoseconds; `None` where nothing holds the sender back.
    fn of_round(&self, round: u32, sent: u64, before: u64) -> Option<(u64, i64)> {
        match *self {
            Self::Wide => None,
            Self::SlowStart(round_trip_ns) => {
                let window = INITIAL_SEGMENTS * SEGMENT_BYTES;
                Some((window.checked_shl(round).unwrap_or(u64::MAX), round_trip_ns))
            }
            Self::Receivers(round_trip_ns, windows) => {
                let n = windows.partition_point(|window| window.received_bytes <= sent);
                let window = windows.get(n.saturating_sub(1))?.window_bytes;
                let first = windows.first()?.window_bytes;
                let grown =
                    before.saturating_mul(2).saturating_add(GROWTH_SEGMENTS * SEGMENT_BYTES);
                Some((window.min(grown.max(first)).max(SEGMENT_BYTES), round_trip_ns))
            }
        }
    }
}

/// Nanoseconds from the first byte to the last over a link of `bps` bits per second. A round
/// takes a round trip until the window fills the link.
#[must_use]
pub fn min_duration_ns(bytes: u64, bps: f64, window: SendWindow<'_>) -> i64 {
    let takes = |bytes: u64| bytes as f64 * 8e9 / bps.max(1.0);
    let (mut sent, mut total, mut round) = (0, 0.0, 0);
    // Bytes of the last round and of the one before it.
    let (mut last, mut before) = (0, 0);
    while let Some((window, round_trip_ns)) = window.of_round(round, sent, before) {
        if bytes - sent <= window || takes(window) >= round_trip_ns as f64 {
            break;
        }
        total += round_trip_ns as f64;
        sent += window;
        (before, last) = (last, window);
        round += 1;
    }
    (total + takes(bytes - sent)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: u64, mbps: f64, window: SendWindow<'_>, expected_ms: i64) {
        let ns = min_duration_ns(bytes, mbps * 1e6, window);
        assert_eq!(ns / 1_000_000, expected_ms);
    }

    #[test]
    fn a_window_that_doubles() {
        let slow_start = SendWindow::SlowStart(100_000_000);
        // In the middle of a connection the link alone counts.
        check(1_000_000, 8.0, SendWindow::Wide, 1_000);
        // One window.
        check(14_480, 8.0, slow_start, 14);
        // Rounds of 14480, 28960 and 57920 bytes; of 115840 the link takes 116 ms.
        check(1_000_000, 8.0, slow_start, 300 + 898);
        // A link that the first window fills.
        check(1_000_000, 1.0, slow_start, 8_000);
    }

    /// A receiver whose buffer grows with what it gets, as Linux's does.
    #[test]
    fn a_receivers_window() {
        let windows = [(0, 64_000), (40_000, 80_000), (100_000, 180_000)];
        let windows = windows
            .map(|(received_bytes, window_bytes)| ReceiveWindow { received_bytes, window_bytes });
        let receivers = SendWindow::Receivers(140_000_000, &windows);
        check(60_000, 8.0, receivers, 60);
        // 64000 twice, as nothing is measured yet, and 22000 bytes.
        check(150_000, 8.0, receivers, 280 + 22);
        // What grew over many small rounds grows less in few: 64000 twice, 151168, and the rest.
        let windows = [(0, 64_000), (40_000, 80_000), (100_000, 360_000)];
        let windows = windows
            .map(|(received_bytes, window_bytes)| ReceiveWindow { received_bytes, window_bytes });
        check(400_000, 80.0, SendWindow::Receivers(140_000_000, &windows), 420 + 12);
        // A window that fills the link holds nothing back.
        check(150_000, 1.0, receivers, 1_200);
        // None was seen.
        check(150_000, 8.0, SendWindow::Receivers(140_000_000, &[]), 150);
    }
}
