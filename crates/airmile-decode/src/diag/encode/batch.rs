//! Batches: a modem collects records of a message and writes them later.

/// When a batch is written: it is full, its first record is old, or no new one came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// Maximum number of records.
    capacity: usize,
    /// Maximum ms from the first record to writing.
    after_first_ms: i64,
    /// Maximum ms from the last record to writing.
    after_last_ms: i64,
    /// ms from the last record of a full batch to writing.
    delay_ms: f64,
}

impl Rule {
    pub(super) const fn new(
        capacity: usize,
        after_first_ms: i64,
        after_last_ms: i64,
        delay_ms: f64,
    ) -> Self {
        Self { capacity, after_first_ms, after_last_ms, delay_ms }
    }
}

/// A batch: time of writing in ms, records with their TTI.
pub(super) type Full<T> = (f64, Vec<(i64, T)>);

/// Records that wait to be written.
#[derive(Debug, Clone)]
pub(super) struct Batch<T> {
    rule: Rule,
    items: Vec<(i64, T)>,
}

impl<T> Batch<T> {
    pub(super) const fn new(rule: Rule) -> Self {
        Self { rule, items: Vec::new() }
    }

    /// The batch that must be written before a record of TTI `now` is added.
    pub(super) fn due(&mut self, now: i64) -> Option<Full<T>> {
        let (first, last) = (self.items.first()?.0, self.items.last()?.0);
        let full = self.items.len() >= self.rule.capacity && last < now;
        let at = (first + self.rule.after_first_ms).min(last + self.rule.after_last_ms);
        if full {
            let at = last as f64 + self.rule.delay_ms;
            return Some((at, std::mem::take(&mut self.items)));
        }
        (at <= now).then(|| (at as f64, std::mem::take(&mut self.items)))
    }

    pub(super) fn push(&mut self, now: i64, item: T) {
        self.items.push((now, item));
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut (i64, T)> {
        self.items.last_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_when_full_or_old_or_idle() {
        let rule = Rule::new(3, 100, 60, 4.0);
        let mut batch = Batch::new(rule);
        let mut written = Vec::new();
        for tti in [0, 1, 2, 10, 69, 109, 120, 200] {
            written.extend(batch.due(tti).map(|(at, items)| (at, items.len())));
            batch.push(tti, ());
        }
        written.extend(batch.due(i64::MAX).map(|(at, items)| (at, items.len())));
        assert_eq!(written, [(6.0, 3), (113.0, 3), (180.0, 1), (260.0, 1)]);
    }
}
