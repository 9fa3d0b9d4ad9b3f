//! Poll bits, and which of them the sender's counters explain.
//!
//! An RLC AM sender sets the poll bit when its buffers run empty, and also when pollPDU
//! PDUs or pollByte bytes have been sent since the last poll (TS 36.322, 5.2.2.1). The
//! downlink's pollPDU and pollByte are internal to the base station, so they are
//! inferred: between two polls no counter can exceed its limit, and a forced poll stands
//! exactly at it.
//!
//! The third cause, a stalled window, is given by the standard: without a poll no STATUS
//! is sent, so a sender whose limits are infinite stops after AM_Window_Size PDUs, polls,
//! and waits with data in its buffer.

mod limits;

use airmile_model::{RlcMode, RlcPdu};
pub use limits::PollLimits;
use smallvec::SmallVec;

use super::newest_sdu::NewestSdu;
use crate::small_map::SmallMap;

/// An RLC data PDU, with the fields of the poll model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PduLite {
    pub bearer: u8,
    pub sn: Option<u32>,
    pub size_bytes: u32,
    /// Of RLC UM.
    pub is_um: bool,
    pub poll: Option<bool>,
    pub resegment: bool,
}

impl PduLite {
    #[inline]
    pub(super) fn new(pdu: &RlcPdu) -> Self {
        Self {
            bearer: pdu.bearer,
            sn: pdu.sn,
            size_bytes: pdu.size_bytes,
            is_um: pdu.mode == RlcMode::Um,
            poll: if pdu.mode == RlcMode::Am { pdu.poll } else { None },
            resegment: pdu.resegment,
        }
    }
}

/// PDUs and bytes since the last poll, the polled PDU included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PollRun {
    pub pdus: u32,
    /// Without the polled PDU. 32 bits keep rows small; no base station sends 4 GB
    /// without a poll.
    pub bytes_before: u32,
    pub bytes: u32,
    /// The polled PDU is not a retransmission.
    pub is_new: bool,
    /// Every PDU since the last poll was seen.
    pub is_complete: bool,
    /// Bytes of a segment next to the polled one, of which it is unknown whether it was
    /// sent before the poll; 0: none.
    pub tied_bytes: u32,
    /// Neither this run nor the one before ends at such a segment.
    pub is_exact: bool,
    /// AM_Window_Size: half of the sequence numbers (TS 36.322, 7.2; TS 38.322, 7.2).
    pub window: u32,
}

/// The evidence of a bearer's PDUs in one TTI.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PollMark {
    pub bearer: u8,
    /// Poll bit of the last PDU; `None` without RLC AM.
    pub poll: Option<bool>,
    /// Of RLC UM.
    pub is_um: bool,
    /// Sequence numbers that are missing before its PDUs.
    pub missing: u32,
    /// Most TTIs end no run. A box keeps a row small: an epoch's rows are read several times.
    runs: Option<Box<EndedRuns>>,
}

/// The runs that polls of one TTI ended.
#[derive(Debug, Clone, PartialEq, Default)]
struct EndedRuns {
    /// By polls of earlier PDUs than the last one.
    inner: Vec<PollRun>,
    /// By the last PDU's poll.
    last: Option<PollRun>,
}

impl PollMark {
    /// Of a bearer whose next PDU came without a poll.
    pub(super) const fn plain(bearer: u8) -> Self {
        Self { bearer, poll: Some(false), is_um: false, missing: 0, runs: None }
    }

    /// The run that its last PDU's poll ended.
    pub(super) fn last_run(&self) -> Option<&PollRun> {
        self.runs.as_ref()?.last.as_ref()
    }

    /// Runs that earlier PDUs of this TTI ended.
    pub(super) fn inner_runs(&self) -> &[PollRun] {
        self.runs.as_ref().map_or(&[], |runs| runs.inner.as_slice())
    }
}

/// In-order PDUs below the highest number: after this many the bearer was re-established
/// (chosen here; TS 36.322, 5.4).
const RESTART_PDUS: u32 = 16;

/// The sender's counters of one bearer, as seen from the stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct BearerCounters {
    highest: Option<i64>,
    sn_modulus: i64,
    newest: NewestSdu,
    pdus: u32,
    bytes: u32,
    is_complete: bool,
    is_exact: bool,
    behind_next: i64,
    behind_run: u32,
}

impl BearerCounters {
    /// Takes the PDUs of one TTI, all bearers mixed; returns a mark per bearer.
    pub(super) fn advance(
        bearers: &mut SmallMap<u8, Self>,
        pdus: &mut [PduLite],
        marks: &mut SmallVec<[PollMark; 1]>,
    ) {
        if pdus.windows(2).any(|pair| pair[0].bearer != pair[1].bearer) {
            pdus.sort_by_key(|pdu| pdu.bearer);
        }
        for pdus in pdus.chunk_by(|a, b| a.bearer == b.bearer) {
            let bearer = pdus[0].bearer;
            marks.push(bearers.or_insert_with(bearer, Self::default).take_tti(bearer, pdus));
        }
    }

