//! Transfers from an application's log, and ground truth from a lab.

use crate::radio::Direction;
use crate::stamp::Stamp;
use crate::tti::TtiIndex;
use crate::vocabulary::vocabulary;

/// Maximum plausible bytes of a transfer (chosen here: 4 TiB, more than a phone fetches
/// at once, and the sum of a million of them fits in 64 bits).
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
    /// The direction, if the user gave it.
    pub dir: Option<Direction>,
    /// Whether it had not ended: end and bytes are the values so far.
    pub unfinished: bool,
}

vocabulary! {
    /// State of a user's downlink queue in a TTI (spec: BurstTracker, section 2.1.1).
    TtiState {
        /// Not empty, and data leaves it.
        Active = "ACTIVE",
        /// Not empty, none leaves.
        Contention = "CONTENTION",
        /// The rest of the data leaves: it runs empty.
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
    /// Number of TTIs.
    pub n_tti: u32,
    /// Bytes in the queue at the start of the TTI.
    pub queue_bytes: u64,
    /// State.
    pub state: TtiState,
    /// Whether data waits and none has left yet; null if not given.
    pub before_first_tx: Option<bool>,
}

/// Truth of a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct TransferTruth {
    /// The transfer's name.
    pub id: String,
    /// Throughput time in ms, from the first TTI in which data leaves the queue.
    pub throughput_time_ms: f64,
    /// Duration in ms, if given.
    pub duration_ms: Option<f64>,
}
