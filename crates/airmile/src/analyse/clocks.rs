//! Clocks of the files: all are aligned to the modem log's before anything is joined.

use std::collections::BTreeMap;

use airmile_model::{AppTransfer, Direction, Grant, Record, Transfer};
use airmile_radio::evidence::EvidenceCounts;
use airmile_wire::clocks::{
    Aligned, Arrivals, ClockLine, Likeness, Unaligned, align_requests, align_transfers,
    align_uploads, between_arrivals, likeness,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::one_leg;
use crate::session::Session;
use airmile_io::error::Result;

/// Maximum offset of the search (chosen here: phones set their clocks from the network; the 18 s
/// between GPS and UTC are within).
pub(super) const MAX_OFFSET_NS: i64 = 30_000_000_000;

/// Offsets of time zones: quarters of an hour, up to 14 hours.
const QUARTER_NS: i64 = 900_000_000_000;
const MAX_QUARTERS: i64 = 56;
/// Minimum number of requests that determine a time zone (chosen here).
const ENOUGH_REQUESTS: usize = 4;

/// The offset of a file's clock from another's.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClockReport {
    /// The file with this clock.
    pub file: String,
    /// The reference.
    pub against: String,
    /// The middle of the evidence, in microseconds since the Unix epoch by the reference clock.
    pub at_us: Option<i64>,
    /// The clock minus the reference at that time, in ms; null if unknown.
    pub offset_ms: Option<f64>,
    /// The clock's rate error against the reference, in parts per million.
    pub drift_ppm: Option<f64>,
    /// Maximum error of the offset, in ms.
    pub error_ms: Option<f64>,
    /// Another offset that fits nearly as well, in ms: the traffic repeats itself, and the smaller
    /// offset was used.
    pub rival_offset_ms: Option<f64>,
    /// Pieces of evidence.
    pub evidence: usize,
    /// Whether the file's times were corrected by the offset.
    pub corrected: bool,
    /// The same as a sentence.
    pub says: String,
}

