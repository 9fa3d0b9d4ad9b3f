//! Figure 10: RTT against bytes in flight, counted in cells, so that any number
//! of samples takes the same memory.

use std::collections::BTreeMap;

use airmile_model::flow::RttSample;
use airmile_model::{Direction, RttSource};
use airmile_wire::distribution::Distribution;
use schemars::JsonSchema;
use serde::Serialize;

/// Cells per octave (chosen here: a cell is 9 % of its value wide, about the resolution
/// of a screen).
const PER_OCTAVE: f64 = 8.0;
/// Columns with fewer samples have no median drawn (chosen here).
const MIN_SAMPLES: u64 = 5;

/// Samples of bytes in flight and RTT in cells. Edges of cell `i` are
/// `2^(i / 8)` and `2^((i + 1) / 8)`.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Density {
    /// Samples in all.
    pub n: u64,
    /// Of them, with nothing else in flight: not in a cell.
    pub alone: u64,
    /// Maximum bytes in flight of a sample.
    pub most_bytes: u64,
    /// `[column by bytes in flight, row by RTT in microseconds, samples]`.
    pub cells: Vec<[u32; 3]>,
    /// `[column, median RTT in milliseconds]`, of columns with five samples or more.
    pub medians_ms: Vec<[f64; 2]>,
}

/// Gathers samples.
#[derive(Debug, Default)]
pub(super) struct DensityBuilder {
    n: u64,
    alone: u64,
    most_bytes: u64,
    cells: BTreeMap<(u32, u32), u32>,
    columns: BTreeMap<u32, Distribution>,
}

/// The middle of a cell.
pub(super) fn middle(cell: f64) -> f64 {
    ((cell + 0.5) / PER_OCTAVE).exp2()
}

fn cell(value: f64) -> u32 {
    (value.max(1.0).log2() * PER_OCTAVE) as u32
}

impl DensityBuilder {
    /// Takes a sample of downlink data.
    pub(super) fn push(&mut self, sample: &RttSample) {
        if sample.dir != Direction::Dl || sample.by == RttSource::Spin {
            return;
        }
        self.n += 1;
        self.most_bytes = self.most_bytes.max(sample.flight_bytes);
        if sample.flight_bytes == 0 {
            self.alone += 1;
            return;
        }
        let column = cell(sample.flight_bytes as f64);
        let count = self.cells.entry((column, cell(sample.rtt_ns as f64 / 1e3))).or_default();
        *count = count.saturating_add(1);
        self.columns.entry(column).or_default().push(sample.rtt_ns as f64 / 1e6);
    }

    pub(super) fn finish(self) -> Density {
        let known = self.columns.iter().filter(|(_, of)| of.n() >= MIN_SAMPLES);
        Density {
            n: self.n,
            alone: self.alone,
            most_bytes: self.most_bytes,
            cells: self.cells.into_iter().map(|((x, y), n)| [x, y, n]).collect(),
            medians_ms: known
                .filter_map(|(x, of)| Some([f64::from(*x), of.quantile(0.5)?]))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(flight_bytes: u64, rtt_ms: i64) -> RttSample {
        let rtt_ns = rtt_ms * 1_000_000;
        RttSample {
            flow: 0,
            time_ns: 0,
            dir: Direction::Dl,
            rtt_ns,
            flight_bytes,
            by: RttSource::Ack,
        }
    }

    /// 2^16 bytes in flight are column 128; 2^15 us are 32.8 ms, so 33 ms are row 120.
    #[test]
    fn samples_by_hand() {
        let mut builder = DensityBuilder::default();
        (0..5).for_each(|_| builder.push(&sample(65_536, 33)));
        builder.push(&sample(0, 20));
        builder.push(&RttSample { dir: Direction::Ul, ..sample(9, 9) });
        builder.push(&RttSample { by: RttSource::Spin, ..sample(9, 9) });
        let density = builder.finish();
        assert_eq!((density.n, density.alone, density.most_bytes), (6, 1, 65_536));
        assert_eq!(density.cells, [[128, 120, 5]]);
        assert_eq!(density.medians_ms, [[128.0, 33.0]]);
    }

    #[test]
    fn any_number_of_samples_takes_the_same_room() {
        let mut builder = DensityBuilder::default();
        for n in 0..100_000_u64 {
            builder.push(&sample(1 + n * 7_919 % 10_000_000, 1 + (n % 997) as i64));
        }
        let density = builder.finish();
        let sum: u64 = density.cells.iter().map(|c| u64::from(c[2])).sum();
        assert_eq!(sum, 100_000);
        assert!(density.cells.len() < 24 * 8 * 10 * 8, "{}", density.cells.len());
    }
}
