//! Clocks of the files: all are set to the modem log's before anything is joined.

use std::collections::BTreeMap;

use airmile_infer::clocks::{Arrivals, ClockLine, between_arrivals, of_transfers};
use airmile_model::{Direction, Grant, Record, Transfer};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Result;
use crate::session::Session;

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
    /// Pieces of evidence.
    pub evidence: usize,
    /// Whether its times were corrected by it.
    pub corrected: bool,
    /// The same in a sentence.
    pub says: String,
}

impl ClockReport {
    /// Of a line, or of none; `used`: whether anything is placed by it.
    pub(super) fn new(file: &str, against: &str, line: Option<&ClockLine>, used: bool) -> Self {
        let says = match line {
            None => format!(
                "{file}: its clock cannot be held against {against}'s, as they do not show the \
                 same traffic; taken as the same clock"
            ),
            Some(line) => {
                let offset_ms = line.offset_ns as f64 / 1e6;
                let way = if offset_ms < 0.0 { "behind" } else { "ahead of" };
                let error_ms = line.error_ns as f64 / 1e6;
                let drift = if line.drift_ppm.abs() < 0.5 {
                    String::new()
                } else {
                    format!(", gaining {:.1} ppm", line.drift_ppm)
                };
                let done = match (line.differs(), used) {
                    (true, true) => "; corrected",
                    (true, false) => "",
                    (false, _) => ": the same, as far as can be told",
                };
                format!(
                    "{file}: {:.1} ms {way} {against} (within {error_ms:.1} ms{drift}){done}",
                    offset_ms.abs()
                )
            }
        };
        Self {
            file: file.to_owned(),
            against: against.to_owned(),
            at_us: line.map(|line| line.at_ns.div_euclid(1_000)),
            offset_ms: line.map(|line| line.offset_ns as f64 / 1e6),
            drift_ppm: line.map(|line| line.drift_ppm),
            error_ms: line.map(|line| line.error_ns as f64 / 1e6),
            evidence: line.map_or(0, |line| line.n),
            corrected: used && line.is_some_and(ClockLine::differs),
            says,
        }
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
pub(super) fn of_capture(radio: &Arrivals, capture: &Arrivals) -> Option<ClockLine> {
    between_arrivals(radio, capture, MAX_OFFSET_NS)
}

/// The clock of an application's transfers over that of the bytes that came.
pub(super) fn of_application(came: &Arrivals, transfers: &[Transfer]) -> Option<ClockLine> {
    let downlink = transfers.iter().filter(|t| t.dir != Some(Direction::Ul) && !t.unfinished);
    // Those that are given by TTI have the modem's own clock.
    let downlink = downlink.filter(|t| t.tti.is_none());
    let spans: Vec<(i64, i64)> =
        downlink.filter_map(|t| t.time).map(|(start, end)| (start.ns, end.ns)).collect();
    of_transfers(came, &spans, MAX_OFFSET_NS)
}
