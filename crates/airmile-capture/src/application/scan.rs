//! Scans large JSON documents in pieces: elements of chosen arrays are returned one by
//! one, with their offsets, so that memory does not grow with the document and a
//! truncated one gives everything before the cut.

use airmile_model::{Problem, Severity};
use memchr::memchr2;

/// Maximum size of a value (chosen here: a HAR entry that embeds a whole video is larger,
/// and of no use).
const LARGEST_VALUE_BYTES: usize = 64 << 20;
/// Maximum size of a name (chosen here).
const LARGEST_NAME_BYTES: usize = 256;

/// A part of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonPart<'a> {
    /// A whole value. `path` is as in `log.entries[]`.
    Value {
        /// Its path.
        path: &'a str,
        /// Byte offset of its first byte.
        offset: u64,
        /// The value.
        bytes: &'a [u8],
    },
    /// The end of an object or array that was descended into.
    End {
        /// Its path.
        path: &'a str,
    },
    /// An error.
    Problem(Problem),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a value.
    Value,
    /// Before a name, or the end of an object.
    Name,
    /// Inside a name.
    InName { escaped: bool },
    /// Between a name and its value.
    Colon,
    /// After a value.
    After,
    /// Within an object or array that is returned whole.
    Container { depth: u32, text: bool, escaped: bool },
    /// Inside a text.
    Text { escaped: bool },
    /// Inside a number or word.
    Word,
    /// After invalid JSON: nothing more is read.
    Broken,
}

#[derive(Debug)]
struct Level {
    array: bool,
    path_len: usize,
}

/// Splits a document into parts. Bytes may be pushed in pieces of any size, with the same
/// result.
#[derive(Debug)]
pub struct Scanner {
    /// Arrays whose elements are returned one by one, as in `log.entries[]`.
    wanted: &'static [&'static str],
    /// Whether another document may follow.
    may_repeat: bool,
    levels: Vec<Level>,
    path: String,
    state: State,
    name: Vec<u8>,
    value: Vec<u8>,
    value_at: u64,
    offset: u64,
}

