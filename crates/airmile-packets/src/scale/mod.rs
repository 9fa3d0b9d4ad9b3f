//! A study in parts that may run on many machines, with the rows of one process.
//!
//! 1. [`deal`] reads a part of a capture and partitions its packets by user and hour: a
//!    Parquet file of records, a row group for each bucket and hour.
//! 2. [`settle`], if needed: flows whose ends alone do not show the client.
//! 3. [`study_bucket`] passes a bucket's records, in the order of the capture, to the same
//!    analysis that one process runs (`rounds::Lone`), and writes tables by day.
//! 4. [`join`] sums up.
//!
//! The caller decides where they run, and keeps their results (JSON):
//! docs/decisions/0024-past-one-machine.md.

mod bucket;
mod deal;
mod join;
mod range;
mod records;
mod settle;
mod tables;

pub use bucket::{BucketPart, BucketReport, study_bucket};
pub use deal::{DealReport, DealSource, Group, deal};
pub use join::{Clocks, clocks, join};
pub use range::split_capture;
pub use records::{RecordBatches, record_schema, records_of};
pub use settle::settle;

use airmile_wire::tcp::StudyOptions;

/// Options that all parts of a study must have in common.
#[derive(Debug, Clone)]
pub struct ScaleOptions {
    /// How the captures are studied.
    pub study: StudyOptions,
    /// Number of partitions of the users.
    pub buckets: u32,
}
