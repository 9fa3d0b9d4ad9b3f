//! Writers of results: HTML reports, Perfetto traces.

mod page;
pub(crate) mod perfetto;
pub mod report;
pub mod study;
