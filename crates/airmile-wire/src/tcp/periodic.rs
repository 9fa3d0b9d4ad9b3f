//! Periodic requests (paper 7.2, figure 24).

use airmile_model::packet::Address;

/// Maximum number of servers tracked per user (chosen here).
const MAX_SERVERS: usize = 64;
/// A request is one that comes after a pause of the server's traffic (chosen
/// here: above RTTs and think times within a page).
const PAUSE_NS: i64 = 1_000_000_000;
/// Minimum number of requests of a rhythm (chosen here).
const MIN_REQUESTS: u32 = 4;
/// Standard deviation over mean of the intervals under which they are periodic
/// (chosen here).
const MAX_SPREAD: f64 = 0.15;

/// Transfers of a user with one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rhythm {
    pub(super) server: Address,
    last_ns: i64,
    last_start_ns: i64,
    requests: u32,
    packets: u64,
    intervals: u32,
    sum: f64,
    squares: f64,
    pub(super) bytes: u64,
    active_ns: i64,
    first_ns: i64,
    /// Whether the intervals so far are even.
    even: bool,
}

/// A detected rhythm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Periodic {
    /// Mean interval of requests in nanoseconds.
    pub period_ns: i64,
    /// Requests.
    pub requests: u32,
    /// Share of the time without traffic of it.
    pub idle_share: f64,
}

impl Rhythm {
    pub(super) fn found(&self) -> Option<Periodic> {
        if self.requests < MIN_REQUESTS || self.intervals < MIN_REQUESTS - 1 {
            return None;
        }
        // A clock with ticks of seconds: several packets at each, and none between.
        if self.active_ns == 0 && self.packets > u64::from(self.requests) {
            return None;
        }
        let n = f64::from(self.intervals);
        let mean = self.sum / n;
        let spread = (self.squares / n - mean * mean).max(0.0).sqrt() / mean;
        let span = (self.last_ns - self.first_ns).max(1);
        (spread <= MAX_SPREAD).then_some(Periodic {
            period_ns: mean as i64,
            requests: self.requests,
            idle_share: 1.0 - self.active_ns as f64 / span as f64,
        })
    }
}

/// The servers of one user.
#[derive(Debug, Default)]
pub(super) struct Rhythms {
    found: Vec<Rhythm>,
    /// Index of the last packet's server.
    latest: usize,
}

impl Rhythms {
    /// Takes a packet with payload; returns true if it belongs to a rhythm.
    #[inline]
    pub(super) fn push(&mut self, server: Address, now: i64, bytes: u32) -> bool {
        if self.found.get(self.latest).is_none_or(|r| r.server != server) {
            let at = self.found.iter().position(|r| r.server == server);
            self.latest = at.unwrap_or(usize::MAX);
        }
        let Some(rhythm) = self.found.get_mut(self.latest) else {
            if self.found.len() >= MAX_SERVERS {
                let oldest = self.found.iter().enumerate().min_by_key(|(_, r)| r.last_ns);
                if let Some((at, _)) = oldest {
                    self.found.swap_remove(at);
                }
            }
            self.latest = self.found.len();
            self.found.push(Rhythm {
                server,
                last_ns: now,
                last_start_ns: now,
                requests: 1,
                packets: 1,
                intervals: 0,
                sum: 0.0,
                squares: 0.0,
                bytes: u64::from(bytes),
                active_ns: 0,
                first_ns: now,
                even: false,
            });
            return false;
        };
        rhythm.packets += 1;
        let pause = now - rhythm.last_ns;
        if pause >= PAUSE_NS {
            let interval = (now - rhythm.last_start_ns) as f64;
            rhythm.requests += 1;
            rhythm.intervals += 1;
            rhythm.sum += interval;
            rhythm.squares += interval * interval;
            rhythm.last_start_ns = now;
            rhythm.even = rhythm.found().is_some();
        } else {
            rhythm.active_ns += pause.max(0);
        }
        rhythm.last_ns = rhythm.last_ns.max(now);
        rhythm.bytes += u64::from(bytes);
        rhythm.even
    }

    pub(super) fn found(&self) -> impl Iterator<Item = (&Rhythm, Periodic)> {
        self.found.iter().filter_map(|r| Some((r, r.found()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(starts_s: &[i64], expected: Option<i64>) {
        let mut rhythms = Rhythms::default();
        let server = Address::v4([192, 0, 2, 1]);
        for start in starts_s {
            for step in 0..5 {
                rhythms.push(server, start * 1_000_000_000 + step * 100_000_000, 1000);
            }
        }
        let found = rhythms.found().next().map(|(_, p)| p.period_ns / 1_000_000_000);
        assert_eq!(found, expected, "{starts_s:?}");
    }

    #[test]
    fn one_download_by_a_clock_with_ticks_of_a_second() {
        let found = |packets: i64| {
            let mut rhythms = Rhythms::default();
            let server = Address::v4([192, 0, 2, 1]);
            (0..17 * packets).for_each(|n| {
                rhythms.push(server, n / packets * 1_000_000_000, 1448);
            });
            rhythms.found().count()
        };
        assert_eq!((found(250), found(1)), (0, 1));
    }

    #[test]
    fn every_ten_seconds_or_now_and_then() {
        check(&[0, 10, 20, 30, 40], Some(10));
        check(&[0, 10, 21, 30, 40], Some(10));
        check(&[0, 10, 20], None);
        check(&[0, 3, 20, 21, 40, 77], None);
    }
}
