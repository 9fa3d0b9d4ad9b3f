//! Little-endian bytes with bit fields: bounded reading and writing.
//!
//! A layout is a set of [`Field`] constants. The same constant reads and
//! writes, so that a parser and its emitter cannot disagree on a position.
//! Lengths are checked once, when [`Cursor::take`] cuts a fixed part off;
//! the fields of that part are then read without further errors.

use smallvec::{Array, SmallVec};

/// A field: `bits` bits (at most 57) from bit `bit` of a little-endian part,
/// bit 0 being the least significant bit of the part's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    bit: usize,
    bits: u32,
}

impl Field {
    /// `bits` bits starting at bit `low` of the little-endian word at byte `at`.
    #[must_use]
    pub const fn new(at: usize, low: usize, bits: u32) -> Self {
        Self { bit: at * 8 + low, bits }
    }

    /// Its maximum value.
    #[must_use]
    pub const fn max(self) -> u64 {
        (1 << self.bits) - 1
    }
}

/// The byte at `at`.
pub(crate) const fn u8_at(at: usize) -> Field {
    Field::new(at, 0, 8)
}

/// The 16-bit word at byte `at`.
pub(crate) const fn u16_at(at: usize) -> Field {
    Field::new(at, 0, 16)
}

/// The 32-bit word at byte `at`.
pub(crate) const fn u32_at(at: usize) -> Field {
    Field::new(at, 0, 32)
}

/// Bits of the word at byte `at`: `low` and width.
pub(crate) const fn bits_at(at: usize, low: usize, bits: u32) -> Field {
    Field::new(at, low, bits)
}

/// A part that is missing, or has an invalid value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// The part.
    pub field: &'static str,
    /// Its offset in the payload, in bytes.
    pub at: usize,
    /// The error.
    pub why: &'static str,
}

/// Why a [`Short`] is one.
pub(crate) const BEYOND: &str = "runs beyond the end";

/// A part whose length has been checked.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    bytes: &'a [u8],
}

impl<'a> Part<'a> {
    /// All bytes of the part.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// A field's value. Bits beyond the part read as zero; layouts never place
    /// a field there.
    #[must_use]
    #[inline]
    pub fn get(self, field: Field) -> u64 {
        let first = field.bit / 8;
        let tail = self.bytes.get(first..).unwrap_or_default();
        let word = if let Some(word) = tail.first_chunk::<8>() {
            u64::from_le_bytes(*word)
        } else {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(tail) {
                *to = *from;
            }
            u64::from_le_bytes(word)
        };
        (word >> (field.bit % 8)) & field.max()
    }

    /// A field of at most 8 bits.
    #[must_use]
    #[inline]
    pub fn u8(self, field: Field) -> u8 {
        self.get(field) as u8
    }

    /// A field of at most 16 bits.
    #[must_use]
    #[inline]
    pub fn u16(self, field: Field) -> u16 {
        self.get(field) as u16
    }

    /// A field of at most 32 bits.
    #[must_use]
    #[inline]
    pub fn u32(self, field: Field) -> u32 {
        self.get(field) as u32
    }

    /// A field of one bit.
    #[must_use]
    #[inline]
    pub fn flag(self, field: Field) -> bool {
        self.get(field) != 0
    }
}

