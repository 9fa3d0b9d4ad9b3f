//! The amount of each kind of evidence in the records.

use airmile_model::{Direction, Record, RlcMode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::legs::{Rat, rat_of};

/// The amount of each kind of evidence in the records, from which results state their evidence and
/// what is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvidenceCounts {
    /// User downlink blocks.
    pub dl_blocks: u64,
    /// Blocks of NR, in either direction; the others are LTE's.
    pub nr_blocks: u64,
    /// Downlink blocks with a known number of PRBs.
    pub dl_blocks_with_prb: u64,
    /// Downlink blocks with known padding.
    pub dl_blocks_with_padding: u64,
    /// Downlink blocks with HARQ process and NDI.
    pub dl_blocks_with_harq: u64,
    /// Downlink RLC data PDUs with a poll bit (0 or 1) on data bearers.
    pub dl_pdus_with_poll: u64,
    /// Downlink RLC PDUs of UM on data bearers; UM has no poll bits.
    #[serde(skip)]
    pub dl_um_pdus: u64,
    /// Downlink RLC PDUs of AM on signalling bearers: the log has the messages that show poll bits.
    #[serde(skip)]
    pub dl_signalling_pdus: u64,
    /// Uplink blocks.
    pub ul_blocks: u64,
    /// Samples of the phone's own buffer.
    pub buffer_samples: u64,
    /// Buffer status reports.
    pub bsr_reports: u64,
    /// Measurements of the serving cell.
    pub measurements: u64,
    /// Handovers, resets and gaps: timing segments after the first.
    pub timing_changes: u32,
    /// Gaps in the log.
    pub holes: u64,
    /// Readings of NR's padding counters.
    #[serde(skip)]
    pub nr_counters: u64,
    /// Whether the first leg is NR: the cell's load is the first leg's.
    #[serde(skip)]
    pub is_nr_first: bool,
}

impl EvidenceCounts {
    /// Whether all blocks are of NR.
    #[must_use]
    pub const fn is_nr(&self) -> bool {
        self.nr_blocks > 0 && self.nr_blocks == self.dl_blocks + self.ul_blocks
    }

    /// Counts a record.
    pub fn count(&mut self, record: &Record) {
        match record {
            Record::Grant(g) if g.rnti.is_user() => {
                self.timing_changes = self.timing_changes.max(g.position.timing_segment);
                self.nr_blocks += u64::from(rat_of(record) == Some(Rat::Nr));
                if g.dir == Direction::Ul {
                    self.ul_blocks += 1;
                    return;
                }
                self.dl_blocks += 1;
                self.dl_blocks_with_prb += u64::from(g.n_prb.is_some());
                self.dl_blocks_with_padding += u64::from(g.padding_bytes.is_some());
                let harq = (g.harq_id.is_some() && g.ndi.is_some()) || g.retx.is_some();
                self.dl_blocks_with_harq += u64::from(harq);
            }
            Record::Rlc(pdu) if pdu.dir == Direction::Dl && pdu.signalling != Some(true) => {
                self.dl_pdus_with_poll += u64::from(pdu.poll.is_some());
                self.dl_um_pdus += u64::from(pdu.mode == RlcMode::Um);
            }
            Record::Rlc(pdu) if pdu.dir == Direction::Dl => {
                self.dl_signalling_pdus += u64::from(pdu.mode == RlcMode::Am);
            }
            Record::BufferStatus(_) => self.buffer_samples += 1,
            Record::Bsr(_) => self.bsr_reports += 1,
            Record::Measurement(m) => {
                self.measurements += 1;
                self.timing_changes = self.timing_changes.max(m.position.timing_segment);
            }
            Record::NrStats(_) => self.nr_counters += 1,
            Record::Hole(_) => self.holes += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::{Position, RlcPdu};

    use super::*;

    #[test]
    fn signalling_shows_that_the_messages_with_poll_bits_are_logged() {
        let pdu = |dir, signalling, mode| RlcPdu {
            at: None,
            position: Position::lte(5),
            dir,
            bearer: 33,
            signalling: Some(signalling),
            mode,
            sn: Some(0),
            size_bytes: 50,
            poll: Some(true),
            resegment: false,
            status: false,
        };
        let counts = |dir, signalling, mode| {
            let mut counts = EvidenceCounts::default();
            counts.count(&Record::Rlc(pdu(dir, signalling, mode)));
            (counts.dl_signalling_pdus, counts.dl_pdus_with_poll)
        };
        assert_eq!(counts(Direction::Dl, true, RlcMode::Am), (1, 0));
        assert_eq!(counts(Direction::Ul, true, RlcMode::Am), (0, 0));
        assert_eq!(counts(Direction::Dl, true, RlcMode::Um), (0, 0));
        assert_eq!(counts(Direction::Dl, false, RlcMode::Am), (0, 1));
    }
}