    /// Takes the only PDU of a TTI, if it is the next one, without a poll. Its mark is
    /// [plain](PollMark::plain), as [`take_tti`](Self::take_tti) would find.
    #[inline]
    pub(super) fn take_plain(&mut self, pdu: &PduLite) -> bool {
        let (Some(highest), Some(sn)) = (self.highest, pdu.sn) else { return false };
        let sn = i64::from(sn);
        let is_next = sn < self.sn_modulus && sn == (highest + 1) & (self.sn_modulus - 1);
        if !is_next || pdu.resegment || pdu.poll != Some(false) {
            return false;
        }
        self.newest = NewestSdu::default();
        self.count_new(highest + 1, pdu);
        true
    }

    /// Counts a PDU that is no retransmission. TS 36.322, 5.2.2.1: both counters advance with
    /// each new PDU, retransmissions do not count.
    fn count_new(&mut self, sn: i64, pdu: &PduLite) {
        self.newest.add(pdu);
        self.highest = Some(sn);
        self.behind_run = 0;
        self.pdus += 1;
        self.bytes = self.bytes.saturating_add(pdu.size_bytes);
    }

    fn take_tti(&mut self, bearer: u8, pdus: &[PduLite]) -> PollMark {
        let is_um = pdus.iter().any(|pdu| pdu.is_um);
        let mut mark = PollMark { bearer, poll: None, is_um, missing: 0, runs: None };
        let mut polled = None;
        // Most TTIs have one: nothing to sort.
        if let [pdu] = pdus {
            let sn = self.unwrap_sn(pdu.sn);
            self.take_pdu(sn, pdu, &mut mark, &mut polled);
            return mark;
        }
        let mut numbered: SmallVec<[(i64, &PduLite); 8]> =
            pdus.iter().map(|pdu| (self.unwrap_sn(pdu.sn), pdu)).collect();
        // Of segments of one SDU in several blocks, the one that polls counts as the
        // first: if a counter caused the poll, the run ends at its limit.
        numbered.sort_by_key(|&(sn, pdu)| (sn, pdu.poll != Some(true), pdu.size_bytes));
        for (sn, pdu) in numbered {
            self.take_pdu(sn, pdu, &mut mark, &mut polled);
        }
        mark
    }

    /// Takes the next PDU of a TTI, in order of number; `polled` is the number of the
    /// last one that polled.
    fn take_pdu(&mut self, sn: i64, pdu: &PduLite, mark: &mut PollMark, polled: &mut Option<i64>) {
        // Which of these segments was sent last is unknown: the poll remains the last
        // one's, and the limits show whether a counter caused it.
        let is_beside_poll = *polled == Some(sn) && pdu.poll != Some(true);
        let last = mark.runs.as_mut().and_then(|runs| runs.last.as_mut());
        if let Some(run) = last.filter(|_| is_beside_poll) {
            run.tied_bytes = run.tied_bytes.saturating_add(pdu.size_bytes);
            run.is_exact = false;
            self.is_exact = false;
        } else {
            if let Some(runs) = &mut mark.runs {
                runs.inner.extend(runs.last.take());
            }
            mark.poll = pdu.poll;
        }
        let is_later = self.highest.is_none_or(|highest| sn > highest);
        // Nothing is retransmitted in the TTI of its first transmission.
        let is_segment =
            self.highest == Some(sn) && (is_beside_poll || self.newest.is_continued_by(pdu));
        let is_new = !pdu.resegment && (is_later || is_segment);
        let bytes_before = self.bytes;
        if is_new {
            let missing = self.highest.map_or(0, |highest| sn.saturating_sub(highest + 1));
            if missing > 0 {
                self.is_complete = false;
                mark.missing =
                    mark.missing.saturating_add(u32::try_from(missing).unwrap_or(u32::MAX));
            }
            if is_later {
                self.newest = NewestSdu::default();
            }
            self.count_new(sn, pdu);
        } else {
            self.watch_restart(sn);
        }
        if pdu.poll == Some(true) {
            *polled = Some(sn);
            mark.runs.get_or_insert_default().last = Some(PollRun {
                pdus: self.pdus,
                bytes_before,
                bytes: self.bytes,
                is_new,
                is_complete: self.is_complete,
                tied_bytes: 0,
                is_exact: self.is_exact,
                window: u32::try_from(self.sn_modulus / 2).unwrap_or(u32::MAX),
            });
            self.pdus = 0;
            self.bytes = 0;
            self.is_complete = true;
            self.is_exact = true;
        }
    }

