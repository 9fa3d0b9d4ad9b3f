//! A receive window that stops the sender (paper 7.2).

use super::opt64::Opt64;

/// Time in which less than a segment of the window was left.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WindowFull {
    since: Opt64,
    pub(super) total_ns: i64,
    pub(super) first_ns: Opt64,
}

impl WindowFull {
    /// Takes the bytes in flight, the window and the MSS after a packet; returns true if
    /// the window just became full.
    #[inline]
    pub(super) fn push(&mut self, now: i64, flight: i64, window: Option<u64>, mss: u32) -> bool {
        let Some(window) = window else {
            // Of a window of unknown scale only that it is open is known.
            self.end(now);
            return false;
        };
        let left = window.cast_signed() - flight;
        let full = left < i64::from(mss.max(1));
        if full == self.since.is_some() {
            return false;
        }
        if full {
            self.since = Opt64::some(now);
            self.first_ns.or_set(now);
        } else {
            self.end(now);
        }
        full
    }

    /// Ends the stream: the window no longer blocks it.
    pub(super) fn end(&mut self, now: i64) {
        if let Some(since) = self.since.take() {
            self.total_ns += (now - since).max(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_with_less_than_a_segment_left() {
        let mut full = WindowFull::default();
        assert!(!full.push(10, 1000, Some(4000), 1448));
        assert!(full.push(20, 2900, Some(4000), 1448));
        assert!(!full.push(30, 2900, Some(4000), 1448));
        assert!(!full.push(50, 0, Some(4000), 1448));
        assert!(full.push(60, 0, Some(816), 1448));
        full.end(65);
        assert_eq!((full.total_ns, full.first_ns.get()), (35, Some(20)));
    }

    #[test]
    fn a_window_of_unknown_size_is_open() {
        let mut full = WindowFull::default();
        assert!(full.push(10, 1000, Some(0), 1448));
        assert!(!full.push(11, 1000, None, 1448));
        full.end(4_000);
        assert_eq!(full.total_ns, 1);
    }
}
