//! Makes untrusted text safe to print: names from packets, logs and file systems may
//! contain characters that move a terminal's cursor, change the direction of writing or
//! start a new line.
//!
//! Displayed text is passed through [`printable`] where it enters (decoders, file names),
//! and through [`printable_lines`] where our own lines are printed.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Whether a character affects those around it: controls (C0, DEL, C1), the bidirectional
/// controls of Unicode Standard Annex #9, line and paragraph separators, and invisible
/// tags and marks.
#[must_use]
pub const fn is_active(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        | '\u{2028}' | '\u{2029}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text in one line without active characters: each is shown in the form `\u{1b}`, and
/// the usual ones as `\n`, `\r` and `\t`.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, is_active)
}

/// The same, but line breaks and tabs stay: for our own multi-line texts.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_active(c) && c != '\n' && c != '\t')
}

/// A path as [`printable`] shows it.
#[must_use]
pub fn printable_path(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !is_escaped(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to a string does not fail.
            c => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_characters_are_shown_and_others_stay() {
        for (text, expected) in [
            ("cdn.example:443/größe/日本", "cdn.example:443/größe/日本"),
            ("\u{1b}[2Jx", "\\u{1b}[2Jx"),
            ("\u{9b}31mx", "\\u{9b}31mx"),
            ("a\nVerdict: radio", "a\\nVerdict: radio"),
            ("a\r\tb\0\u{7f}", "a\\r\\tb\\u{0}\\u{7f}"),
            ("exe.\u{202e}gpj", "exe.\\u{202e}gpj"),
            ("\u{2066}a\u{2069}\u{2028}b", "\\u{2066}a\\u{2069}\\u{2028}b"),
            ("\u{e0041}\u{feff}", "\\u{e0041}\\u{feff}"),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable_lines("a\tb\n\u{1b}c\r\n"), "a\tb\n\\u{1b}c\\r\n");
        assert!(matches!(printable("plain"), Cow::Borrowed(_)));
    }
}