    fn watch_restart(&mut self, sn: i64) {
        self.behind_run = if sn == self.behind_next { self.behind_run + 1 } else { 1 };
        self.behind_next = sn + 1;
        if self.behind_run >= RESTART_PDUS {
            self.highest = Some(sn);
            self.behind_run = 0;
            self.is_complete = false;
        }
    }

    /// Sequence numbers wrap at 2^10 (LTE), 2^12, 2^16 or 2^18 (TS 36.322, 6.2.3.3; TS
    /// 38.322, 6.2.3.3); the modulus is inferred. A PDU without a number counts as the
    /// next one.
    fn unwrap_sn(&mut self, sn: Option<u32>) -> i64 {
        let Some(sn) = sn else { return self.highest.map_or(0, |highest| highest + 1) };
        let sn = i64::from(sn);
        let needed = [1 << 10, 1 << 12, 1 << 16].into_iter().find(|&m| sn < m).unwrap_or(1 << 18);
        self.sn_modulus = self.sn_modulus.max(needed);
        let Some(highest) = self.highest else { return sn };
        let half = self.sn_modulus / 2;
        // A power of two, so the mask is the remainder.
        highest + ((sn - highest + half) & (self.sn_modulus - 1)) - half
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn pdu(sn: u32, size_bytes: u32, poll: bool) -> PduLite {
        PduLite {
            bearer: 3,
            sn: Some(sn),
            size_bytes,
            is_um: false,
            poll: Some(poll),
            resegment: false,
        }
    }

    pub(super) fn runs_of(pdus: &[PduLite]) -> Vec<PollRun> {
        let mut bearers = SmallMap::default();
        let mut marks = SmallVec::new();
        for pdu in pdus {
            BearerCounters::advance(&mut bearers, &mut [*pdu], &mut marks);
        }
        marks.iter().filter_map(|mark: &PollMark| mark.last_run().copied()).collect()
    }

    #[test]
    fn pdus_in_order_without_a_poll_are_taken_at_once() {
        let mut counters = BearerCounters::default();
        let of = |sn| PduLite {
            bearer: 3,
            sn: Some(sn),
            size_bytes: 90,
            is_um: false,
            poll: Some(false),
            resegment: false,
        };
        counters.take_tti(3, &[of(1), of(2)]);
        assert!((3..2_000).all(|sn| counters.take_plain(&of(sn % 1_024))));
        assert!(!counters.take_plain(&of(2_001 % 1_024)));
    }

    proptest! {
        /// Mostly the next number, sometimes an earlier or later one; with or without a poll.
        #[test]
        fn the_next_pdu_is_taken_as_any_other(
            steps in prop::collection::vec((0..8_u32, 0..30_u32, 0..10_u8), 1..200),
            modulus in prop::sample::select(vec![1_u32 << 10, 1 << 12, 1 << 16, 1 << 18]),
        ) {
            let (mut short, mut general) = (BearerCounters::default(), BearerCounters::default());
            let mut next = modulus - 40;
            for (kind, jump, kind_of_poll) in steps {
                next = if kind == 0 { next + jump } else { next + 1 };
                let sn = (kind != 1).then_some((next - u32::from(kind == 2) * jump) % modulus);
                let poll = [Some(true), None].get(usize::from(kind_of_poll)).copied();
                let (poll, resegment) = (poll.unwrap_or(Some(false)), kind == 3 && jump == 0);
                let pdu = PduLite { sn, poll, resegment, ..pdu(0, 90 + jump, false) };
                let expected = general.take_tti(3, &[pdu]);
                let mark = match short.take_plain(&pdu) {
                    true => PollMark::plain(3),
                    false => short.take_tti(3, &[pdu]),
                };
                prop_assert_eq!(mark, expected);
                prop_assert_eq!(&short, &general);
            }
        }
    }

    #[test]
    fn a_lost_pdu_spoils_its_run_only() {
        let stream: Vec<PduLite> =
            (0..64).filter(|i| *i != 20).map(|i| pdu(i, 100, i % 8 == 7)).collect();
        let runs = runs_of(&stream);
        let spoilt: Vec<bool> = runs.iter().map(|r| !r.is_complete).collect();
        // The first run's beginning is not known either.
        assert_eq!(spoilt, [true, false, true, false, false, false, false, false]);
    }

    #[test]
    fn retransmissions_do_not_count() {
        let stream = [pdu(0, 10, true), pdu(1, 10, false), pdu(0, 10, false), pdu(2, 10, true)];
        assert_eq!(runs_of(&stream)[1].pdus, 2);
    }
}
