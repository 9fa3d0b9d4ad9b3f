//! Parses modem logs and the documented tables into records, and writes them.
//!
//! Opens no files: bytes are pushed in, or read from any [`std::io::Read`] that the
//! caller opened.

pub mod diag;
pub mod sniffer;
pub mod table;
pub mod text;
