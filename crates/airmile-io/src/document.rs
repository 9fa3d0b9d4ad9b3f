//! The envelope of every `--json` document: its name and version.

use schemars::JsonSchema;
use serde::Serialize;

/// Version of all documents. A new field does not change it; a changed or removed field,
/// or a new value in a closed list, does.
pub const VERSION: u32 = 1;

/// A JSON document.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Document<T> {
    /// The document's name, which is the command's name.
    pub document: &'static str,
    /// Its version.
    pub version: u32,
    /// The program and version that made it.
    pub made_by: &'static str,
    /// Its contents.
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
