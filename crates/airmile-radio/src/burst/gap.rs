//! Pauses between a user's data blocks as evidence.
//!
//! After a block that certainly left data behind, the pause to the next block is
//! contention; after one that certainly emptied the queue, it is the wait for new data.
//! Both distributions come from the log itself. A block without other evidence is judged
//! by its pause: the ratio of the two likelihoods times odds that an EM iteration fits.

/// Pauses of 1 to 8 TTIs have a bin each, longer ones four bins an octave
/// (chosen here: contention pauses are a few TTIs, underflow spans decades).
const LINEAR_BINS: usize = 8;
const BINS_PER_OCTAVE: f64 = 4.0;
/// The last bin also holds "nothing more in the log".
pub(super) const N_BINS: usize = LINEAR_BINS + 64;
/// Iterations of EM, a fixed number (chosen here) so that equal logs give
/// equal results.
pub(super) const EM_ITERATIONS: usize = 30;

/// The bin of a pause in TTIs; `None`: the log has nothing after it.
pub(super) fn bin(gap: Option<i64>) -> usize {
    let Some(gap) = gap else { return N_BINS - 1 };
    let gap = gap.max(1);
    if gap <= LINEAR_BINS as i64 {
        return gap as usize - 1;
    }
    let octaves = (gap as f64 / LINEAR_BINS as f64).log2();
    (LINEAR_BINS + (octaves * BINS_PER_OCTAVE) as usize).min(N_BINS - 1)
}

/// Weights of pauses of 1, 2, 3 TTIs and so on, each bin 0.6 of the one before (chosen
/// here, near what shared cells show).
pub(super) fn short_pauses() -> [f64; N_BINS] {
    std::array::from_fn(|bin| 0.4 * 0.6_f64.powi(bin as i32))
}

/// Counts of pauses by bin, with a little mass everywhere.
#[derive(Debug, Clone)]
pub(super) struct GapHistogram {
    counts: [f64; N_BINS],
}

/// Initial number of pauses of each histogram (chosen here: they dominate a short log,
/// and vanish in a log of some seconds).
const PRIOR_PAUSES: f64 = 2.0;

impl GapHistogram {
    /// Prior for contention: each further TTI is less likely.
    pub(super) fn contention() -> Self {
        Self { counts: short_pauses().map(|p| PRIOR_PAUSES * p + 0.01) }
    }

    /// Prior for waits for new data: any length.
    pub(super) const fn underflow() -> Self {
        Self { counts: [PRIOR_PAUSES / N_BINS as f64; N_BINS] }
    }

    pub(super) fn add(&mut self, bin: usize) {
        self.add_times(bin, 1);
    }

    /// Adds equal pauses, one by one: a sum is rounded as if they came apart.
    pub(super) fn add_times(&mut self, bin: usize, n: u32) {
        let count = &mut self.counts[bin.min(N_BINS - 1)];
        (0..n).for_each(|_| *count += 1.0);
    }

    /// Adds pauses of which only a part may belong here.
    pub(super) fn add_weight(&mut self, bin: usize, n: f64) {
        self.counts[bin.min(N_BINS - 1)] += n;
    }

    /// Likelihood of each bin.
    pub(super) fn density(&self) -> [f64; N_BINS] {
        self.density_from(0)
    }

    /// Likelihoods of the bins from `first` on, given that the pause lies there.
    fn density_from(&self, first: usize) -> [f64; N_BINS] {
        let sum: f64 = self.counts[first..].iter().sum();
        let mut density = [0.0; N_BINS];
        for (d, c) in density[first..].iter_mut().zip(&self.counts[first..]) {
            *d = c / sum;
        }
        density
    }
}

/// The posterior that the queue was empty, by bin, from the pauses of blocks without
/// other evidence. `first` is the shortest bin that these pauses can have.
pub(super) fn posteriors(
    contention: &GapHistogram,
    underflow: &GapHistogram,
    first: usize,
    bins: &[usize],
) -> [f64; N_BINS] {
    let contention = contention.density_from(first);
    let underflow = underflow.density_from(first);
    let mut count = [0.0; N_BINS];
    for &bin in bins {
        count[bin] += 1.0;
    }
    // Initially one in ten; EM adjusts it (chosen here).
    let mut prior = 0.1;
    let mut posterior = [0.0; N_BINS];
    for _ in 0..EM_ITERATIONS {
        for (bin, p) in posterior.iter_mut().enumerate() {
            let bin = bin.max(first);
            let empty = prior * underflow[bin];
            let waiting = (1.0 - prior) * contention[bin];
            *p = empty / (empty + waiting);
        }
        let sum: f64 = posterior.iter().zip(&count).map(|(p, n)| p * n).sum();
        prior = (sum + 0.5) / (bins.len() as f64 + 1.0);
    }
    posterior
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_ordered_and_bounded() {
        let gaps = [1, 2, 8, 9, 16, 100, 10_000, i64::MAX];
        let bins: Vec<usize> = gaps.iter().map(|&g| bin(Some(g))).collect();
        assert!(bins.windows(2).all(|w| w[0] <= w[1]), "{bins:?}");
        assert_eq!(&bins[..3], &[0, 1, 7]);
        assert!(bins.iter().all(|&b| b < N_BINS));
        assert_eq!(bin(None), N_BINS - 1);
    }

    #[test]
    fn a_long_pause_is_an_empty_queue_and_a_short_one_is_not() {
        let (mut contention, mut underflow) =
            (GapHistogram::contention(), GapHistogram::underflow());
        for _ in 0..100 {
            contention.add(bin(Some(1)));
            contention.add(bin(Some(3)));
            underflow.add(bin(Some(40)));
        }
        let bins = [2, 3, 41].map(|gap| bin(Some(gap)));
        let p = posteriors(&contention, &underflow, 0, &bins);
        assert!(p[bins[1]] < 0.01 && p[bins[2]] > 0.9, "{p:?}");
    }
}
