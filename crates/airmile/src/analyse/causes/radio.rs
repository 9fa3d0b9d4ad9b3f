//! The downlink queue is not empty: other users hold the cell, or the signal carries little.

use airmile_model::Cause;

use super::{Context, Explain, Relief};
use crate::fact::{CauseAdvice, CauseDetail};

/// Other users hold the PRBs.
pub(super) struct Contention;

impl Explain for Contention {
    fn cause(&self) -> Cause {
        Cause::RadioContention
    }

    fn detail(&self, seen: &Context) -> CauseDetail {
        CauseDetail::Contention { others: seen.split.others().unwrap_or(0.0) }
    }

    fn advice(&self, _: &Context) -> CauseAdvice {
        CauseAdvice::Contention
    }

    /// Alone in the cell the phone has all PRBs.
    fn relief(&self, seen: &Context) -> Relief {
        let own = 1.0 - seen.split.others().unwrap_or(0.0);
        Relief { faster: 1.0 / own.max(0.01), ..Relief::default() }
    }
}

/// The capacity of the phone's own PRBs.
pub(super) struct Signal;

impl Explain for Signal {
    fn cause(&self) -> Cause {
        Cause::RadioSignal
    }

    fn detail(&self, seen: &Context) -> CauseDetail {
        CauseDetail::Signal { efficiency: seen.split.efficiency() }
    }

    fn advice(&self, _: &Context) -> CauseAdvice {
        CauseAdvice::Signal
    }

    /// The best signal: MCS 28 on one layer, without retransmissions.
    fn relief(&self, seen: &Context) -> Relief {
        let efficiency = seen.split.efficiency().unwrap_or(1.0);
        Relief { faster: 1.0 / efficiency, stays: efficiency, ..Relief::default() }
    }
}
