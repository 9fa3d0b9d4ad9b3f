//! Clocks of the files: all are set to the modem log's before anything is joined.

use std::collections::BTreeMap;

use airmile_model::{Direction, Grant, Record, Transfer};
use airmile_wire::clocks::{
    Aligned, Arrivals, ClockLine, Unaligned, align_transfers, between_arrivals,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::session::Session;
use airmile_io::error::Result;

/// Clocks that are further apart are not found (chosen here: phones set theirs by
/// the network; the 18 s between GPS and UTC are inside).
const MAX_OFFSET_NS: i64 = 30_000_000_000;

/// How the clock of a file stands against another's.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClockReport {
    /// Whose clock.
    pub file: String,
    /// Against whose.
    pub against: String,
    /// The middle of the evidence, in microseconds since the Unix epoch by the other's clock.
    pub at_us: Option<i64>,
    /// What it shows more there, in ms; null where the data do not tell.
    pub offset_ms: Option<f64>,
    /// What it gains, in millionths.
    pub drift_ppm: Option<f64>,
    /// The offset is right within this, in ms.
    pub error_ms: Option<f64>,
    /// Another offset that fits nearly as well, in ms: the traffic repeats itself, and
    /// the nearest was taken.
    pub rival_offset_ms: Option<f64>,
    /// Pieces of evidence.
    pub evidence: usize,
    /// Whether its times were corrected by it.
    pub corrected: bool,
    /// The same in a sentence.
    pub says: String,
}

impl ClockReport {
    /// Of a line, or of none and why; `used`: whether anything is placed by it.
    pub(super) fn new(
        file: &str,
        against: &str,
        line: std::result::Result<&ClockLine, &str>,
        used: bool,
    ) -> Self {
        let says = match line {
            Err(why) => format!(
                "{file}: its clock cannot be held against {against}'s: {why}; taken as the same \
                 clock"
            ),
            Ok(line) => words(file, against, line, used),
        };
        let line = line.ok();
        let ms = |ns: i64| ns as f64 / 1e6;
        Self {
            file: file.to_owned(),
            against: against.to_owned(),
            at_us: line.map(|line| line.at_ns.div_euclid(1_000)),
            offset_ms: line.map(|line| ms(line.offset_ns)),
            drift_ppm: line.map(|line| line.drift_ppm),
            error_ms: line.map(|line| ms(line.error_ns)),
            rival_offset_ms: line.and_then(|line| line.rival_ns).map(ms),
            evidence: line.map_or(0, |line| line.n),
            corrected: used && line.is_some_and(ClockLine::differs),
            says,
        }
    }

    /// As [`ClockReport::new`], of what was found or not.
    pub(super) fn of(file: &str, against: &str, found: &Aligned, used: bool) -> Self {
        Self::new(file, against, found.as_ref().map_err(|why| reason(*why)), used)
    }
}

fn words(file: &str, against: &str, line: &ClockLine, used: bool) -> String {
    let offset_ms = line.offset_ns as f64 / 1e6;
    let way = if offset_ms < 0.0 { "behind" } else { "ahead of" };
    let error_ms = line.error_ns as f64 / 1e6;
    let drift = if line.drift_ppm.abs() < 0.5 {
        String::new()
    } else {
        format!(", gaining {:.1} ppm", line.drift_ppm)
    };
    let rival = line.rival_ns.map_or_else(String::new, |ns| {
        format!("; the traffic repeats itself, and {:.1} s would fit, too", ns as f64 / 1e9)
    });
    let done = match (line.differs(), used) {
        (true, true) => "; corrected",
        (true, false) => "",
        (false, _) => ": the same, as far as can be told",
    };
    format!(
        "{file}: {:.1} ms {way} {against} (within {error_ms:.1} ms{drift}{rival}){done}",
        offset_ms.abs()
    )
}

/// Why clocks could not be held against each other.
pub(super) const fn reason(why: Unaligned) -> &'static str {
    match why {
        Unaligned::Nothing => "nothing passed both within 30 s of the same time",
        Unaligned::Unlike => "they do not show the same traffic",
        Unaligned::Ambiguous => "the traffic repeats itself and fits at several offsets",
        Unaligned::TooFar => "they fit best at 30 s, the most that is looked for",
        Unaligned::OneWay => "no packets of both went both ways within a second",
    }
}

/// What the radio delivered to the phone, by the modem log's clock.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    blocks: BTreeMap<u8, Vec<(i64, u32)>>,
}

impl Delivered {
    /// Reads the logs once for their blocks.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn read(session: Session) -> Result<Self> {
        let mut delivered = Self::default();
        session.read(&mut |tagged| {
            if let Record::Grant(grant) = &tagged.record
                && let Some(block) = block(grant)
            {
                delivered.blocks.entry(tagged.subscription).or_default().push(block);
            }
        })?;
        Ok(delivered)
    }

    /// Of a subscription, or else of the one with the most blocks.
    pub(super) fn arrivals(mut self, subscription: Option<u8>) -> Arrivals {
        let most = || self.blocks.iter().max_by_key(|(_, blocks)| blocks.len()).map(|(s, _)| *s);
        let mut blocks = subscription
            .or_else(most)
            .and_then(|subscription| self.blocks.remove(&subscription))
            .unwrap_or_default();
        blocks.sort_unstable();
        let mut arrivals = Arrivals::new();
        blocks.into_iter().for_each(|(at, bytes)| arrivals.add(at, bytes));
        arrivals
    }
}

/// When a downlink block with data came, in nanoseconds, and its bytes.
pub(super) fn block(grant: &Grant) -> Option<(i64, u32)> {
    let user = grant.dir == Direction::Dl && grant.rnti.is_user();
    let came = grant.crc_ok != Some(false) && grant.data_bytes != Some(0);
    let at = grant.at.filter(|_| user && came)?;
    let bytes = grant.tbs_bytes?.saturating_sub(grant.padding_bytes.unwrap_or(0));
    Some((at.ns, bytes))
}

/// The capture's clock over the modem log's.
pub(super) fn of_capture(radio: &Arrivals, capture: &Arrivals) -> Aligned {
    between_arrivals(radio, capture, MAX_OFFSET_NS)
}

/// The clock of an application's downlink transfers, as spans in nanoseconds, over that of
/// the bytes that came.
pub(super) fn of_application(came: &Arrivals, spans: &[(i64, i64)]) -> Aligned {
    align_transfers(came, spans, MAX_OFFSET_NS)
}

/// Spans of downlink transfers whose time is not the modem's own.
pub(super) fn spans(transfers: &[Transfer]) -> Vec<(i64, i64)> {
    let downlink = transfers.iter().filter(|t| t.dir != Some(Direction::Ul) && !t.unfinished);
    // Those that are given by TTI have the modem's own clock.
    let downlink = downlink.filter(|t| t.tti.is_none());
    downlink.filter_map(|t| t.time).map(|(start, end)| (start.ns, end.ns)).collect()
}