/// Reads parts one after the other, up to a bound.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    payload: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// From the payload's first byte.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { payload, at: 0 }
    }

    /// Offset of the next part, in bytes from the payload's start.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Bytes left.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.payload.len().saturating_sub(self.at)
    }

    /// The next `len` bytes; `field` names them in the error if they are missing.
    #[inline]
    pub fn take(&mut self, len: usize, field: &'static str) -> Result<Part<'a>, Short> {
        let end = self.at.checked_add(len);
        match end.and_then(|end| self.payload.get(self.at..end)) {
            Some(bytes) => {
                self.at += len;
                Ok(Part { bytes })
            }
            None => Err(Short { field, at: self.at, why: BEYOND }),
        }
    }

    /// As [`take`](Self::take), but stays where it is.
    #[inline]
    pub fn peek(&self, len: usize, field: &'static str) -> Result<Part<'a>, Short> {
        self.clone().take(len, field)
    }

    /// A cursor over the next `len` bytes, or over the remaining ones; this one moves
    /// past them. The flag is true if all of them are there.
    pub fn sub(&mut self, len: usize) -> (Cursor<'a>, bool) {
        let whole = len <= self.left();
        let end = self.at + len.min(self.left());
        let sub = Cursor { payload: &self.payload[..end], at: self.at };
        self.at = end;
        (sub, whole)
    }

    /// `count` items, or those that can be read: the first failure is stored in `problem`
    /// and ends the list.
    pub fn list<T>(
        &mut self,
        count: usize,
        problem: &mut Option<Short>,
        item: impl FnMut(&mut Self, &mut Option<Short>) -> Result<T, Short>,
    ) -> Vec<T> {
        let mut out = Vec::with_capacity(count.min(self.left()));
        self.each(count, problem, item, |value| out.push(value));
        out
    }

    /// As [`list`](Self::list), with a few items inline: as many as most messages of the
    /// available logs have (chosen here), so that these take no memory of the heap.
    #[inline]
    pub fn inline_list<A: Array>(
        &mut self,
        count: usize,
        problem: &mut Option<Short>,
        item: impl FnMut(&mut Self, &mut Option<Short>) -> Result<A::Item, Short>,
    ) -> SmallVec<A> {
        let mut out = SmallVec::new();
        self.each(count, problem, item, |value| out.push(value));
        out
    }

    #[inline]
    fn each<T>(
        &mut self,
        count: usize,
        problem: &mut Option<Short>,
        mut item: impl FnMut(&mut Self, &mut Option<Short>) -> Result<T, Short>,
        mut push: impl FnMut(T),
    ) {
        for _ in 0..count {
            if problem.is_some() {
                break;
            }
            match item(self, problem) {
                Ok(value) => push(value),
                Err(short) => {
                    problem.get_or_insert(short);
                }
            }
        }
    }
}

/// Builds a payload from zeroed parts.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// With a head of `len` zero bytes.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self { bytes: vec![0; len] }
    }

    /// Appends a part of `len` zero bytes and returns its offset.
    pub fn part(&mut self, len: usize) -> usize {
        let start = self.bytes.len();
        self.bytes.resize(start + len, 0);
        start
    }

    /// Sets a field of the part at `start`; a value too large for it is written as its
    /// maximum.
    pub fn set(&mut self, start: usize, field: Field, value: impl Into<u64>) -> &mut Self {
        let value = value.into().min(field.max());
        for i in 0..field.bits as usize {
            let bit = field.bit + i;
            if let Some(byte) = self.bytes.get_mut(start + bit / 8) {
                let mask = 1 << (bit % 8);
                if value >> i & 1 == 1 { *byte |= mask } else { *byte &= !mask }
            }
        }
        self
    }

    /// Appends a byte; a larger value is written as its maximum.
    pub fn byte(&mut self, value: impl Into<u64>) -> &mut Self {
        self.bytes.push(value.into().min(u8::MAX.into()) as u8);
        self
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The payload.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_part_names_itself() {
        let mut cursor = Cursor::new(&[1, 2, 3]);
        assert!(cursor.take(2, "head").is_ok());
        let short = cursor.take(2, "record").unwrap_err();
        assert_eq!(short, Short { field: "record", at: 2, why: BEYOND });
    }

    proptest! {
        #[test]
        fn what_is_set_is_got(at in 0usize..20, low in 0usize..32, bits in 1u32..33, value: u64,
                              noise: [u8; 32]) {
            let field = Field::new(at, low, bits);
            let mut writer = Writer::default();
            writer.raw(&noise);
            writer.set(0, field, value & field.max());
            let bytes = writer.finish();
            let mut cursor = Cursor::new(&bytes);
            let part = cursor.take(32, "all").unwrap();
            prop_assert_eq!(part.get(field), value & field.max());
            // And no neighbouring bit changed.
            for bit in 0..256 {
                if !(field.bit..field.bit + bits as usize).contains(&bit) {
                    prop_assert_eq!(bytes[bit / 8] >> (bit % 8) & 1, noise[bit / 8] >> (bit % 8) & 1);
                }
            }
        }
    }
}
