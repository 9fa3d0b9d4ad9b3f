//! The minimum duration of a transfer over a link of a given rate.

/// Initial window of a connection in segments (RFC 6928).
const INITIAL_SEGMENTS: u64 = 10;
/// Bytes of a segment (an Ethernet MTU without headers and time stamps).
const SEGMENT_BYTES: u64 = 1_448;

/// A receive window grows to twice the bytes received in a round trip, plus this (dynamic
/// right-sizing: Fisk and Feng, LACSI 2001; Linux, `tcp_rcv_space_adjust`). The
/// measurement takes a full round trip, so growth shows one round later.
const GROWTH_SEGMENTS: u64 = 16;

/// A receive window, and when the sender could first use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveWindow {
    /// Bytes received when the receiver advertised the window.
    pub received_bytes: u64,
    /// The window in bytes.
    pub window_bytes: u64,
}

/// What limits a sender apart from the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendWindow<'a> {
    /// Nothing.
    Wide,
    /// A window that starts small and doubles each round trip (RFC 5681, 3.1); the round
    /// trip in nanoseconds.
    SlowStart(i64),
    /// The receive window, as it grew with the bytes received in order; the round trip in
    /// nanoseconds, and the windows.
    Receivers(i64, &'a [ReceiveWindow]),
}

impl SendWindow<'_> {
    /// The window in bytes after a number of rounds and bytes (`before`: bytes of the
    /// round before the last), and the duration of a round in nanoseconds; `None` if
    /// nothing limits the sender.
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

/// Nanoseconds from the first byte to the last over a link of `bps` bits per second. Each
/// round takes a round trip until the window fills the link.
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
        // In the middle of a connection only the link counts.
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
        // A window that grew over many small rounds grows less over few: 64000 twice,
        // 151168, and the rest.
        let windows = [(0, 64_000), (40_000, 80_000), (100_000, 360_000)];
        let windows = windows
            .map(|(received_bytes, window_bytes)| ReceiveWindow { received_bytes, window_bytes });
        check(400_000, 80.0, SendWindow::Receivers(140_000_000, &windows), 420 + 12);
        // A window that fills the link does not limit the sender.
        check(150_000, 1.0, receivers, 1_200);
        // No window was captured.
        check(150_000, 8.0, SendWindow::Receivers(140_000_000, &[]), 150);
    }
}
