//! Transfers as an application saw them, and what a lab knows to be true.

use crate::radio::Direction;
use crate::stamp::Stamp;
use crate::tti::TtiIndex;
use crate::vocabulary::vocabulary;

/// The maximum of a transfer's bytes that is taken for true (chosen here: 4 TiB, more
/// than a phone fetches at once, and a million of them can be added up in 64 bits).
pub const MAX_TRANSFER_BYTES: u64 = 1 << 42;

/// When a transfer took place: by a clock, by TTI, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// The user's name for it.
    pub id: String,
    /// Start and end by a clock (end exclusive).
    pub time: Option<(Stamp, Stamp)>,
    /// Start and end TTI (end exclusive).
    pub tti: Option<(TtiIndex, TtiIndex)>,
    /// Application bytes.
    pub bytes: Option<u64>,
    /// Which way it went, where the user says so.
    pub dir: Option<Direction>,
    /// Whether it had not ended: end and bytes are those so far.
    pub unfinished: bool,
}

vocabulary! {
    /// State of a user's downlink queue in a TTI (spec: BurstTracker, section 2.1.1).
    TtiState {
        /// Not empty, and data leaves it.
        Active = "ACTIVE",
        /// Not empty, none leaves.
        Contention = "CONTENTION",
        /// What is left leaves: it runs empty.
        LastActive = "LAST_ACTIVE",
        /// Empty.
        Underflow = "UNDERFLOW",
    }
}

/// Truth of `n_tti` TTIs from `tti` on.
#[derive(Debug, Clone, PartialEq)]
pub struct TruthRun {
    /// First TTI.
    pub tti: TtiIndex,
    /// TTIs that it holds for.
    pub n_tti: u32,
    /// Bytes in the queue at the start of the TTI.
    pub queue_bytes: u64,
    /// State.
    pub state: TtiState,
    /// Whether data waits of which none has left yet; null where not given.
    pub before_first_tx: Option<bool>,
}

/// Truth of a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct TransferTruth {
    /// The transfer's name.
    pub id: String,
    /// Throughput time in ms, from the first TTI in which data leaves the queue.
    pub throughput_time_ms: f64,
    /// Duration in ms, where given.
    pub duration_ms: Option<f64>,
}
