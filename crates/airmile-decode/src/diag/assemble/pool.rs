//! Waiting records, stored in order of arrival.
//!
//! About two seconds of records wait for their TTI, more than a core's second-level cache
//! holds. The records of a message are adjacent here and belong to consecutive TTIs, so
//! releasing TTIs in order reads memory forwards, which the core prefetches. In a list for
//! each TTI every record would be a cache miss.

use airmile_model::Record;

/// Records in a block (chosen here: 26 KB, a few messages of the largest batches).
const BLOCK_RECORDS: usize = 256;

/// First and last record of a list in a [`RecordPool`], in order of arrival.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecordList(Option<(usize, usize)>);

#[derive(Debug, Clone)]
struct Entry {
    record: Option<Record>,
    /// The next record of the same list.
    next: usize,
}

/// Blocks of records, filled one after the other and reused once all records were taken.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordPool {
    blocks: Vec<Block>,
    empty: Vec<usize>,
    filling: usize,
}

#[derive(Debug, Clone, Default)]
struct Block {
    entries: Vec<Entry>,
    taken: usize,
}

impl RecordPool {
    /// Appends a record to a list.
    pub(super) fn push(&mut self, list: &mut RecordList, record: Record) {
        let at = self.place(record);
        let Some((_, last)) = &mut list.0 else {
            list.0 = Some((at, at));
            return;
        };
        if let Some(entry) = self.entry(*last) {
            entry.next = at;
        }
        *last = at;
    }

    /// Passes all records of a list to `give`, in order, and empties the list.
    pub(super) fn drain(&mut self, list: &mut RecordList, give: &mut impl FnMut(Record)) {
        let Some((mut at, last)) = list.0.take() else { return };
        while let Some(block) = self.blocks.get_mut(at / BLOCK_RECORDS) {
            let Some(entry) = block.entries.get_mut(at % BLOCK_RECORDS) else { return };
            let (record, next) = (entry.record.take(), entry.next);
            block.taken += 1;
            if block.taken >= BLOCK_RECORDS {
                block.reuse();
                if at / BLOCK_RECORDS != self.filling {
                    self.empty.push(at / BLOCK_RECORDS);
                }
            }
            if let Some(record) = record {
                give(record);
            }
            if at == last {
                return;
            }
            at = next;
        }
    }

    fn entry(&mut self, at: usize) -> Option<&mut Entry> {
        self.blocks.get_mut(at / BLOCK_RECORDS)?.entries.get_mut(at % BLOCK_RECORDS)
    }

    fn place(&mut self, record: Record) -> usize {
        let is_full = |block: &Block| block.entries.len() >= BLOCK_RECORDS;
        if self.blocks.get(self.filling).is_none_or(is_full) {
            self.filling = self.empty.pop().unwrap_or_else(|| {
                let entries = Vec::with_capacity(BLOCK_RECORDS);
                self.blocks.push(Block { entries, taken: 0 });
                self.blocks.len() - 1
            });
        }
        let entries = &mut self.blocks[self.filling].entries;
        entries.push(Entry { record: Some(record), next: 0 });
        self.filling * BLOCK_RECORDS + entries.len() - 1
    }
}

impl Block {
    /// Empties a block of which all records were taken.
    #[cold]
    fn reuse(&mut self) {
        self.entries.clear();
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use airmile_model::{Direction, Grant, Position};
    use proptest::prelude::*;

    use super::*;

    fn record(n: i64) -> Record {
        Grant::new(Position::lte(n), Direction::Dl, 1).into()
    }

    proptest! {
        /// Lists return their records in order, and the pool keeps only waiting records.
        #[test]
        fn returns_what_a_list_would(steps in prop::collection::vec((0_usize..6, 0_usize..90), 1..80)) {
            let mut pool = RecordPool::default();
            let mut lists = [RecordList::default(); 6];
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
            let kept: usize = pool.blocks.iter().map(|b| b.entries.len() - b.taken).sum();
            prop_assert_eq!(kept, waiting);
        }

        #[test]
        fn memory_is_bounded_by_waiting_records(lists in 1_usize..8, rounds in 1_usize..60) {
            let mut pool = RecordPool::default();
            let mut waiting: VecDeque<RecordList> = VecDeque::new();
            for n in 0..rounds * 40 {
                let mut list = RecordList::default();
                for _ in 0..7 {
                    pool.push(&mut list, record(n as i64));
                }
                waiting.push_back(list);
                if waiting.len() > lists * 40 {
                    let mut oldest = waiting.pop_front().unwrap_or_default();
                    pool.drain(&mut oldest, &mut |_| {});
                }
            }
            prop_assert!(pool.blocks.len() <= lists * 40 * 7 / BLOCK_RECORDS + 2);
        }
    }
}
