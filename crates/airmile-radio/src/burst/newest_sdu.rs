//! The SDU with a bearer's highest sequence number, and its segments.

use super::poll_model::PduLite;

/// The PDUs with the highest sequence number of a bearer.
///
/// An NR SDU and all its segments have one number (TS 38.322, 5.2.3.1.1), and each
/// segment counts as a PDU (5.3.3.2). The header's segment offset is not in the records,
/// so segments are distinguished from retransmissions by what can have been sent: without
/// a poll nothing is retransmitted, and a retransmission repeats a segment or the SDU. (Of
/// two equal parts of which the first polls, the second counts as a retransmission.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NewestSdu {
    last_bytes: u32,
    sum_bytes: u32,
    pdus: u32,
    is_polled: bool,
}

/// Header bytes that segments of an SDU have more than the SDU in one PDU: without the
/// offset (two bytes), and with it (TS 38.322, 6.2.2.4).
const SEGMENT_HEADER_BYTES: std::ops::RangeInclusive<u32> = 4..=5;

impl NewestSdu {
    pub(super) fn add(&mut self, pdu: &PduLite) {
        self.last_bytes = pdu.size_bytes;
        self.sum_bytes = self.sum_bytes.saturating_add(pdu.size_bytes);
        self.pdus = self.pdus.saturating_add(1);
        self.is_polled = pdu.poll == Some(true);
    }

    /// Whether a PDU of the same number is a further segment.
    pub(super) fn is_continued_by(&self, pdu: &PduLite) -> bool {
        let joints = self.pdus.saturating_sub(1);
        let more_headers = self.sum_bytes.saturating_sub(pdu.size_bytes);
        let is_whole = joints > 0
            && more_headers >= joints.saturating_mul(*SEGMENT_HEADER_BYTES.start())
            && more_headers <= joints.saturating_mul(*SEGMENT_HEADER_BYTES.end());
        !self.is_polled || pdu.size_bytes != self.last_bytes && !is_whole
    }
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::super::poll_model::tests::pdu;
    use super::super::poll_model::{BearerCounters, PduLite, PollLimits, PollMark, PollRun};
    use crate::small_map::SmallMap;

    /// The runs of PDUs that come as TTIs of several.
    fn runs_of_ttis(ttis: &[Vec<PduLite>]) -> Vec<PollRun> {
        let mut bearers = SmallMap::default();
        let mut marks = SmallVec::new();
        for pdus in ttis {
            BearerCounters::advance(&mut bearers, &mut pdus.clone(), &mut marks);
        }
        let runs = |m: &PollMark| {
            m.inner_runs().iter().copied().chain(m.last_run().copied()).collect::<Vec<_>>()
        };
        marks.iter().flat_map(runs).collect()
    }

    /// TTIs of an NR cell with a full queue and pollPDU 8: SDUs of 1,500 bytes, and blocks
    /// of these sizes, which cut SDUs into unequal parts.
    fn segmented(block_bytes: &[&[u32]], n_tti: usize) -> Vec<Vec<PduLite>> {
        let (mut sn, mut sent, mut counted) = (0, 0, 0);
        let mut ttis: Vec<Vec<PduLite>> = Vec::new();
        for blocks in block_bytes.iter().cycle().take(n_tti) {
            let mut tti = Vec::new();
            for &room in *blocks {
                let mut room = room;
                while room > 10 {
                    let header = if sent > 0 { 5 } else { 3 };
                    let part = (room - header).min(1_500 - sent);
                    counted += 1;
                    tti.push(pdu(sn, header + part, counted == 8));
                    counted %= 8;
                    room -= header + part;
                    sent += part;
                    if sent == 1_500 {
                        (sn, sent) = (sn + 1, 0);
                    }
                }
            }
            ttis.push(tti);
        }
        ttis
    }

    #[test]
    fn segments_of_an_nr_sdu_count_as_pdus() {
        let ttis = segmented(&[&[9_474], &[7_046], &[5_105]], 300);
        let runs = runs_of_ttis(&ttis);
        let limits = PollLimits::fit(runs.iter().map(|run| (run, true)));
        assert_eq!(limits, PollLimits { poll_pdu: Some(8), poll_byte: None });
        let other = runs.iter().skip(1).find(|run| !run.is_new || !limits.explains(run));
        assert_eq!(other, None);
    }

    /// Segments in two carriers' blocks of one slot: which was sent first is unknown.
    #[test]
    fn segments_of_an_sdu_on_two_carriers_leave_the_limit_sharp() {
        let mut ttis = segmented(&[&[9_474, 7_046], &[5_101, 3_337]], 300);
        for tti in ttis.iter_mut().step_by(2) {
            tti.reverse();
        }
        let runs = runs_of_ttis(&ttis);
        let limits = PollLimits::fit(runs.iter().map(|run| (run, true)));
        assert_eq!(limits, PollLimits { poll_pdu: Some(8), poll_byte: None });
        let other = runs.iter().skip(1).find(|run| !run.is_new || !limits.explains(run));
        assert_eq!(other, None);
    }

    #[test]
    fn an_emptied_queue_polls_with_the_last_segment() {
        // The head is the larger part, in the primary carrier's block of the slot.
        let tti = vec![pdu(7, 1_100, false), pdu(7, 410, true)];
        let mut bearers = SmallMap::default();
        let mut marks = SmallVec::new();
        BearerCounters::advance(&mut bearers, &mut [pdu(6, 1_503, true)], &mut marks);
        BearerCounters::advance(&mut bearers, &mut tti.clone(), &mut marks);
        let mark: &PollMark = marks.last().unwrap();
        assert_eq!(mark.poll, Some(true));
        let run = mark.last_run().unwrap();
        assert!(run.is_new && run.is_complete && run.pdus <= 2);
        assert!(!PollLimits::default().explains(run));
    }

    #[test]
    fn the_newest_sdu_sent_again_is_no_segment() {
        let again = |pdus: &[PduLite]| {
            runs_of_ttis(&pdus.iter().map(|pdu| vec![*pdu]).collect::<Vec<_>>())
                .last()
                .unwrap()
                .is_new
        };
        // t-PollRetransmit: as it was, or whole after segments.
        assert!(!again(&[pdu(0, 100, false), pdu(1, 90, true), pdu(1, 90, true)]));
        assert!(!again(&[pdu(0, 900, false), pdu(0, 608, true), pdu(0, 1_503, true)]));
        assert!(!again(&[pdu(0, 900, false), pdu(0, 608, true), pdu(0, 608, true)]));
        assert!(again(&[pdu(0, 900, false), pdu(0, 608, true)]));
        assert!(again(&[pdu(0, 900, true), pdu(0, 608, true)]));
    }
}
