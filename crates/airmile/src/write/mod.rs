//! Writing records: Parquet tables, modem logs.

pub mod modem_log;
pub mod parquet;
