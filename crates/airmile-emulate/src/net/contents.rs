//! Contents of a stream: most bytes are only counted; some, such as the heads of requests
//! and responses, are stored literally.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Bytes stored literally, with their position in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal {
    /// Stream offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

impl Literal {
    /// Their range in the stream.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes.len() as u64
    }
}

/// A row of filler is 63 of these from its number on, and a line feed.
const LETTERS: &[u8] =
    b"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghij";

/// Bytes of a range of a stream: literals over filler, which shows the position at a glance.
#[must_use]
pub fn bytes_of(range: Range<u64>, literals: &[Literal]) -> Vec<u8> {
    let n_bytes = range.end.saturating_sub(range.start) as usize;
    // The last row is written whole.
    let mut bytes = Vec::with_capacity(n_bytes + 63);
    let mut at = range.start;
    while at < range.end {
        let (row, column) = ((at / 64 % 26) as usize, (at % 64) as usize);
        bytes.extend_from_slice(&LETTERS[row + column..row + 63]);
        bytes.push(b'\n');
        at += 64 - column as u64;
    }
    bytes.truncate(n_bytes);
    for literal in literals {
        let both = range.start.max(literal.offset)..range.end.min(literal.range().end);
        if !both.is_empty() {
            let since = |start| (both.start - start) as usize..(both.end - start) as usize;
            bytes[since(range.start)].copy_from_slice(&literal.bytes[since(literal.offset)]);
        }
    }
    bytes
}

/// The literals of one stream that are still needed, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents {
    literals: VecDeque<Literal>,
}

impl Contents {
    /// Adds a literal; a known one is ignored.
    pub(crate) fn add(&mut self, literal: &Literal) {
        let index = self.literals.partition_point(|l| l.offset < literal.offset);
        if self.literals.get(index).is_none_or(|l| l.offset != literal.offset) {
            self.literals.insert(index, literal.clone());
        }
    }

    /// Literals that overlap a range.
    pub(crate) fn overlapping(&self, range: &Range<u64>) -> Vec<Literal> {
        if self.literals.is_empty() {
            return Vec::new();
        }
        let overlaps = |l: &&Literal| l.offset < range.end && l.range().end > range.start;
        self.literals.iter().filter(overlaps).cloned().collect()
    }

    /// The literal that starts at an offset.
    pub(crate) fn at(&self, offset: u64) -> Option<&Literal> {
        let index = self.literals.partition_point(|l| l.offset < offset);
        self.literals.get(index).filter(|l| l.offset == offset)
    }

    /// Start of the next literal after an offset.
    pub(crate) fn next_after(&self, offset: u64) -> Option<u64> {
        let index = self.literals.partition_point(|l| l.offset <= offset);
        self.literals.get(index).map(|l| l.offset)
    }

    /// Removes literals that end at or before an offset.
    pub(crate) fn forget_below(&mut self, offset: u64) {
        while self.literals.front().is_some_and(|l| l.range().end <= offset) {
            self.literals.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_lie_over_filler() {
        let literal = Literal { offset: 3, bytes: Arc::from(*b"GET") };
        let check = |range: Range<u64>, expected: &[u8]| {
            assert_eq!(bytes_of(range, std::slice::from_ref(&literal)), expected);
        };
        check(0..8, b"abcGETgh");
        check(4..7, b"ETg");
        check(6..6, b"");
        check(62..66, b"k\nbc");
        check(1661..1668, b"ij\nabcd");
    }
}
