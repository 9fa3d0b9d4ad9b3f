//! Qualcomm DIAG modem logs: bytes to messages, and back.
//!
//! - [`stream`]: a byte stream in pieces to packets, whatever its container.
//! - [`msg`]: packets' payloads to typed messages.
//! - [`reader`], [`prompt`]: records, joined, or of the uplink's buffer at once.
//! - [`encode`]: records back to the log that a phone would have written.
//!
//! Layouts come from public material (published decoders of the research
//! community and their sample logs) and were checked against those logs; each
//! module documents its own.

pub mod assemble;
pub mod bits;
pub mod coresight;
pub mod dlf;
pub mod encode;
pub mod frame;
pub mod gsmtap;
pub mod hdlc;
pub mod log_config;
pub mod msg;
pub mod names;
pub mod nhdlc;
pub mod prompt;
pub mod reader;
pub mod scrub;
pub mod stream;
pub mod time;
pub mod versions;

pub use frame::{LogPacket, OtherPacket};
pub use msg::{Message, MessageError, Parsed};
pub use prompt::PromptReader;
pub use reader::{LogReader, LogStats, MessageCount, MessageKey, Tagged};
pub use stream::{Container, Counts, Deframer, Event};
