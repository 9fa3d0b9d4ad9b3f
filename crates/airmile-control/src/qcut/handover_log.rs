//! Records when how many bytes were passed to the modem.

use std::collections::VecDeque;

/// Cumulative bytes passed, by time. Steps that can no longer be queried are dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct HandoverLog {
    /// Time in ns and all bytes up to then; both ascending.
    steps: VecDeque<(i64, u64)>,
    /// All bytes before the first step.
    before_bytes: u64,
    total_bytes: u64,
}

/// Maximum number of steps kept (chosen here: seconds of 50 Mbit/s).
const MAX_STEPS: usize = 16_384;

impl HandoverLog {
    /// Adds bytes. Time does not go back: a clock that does is clamped.
    pub(super) fn push(&mut self, now_ns: i64, bytes: u64) {
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        match self.steps.back_mut() {
            Some(last) if last.0 >= now_ns => last.1 = self.total_bytes,
            _ => self.steps.push_back((now_ns, self.total_bytes)),
        }
        if self.steps.len() > MAX_STEPS {
            self.pop();
        }
    }

    /// All bytes so far.
    pub(super) const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// All bytes up to and including a time.
    pub(super) fn until(&self, at_ns: i64) -> u64 {
        let after = self.steps.partition_point(|(time, _)| *time <= at_ns);
        match after.checked_sub(1) {
            Some(index) => self.steps[index].1,
            None => self.before_bytes,
        }
    }

    /// Steps after a time: when, and how many bytes.
    pub(super) fn since(&self, at_ns: i64) -> impl Iterator<Item = (i64, u64)> + '_ {
        let first = self.steps.partition_point(|(time, _)| *time <= at_ns);
        let before = self.until(at_ns);
        self.steps.range(first..).scan(before, |sum, (time, all)| {
            let bytes = all - *sum;
            *sum = *all;
            Some((*time, bytes))
        })
    }

    /// Drops steps before a time that will not be queried again.
    pub(super) fn forget_before(&mut self, at_ns: i64) {
        while self.steps.get(1).is_some_and(|(time, _)| *time <= at_ns) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some((_, bytes)) = self.steps.pop_front() {
            self.before_bytes = bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_by_time() {
        let mut handed = HandoverLog::default();
        for (at, bytes) in [(10, 100), (20, 50), (20, 1), (30, 7)] {
            handed.push(at, bytes);
        }
        let check = |handed: &HandoverLog, from: usize| {
            let expected = [0, 100, 100, 151, 158, 158];
            let got: Vec<u64> = [9, 10, 19, 20, 30, 99].map(|at| handed.until(at)).to_vec();
            assert_eq!(got[from..], expected[from..]);
        };
        check(&handed, 0);
        assert_eq!(handed.since(10).collect::<Vec<_>>(), [(20, 51), (30, 7)]);
        handed.forget_before(21);
        check(&handed, 3);
        // A clock that goes back.
        handed.push(5, 2);
        assert_eq!((handed.until(30), handed.total_bytes()), (160, 160));
    }
}
