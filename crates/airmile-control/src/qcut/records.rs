//! Derives reports of the modem's buffer from the records of its log.

use airmile_model::nr_tables::bsr_lower_bound_bytes;
use airmile_model::{BsrReport, BufferStatus, Direction, Record, TtiSpan};

use super::estimate::ModemReport;

/// A TTI of LTE, in ns.
const TTI_NS: i64 = 1_000_000;

/// After a longer pause batches may have been lost: it is unknown whether nothing was sent
/// (chosen here).
const PAUSE_NS: i64 = 100 * TTI_NS;

/// The logical channel group of data before any had data (chosen here: the last; the first
/// is that of signalling, TS 36.331, 9.2.1).
const DATA_LCG: u8 = 3;

/// Converts records to reports. Times stay on the modem's clock.
#[derive(Debug, Clone, Copy)]
pub struct ReportExtractor {
    /// End of the last transmission.
    sent_until_ns: Option<i64>,
    /// The group that last had data.
    data_lcg: u8,
}

impl Default for ReportExtractor {
    fn default() -> Self {
        Self { sent_until_ns: None, data_lcg: DATA_LCG }
    }
}

impl ReportExtractor {
    /// Processes a record; `None` if it does not concern the uplink buffer or has no time.
    pub fn push(&mut self, record: &Record) -> Option<ModemReport> {
        match record {
            Record::Grant(grant) if grant.dir == Direction::Ul && grant.retx != Some(true) => {
                // Padding is known where the modem logs what it built (NR).
                let bytes = grant.tbs_bytes?.saturating_sub(grant.padding_bytes.unwrap_or(0));
                Some(self.sent(grant.at?.ns, TtiSpan(1).ns(grant.position.numerology), bytes))
            }
            Record::Bsr(report) => self.waiting(report),
            Record::BufferStatus(status) => sample(status),
            _ => None,
        }
    }

    /// A block with new data was sent in the TTI that begins then. Blocks come in order:
    /// none was sent between two of them.
    pub fn sent(&mut self, at_ns: i64, tti_ns: i64, bytes: u32) -> ModemReport {
        let to_ns = at_ns + tti_ns;
        let from_ns = self
            .sent_until_ns
            .filter(|until| at_ns - until <= PAUSE_NS)
            .map_or(at_ns, |until| until.min(at_ns));
        self.sent_until_ns = Some(to_ns);
        let (low_bytes, high_bytes) = room(bytes);
        ModemReport::Sent { from_ns, to_ns, low_bytes, high_bytes, largest_bytes: high_bytes }
    }

    /// Converts a buffer status report; `None` if another group than that of data is empty,
    /// or if it has no time.
    fn waiting(&mut self, report: &BsrReport) -> Option<ModemReport> {
        if report.index > 0 {
            self.data_lcg = report.lcg;
        } else if report.lcg != self.data_lcg {
            return None;
        }
        let low = bsr_lower_bound_bytes(report.index, report.upper_bound_bytes);
        Some(ModemReport::Waiting {
            // The state after the block that carries it (TS 36.321, 6.1.3.1), before
            // anything that arrives in the next TTI.
            at_ns: report.at?.ns + TtiSpan(1).ns(report.position.numerology) - 1,
            low_bytes: low.map_or(0, u64::from),
            high_bytes: report.upper_bound_bytes.map_or(u64::MAX, u64::from),
        })
    }
}

/// A sample of the buffer; `None` if it has no time.
fn sample(status: &BufferStatus) -> Option<ModemReport> {
    let bytes = u64::from(status.new_bytes) + u64::from(status.retx_bytes);
    let (low_bytes, high_bytes) = (bytes, bytes);
    Some(ModemReport::Waiting { at_ns: status.at?.ns, low_bytes, high_bytes })
}

