//! Bytes to records and back: modem logs, applications' logs and the
//! documented tables.
//!
//! No I/O of its own: bytes are pushed in, or read from any [`std::io::Read`]
//! that the caller opened.

pub mod application;
pub mod diag;
pub mod packet;
pub mod pseudonym;
pub mod sniffer;
pub mod table;
pub mod text;
