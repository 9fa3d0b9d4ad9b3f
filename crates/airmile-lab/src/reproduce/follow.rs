//! Who follows a reproduction, and how far it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Experiment, Reproduction};
use airmile::Result;

/// Runs of the present experiment. Clones count the same; any thread may look.
#[derive(Debug, Clone, Default)]
pub struct RunCount(Arc<[AtomicUsize; 2]>);

impl RunCount {
    /// Runs that have ended.
    #[must_use]
    pub fn done(&self) -> usize {
        self.0[0].load(Ordering::Relaxed)
    }

    /// Runs that are known to be wanted; experiments of several parts come to
    /// know them one part at a time.
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

/// Is told where a reproduction is. `()` does not care.
pub trait Follower {
    /// An experiment begins, the `at`-th (from 1) of `of`.
    fn begins(&mut self, experiment: &Experiment, at: usize, of: usize) {
        let _ = (experiment, at, of);
    }

    /// An experiment has ended; `so_far` has it and those before.
    ///
    /// # Errors
    /// What was found cannot be kept, so that going on has no use.
    fn ended(&mut self, so_far: &Reproduction) -> Result<()> {
        let _ = so_far;
        Ok(())
    }
}

impl Follower for () {}
