//! The documented CSV tables: grants, RLC PDUs, transfers and truth.
//!
//! Header line first, any column order, unknown columns ignored, an empty field is
//! unknown. A row has as many fields as the header. Reading continues after a bad row, which
//! becomes a [`Problem`](airmile_model::Problem). A row, the
//! number of columns and the kept data have limits; a table that exceeds one is refused.

mod grants;
mod rlc;
mod rows;
mod transfers;
mod truth;

pub use grants::{GrantReader, GrantWriter, write_grants};
pub use rlc::{RlcReader, RlcWriter, TtiTimes, write_rlc};
pub use rows::{MAX_COLUMNS, MAX_KEPT_ROWS, MAX_KEPT_TEXT_BYTES, MAX_RECORD_BYTES, TableError};
pub use transfers::{read_transfers, write_transfers};
pub use truth::{read_transfer_truth, read_truth, write_transfer_truth, write_truth};

use airmile_model::Problems;

/// The table of a header line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// A grant table: a row per transport block.
    Grants,
    /// An RLC table: a row per PDU.
    Rlc,
    /// Transfers from an application's log.
    Transfers,
    /// The queue's state per TTI.
    Truth,
    /// Throughput time per transfer, from a lab's ground truth.
    TransferTruth,
}

impl TableKind {
    /// Recognises a table by its header line.
    #[must_use]
    pub fn recognise(header: &str) -> Option<Self> {
        let names: Vec<String> =
            header.trim_start_matches('\u{feff}').split(',').map(rows::normalise_name).collect();
        let has = |name: &str| names.iter().any(|n| n == name);
        let placed = has("tti") || (has("sfn") && has("subframe"));
        // A row of a run-length coded table is no grant: the lab's truth has those.
        if placed && has("dir") && has("n_prb") && !has("n_tti") {
            Some(Self::Grants)
        } else if (has("tti") || has("time_us")) && has("dir") && has("size_bytes") {
            Some(Self::Rlc)
        } else if has("tti") && has("n_tti") && has("state") {
            Some(Self::Truth)
        } else if has("id") && has("throughput_time_ms") {
            Some(Self::TransferTruth)
        } else if has("id") && (has("start_us") || has("start_tti")) {
            Some(Self::Transfers)
        } else {
            None
        }
    }

    /// The display name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Grants => "grant table",
            Self::Rlc => "RLC table",
            Self::Transfers => "transfers",
            Self::Truth => "queue truth",
            Self::TransferTruth => "transfer truth",
        }
    }
}

/// The contents of a table, and its errors.
#[derive(Debug, Clone, PartialEq)]
pub struct TableContent<T> {
    /// The readable rows.
    pub rows: Vec<T>,
    /// Number of unreadable rows.
    pub bad_rows: u64,
    /// Their errors.
    pub problems: Problems,
}
