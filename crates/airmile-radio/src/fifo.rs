//! A queue in one piece of memory, for items that are pushed and popped one by one.

/// Items in order. What was popped is moved over once it is most of the items, so a pop is an
/// index that grows, and all items are one slice.
#[derive(Debug, Clone)]
pub(crate) struct Fifo<T> {
    items: Vec<T>,
    /// Those before it were popped.
    first: usize,
}

/// Items below which moving does not pay (chosen here).
const MIN_POPPED: usize = 64;

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
        self.first = (self.first + n).min(self.items.len());
        if self.first > MIN_POPPED && 4 * self.first >= 3 * self.items.len() {
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

    pub(crate) fn first(&self) -> Option<&T> {
        self.items.get(self.first)
    }

    pub(crate) fn first_mut(&mut self) -> Option<&mut T> {
        self.items.get_mut(self.first)
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
            assert_eq!(fifo.first(), Some(&(2 * (i / 3))));
            fifo.pop(if i % 3 == 2 { 2 } else { 0 });
        }
        assert_eq!(fifo.as_slice(), (666..1_000).collect::<Vec<_>>());
        fifo.pop(usize::MAX / 2);
        assert_eq!(fifo.first(), None);
        assert!(fifo.as_mut_slice().is_empty());
    }
}
