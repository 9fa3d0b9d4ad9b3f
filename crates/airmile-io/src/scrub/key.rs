//! The key: 32 random bytes in a file that only its owner can read.

use std::path::{Path, PathBuf};

use airmile_model::row::hex;
use airmile_pseudonym::KEY_BYTES;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::file::Created;
use crate::error::{Error, Result};

/// The start of a key file.
const MARK: &str = "airmile-scrub-key-1 ";

/// Maximum size of a key file.
const MAX_FILE_BYTES: u64 = 4096;

pub(super) struct Key([u8; KEY_BYTES]);

impl Key {
    pub(super) const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    pub(super) fn fingerprint(&self) -> String {
        let digest = Sha256::digest(self.0);
        hex(digest.get(..8).unwrap_or_default())
    }

    /// HMAC-SHA-256 (RFC 2104) of a digest, in hexadecimal. A plain digest of the input would
    /// let a reader of the copy test guesses of what was replaced.
    pub(super) fn authenticate(&self, digest: &str) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(digest.as_bytes());
        hex(&mac.finalize().into_bytes())
    }

    /// Reads the key from its file, or creates a new one there; also returns whether it is new.
    pub(super) fn read_or_make(
        path: &Path,
        created: &mut Created,
    ) -> Result<(Self, PathBuf, bool)> {
        if !path.exists() {
            return Self::make(path, created);
        }
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|e| Error::read(path, e))?;
        let mut head = std::io::Read::take(file, MAX_FILE_BYTES);
        // A file that is not text is no key, either.
        if let Err(error) = std::io::Read::read_to_string(&mut head, &mut text)
            && error.kind() != std::io::ErrorKind::InvalidData
        {
            return Err(Error::read(path, error));
        }
        match Self::parse(&text) {
            Some(key) => Ok((key, path.to_owned(), false)),
            None => {
                let what =
                    format!("is no key file: expected `{}` and 64 hexadecimal digits", MARK.trim());
                Err(Error::Unusable { path: path.to_owned(), what })
            }
        }
    }

    /// Creates a new key in a new file.
    pub(super) fn make(path: &Path, created: &mut Created) -> Result<(Self, PathBuf, bool)> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|e| {
            let what = format!("the system provides no random numbers for a key: {e}");
            Error::Unusable { path: path.to_owned(), what }
        })?;
        created.write_private(path, format!("{MARK}{}\n", hex(&key)).as_bytes())?;
        Ok((Self(key), path.to_owned(), true))
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix(MARK)?;
        let mut key = [0; KEY_BYTES];
        if digits.len() != 2 * KEY_BYTES {
            return None;
        }
        for (byte, at) in key.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_keys() {
        let digits = "0123456789abcdef".repeat(4);
        assert_eq!(Key::parse(&format!("{MARK}{digits}\n")).unwrap().0[..3], [0x01, 0x23, 0x45]);
        for text in ["", &digits, &format!("{MARK}{}", &digits[2..]), &format!("{MARK}{digits}0")] {
            assert!(Key::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn a_fingerprint_is_the_head_of_the_digest() {
        // SHA-256 of 32 zero bytes.
        assert_eq!(Key([0; 32]).fingerprint(), "66687aadf862bd77");
    }
}
