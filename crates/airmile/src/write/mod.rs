//! Writing records and answers: Parquet tables, modem logs, HTML reports.

pub(crate) mod csv;
pub mod modem_log;
pub mod parquet;
pub mod report;
