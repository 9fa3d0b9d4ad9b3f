//! Data captured outside the modem: parses packet captures and application logs.
//!
//! Does no I/O: bytes are pushed in.

pub mod application;
pub mod packet;
