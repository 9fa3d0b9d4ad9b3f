//! Writers of results: HTML reports, Perfetto traces, packets of the air interface.

pub(crate) mod air_packets;
pub(crate) mod page;
pub(crate) mod perfetto;
pub mod report;
pub mod study;

pub use airmile_io::pcapng;
