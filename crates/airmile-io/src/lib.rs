//! Files in and out, for whatever studies them: inputs opened and recognised, captures read,
//! tables written, the envelope of documents.
//!
//! - [`input`], [`recognise`]: a path as a stream of bytes, and what it is.
//! - [`file_report`], [`limits`]: what a file held; which times are wanted.
//! - [`capture`]: packets in order, from captures one after the other.
//! - [`table`]: Arrow tables, Parquet, CSV.
//! - [`document`]: what every JSON document begins with.
//! - [`replacement`]: outputs that get their names when they are whole.
//! - [`run_files`]: the names of a lab run's files.

pub mod capture;
pub mod document;
pub mod error;
pub mod file_report;
pub mod input;
pub mod limits;
pub mod recognise;
pub mod replacement;
pub mod run_files;
pub mod table;

pub use capture::{CaptureStream, Captures, read_capture};
pub use document::{Document, VERSION};
pub use error::{Error, Result, did_you_mean};
pub use file_report::{FileReport, MessageRow};
pub use input::{Compression, Input, Progress, SizeLimit, read_text};
pub use limits::{Limits, TimePoint, format_utc};
pub use recognise::{Foreign, Kind};
pub use replacement::{Replacement, refuse_inputs, write_whole};
pub use table::parquet::parquet_bytes;
pub use table::{ArrowTable, arrow_schema};