impl Scanner {
    /// A scanner of a document that returns the elements of these arrays.
    #[must_use]
    pub const fn new(wanted: &'static [&'static str]) -> Self {
        Self {
            wanted,
            may_repeat: false,
            levels: Vec::new(),
            path: String::new(),
            state: State::Value,
            name: Vec::new(),
            value: Vec::new(),
            value_at: 0,
            offset: 0,
        }
    }

    /// The same for several documents, one after the other.
    #[must_use]
    pub const fn repeated(mut self) -> Self {
        self.may_repeat = true;
        self
    }

    /// Bytes taken so far.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(JsonPart<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = self.step(rest, sink).min(rest.len());
            self.offset += taken as u64;
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    /// Ends the document. Returns where it was still open, if it was between two values
    /// of an array or object.
    pub fn finish(mut self, sink: &mut dyn FnMut(JsonPart<'_>)) -> Option<String> {
        match self.state {
            State::Broken => None,
            State::Word => {
                self.give(sink);
                self.still_open()
            }
            State::Container { .. } | State::Text { .. } => {
                let path = self.child_path();
                sink(damage(self.value_at, format!("the file ends inside {path}")));
                None
            }
            State::InName { .. } | State::Colon => {
                let path = self.shown_path();
                sink(damage(self.offset, format!("the file ends inside {path}")));
                None
            }
            State::Value | State::Name | State::After => self.still_open(),
        }
    }

    fn still_open(&self) -> Option<String> {
        (!self.levels.is_empty()).then(|| self.shown_path())
    }

    fn shown_path(&self) -> String {
        let len = self.levels.last().map_or(0, |level| level.path_len);
        match self.path.get(..len) {
            Some("") | None => "the document".to_owned(),
            Some(path) => path.to_owned(),
        }
    }

    /// Takes at least one byte; returns how many.
    fn step(&mut self, bytes: &[u8], sink: &mut dyn FnMut(JsonPart<'_>)) -> usize {
        let Some(&byte) = bytes.first() else { return 0 };
        match self.state {
            State::Broken => bytes.len(),
            State::Container { depth, text, escaped } => {
                self.in_container(bytes, (depth, text, escaped), sink)
            }
            State::Text { escaped } => {
                self.keep(&bytes[..1]);
                match byte {
                    _ if escaped => self.state = State::Text { escaped: false },
                    b'\\' => self.state = State::Text { escaped: true },
                    b'"' => self.give(sink),
                    _ => {}
                }
                1
            }
            State::Word if is_word(byte) => {
                self.keep(&bytes[..1]);
                1
            }
            State::Word => {
                self.give(sink);
                0
            }
            State::InName { escaped } => {
                match byte {
                    b'"' if !escaped => self.state = State::Colon,
                    _ if self.name.len() < LARGEST_NAME_BYTES => self.name.push(byte),
                    _ => {}
                }
                if let State::InName { escaped: now } = &mut self.state {
                    *now = !escaped && byte == b'\\';
                }
                1
            }
            // A byte order mark that a text editor may have written.
            _ if self.offset < 3 && matches!(byte, 0xef | 0xbb | 0xbf) => 1,
            _ if byte.is_ascii_whitespace() => 1,
            State::Name => {
                match byte {
                    b'"' => {
                        self.name.clear();
                        self.state = State::InName { escaped: false };
                    }
                    b'}' => self.close(false, sink),
                    b',' => {}
                    _ => self.broken(byte, "a name", sink),
                }
                1
            }
            State::Colon => {
                match byte {
                    b':' => self.state = State::Value,
                    _ => self.broken(byte, "a colon", sink),
                }
                1
            }
            State::After => {
                let array = self.levels.last().map(|level| level.array);
                match (byte, array) {
                    (b',', Some(true)) => self.state = State::Value,
                    (b',', Some(false)) => self.state = State::Name,
                    (b']', Some(true)) => self.close(true, sink),
                    (b'}', Some(false)) => self.close(false, sink),
                    (_, None) if self.may_repeat => {
                        self.state = State::Value;
                        return 0;
                    }
                    (_, None) => {
                        let what = "the document ends before this byte: the rest is not read";
                        sink(damage(self.offset, what.to_owned()));
                        self.state = State::Broken;
                    }
                    _ => self.broken(byte, "a comma or the end", sink),
                }
                1
            }
            State::Value => self.begin_value(byte, sink),
        }
    }

    fn begin_value(&mut self, byte: u8, sink: &mut dyn FnMut(JsonPart<'_>)) -> usize {
        let in_array = self.levels.last().map(|level| level.array);
        match (byte, in_array) {
            (b']', Some(true)) => self.close(true, sink),
            (b',', Some(true) | None) | (0x1e, None) => {}
            (b'{' | b'[', _) => {
                let path = self.child_path();
                let array = byte == b'[';
                if self.goes_into(&path, array) {
                    self.levels.push(Level { array, path_len: path.len() });
                    self.path = path;
                    self.state = if array { State::Value } else { State::Name };
                } else {
                    self.begin(byte);
                    self.state = State::Container { depth: 1, text: false, escaped: false };
                }
            }
            (b'"', _) => {
                self.begin(byte);
                self.state = State::Text { escaped: false };
            }
            (byte, _) if is_word(byte) => {
                self.begin(byte);
                self.state = State::Word;
            }
            _ => self.broken(byte, "a value", sink),
        }
        1
    }

    fn in_container(
        &mut self,
        bytes: &[u8],
        (mut depth, mut text, mut escaped): (u32, bool, bool),
        sink: &mut dyn FnMut(JsonPart<'_>),
    ) -> usize {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                _ if escaped => escaped = false,
                b'\\' if text => escaped = true,
                b'"' => text = !text,
                _ if text => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    at += memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                }
                b'{' | b'[' => depth = depth.saturating_add(1),
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        self.keep(bytes.get(..at).unwrap_or_default());
        self.state = State::Container { depth, text, escaped };
        if depth == 0 {
            self.give(sink);
        }
        at
    }

    fn begin(&mut self, byte: u8) {
        self.value.clear();
        self.value.push(byte);
        self.value_at = self.offset;
    }

    /// Keeps bytes of a value, up to the limit.
    fn keep(&mut self, bytes: &[u8]) {
        let room = (LARGEST_VALUE_BYTES + 1).saturating_sub(self.value.len());
        self.value.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }

    fn give(&mut self, sink: &mut dyn FnMut(JsonPart<'_>)) {
        let path = self.child_path();
        self.state = State::After;
        if self.value.len() > LARGEST_VALUE_BYTES {
            let what = format!("{path} is larger than {LARGEST_VALUE_BYTES} bytes: left out");
            let offset = self.value_at;
            sink(JsonPart::Problem(Problem::at(offset, Severity::Damage, what)));
            return;
        }
        sink(JsonPart::Value { path: &path, offset: self.value_at, bytes: &self.value });
    }

    fn close(&mut self, array: bool, sink: &mut dyn FnMut(JsonPart<'_>)) {
        match self.levels.pop() {
            Some(level) if level.array == array => {
                self.path.truncate(level.path_len);
                sink(JsonPart::End { path: &self.path });
                let outer = self.levels.last().map_or(0, |level| level.path_len);
                self.path.truncate(outer);
                self.state = State::After;
            }
            _ => self.state = State::Broken,
        }
    }

    fn broken(&mut self, byte: u8, wanted: &str, sink: &mut dyn FnMut(JsonPart<'_>)) {
        let path = self.shown_path();
        let what = format!(
            "{path}: expected {wanted}, found {:?}; the rest is not read",
            char::from(byte)
        );
        sink(damage(self.offset, what));
        self.state = State::Broken;
    }

    /// The path of the current value.
    fn child_path(&self) -> String {
        let Some(level) = self.levels.last() else { return String::new() };
        let path = self.path.get(..level.path_len).unwrap_or_default();
        if level.array {
            return format!("{path}[]");
        }
        let name = String::from_utf8_lossy(&self.name);
        if path.is_empty() { name.into_owned() } else { format!("{path}.{name}") }
    }

    /// Whether a wanted array lies within a path.
    fn goes_into(&self, path: &str, array: bool) -> bool {
        self.wanted.iter().any(|wanted| {
            wanted.strip_prefix(path).is_some_and(|rest| match rest.as_bytes().first() {
                None => false,
                Some(b'[') => array,
                Some(b'.') => !array && !path.is_empty(),
                Some(_) => !array && path.is_empty(),
            })
        })
    }
}

const fn is_word(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'+' | b'.')
}

const fn damage(offset: u64, what: String) -> JsonPart<'static> {
    JsonPart::Problem(Problem::at(offset, Severity::Damage, what))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parts in words, and what was still open.
    fn parts(
        wanted: &'static [&'static str],
        text: &[u8],
        piece: usize,
    ) -> (Vec<String>, Option<String>) {
        let mut out = Vec::new();
        let mut sink = |part: JsonPart<'_>| {
            out.push(match part {
                JsonPart::Value { path, offset, bytes } => {
                    format!("{path}@{offset}={}", String::from_utf8_lossy(bytes))
                }
                JsonPart::End { path } => format!("end {path}"),
                JsonPart::Problem(problem) => format!("! {problem}"),
            });
        };
        let mut scanner = Scanner::new(wanted).repeated();
        text.chunks(piece.max(1)).for_each(|piece| scanner.push(piece, &mut sink));
        let open = scanner.finish(&mut sink);
        (out, open)
    }

    #[test]
    fn chosen_arrays_value_by_value() {
        let check = |wanted, text: &str, expected: &[&str], open: Option<&str>| {
            for piece in [1, 3, 1000] {
                let (got, still) = parts(wanted, text.as_bytes(), piece);
                assert_eq!(got, expected, "{text}");
                assert_eq!(still.as_deref(), open, "{text}");
            }
        };
        let har: &[&str] = &["log.entries[]"];
        check(
            har,
            r#"{"log":{"v":"1.2","entries":[{"a":1}, {"b":"]}\""}]}}"#,
            &[
                r#"log.v@12="1.2""#,
                r#"log.entries[]@29={"a":1}"#,
                r#"log.entries[]@38={"b":"]}\""}"#,
                "end log.entries",
                "end log",
                "end ",
            ],
            None,
        );
        let events: &[&str] = &["events[]"];
        check(events, "{\"events\":[\n{\"t\":1},\n", &["events[]@12={\"t\":1}"], Some("events"));
        check(events, "{\"events\":[1", &["events[]@11=1"], Some("events"));
        check(events, "{\"events\":[{\"t", &["! byte 11: the file ends inside events[]"], None);
        check(events, "{\"ev", &["! byte 4: the file ends inside the document"], None);
        check(
            events,
            "{\"events\":[1,:2]}",
            &[
                "events[]@11=1",
                "! byte 13: events: expected a value, found ':'; the rest is not read",
            ],
            None,
        );
        check(
            &["traces[].events[]"],
            r#"{"traces":[{"events":[7]}]}"#,
            &[
                "traces[].events[]@22=7",
                "end traces[].events",
                "end traces[]",
                "end traces",
                "end ",
            ],
            None,
        );
        check(&[], "{\"a\":1}\n\u{1e}{\"b\":2}", &["@0={\"a\":1}", "@9={\"b\":2}"], None);
        check(&["[]"], "\u{feff}[true,\"x\"]", &["[]@4=true", "[]@9=\"x\"", "end "], None);
    }

    #[test]
    fn a_second_document_is_damage() {
        let mut found = Vec::new();
        let mut scanner = Scanner::new(&["a[]"]);
        scanner.push(b"{\"a\":[1]} \n{\"a\":[2]}", &mut |part| {
            if let JsonPart::Value { .. } | JsonPart::Problem(_) = part {
                found.push(format!("{part:?}"));
            }
        });
        assert_eq!(scanner.finish(&mut |part| panic!("{part:?}")), None);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("offset: 6") && found[1].contains("offset: Some(11)"),
            "{found:?}"
        );
        assert!(found[1].contains("Damage"), "{found:?}");
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same(text in "[\\[\\]{}\",:a\\\\ 1]{0,60}", piece in 1_usize..9) {
            let wanted: &[&str] = &["a[]", "a.a[]", "[]"];
            prop_assert_eq!(parts(wanted, text.as_bytes(), 1000), parts(wanted, text.as_bytes(), piece));
        }
    }
}
