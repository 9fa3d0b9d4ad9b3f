//! Qualcomm DIAG modem logs: bytes to messages, and back.
//!
//! - [`stream`]: a byte stream in pieces to packets, whatever its container.
//! - [`msg`]: packets' payloads to typed messages.
//!
//! Layouts come from public material (published decoders of the research
//! community and their sample logs) and were checked against those logs; each
//! module documents its own.

pub mod bits;
pub mod frame;
pub mod msg;

pub use frame::LogPacket;
pub use msg::{Message, MessageError, Parsed};
