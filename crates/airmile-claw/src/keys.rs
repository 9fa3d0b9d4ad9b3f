//! Keys: from files, and random ones.

use std::path::Path;

use airmile_control::claw::feedback::FeedbackKey;
use airmile_host::Attempt;
use airmile_host::files::read_secret;

use crate::error::{Error, Result};

/// Random bytes from the system.
///
/// # Errors
/// The system returns none.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| std::io::Error::other(error.to_string()))
        .attempt(|| "cannot read random bytes".to_owned())?;
    Ok(bytes)
}

/// A random key.
///
/// # Errors
/// As for [`random`].
pub fn random_key() -> Result<FeedbackKey> {
    random().map(FeedbackKey::new)
}

/// Reads a key from a file: 64 hexadecimal digits.
///
/// # Errors
/// The file cannot be read, or has other contents.
pub fn read_key(path: &Path) -> Result<FeedbackKey> {
    let text = read_secret(path).attempt(|| path.display().to_string())?;
    parse(&text).ok_or_else(|| Error::File {
        path: path.to_owned(),
        what: "not a key: 64 hexadecimal digits are needed (openssl rand -hex 32)".to_owned(),
    })
}

/// Parses a key of 64 hexadecimal digits.
#[must_use]
pub fn parse(text: &str) -> Option<FeedbackKey> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut key = [0; 32];
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(FeedbackKey::new(key))
}

/// Formats a key as 64 hexadecimal digits.
#[must_use]
pub fn to_text(key: &FeedbackKey) -> String {
    key.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hexadecimal() {
        let text = "00ff10".to_owned() + &"a5".repeat(29);
        let key = parse(&text).unwrap();
        assert_eq!(key.bytes()[..4], [0, 255, 16, 165]);
        assert_eq!(to_text(&key), text);
        for wrong in ["", "00", &"0".repeat(63), &"g".repeat(64), &"é".repeat(32)] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
