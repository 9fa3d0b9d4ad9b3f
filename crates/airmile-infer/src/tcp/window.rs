//! A receive window that stops the sender (paper 7.2).

/// Time in which less than a segment of the window was left.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WindowFull {
    since: Option<i64>,
    pub(super) total_ns: i64,
    pub(super) first_ns: Option<i64>,
}

impl WindowFull {
    /// Takes what is in flight, the window and the MSS after a packet; true
    /// where the window just became full.
    pub(super) fn push(&mut self, now: i64, flight: i64, window: Option<u64>, mss: u32) -> bool {
        let Some(window) = window else { return false };
        let left = window.cast_signed() - flight;
        let full = left < i64::from(mss.max(1));
        match (full, self.since) {
            (true, None) => {
                self.since = Some(now);
                self.first_ns.get_or_insert(now);
                return true;
            }
            (false, Some(since)) => {
                self.total_ns += (now - since).max(0);
                self.since = None;
            }
            _ => {}
        }
        false
    }

    /// The stream is over: nothing is held back any more.
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
        assert_eq!((full.total_ns, full.first_ns), (35, Some(20)));
    }
}
