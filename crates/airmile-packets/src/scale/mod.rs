//! A study in parts that may run on many machines, with the rows of one process.
//!
//! 1. [`deal`] reads a part of a capture and deals its packets out by user and hour:
//!    a Parquet file of records, a row group for each bucket and hour.
//! 2. [`settle`], seldom: flows whose client their ends alone do not tell.
//! 3. [`study_bucket`] gives a bucket's records, in the order of the capture, to the
//!    same analysis that one process runs (`rounds::Lone`), and writes
//!    tables by day.
//! 4. [`join`] sums up.
//!
//! Whoever calls them decides where they run, and keeps their answers (JSON):
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

/// What all parts of a study have to be told alike.
#[derive(Debug, Clone)]
pub struct ScaleOptions {
    /// How the captures are studied.
    pub study: StudyOptions,
    /// Parts that the users are dealt to.
    pub buckets: u32,
}
