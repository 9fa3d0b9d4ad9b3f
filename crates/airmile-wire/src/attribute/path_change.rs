//! Changes of a path in mid-flow, which lengthen its delay without a queue.

use std::collections::VecDeque;

/// Minimum change of the delay (chosen here: the scheduling of both links alone varies by 10 to
/// 20 ms).
const MIN_RISE_NS: i64 = 18_000_000;
/// The least delays of windows of this length are compared (chosen here).
const WINDOW_NS: i64 = 100_000_000;
/// Windows before a change of which the least delays must agree (chosen here).
const BEFORE: usize = 5;
/// As many must agree after it, of twice as many at most (chosen here: a queue that stays so for a
/// second has neither grown nor drained).
const AFTER: usize = 10;
/// Maximum difference of these (chosen here), or this part of the change.
const ALIKE_NS: i64 = 8_000_000;
const ALIKE_PART: i64 = 8;
/// Maximum number of changes kept (chosen here).
const MAX_CHANGES: usize = 1_000;

/// Follows the delay of one path, to find when its minimum rises.
///
/// A queue grows no faster than data arrives, so the delays of the packets that arrive meanwhile lie
/// between. A new route has another delay from one packet to the next, and keeps it.
#[derive(Debug, Default)]
pub struct PathChanges {
    /// The current window, and the least delays of those before it that have packets.
    window: Option<Window>,
    floors: VecDeque<i64>,
    /// When the last packet came, and its delay.
    last: Option<(i64, i64)>,
    rising: Option<Rising>,
    /// When a change began, and by how much the minimum has risen since.
    changes: Vec<(i64, i64)>,
    /// Delays below this end the last change; it is above the minimum before by half of the change.
    until_below_ns: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    n: i64,
    least_ns: i64,
}

/// A change that is not confirmed yet.
#[derive(Debug, Clone)]
struct Rising {
    from_ns: i64,
    /// The highest of the least delays before.
    before_ns: i64,
    /// How much these differ.
    spread_ns: i64,
    /// The last delay before, and the first two of the change.
    around: [i64; 3],
    /// Time since the last packet before.
    after_ns: i64,
    packets: i64,
    window: Window,
    floors: Vec<i64>,
}

impl PathChanges {
    /// Takes a packet's delay, up to an offset common to all; times increase.
    pub fn push(&mut self, at_ns: i64, delay_ns: i64) {
        let n = at_ns.div_euclid(WINDOW_NS);
        let last = self.last.replace((at_ns, delay_ns));
        if self.until_below_ns.is_some_and(|least| delay_ns < least) {
            self.until_below_ns = None;
            self.note(at_ns, 0);
        }
        if let Some(rising) = &mut self.rising {
            match rising.push(n, delay_ns) {
                Outcome::Open => return,
                Outcome::Refuted => self.rising = None,
                Outcome::Confirmed(rise_ns) if rising.is_sudden(at_ns, rise_ns) => {
                    let from_ns = rising.from_ns;
                    let half_ns = rising.before_ns.saturating_add(rise_ns / 2);
                    self.floors = rising.floors.iter().rev().take(BEFORE).rev().copied().collect();
                    self.window = Some(rising.window);
                    self.rising = None;
                    self.until_below_ns = Some(half_ns);
                    let rise_ns = self.rise_ns().saturating_add(rise_ns);
                    self.note(from_ns, rise_ns);
                    return;
                }
                Outcome::Confirmed(_) => self.rising = None,
            }
        }
        let before = self.floors.iter().copied().min().zip(self.floors.iter().copied().max());
        let before = before.filter(|_| self.floors.len() >= BEFORE);
        if let (Some((least_ns, before_ns)), Some((last_ns, last))) = (before, last) {
            let is_high = |ns: i64| ns.saturating_sub(before_ns) >= MIN_RISE_NS;
            if is_high(delay_ns) && !is_high(last) {
                self.rising = Some(Rising {
                    from_ns: at_ns,
                    before_ns,
                    spread_ns: before_ns.saturating_sub(least_ns),
                    around: [last, delay_ns, delay_ns],
                    after_ns: at_ns.saturating_sub(last_ns),
                    packets: 1,
                    window: Window { n, least_ns: delay_ns },
                    floors: Vec::new(),
                });
                return;
            }
        }
        match &mut self.window {
            Some(window) if window.n == n => window.least_ns = window.least_ns.min(delay_ns),
            window => {
                if let Some(done) = window.replace(Window { n, least_ns: delay_ns }) {
                    if self.floors.len() >= BEFORE {
                        self.floors.pop_front();
                    }
                    self.floors.push_back(done.least_ns);
                }
            }
        }
    }

    fn note(&mut self, at_ns: i64, rise_ns: i64) {
        if self.changes.len() < MAX_CHANGES {
            self.changes.push((at_ns, rise_ns));
        }
    }

    /// By how much the minimum is above the least so far, as far as is known by now.
    pub fn rise_ns(&self) -> i64 {
        self.changes.last().map_or(0, |(_, rise_ns)| *rise_ns)
    }

    /// By how much the minimum was above the least at a time.
    pub fn rise_at_ns(&self, at_ns: i64) -> i64 {
        let n = self.changes.partition_point(|(from, _)| *from <= at_ns);
        n.checked_sub(1).and_then(|n| self.changes.get(n)).map_or(0, |(_, rise_ns)| *rise_ns)
    }
}

enum Outcome {
    Open,
    Refuted,
    Confirmed(i64),
}

