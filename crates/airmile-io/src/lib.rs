//! File input and output: opens and recognises inputs, reads captures, writes tables and
//! the envelope of documents.
//!
//! - [`input`], [`recognise`]: a path as a stream of bytes, and its format.
//! - [`file_report`], [`limits`]: the contents of a file; limits on the time.
//! - [`capture`]: packets in order, from a sequence of captures.
//! - [`pcapng`]: captures that airmile makes.
//! - [`radio_tables`]: grants and RLC PDUs of tables in TTI order.
//! - [`probe_log`]: what `airmile probe` measured.
//! - [`perfetto`]: traces for ui.perfetto.dev.
//! - [`table`]: Arrow tables, Parquet, CSV.
//! - [`document`]: the envelope of every JSON document.
//! - [`replacement`]: outputs that are renamed into place when complete.
//! - [`sorted`]: the inputs of a command by the way they are read.
//! - [`scrub`]: copies that can be shared.
//! - [`run_files`]: the names of a lab run's files.

pub mod capture;
pub mod directory;
pub mod document;
pub mod error;
pub mod file_report;
pub mod input;
pub mod limits;
pub mod one_phone;
pub mod pcapng;
pub mod perfetto;
pub mod probe_log;
pub mod radio_tables;
pub mod recognise;
pub mod replacement;
pub mod run_files;
pub mod scrub;
pub mod sorted;
pub mod table;
pub mod zone;

pub use capture::{CaptureStream, Captures, read_capture};
pub use document::{Document, VERSION};
pub use error::{Error, Result, did_you_mean};
pub use file_report::{FileReport, MessageRow, plural};
pub use input::{Compression, Input, Progress, SizeLimit, read_text};
pub use limits::{Limits, TimePoint, format_utc};
pub use recognise::{Foreign, Kind};
pub use replacement::{Replacement, check_outputs, is_part_of, write_whole};
pub use table::parquet::parquet_bytes;
pub use table::{ArrowTable, arrow_schema};
pub use zone::Zone;
