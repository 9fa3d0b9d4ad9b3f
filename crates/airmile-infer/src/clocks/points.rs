//! The same segments at two captures, in both directions.

use std::collections::BTreeMap;

use super::line::{Aligned, ClockLine, Unaligned, through};

/// The fastest of both ways are looked for in each of these (chosen here: a drift
/// of 500 ppm is half a millisecond in it).
const BIN_NS: i64 = 1_000_000_000;
/// Bins whose fastest round trip is so near to the fastest of all had no queue
/// (chosen here: what a scheduling request and a HARQ retransmission vary by).
const NO_QUEUE_NS: i64 = 4_000_000;

/// The same byte of a connection at two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointPair {
    /// When it passed at the reference, in nanoseconds on its clock.
    pub reference_ns: i64,
    /// When it passed at the other place, in nanoseconds on that clock.
    pub other_ns: i64,
    /// Whether it went from the reference to the other place.
    pub outward: bool,
}

/// The line of the other place's clock.
///
/// Of each second the fastest of both ways bound the offset, as nothing arrives
/// before it was sent; they are taken as equally long, which is wrong by half of
/// their sum at most: that is `error_ns`. Seconds with a queue on either way are
/// left out, as they are by the clock filter of NTP (RFC 5905, 10).
///
/// # Errors
/// Nothing passed both; or no second has both ways.
pub fn between_points(pairs: &[PointPair]) -> Aligned {
    if pairs.is_empty() {
        return Err(Unaligned::Nothing);
    }
    fastest_of_both(pairs).ok_or(Unaligned::OneWay)
}

fn fastest_of_both(pairs: &[PointPair]) -> Option<ClockLine> {
    let mut bins: BTreeMap<i64, Bin> = BTreeMap::new();
    for pair in pairs {
        bins.entry(pair.reference_ns.div_euclid(BIN_NS)).or_default().take(pair);
    }
    let both = bins.iter().filter_map(|(bin, ways)| Some((*bin, ways.out?, ways.back?)));
    // A round trip of less than nothing is of bytes that are not the same.
    let both: Vec<(i64, i64, i64)> = both.filter(|(_, out, back)| out + back >= 0).collect();
    let fastest = both.iter().map(|(_, out, back)| out + back).min()?;
    let samples: Vec<(i64, i64)> = both
        .iter()
        .filter(|(_, out, back)| out + back <= fastest + NO_QUEUE_NS)
        .map(|(bin, out, back)| (bin * BIN_NS + BIN_NS / 2, (out - back) / 2))
        .collect();
    through(&samples, fastest / 2).map(|line| ClockLine { n: pairs.len(), ..line })
}

/// The fastest of both ways, by two clocks.
#[derive(Default)]
struct Bin {
    out: Option<i64>,
    back: Option<i64>,
}

impl Bin {
    fn take(&mut self, pair: &PointPair) {
        let later = pair.other_ns - pair.reference_ns;
        let (way, took) =
            if pair.outward { (&mut self.out, later) } else { (&mut self.back, -later) };
        *way = Some(way.map_or(took, |least| least.min(took)));
    }
}
