//! Common parts of the controllers: a window, its threshold, their values before the last
//! reduction, and what RFC 5681 and RFC 2861 do to them.

/// A congestion window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CongestionWindow {
    pub(crate) mss_bytes: u64,
    pub(crate) initial_bytes: u64,
    pub(crate) cwnd_bytes: u64,
    pub(crate) ssthresh_bytes: u64,
    /// Window and threshold before the last reduction (RFC 4015).
    before: Option<(u64, u64)>,
}

impl CongestionWindow {
    pub(crate) fn new(mss_bytes: u64, initial_bytes: u64) -> Self {
        let mss_bytes = mss_bytes.max(1);
        let cwnd_bytes = initial_bytes.max(mss_bytes);
        Self {
            mss_bytes,
            initial_bytes: cwnd_bytes,
            cwnd_bytes,
            ssthresh_bytes: u64::MAX,
            before: None,
        }
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd_bytes < self.ssthresh_bytes
    }

    /// RFC 5681 (2) with appropriate byte counting (RFC 3465) without a limit per
    /// acknowledgement, as in Linux; returns the bytes beyond `ssthresh`.
    pub(crate) fn slow_start(&mut self, acked_bytes: u64) -> u64 {
        let room = self.ssthresh_bytes.saturating_sub(self.cwnd_bytes);
        let used = acked_bytes.min(room);
        self.cwnd_bytes += used;
        acked_bytes - used
    }

    /// RFC 5681 (4): half of the data in flight, at least two segments, and at most half of
    /// the window: packets lost before a timeout still count as FlightSize (2), although
    /// the network no longer holds them.
    pub(crate) fn half(&self, flight_size_bytes: u64) -> u64 {
        (flight_size_bytes.min(self.cwnd_bytes) / 2).max(2 * self.mss_bytes)
    }

    /// RFC 5681, 3.1: after a timeout, the window is one segment. `None` holds the threshold: the
    /// timer had expired for the same data before.
    pub(crate) fn on_timeout(&mut self, ssthresh_bytes: Option<u64>) {
        match ssthresh_bytes {
            Some(ssthresh_bytes) => self.reduce(ssthresh_bytes, self.mss_bytes),
            None => self.cwnd_bytes = self.mss_bytes,
        }
    }

    /// RFC 9002, 7.2 and 7.6.2: the window after persistent congestion is two datagrams.
    pub(crate) fn on_persistent_congestion(&mut self) {
        self.cwnd_bytes = 2 * self.mss_bytes;
    }

    /// Sets the threshold and saves the previous state for [`undo`](Self::undo).
    pub(crate) fn reduce(&mut self, ssthresh_bytes: u64, cwnd_bytes: u64) {
        self.before = Some((self.cwnd_bytes, self.ssthresh_bytes));
        self.ssthresh_bytes = ssthresh_bytes;
        self.cwnd_bytes = cwnd_bytes;
    }

    /// RFC 4015, 5: restores the state before the reduction. Returns false if there was
    /// none.
    pub(crate) fn undo(&mut self) -> bool {
        let Some((cwnd_bytes, ssthresh_bytes)) = self.before.take() else {
            return false;
        };
        self.cwnd_bytes = self.cwnd_bytes.max(cwnd_bytes);
        self.ssthresh_bytes = self.ssthresh_bytes.max(ssthresh_bytes);
        true
    }

    /// RFC 2861, 3: halves the window for each timeout without sending, not below the
    /// restart window (RFC 5681, 4.1); the threshold remembers the old window.
    pub(crate) fn restart(&mut self, idle_ns: i64, rto_ns: i64) {
        if idle_ns <= rto_ns {
            return;
        }
        self.ssthresh_bytes = self.ssthresh_bytes.max(self.cwnd_bytes / 4 * 3);
        let floor = self.initial_bytes.min(self.cwnd_bytes);
        let mut left_ns = idle_ns;
        while left_ns > rto_ns.max(1) && self.cwnd_bytes > floor {
            self.cwnd_bytes /= 2;
            left_ns -= rto_ns.max(1);
        }
        self.cwnd_bytes = self.cwnd_bytes.max(floor);
    }

    /// RFC 2861, 3: moves the window half way to its used part.
    pub(crate) fn decay(&mut self, used_bytes: u64) {
        let used_bytes = used_bytes.max(self.initial_bytes);
        if used_bytes < self.cwnd_bytes {
            self.ssthresh_bytes = self.ssthresh_bytes.max(self.cwnd_bytes / 4 * 3);
            self.cwnd_bytes = self.cwnd_bytes.midpoint(used_bytes);
        }
    }

    pub(crate) fn set_mss(&mut self, mss_bytes: u64) {
        let mss_bytes = mss_bytes.max(1);
        if mss_bytes == self.mss_bytes {
            return;
        }
        let scale = |bytes: u64| {
            u64::try_from(u128::from(bytes) * u128::from(mss_bytes) / u128::from(self.mss_bytes))
                .unwrap_or(u64::MAX)
        };
        // Before the first byte the window is counted in segments (RFC 6928).
        if self.cwnd_bytes == self.initial_bytes {
            self.cwnd_bytes = scale(self.cwnd_bytes).max(mss_bytes);
        }
        self.initial_bytes = scale(self.initial_bytes).max(mss_bytes);
        self.mss_bytes = mss_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_halves_once_a_timeout() {
        // cwnd 64 segments, IW 10, RTO 200 ms.
        let check = |idle_ms: i64, cwnd: u64, ssthresh: u64| {
            let mut window = CongestionWindow::new(1000, 10_000);
            window.cwnd_bytes = 64_000;
            window.ssthresh_bytes = 30_000;
            window.restart(idle_ms * 1_000_000, 200_000_000);
            assert_eq!((window.cwnd_bytes, window.ssthresh_bytes), (cwnd, ssthresh), "{idle_ms}");
        };
        check(200, 64_000, 30_000);
        check(201, 32_000, 48_000);
        check(401, 16_000, 48_000);
        check(4000, 10_000, 48_000);
    }

    #[test]
    fn undo_gives_back_what_was() {
        let mut window = CongestionWindow::new(1000, 10_000);
        window.cwnd_bytes = 40_000;
        window.reduce(20_000, 20_000);
        assert!(window.undo());
        assert_eq!((window.cwnd_bytes, window.ssthresh_bytes), (40_000, u64::MAX));
        assert!(!window.undo());
    }
}