/// Bounds on the bytes of packets in a block. Maximum: all but the minimum MAC and RLC
/// headers (TS 36.321, 6.1.2; TS 36.322, 6.2.1: 1 and 2 bytes). Minimum: without a buffer
/// status report, a status PDU and the length indicators of small packets (chosen here: 12
/// bytes and a 25th).
fn room(tbs_bytes: u32) -> (u64, u64) {
    let bytes = u64::from(tbs_bytes);
    ((bytes - bytes / 25).saturating_sub(12), bytes.saturating_sub(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmile_model::nr_tables::nr_bsr_upper_bound_bytes;
    use airmile_model::tables::bsr_upper_bound_bytes;
    use airmile_model::{Grant, Position, Stamp, TtiIndex};

    fn at(ms: i64) -> (Option<Stamp>, Position) {
        let tti = TtiIndex(ms);
        let position = Position { timing_segment: 0, cell: 0, numerology: 0, tti };
        (Some(Stamp::modem(ms * TTI_NS)), position)
    }

    #[test]
    fn records_of_the_uplink_are_reports() {
        let grant = |ms, dir, retx| {
            let (at, position) = at(ms);
            let (tbs_bytes, retx) = (Some(1_003), Some(retx));
            Record::from(Grant { at, tbs_bytes, retx, ..Grant::new(position, dir, 10) })
        };
        let bsr = |ms, lcg, index| {
            let (at, position) = at(ms);
            let upper_bound_bytes = bsr_upper_bound_bytes(index);
            Record::from(BsrReport { at, position, lcg, index, upper_bound_bytes })
        };
        let sent = |from_ms: i64, to_ms: i64| {
            let (from_ns, to_ns) = (from_ms * TTI_NS, to_ms * TTI_NS);
            // 1003 less 1003/25 and 12, less 3.
            let (low_bytes, high_bytes) = (951, 1_000);
            Some(ModemReport::Sent { from_ns, to_ns, low_bytes, high_bytes, largest_bytes: 1_000 })
        };
        let waiting = |at_ns, low_bytes, high_bytes| {
            Some(ModemReport::Waiting { at_ns, low_bytes, high_bytes })
        };
        let mut reported = ReportExtractor::default();
        for (record, expected) in [
            (grant(1, Direction::Ul, false), sent(1, 2)),
            (grant(4, Direction::Ul, false), sent(2, 5)),
            (grant(6, Direction::Ul, true), None),
            (grant(6, Direction::Dl, false), None),
            (bsr(7, 0, 0), None),
            // Over 10 and up to 12 bytes (TS 36.321, table 6.1.3.1-1).
            (bsr(7, 3, 2), waiting(8 * TTI_NS - 1, 11, 12)),
            (bsr(7, 3, 63), waiting(8 * TTI_NS - 1, 150_001, u64::MAX)),
            // The data is in another group: that this one is empty counts, the rest does
            // not.
            (bsr(8, 2, 2), waiting(9 * TTI_NS - 1, 11, 12)),
            (bsr(9, 3, 0), None),
            (bsr(9, 2, 0), waiting(10 * TTI_NS - 1, 0, 0)),
            // A pause, in which nothing is known.
            (grant(106, Direction::Ul, false), sent(106, 107)),
        ] {
            assert_eq!(reported.push(&record), expected, "{record:?}");
        }
    }

    /// Slots of half a ms, indices of the table of 8 bits, and blocks whose padding is known.
    #[test]
    fn records_of_nr_have_their_own_slots_and_tables() {
        let position = Position { numerology: 1, ..at(1).1 };
        let stamp = Some(Stamp::modem(TTI_NS));
        let mut grant = Grant::new(position, Direction::Ul, 0);
        (grant.at, grant.retx) = (stamp, Some(false));
        (grant.tbs_bytes, grant.padding_bytes) = (Some(2_003), Some(1_000));
        let mut reported = ReportExtractor::default();
        let (from_ns, to_ns) = (TTI_NS, TTI_NS + TTI_NS / 2);
        let (low_bytes, high_bytes, largest_bytes) = (951, 1_000, 1_000);
        let sent = ModemReport::Sent { from_ns, to_ns, low_bytes, high_bytes, largest_bytes };
        assert_eq!(reported.push(&grant.into()), Some(sent));
        let mut bsr = |lcg, index, long| {
            let upper_bound_bytes = nr_bsr_upper_bound_bytes(index, long);
            let report = BsrReport { at: stamp, position, lcg, index, upper_bound_bytes };
            reported.push(&report.into())
        };
        let waiting = |low_bytes, high_bytes| {
            Some(ModemReport::Waiting { at_ns: to_ns - 1, low_bytes, high_bytes })
        };
        // TS 38.321, tables 6.1.3.1-1 and 6.1.3.1-2.
        assert_eq!(bsr(7, 30, false), waiting(107_670, 150_000));
        assert_eq!(bsr(7, 31, false), waiting(150_001, u64::MAX));
        assert_eq!(bsr(7, 253, true), waiting(76_380_420, 81_338_368));
        assert_eq!(bsr(6, 0, true), None);
    }
}
