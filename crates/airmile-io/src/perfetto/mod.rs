//! Perfetto's trace format: its messages, and a stream of them.

pub mod proto;
pub mod stream;
