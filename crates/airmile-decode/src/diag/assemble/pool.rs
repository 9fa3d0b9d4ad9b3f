//! What waits for its TTI, in order of arrival.
//!
//! About two seconds of records wait, more than a core's second-level cache holds. What a
//! message says is adjacent here and belongs to consecutive TTIs, so releasing TTIs in
//! order reads memory forwards, which the core prefetches. In a list for each TTI every
//! value would be a cache miss.

/// Values in a block (chosen here: 26 KB of records, a few messages of the largest
/// batches).
const BLOCK_VALUES: u32 = 256;
/// No entry.
const NONE: u32 = u32::MAX;

/// A list of values in a [`Pool`], in order of arrival: the numbers of its first and last
/// entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct PoolList {
    first: u32,
    last: u32,
}

impl Default for PoolList {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl PoolList {
    pub(super) const fn is_empty(self) -> bool {
        self.first == NONE
    }
}

#[derive(Debug, Clone)]
struct Entry<T> {
    value: Option<T>,
    /// The next entry of the same list.
    next: u32,
}

/// Blocks of values, filled one after the other and reused once all values were taken.
#[derive(Debug, Clone)]
pub(super) struct Pool<T> {
    blocks: Vec<Block<T>>,
    empty: Vec<usize>,
    filling: usize,
}

#[derive(Debug, Clone)]
struct Block<T> {
    entries: Vec<Entry<T>>,
    taken: u32,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { blocks: Vec::new(), empty: Vec::new(), filling: 0 }
    }
}

impl<T> Pool<T> {
    /// Appends a value to a list; returns its number.
    pub(super) fn push(&mut self, list: &mut PoolList, value: T) -> u32 {
        let at = self.place(value);
        match self.entry(list.last) {
            Some(last) => last.next = at,
            None => list.first = at,
        }
        list.last = at;
        at
    }

    /// The first value of a list that `is` the one; `make` makes it if there is none.
    pub(super) fn find_or_push(
        &mut self,
        list: &mut PoolList,
        is: impl Fn(&T) -> bool,
        make: impl Fn() -> T,
    ) -> &mut T {
        let mut at = list.first;
        while let Some(entry) = self.entry(at) {
            if entry.value.as_ref().is_some_and(&is) {
                break;
            }
            at = entry.next;
        }
        if at == NONE {
            at = self.push(list, make());
        }
        let (block, entry) = split(at);
        self.blocks[block].entries[entry].value.get_or_insert_with(make)
    }

    /// Passes all values of a list to `give`, in order, and empties the list.
    pub(super) fn drain(&mut self, list: &mut PoolList, give: &mut impl FnMut(T)) {
        let PoolList { first: mut at, last } = std::mem::take(list);
        loop {
            let (block_at, entry_at) = split(at);
            let Some(block) = self.blocks.get_mut(block_at) else { return };
            let Some(entry) = block.entries.get_mut(entry_at) else { return };
            let (value, next) = (entry.value.take(), entry.next);
            block.taken += 1;
            if block.taken >= BLOCK_VALUES {
                block.reuse();
                if block_at != self.filling {
                    self.empty.push(block_at);
                }
            }
            if let Some(value) = value {
                give(value);
            }
            if at == last {
                return;
            }
            at = next;
        }
    }

    fn entry(&mut self, at: u32) -> Option<&mut Entry<T>> {
        let (block, entry) = split(at);
        self.blocks.get_mut(block)?.entries.get_mut(entry)
    }

    fn place(&mut self, value: T) -> u32 {
        let is_full = |block: &Block<T>| block.entries.len() >= BLOCK_VALUES as usize;
        if self.blocks.get(self.filling).is_none_or(is_full) {
            self.filling = self.empty.pop().unwrap_or_else(|| {
                let entries = Vec::with_capacity(BLOCK_VALUES as usize);
                self.blocks.push(Block { entries, taken: 0 });
                self.blocks.len() - 1
            });
        }
        let entries = &mut self.blocks[self.filling].entries;
        entries.push(Entry { value: Some(value), next: NONE });
        self.filling as u32 * BLOCK_VALUES + entries.len() as u32 - 1
    }
}

/// The block of an entry's number, and the entry's place in it.
const fn split(at: u32) -> (usize, usize) {
    ((at / BLOCK_VALUES) as usize, (at % BLOCK_VALUES) as usize)
}

impl<T> Block<T> {
    /// Empties a block of which all values were taken.
    #[cold]
    fn reuse(&mut self) {
        self.entries.clear();
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use airmile_model::{Direction, Grant, Position, Record};
    use proptest::prelude::*;

    use super::*;

    fn record(n: i64) -> Record {
        Grant::new(Position::lte(n), Direction::Dl, 1).into()
    }

    proptest! {
        /// Lists return their records in order, and the pool keeps only waiting records.
        #[test]
        fn returns_what_a_list_would(steps in prop::collection::vec((0_usize..6, 0_usize..90), 1..80)) {
            let mut pool = Pool::default();
            let mut lists = [PoolList::default(); 6];
            let mut expected = vec![VecDeque::new(); 6];
            let mut n = 0;
            for (at, count) in steps {
                if count < 20 {
                    let mut taken = Vec::new();
                    pool.drain(&mut lists[at], &mut |record| taken.push(record));
                    prop_assert_eq!(taken, expected[at].drain(..).collect::<Vec<_>>());
                    continue;
                }
                for _ in 0..count {
                    n += 1;
                    pool.push(&mut lists[at], record(n));
                    expected[at].push_back(record(n));
                }
            }
            let waiting: usize = expected.iter().map(VecDeque::len).sum();
            let kept: usize = pool.blocks.iter().map(|b| b.entries.len() - b.taken as usize).sum();
            prop_assert_eq!(kept, waiting);
        }

        #[test]
        fn memory_is_bounded_by_waiting_records(lists in 1_usize..8, rounds in 1_usize..60) {
            let mut pool = Pool::default();
            let mut waiting: VecDeque<PoolList> = VecDeque::new();
            for n in 0..rounds * 40 {
                let mut list = PoolList::default();
                for _ in 0..7 {
                    pool.push(&mut list, record(n as i64));
                }
                waiting.push_back(list);
                if waiting.len() > lists * 40 {
                    let mut oldest = waiting.pop_front().unwrap_or_default();
                    pool.drain(&mut oldest, &mut |_| {});
                }
            }
            prop_assert!(pool.blocks.len() <= lists * 40 * 7 / BLOCK_VALUES as usize + 2);
        }
    }
}
