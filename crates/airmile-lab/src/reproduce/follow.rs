//! Progress of a reproduction.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Experiment, Reproduction};
use airmile::Result;

/// Runs of the current experiment. Clones share the count; any thread may read it.
#[derive(Debug, Clone, Default)]
pub struct RunCount(Arc<[AtomicUsize; 2]>);

impl RunCount {
    /// Runs that have ended.
    #[must_use]
    pub fn done(&self) -> usize {
        self.0[0].load(Ordering::Relaxed)
    }

    /// Runs known to be required; experiments with several parts add them one part at a
    /// time.
    #[must_use]
    pub fn of(&self) -> usize {
        self.0[1].load(Ordering::Relaxed)
    }

    pub(super) fn begin(&self) {
        self.0.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    pub(super) fn expect(&self, runs: usize) {
        self.0[1].fetch_add(runs, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) {
        self.0[0].fetch_add(1, Ordering::Relaxed);
    }
}

/// Follows the progress of a reproduction. `()` ignores it.
pub trait Follower {
    /// An experiment starts, the `at`-th (from 1) of `of`.
    fn begins(&mut self, experiment: &Experiment, at: usize, of: usize) {
        let _ = (experiment, at, of);
    }

    /// An experiment has ended; `so_far` contains it and the earlier ones.
    ///
    /// # Errors
    /// The result cannot be kept, so that continuing is pointless.
    fn ended(&mut self, so_far: &Reproduction) -> Result<()> {
        let _ = so_far;
        Ok(())
    }
}

impl Follower for () {}
