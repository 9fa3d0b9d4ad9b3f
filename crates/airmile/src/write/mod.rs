//! Writers of results: HTML reports, Perfetto traces, packets of the air interface.

pub(crate) mod air_packets;
mod page;
pub mod pcapng;
pub(crate) mod perfetto;
pub mod report;
pub mod study;
