//! Writing answers: HTML reports, Perfetto traces.

mod page;
pub(crate) mod perfetto;
mod replacement;
pub mod report;
pub mod study;
