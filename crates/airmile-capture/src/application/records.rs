//! Logs of one JSON object, or string, per line; or with record separators (RFC 7464).

use airmile_model::{Problem, Severity};

use super::scan::JsonPart;

/// Maximum size of a line (chosen here; see the scanner's).
const LARGEST_LINE_BYTES: usize = 16 << 20;

/// Splits a log at its separators.
#[derive(Debug)]
pub struct Records {
    separator: u8,
    line: Vec<u8>,
    line_at: u64,
    offset: u64,
    too_long: bool,
}

impl Records {
    /// A log whose records end with `separator`, or begin with it.
    #[must_use]
    pub const fn new(separator: u8) -> Self {
        Self { separator, line: Vec::new(), line_at: 0, offset: 0, too_long: false }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(JsonPart<'_>)) {
        let mut rest = bytes;
        while let Some(at) = memchr::memchr(self.separator, rest) {
            let (line, behind) = rest.split_at(at);
            self.keep(line);
            self.give(sink);
            self.offset += at as u64 + 1;
            self.line_at = self.offset;
            rest = behind.get(1..).unwrap_or_default();
        }
        self.keep(rest);
        self.offset += rest.len() as u64;
    }

    /// Ends the log.
    pub fn finish(mut self, sink: &mut dyn FnMut(JsonPart<'_>)) {
        self.give(sink);
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.too_long |= self.line.len() + bytes.len() > LARGEST_LINE_BYTES;
        if !self.too_long {
            self.line.extend_from_slice(bytes);
        }
    }

    fn give(&mut self, sink: &mut dyn FnMut(JsonPart<'_>)) {
        if self.too_long {
            sink(JsonPart::Problem(Problem::at(
                self.line_at,
                Severity::Damage,
                format!("a line of more than {LARGEST_LINE_BYTES} bytes: left out"),
            )));
        } else {
            let line = self.line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.line);
            if !line.trim_ascii().is_empty() {
                sink(JsonPart::Value { path: "", offset: self.line_at, bytes: line });
            }
        }
        self.line.clear();
        self.too_long = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_their_places_however_cut() {
        for piece in [1, 2, 100] {
            let mut got = Vec::new();
            let mut sink = |part: JsonPart<'_>| {
                if let JsonPart::Value { offset, bytes, .. } = part {
                    got.push((offset, String::from_utf8_lossy(bytes).into_owned()));
                }
            };
            let mut records = Records::new(b'\n');
            b"ab\n\r\ncd\r\ne".chunks(piece).for_each(|piece| records.push(piece, &mut sink));
            records.finish(&mut sink);
            assert_eq!(got, [(0, "ab".into()), (5, "cd\r".into()), (9, "e".into())]);
        }
    }
}