impl ClockReport {
    /// From a clock line, or from the reason for having none; `used`: whether it places anything.
    pub(super) fn new(
        file: &str,
        against: &str,
        line: std::result::Result<&ClockLine, &str>,
        used: bool,
    ) -> Self {
        let says = match line {
            Err(why @ (UNTIMED | UNPLACED | JUMPS)) => {
                format!("{file}: not joined with {against}: {why}")
            }
            Err(why) => format!(
                "{file}: its clock cannot be aligned to {against}'s: {why}; the same clock is \
                 assumed"
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

    /// As [`ClockReport::new`], from the result of an alignment.
    pub(super) fn of(file: &str, against: &str, found: &Aligned, used: bool) -> Self {
        Self::new(file, against, found.as_ref().map_err(|why| reason(*why)), used)
    }
}

fn words(file: &str, against: &str, line: &ClockLine, used: bool) -> String {
    let offset_ms = line.offset_ns as f64 / 1e6;
    let way = if offset_ms < 0.0 { "behind" } else { "ahead of" };
    let error_ms = line.error_ns as f64 / 1e6;
    let drifts = line.drift_ppm.abs() >= 0.5;
    let drift = if drifts { format!(", gaining {:.1} ppm", line.drift_ppm) } else { String::new() };
    let rival = line.rival_ns.map_or_else(String::new, |ns| {
        format!("; the traffic repeats itself; {:.1} s would also fit", ns as f64 / 1e9)
    });
    let done = match (line.differs(), used) {
        (true, true) => "; corrected",
        (true, false) => "",
        (false, _) => ": no measurable difference",
    };
    format!(
        "{file}: {:.1} ms {way} {against} (within {error_ms:.1} ms{drift}{rival}){done}",
        offset_ms.abs()
    )
}

/// Why clocks could not be aligned.
pub(super) const fn reason(why: Unaligned) -> &'static str {
    match why {
        Unaligned::Nothing => "nothing that can be compared within 30 s of each other",
        Unaligned::Unlike => "at no offset do they clearly show the same traffic",
        Unaligned::Ambiguous => "the traffic repeats itself and fits at several offsets",
        Unaligned::TooFar => "they match best at 30 s, the limit of the search",
        Unaligned::Jumps => JUMPS,
        Unaligned::OneWay => "no packets in both directions within a second in both",
    }
}

/// Why nothing is joined where a clock was set meanwhile.
pub(super) const JUMPS: &str =
    "one of both clocks jumps: parts of the traffic match at offsets that differ";

/// Why nothing is joined with a log that numbers TTIs alone.
pub(super) const UNTIMED: &str =
    "its records have no times of day; a table needs them in the column `time_us`";

/// Why uploads of an application are not joined with a log.
pub(super) const UNPLACED: &str = "they do not match what the phone sent, and by the same clock they \
    begin before it or end after it; the modem log's own activity is judged";
/// An upload begins so soon before its first byte, and ends so soon after its last one (chosen here:
/// a handshake and an answer).
const UPLOAD_MARGIN_NS: i64 = 300_000_000;

/// Whether uploads are within what was sent, by the same clock, as far as that is known.
pub(super) fn are_within(spans: &[(i64, i64)], sent: &Arrivals) -> bool {
    let Some((from, to)) = sent.start_ns().zip(sent.end_ns()) else { return true };
    let (from, to) = (from.saturating_sub(UPLOAD_MARGIN_NS), to.saturating_add(UPLOAD_MARGIN_NS));
    spans.iter().all(|span| span.0 >= from && span.1 <= to)
}

/// The data that the radio delivered, by the modem log's clock.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    /// To the phone.
    blocks: BTreeMap<u8, Vec<(i64, u32)>>,
    /// From the phone.
    sent: BTreeMap<u8, Vec<(i64, u32)>>,
    /// Records have no times.
    untimed: bool,
    /// The records lack some of what was delivered: holes, a leg that was not read, blocks without
    /// a size.
    partial: bool,
    /// Bytes of blocks whose padding is not logged.
    with_padding: u64,
}

impl Delivered {
    /// Reads the blocks of the logs.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn read(session: Session) -> Result<Self> {
        let mut delivered = Self::default();
        let mut counts = EvidenceCounts::default();
        let mut unsized_blocks = 0;
        let loaded = session.read(&mut |tagged| {
            counts.count(&tagged.record);
            if let Record::Grant(grant) = &tagged.record {
                delivered.untimed |= grant.at.is_none();
                let counted = block_of(grant, Direction::Ul).or_else(|| block(grant));
                let padded = counted.filter(|_| grant.padding_bytes.or(grant.data_bytes).is_none());
                delivered.with_padding += padded.map_or(0, |(_, bytes)| u64::from(bytes));
                if let Some(block) = block_of(grant, Direction::Ul) {
                    delivered.sent.entry(tagged.subscription).or_default().push(block);
                }
                match block(grant) {
                    Some(block) => {
                        delivered.blocks.entry(tagged.subscription).or_default().push(block);
                    }
                    None => unsized_blocks += u64::from(grant.tbs_bytes.is_none()),
                }
            }
        })?;
        let messages = loaded.files.iter().flat_map(|file| &file.messages);
        delivered.partial = counts.holes > 0
            || unsized_blocks > 0
            || one_leg::unread_leg(&counts, messages).is_some();
        Ok(delivered)
    }

    /// Whether the records lack some of what was delivered.
    pub(super) const fn is_partial(&self) -> bool {
        self.partial
    }

    /// Whether more than a twentieth of its bytes (chosen here) may be padding that is not logged.
    pub(super) fn is_padded(&self) -> bool {
        let blocks = self.blocks.values().chain(self.sent.values()).flatten();
        20 * self.with_padding > blocks.map(|(_, bytes)| u64::from(*bytes)).sum()
    }

    /// Whether no record has a time.
    pub(super) fn is_untimed(&self) -> bool {
        self.untimed && self.blocks.is_empty() && self.sent.is_empty()
    }

