//! Bytes to records and back: modem logs and the documented tables.
//!
//! No I/O of its own: bytes are pushed in, or read from any [`std::io::Read`]
//! that the caller opened.

pub mod diag;
pub mod sniffer;
pub mod table;
pub mod text;