impl Rising {
    fn push(&mut self, n: i64, delay_ns: i64) -> Outcome {
        self.packets += 1;
        if self.packets == 2 {
            self.around[2] = delay_ns;
        }
        if delay_ns.saturating_sub(self.before_ns) < MIN_RISE_NS {
            return Outcome::Refuted;
        }
        if self.window.n == n {
            self.window.least_ns = self.window.least_ns.min(delay_ns);
            return Outcome::Open;
        }
        self.floors.push(self.window.least_ns);
        self.window = Window { n, least_ns: delay_ns };
        // The first window may hold a packet that waited for a delayed acknowledgement.
        let Some(least_ns) = self.floors.iter().skip(1).copied().min() else {
            return Outcome::Open;
        };
        let rise_ns = least_ns.saturating_sub(self.before_ns);
        let alike_ns = ALIKE_NS.max(rise_ns / ALIKE_PART);
        let alike =
            self.floors.iter().skip(1).filter(|ns| ns.saturating_sub(least_ns) <= alike_ns).count();
        if alike >= AFTER {
            Outcome::Confirmed(rise_ns)
        } else if self.floors.len() > 2 * AFTER {
            Outcome::Refuted
        } else {
            Outcome::Open
        }
    }

    /// Whether two thirds of the change lie between two packets, or between three, and are more than
    /// the mean time between these, and than the time until the first came but for the change: a queue
    /// could grow by that. Before it there was none that varied.
    fn is_sudden(&self, at_ns: i64, rise_ns: i64) -> bool {
        let [last, first, second] = self.around.map(|ns| ns.saturating_sub(self.before_ns));
        let gaps = match rise_ns.saturating_mul(2) / 3 {
            most if first >= most => 1,
            most if second >= most => 2,
            _ => return false,
        };
        let gap_ns = at_ns.saturating_sub(self.from_ns) / self.packets;
        self.spread_ns <= ALIKE_NS.max(rise_ns / 4)
            && self.after_ns < rise_ns.saturating_mul(5) / 3
            && last <= ALIKE_NS.max(rise_ns / 3)
            && gaps * gap_ns < rise_ns.saturating_mul(2) / 3
    }
}

/// The minimum round trip of one side of a monitor, which may rise in mid-flow.
#[derive(Debug, Default)]
pub(super) struct BaseRtt {
    least_ns: Option<i64>,
    changes: PathChanges,
}

impl BaseRtt {
    /// Takes a round trip that may include more than the path.
    pub(super) fn note(&mut self, rtt_ns: i64) {
        self.least_ns = Some(self.least_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
    }

    /// Takes a round trip that data in flight took.
    pub(super) fn push(&mut self, at_ns: i64, rtt_ns: i64) {
        self.note(rtt_ns);
        self.changes.push(at_ns, rtt_ns);
    }

    /// The least of all.
    pub(super) const fn least_ns(&self) -> Option<i64> {
        self.least_ns
    }

    /// The minimum of the present path; 0 without any round trip.
    pub(super) fn now_ns(&self) -> i64 {
        self.least_ns.map_or(0, |least| least.saturating_add(self.rise_ns()))
    }

    /// By how much that is above the least of all.
    pub(super) fn rise_ns(&self) -> i64 {
        self.changes.rise_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets every 5 ms, and their delays; what is found, in ms.
    fn changes(delay_ms: impl Fn(i64) -> i64) -> Vec<(i64, i64)> {
        let mut found = PathChanges::default();
        (0..2_000).for_each(|n| found.push(n * 5_000_000, delay_ms(n * 5) * 1_000_000));
        found.changes.iter().map(|(at, rise)| (at / 1_000_000, rise / 1_000_000)).collect()
    }

    #[test]
    fn a_route_changes_and_changes_back() {
        let route = |ms: i64| if (3_000..6_000).contains(&ms) { 60 } else { 0 };
        assert_eq!(changes(|ms| 40 + ms % 3 + route(ms)), [(3_000, 60), (6_000, 0)]);
        // The radio varies by more than the packets of one window show.
        assert_eq!(changes(|ms| 40 + ms % 17 + route(ms)), [(3_000, 60), (6_000, 0)]);
    }

    /// It grows no faster than data arrives, and then stands: a full buffer, or a full window.
    #[test]
    fn a_queue_grows_and_stands() {
        for grows_ms in [30, 100, 400] {
            let queue = |ms: i64| (ms - 3_000).clamp(0, grows_ms);
            assert_eq!(changes(|ms| 40 + ms % 3 + queue(ms)), [], "{grows_ms} ms");
        }
    }

    /// After an outage of the radio the data that waited drains.
    #[test]
    fn an_outage_is_no_route() {
        let waits = |ms: i64| if ms < 3_000 { 0 } else { (300 - (ms - 3_000) / 4).max(0) };
        assert_eq!(changes(|ms| 40 + waits(ms)), []);
    }

    /// While a queue fills, no packet shows its delay: losses are sent again, and what follows waits.
    #[test]
    fn a_queue_that_fills_unseen_is_no_route() {
        let mut found = PathChanges::default();
        for n in (0..2_000).filter(|n| !(600..900).contains(n)) {
            let delay_ms = if n < 600 { 40 + n % 3 } else { 540 + n % 3 };
            found.push(n * 5_000_000, delay_ms * 1_000_000);
        }
        assert_eq!(found.changes, []);
    }

    /// A route that is 60 ms longer, of which few packets tell: each may have waited for the one before.
    #[test]
    fn few_packets_tell_nothing() {
        let mut found = PathChanges::default();
        (0..100).for_each(|n: i64| {
            let delay_ms = if n < 30 { 40 } else { 100 };
            found.push(n * 100_000_000, delay_ms * 1_000_000);
        });
        assert_eq!(found.changes, []);
    }
}