    /// The arrivals at the phone and from it, of a subscription, by default of the one with the most
    /// blocks to the phone.
    pub(super) fn arrivals(mut self, subscription: Option<u8>) -> [Arrivals; 2] {
        let most = |of: &BTreeMap<u8, Vec<(i64, u32)>>| {
            of.iter().max_by_key(|(_, blocks)| blocks.len()).map(|(subscription, _)| *subscription)
        };
        let subscription = subscription.or_else(|| most(&self.blocks)).or_else(|| most(&self.sent));
        [&mut self.blocks, &mut self.sent].map(|of| {
            let blocks = subscription.and_then(|subscription| of.remove(&subscription));
            let mut blocks = blocks.unwrap_or_default();
            blocks.sort_unstable();
            let mut arrivals = Arrivals::new();
            blocks.into_iter().for_each(|(at, bytes)| arrivals.add(at, bytes));
            arrivals
        })
    }
}

/// The time of a downlink block with data, in nanoseconds, and its bytes.
pub(super) fn block(grant: &Grant) -> Option<(i64, u32)> {
    block_of(grant, Direction::Dl)
}

fn block_of(grant: &Grant, dir: Direction) -> Option<(i64, u32)> {
    let user = grant.dir == dir && grant.rnti.is_user();
    let came = grant.crc_ok != Some(false) && grant.data_bytes != Some(0);
    let at = grant.at.filter(|_| user && came)?;
    let bytes = grant.tbs_bytes?.saturating_sub(grant.padding_bytes.unwrap_or(0));
    Some((at.ns, bytes))
}

/// The offset of the capture's clock from the modem log's.
pub(super) fn of_capture(radio: &Arrivals, capture: &Arrivals) -> Aligned {
    between_arrivals(radio, capture, MAX_OFFSET_NS)
}

/// How far a capture shows the bytes that the radio delivered.
pub(super) fn likeness_of_capture(
    radio: &Arrivals,
    capture: &Arrivals,
    line: &Aligned,
) -> Option<Likeness> {
    likeness(radio, capture, line, MAX_OFFSET_NS)
}

/// The offset of the clock of an application's downlink transfers, given as spans in nanoseconds,
/// from that of the received bytes.
pub(super) fn of_application(came: &Arrivals, spans: &[(i64, i64)]) -> Aligned {
    align_transfers(came, spans, MAX_OFFSET_NS)
}

/// The same of uploads, from that of the bytes sent and received.
pub(super) fn of_uploads(radio: [&Arrivals; 2], spans: &[(i64, i64)]) -> Aligned {
    align_uploads(radio, spans, MAX_OFFSET_NS)
}

/// The offset of the clock of a browser's log from that of a capture at the phone, by the times of
/// requests. Time zones are tried, too.
pub(super) fn of_requests(captured: &[(i64, i64)], requests: &[AppTransfer]) -> Option<ClockLine> {
    let sent = requests.iter().filter_map(|one| Some((one.sent_ns(), one.phases.wait_ns?)));
    let sent: Vec<(i64, i64)> = sent.collect();
    let aligned = |zone_ns: i64| {
        let own = sent.iter().map(|(at, wait)| (at.saturating_sub(zone_ns), *wait));
        align_requests(captured, &own.collect::<Vec<_>>(), MAX_OFFSET_NS).ok()
    };
    aligned(0).or_else(|| {
        let quarters = (-MAX_QUARTERS..=MAX_QUARTERS).filter(|n| *n != 0);
        let mut found = quarters.filter_map(|n| Some((n * QUARTER_NS, aligned(n * QUARTER_NS)?)));
        let (zone_ns, line) = found.next().filter(|(_, line)| line.n >= ENOUGH_REQUESTS)?;
        let offset_ns = line.offset_ns.saturating_add(zone_ns);
        found.next().is_none().then_some(ClockLine { offset_ns, ..line })
    })
}

/// Spans of the transfers of a direction that are not timed by the modem's clock.
pub(super) fn spans(transfers: &[Transfer], dir: Direction) -> Vec<(i64, i64)> {
    let is_of = |one: &Transfer| one.dir.unwrap_or(Direction::Dl) == dir;
    // Transfers given by TTI are on the modem's clock.
    let timed = transfers.iter().filter(|t| is_of(t) && !t.unfinished && t.tti.is_none());
    timed.filter_map(|t| t.time).map(|(start, end)| (start.ns, end.ns)).collect()
}
