//! Calibration: the share of right answers must match the stated confidence.

use crate::bars::wilson;

/// Edges of the bands of stated confidence.
const EDGES: [f64; 6] = [0.0, 0.6, 0.7, 0.8, 0.9, 1.01];
/// Maximum difference of stated confidence and share of right answers, beyond chance.
const WITHIN: f64 = 0.07;
/// Bands with fewer answers are printed but not checked: of five bands with a dozen each,
/// one is outside of its interval by chance in one run of four.
const MIN_ANSWERS: usize = 20;

/// An answer: its stated confidence, and whether it was right.
pub type Stated = (f64, bool);

/// One band of the table.
struct Band {
    n: usize,
    right: usize,
    stated: f64,
}

impl Band {
    fn of(all: &[Stated], from: f64, to: f64) -> Self {
        let inside = all.iter().filter(|(stated, _)| (from..to).contains(stated));
        let (n, right, sum) = inside.fold((0, 0, 0.0), |(n, right, sum), (stated, ok)| {
            (n + 1, right + usize::from(*ok), sum + stated)
        });
        Self { n, right, stated: sum / f64::from(u32::try_from(n.max(1)).unwrap_or(u32::MAX)) }
    }

    fn share(&self) -> f64 {
        self.right as f64 / self.n.max(1) as f64
    }

    /// Whether it is over 7 points off in either direction. Few answers may deviate by
    /// chance, so the stated confidence must also be outside of Wilson's interval.
    fn is_off(&self) -> bool {
        if self.n < MIN_ANSWERS {
            return false;
        }
        let (low, high) = wilson(self.right, self.n);
        (self.share() - self.stated).abs() > WITHIN && !(low..=high).contains(&self.stated)
    }
}

/// Prints the table; returns whether each band holds.
pub fn print(title: &str, all: &[Stated]) -> bool {
    println!("\n  Stated and right, {title} (bar: within {:.0} points)", WITHIN * 100.0);
    println!("  {:<14}{:>6}{:>9}{:>9}{:>14}", "stated", "n", "mean", "right", "95 %");
    let mut holds = true;
    for edges in EDGES.windows(2) {
        let band = Band::of(all, edges[0], edges[1]);
        if band.n == 0 {
            continue;
        }
        let (low, high) = wilson(band.right, band.n);
        holds &= !band.is_off();
        println!(
            "  {:<14}{:>6}{:>8.1}%{:>8.1}%{:>14}   {}",
            format!("{:.0}-{:.0} %", edges[0] * 100.0, edges[1].min(1.0) * 100.0),
            band.n,
            band.stated * 100.0,
            band.share() * 100.0,
            format!("{:.0}-{:.0} %", low * 100.0, high * 100.0),
            match band.n {
                ..MIN_ANSWERS => "too few",
                _ if band.is_off() => "MISSED",
                _ => "met",
            },
        );
    }
    holds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off(stated: f64, right: usize, n: usize) -> bool {
        let all: Vec<Stated> = (0..n).map(|at| (stated, at < right)).collect();
        Band::of(&all, 0.0, 1.01).is_off()
    }

    #[test]
    fn a_band_is_off_either_way_where_chance_does_not_explain_it() {
        assert!(off(0.95, 80, 100));
        assert!(off(0.55, 97, 100));
        assert!(!off(0.90, 95, 100));
        // Nine of ten are 60 to 98 %.
        assert!(!off(0.75, 9, 10));
        // Four points with ten thousand answers are significant, but within the limit.
        assert!(!off(0.90, 9_400, 10_000));
    }
}
