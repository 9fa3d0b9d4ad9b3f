//! Words of a fixed vocabulary that come back from text: `&'static str` again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer};

/// A word of a fixed vocabulary. By this name it comes back from any text, and not from
/// text alone that lives as long as the program.
pub type Word = &'static str;

static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The word itself. Each is kept once for as long as the program runs, so this is
/// for vocabularies and not for text at large.
#[must_use]
pub fn word(text: &str) -> &'static str {
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.get(text) {
        return known;
    }
    let kept: &'static str = String::leak(text.to_owned());
    words.insert(kept);
    kept
}

/// For `#[serde(deserialize_with)]`: a word.
///
/// # Errors
/// It is no text.
pub fn one<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    Ok(word(&String::deserialize(from)?))
}

/// For `#[serde(deserialize_with)]`: counts by word.
///
/// # Errors
/// It is no map of numbers.
pub fn keys<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<&'static str, u64>, D::Error> {
    let counts = BTreeMap::<String, u64>::deserialize(from)?;
    Ok(counts.into_iter().map(|(text, n)| (word(&text), n)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_kept_once() {
        let (a, b) = (word("fin"), word(&String::from("fin")));
        assert_eq!(a, "fin");
        assert!(std::ptr::eq(a, b));
    }
}
