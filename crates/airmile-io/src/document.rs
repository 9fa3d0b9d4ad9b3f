//! The envelope of every `--json` document: which one, which version.

use schemars::JsonSchema;
use serde::Serialize;

/// Version of all documents; a new field is not a new version, a changed or
/// removed one, or a new word in a closed list, is.
pub const VERSION: u32 = 1;

/// A document as it goes out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Document<T> {
    /// Which document: the command's name.
    pub document: &'static str,
    /// Its version.
    pub version: u32,
    /// The program and version that made it.
    pub made_by: &'static str,
    /// What it says.
    #[serde(flatten)]
    pub body: T,
}

impl<T> Document<T> {
    /// Wraps a body.
    pub const fn new(document: &'static str, body: T) -> Self {
        let made_by = concat!("airmile ", env!("CARGO_PKG_VERSION"));
        Self { document, version: VERSION, made_by, body }
    }
}
