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

/// The filler byte at an offset: letters in rows of 64, so that a capture shows the
/// position in the stream at a glance.
#[must_use]
pub fn filler_byte(offset: u64) -> u8 {
    match offset % 64 {
        63 => b'\n',
        at => b'a' + u8::try_from((offset / 64 + at) % 26).unwrap_or(0),
    }
}

/// Bytes of a range of a stream.
#[must_use]
pub fn bytes_of(range: Range<u64>, literals: &[Literal]) -> Vec<u8> {
    let mut bytes: Vec<u8> = range.clone().map(filler_byte).collect();
    for literal in literals {
        let both = range.start.max(literal.offset)..range.end.min(literal.range().end);
        for at in both {
            let (to, from) = (at - range.start, at - literal.offset);
            if let (Ok(to), Ok(from)) = (usize::try_from(to), usize::try_from(from)) {
                bytes[to] = literal.bytes[from];
            }
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
    }
}
