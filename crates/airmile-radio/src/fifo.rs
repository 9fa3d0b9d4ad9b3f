//! A queue in one piece of memory, for items that are pushed and popped one by one.

/// Items in order, as one slice. A pop is an index that grows; once most items were popped, or many, the
/// others are moved to the front.
#[derive(Debug, Clone)]
pub(crate) struct Fifo<T> {
    items: Vec<T>,
    /// Those before it were popped.
    first: usize,
}

/// Popped items below which moving does not pay (chosen here).
const MIN_POPPED: usize = 64;
/// Popped items that are kept at most: a bounded queue stays bounded (chosen here).
const MAX_POPPED: usize = 4_096;

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { items: Vec::new(), first: 0 }
    }
}

impl<T> Fifo<T> {
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// Removes the first items.
    #[inline]
    pub(crate) fn pop(&mut self, n: usize) {
        self.first = self.first.saturating_add(n).min(self.items.len());
        let are_most = 4 * self.first >= 3 * self.items.len();
        if self.first > MIN_POPPED && are_most || self.first >= MAX_POPPED {
            self.move_over();
        }
    }

    #[cold]
    fn move_over(&mut self) {
        self.items.drain(..self.first);
        self.first = 0;
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        self.items.get(self.first..).unwrap_or_default()
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        self.items.get_mut(self.first..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn last(&self) -> Option<&T> {
        self.as_slice().last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_leave_in_order() {
        let mut fifo = Fifo::default();
        for i in 0..1_000 {
            fifo.push(i);
            assert_eq!(fifo.as_slice().first(), Some(&(2 * (i / 3))));
            fifo.pop(if i % 3 == 2 { 2 } else { 0 });
        }
        assert_eq!(fifo.as_slice(), (666..1_000).collect::<Vec<_>>());
        fifo.pop(usize::MAX);
        assert_eq!(fifo.last(), None);
        assert!(fifo.as_mut_slice().is_empty());
    }

    #[test]
    fn a_bounded_queue_keeps_few_popped_items() {
        let mut fifo = Fifo::default();
        (0..20_000).for_each(|i| fifo.push(i));
        for i in 20_000..100_000 {
            fifo.pop(1);
            fifo.push(i);
            assert!(fifo.items.len() <= 20_000 + MAX_POPPED);
        }
        assert_eq!(fifo.as_slice(), (80_000..100_000).collect::<Vec<_>>());
    }
}
