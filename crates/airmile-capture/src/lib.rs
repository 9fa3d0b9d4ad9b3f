//! What is captured outside the modem: bytes of packet captures and of
//! applications' logs to records.
//!
//! No I/O of its own: bytes are pushed in.

pub mod application;
pub mod packet;
