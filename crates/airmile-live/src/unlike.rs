//! Sources that cannot be a modem log.

use airmile::Kind;

/// Bytes within which a modem log is recognised (chosen here: hundreds of frames).
const HEAD_BYTES: usize = 1 << 16;
/// With fewer bytes a frame that began earlier can look like text (chosen here).
const LEAST_BYTES: usize = 16;

/// The first bytes of a source, until it is recognised.
#[derive(Debug, Default)]
pub(crate) struct Head(Vec<u8>);

impl Head {
    /// Takes the next bytes; returns whether it is a modem log, `None` while that is open. An error
    /// states what it is instead.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<Result<(), String>> {
        let room = HEAD_BYTES.saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend_from_slice(bytes.get(..room).unwrap_or_default());
        if self.0.len() < LEAST_BYTES {
            return None;
        }
        self.judge(self.0.len() < HEAD_BYTES && !is_text(&self.0))
    }

    /// The source has ended; an error states why it was no modem log. An empty one is no error.
    pub(crate) fn end(&self) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { self.judge(false).unwrap_or(Ok(())) }
    }

    fn judge(&self, is_open: bool) -> Option<Result<(), String>> {
        match Kind::of(&self.0) {
            Kind::ModemLog(_) => Some(Ok(())),
            Kind::Foreign(foreign) => Some(Err(format!("it is {}", foreign.advice()))),
            Kind::Unknown if is_open => None,
            Kind::Unknown | Kind::Empty => Some(Err("it has none of a log's frames".into())),
            other => Some(Err(format!("it is `{}`, which `airmile diagnose` reads", other.name()))),
        }
    }
}

/// Whether bytes are lines of text. Frames have control characters.
fn is_text(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        // The head may end within a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(head.get(..error.valid_up_to()).unwrap_or_default())
        }
        whole => whole,
    };
    let is_usual = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    text.is_ok_and(|text| text.contains('\n') && text.chars().all(is_usual))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], expected: Option<Result<(), &str>>) {
        let mut head = Head::default();
        let mut found = None;
        for piece in pieces {
            found = head.push(piece);
        }
        match (found, expected) {
            (Some(Err(what)), Some(Err(words))) => assert!(what.contains(words), "{what}"),
            (found, expected) => assert_eq!(found.is_none(), expected.is_none(), "{found:?}"),
        }
    }

    #[test]
    fn what_cannot_be_a_modem_log_is_named() {
        check(&[b"what I did this morning\n"], Some(Err("none of a log's frames")));
        check(&[b"{\"log\": {\"version\": \"1.2\", \"creator\": {}}}"], Some(Err("`har`")));
        check(&[b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"], Some(Err("a picture")));
        check(&[&[0x55; HEAD_BYTES]], Some(Err("none of a log's frames")));
        // These may still become one.
        check(&[b"{"], None);
        check(&[&[0x55; 100]], None);
        check(&[b"\x10\0\x20\0a text in a frame\n"], None);
    }

    #[test]
    fn a_source_that_ended_early_is_named_too() {
        let end = |bytes: &[u8]| {
            let mut head = Head::default();
            assert_eq!(head.push(bytes), None);
            head.end()
        };
        assert_eq!(end(b""), Ok(()));
        assert!(end(b"hi\n").unwrap_err().contains("none of a log's frames"));
        assert!(end(&[0x55; 100]).unwrap_err().contains("none of a log's frames"));
    }
}
