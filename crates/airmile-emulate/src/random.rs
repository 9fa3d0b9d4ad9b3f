//! Random numbers: one stream for each process, so that a change to one does
//! not shift the others.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    /// The stream `process` of a seed.
    pub(crate) fn new(seed: u64, process: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(process);
        Self(rng)
    }

    /// Sixty-four random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), from 53 bits.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Near enough to the standard normal distribution: twelve uniforms less 6
    /// (Irwin-Hall), which unlike Box-Muller needs no libm: the rest of the
    /// crate uses it for slow curves only, where the last bit decides nothing.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// True with a probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }
}
