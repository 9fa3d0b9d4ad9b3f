//! Writing records and answers: Parquet tables, modem logs, HTML reports,
//! Perfetto traces.

pub(crate) mod csv;
pub mod modem_log;
mod page;
pub mod parquet;
pub(crate) mod perfetto;
pub(crate) mod replacement;
pub mod report;
pub mod study;

pub use replacement::{Replacement, refuse_inputs, write_whole};
