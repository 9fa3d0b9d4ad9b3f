//! The transmitting side of an AM RLC entity (TS 36.322, 5.1.3.1, 5.2.1, 5.2.2).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{AmdPdu, Element, Nack, RlcFormat, Sdu, StatusPdu};
use crate::scenario::RlcConfig;

/// A PDU that was sent and is not acknowledged.
#[derive(Debug, Clone)]
struct SentPdu {
    elements: Arc<[Element]>,
    field_bytes: u32,
}

/// A part of a PDU that is due for retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Due {
    sn: u64,
    part: (u32, u32),
}

/// The sender. Its state variables have the standard's names (7.1).
#[derive(Debug, Clone)]
pub(crate) struct AmSender {
    config: RlcConfig,
    format: RlcFormat,
    transmission_buffer: VecDeque<Sdu>,
    /// Bytes of the first SDU that were already sent.
    first_sent_bytes: u32,
    new_bytes: u64,
    retransmission_buffer: VecDeque<Due>,
    unacknowledged: BTreeMap<u64, SentPdu>,
    vt_s: u64,
    pdu_without_poll: u32,
    byte_without_poll: u64,
    poll_sn: u64,
    /// TTI at which t-PollRetransmit expires.
    poll_retransmit_due: Option<i64>,
    /// t-PollRetransmit has expired: the next PDU polls.
    poll_owed: bool,
}

impl AmSender {
    pub(crate) fn new(config: RlcConfig) -> Self {
        Self {
            format: RlcFormat::of_bearer(&config),
            config,
            transmission_buffer: VecDeque::new(),
            first_sent_bytes: 0,
            new_bytes: 0,
            retransmission_buffer: VecDeque::new(),
            unacknowledged: BTreeMap::new(),
            vt_s: 0,
            pdu_without_poll: 0,
            byte_without_poll: 0,
            poll_sn: 0,
            poll_retransmit_due: None,
            poll_owed: false,
        }
    }

    pub(crate) fn push(&mut self, sdu: Sdu) {
        self.new_bytes += u64::from(sdu.bytes);
        self.transmission_buffer.push_back(sdu);
    }

    /// Bytes not yet sent for the first time.
    pub(crate) const fn new_bytes(&self) -> u64 {
        self.new_bytes
    }

    /// Bytes due for retransmission.
    pub(crate) fn retx_bytes(&self) -> u64 {
        self.retransmission_buffer.iter().map(|due| u64::from(due.part.1 - due.part.0)).sum()
    }

    /// Bytes in the queue, as in the ground truth.
    pub(crate) fn queue_bytes(&self) -> u64 {
        self.new_bytes + self.retx_bytes()
    }

    /// Upper bound of the block size that empties the queue, including RLC headers and MAC
    /// subheaders of 3 bytes; 0 if it is empty or the window is stalled.
    pub(crate) fn wanted_bytes(&self) -> u64 {
        let retx = &self.retransmission_buffer;
        let mut wanted: u64 = self.retx_bytes();
        for due in retx {
            let elements = self.unacknowledged.get(&due.sn).map_or(1, |sent| sent.elements.len());
            wanted += u64::from(self.format.header_bytes(elements, true, due.part.0)) + 3;
        }
        if !self.transmission_buffer.is_empty() && !self.is_stalled() {
            let sdus = self.transmission_buffer.len();
            let headers = match self.format {
                RlcFormat::Lte => u64::from(self.format.header_bytes(sdus, false, 0)) + 3,
                // A header and a MAC subheader each.
                RlcFormat::Nr { .. } => {
                    sdus as u64 * (u64::from(self.format.header_bytes(1, false, 0)) + 3) + 2
                }
            };
            wanted += self.new_bytes + headers;
        }
        wanted
    }

    /// VT(A): the first SN not acknowledged in sequence.
    fn vt_a(&self) -> u64 {
        self.unacknowledged.keys().next().copied().unwrap_or(self.vt_s)
    }

    /// Whether no new PDU may be sent: VT(S) has reached VT(MS).
    pub(crate) fn is_stalled(&self) -> bool {
        !self.config.unacknowledged && self.vt_s >= self.vt_a() + self.format.window()
    }

    /// The next PDU, of at most `room` bytes; retransmissions go first (5.1.3.1.1).
    pub(crate) fn build(&mut self, room: u32, tti: i64) -> Option<AmdPdu> {
        let mut pdu = match self.retransmission_buffer.front() {
            Some(&due) => self.build_retx(due, room)?,
            None => self.build_new(room)?,
        };
        if !self.config.unacknowledged && self.poll_is_due() {
            pdu.poll = true;
            self.include_poll(tti);
        }
        Some(pdu)
    }

    fn build_retx(&mut self, due: Due, room: u32) -> Option<AmdPdu> {
        let sent = self.unacknowledged.get(&due.sn)?.clone();
        let (from, to) = due.part;
        // The longest part that fits; a PDU that fits as a whole is sent unchanged.
        let cut = (from + 1..=to).rev().find(|&cut| self.part_bytes(&sent, (from, cut)) <= room)?;
        self.retransmission_buffer.pop_front();
        if cut < to {
            self.retransmission_buffer.push_front(Due { sn: due.sn, part: (cut, to) });
        }
        let part = (from, cut);
        let size_bytes = self.part_bytes(&sent, part);
        let SentPdu { elements, field_bytes } = sent;
        let format = self.format;
        Some(AmdPdu {
            sn: due.sn,
            elements,
            field_bytes,
            part,
            size_bytes,
            poll: false,
            retx: true,
            format,
        })
    }

    fn build_new(&mut self, room: u32) -> Option<AmdPdu> {
        if self.is_stalled() {
            return None;
        }
        if self.format != RlcFormat::Lte {
            return self.build_segment(room);
        }
        let format = self.format;
        let mut elements = Vec::new();
        let mut field_bytes = 0;
        while let Some(&sdu) = self.transmission_buffer.front() {
            let used = format.header_bytes(elements.len() + 1, false, 0) + field_bytes;
            let Some(left) = room.checked_sub(used).filter(|&left| left > 0) else { break };
            let unsent = sdu.bytes - self.first_sent_bytes;
            let bytes = unsent.min(left);
            let ends = bytes == unsent;
            elements.push(Element { sdu, bytes, ends });
            field_bytes += bytes;
            if ends {
                self.transmission_buffer.pop_front();
                self.first_sent_bytes = 0;
            } else {
                self.first_sent_bytes += bytes;
            }
        }
        if elements.is_empty() {
            return None;
        }
        self.new_bytes -= u64::from(field_bytes);
        let (sn, size_bytes) =
            (self.vt_s, format.header_bytes(elements.len(), false, 0) + field_bytes);
        let elements: Arc<[Element]> = elements.into();
        if !self.config.unacknowledged {
            let sent = SentPdu { elements: Arc::clone(&elements), field_bytes };
            self.unacknowledged.insert(sn, sent);
            // 5.2.2.1: counted upon assembly of a new AMD PDU.
            self.pdu_without_poll += 1;
            self.byte_without_poll += u64::from(field_bytes);
        }
        self.vt_s += 1;
        let part = (0, field_bytes);
        Some(AmdPdu {
            sn,
            elements,
            field_bytes,
            part,
            size_bytes,
            poll: false,
            retx: false,
            format,
        })
    }

    /// A segment of the first SDU that fits: the sequence number advances with the last
    /// segment (TS 38.322, 5.2.3.1.1).
    fn build_segment(&mut self, room: u32) -> Option<AmdPdu> {
        let (format, from, sn) = (self.format, self.first_sent_bytes, self.vt_s);
        let &sdu = self.transmission_buffer.front()?;
        let header_bytes = format.header_bytes(1, false, from);
        let left = room.checked_sub(header_bytes).filter(|&left| left > 0)?;
        let to = sdu.bytes.min(from + left);
        let elements: Arc<[Element]> = [Element { sdu, bytes: sdu.bytes, ends: true }].into();
        if from == 0 && !self.config.unacknowledged {
            let sent = SentPdu { elements: Arc::clone(&elements), field_bytes: sdu.bytes };
            self.unacknowledged.insert(sn, sent);
        }
        if to == sdu.bytes {
            self.transmission_buffer.pop_front();
            self.first_sent_bytes = 0;
            self.vt_s += 1;
        } else {
            self.first_sent_bytes = to;
        }
        let bytes = to - from;
        self.new_bytes -= u64::from(bytes);
        self.pdu_without_poll += 1;
        self.byte_without_poll += u64::from(bytes);
        Some(AmdPdu {
            sn,
            elements,
            field_bytes: sdu.bytes,
            part: (from, to),
            size_bytes: header_bytes + bytes,
            poll: false,
            retx: false,
            format,
        })
    }

    /// Bytes of a PDU sent at least once: for an NR SDU in progress, its first segments.
    const fn sent_bytes(&self, sn: u64, field_bytes: u32) -> u32 {
        if sn == self.vt_s { self.first_sent_bytes } else { field_bytes }
    }

    /// Whether the PDU just assembled polls (5.2.2.1, and 5.2.2.3 for a poll
    /// owed after t-PollRetransmit).
    fn poll_is_due(&self) -> bool {
        let counters = self.config.poll_pdu.is_some_and(|limit| self.pdu_without_poll >= limit)
            || self.config.poll_byte.is_some_and(|limit| self.byte_without_poll >= limit);
        let emptied = self.transmission_buffer.is_empty() && self.retransmission_buffer.is_empty();
        counters || emptied || self.is_stalled() || self.poll_owed
    }

    fn include_poll(&mut self, tti: i64) {
        self.pdu_without_poll = 0;
        self.byte_without_poll = 0;
        self.poll_owed = false;
        self.poll_sn = self.vt_s.saturating_sub(1);
        self.poll_retransmit_due = Some(tti + i64::from(self.config.t_poll_retransmit_ms));
    }

    /// Checks whether t-PollRetransmit has expired (5.2.2.3).
    pub(crate) fn tick(&mut self, tti: i64) {
        if self.poll_retransmit_due.is_none_or(|due| due > tti) {
            return;
        }
        self.poll_retransmit_due = None;
        let emptied = self.transmission_buffer.is_empty() && self.retransmission_buffer.is_empty();
        // "Consider the AMD PDU with SN = VT(S) - 1 for retransmission".
        let last = self.unacknowledged.last_key_value().map(|(&sn, sent)| (sn, sent.field_bytes));
        if let Some((sn, field_bytes)) = last
            && (emptied || self.is_stalled())
        {
            self.consider(Due { sn, part: (0, field_bytes) });
        }
        self.poll_owed = true;
    }

    fn consider(&mut self, due: Due) {
        let overlaps = |other: &Due| other.sn == due.sn;
        if !self.retransmission_buffer.iter().any(overlaps) {
            self.retransmission_buffer.push_back(due);
        }
    }

    /// SNs from `sn` on that are sent and unacknowledged, with their bytes.
    pub(crate) fn unacknowledged_from(&self, sn: u64) -> impl Iterator<Item = (u64, u32)> {
        self.unacknowledged
            .range(sn..)
            .map(|(&sn, sent)| (sn, self.sent_bytes(sn, sent.field_bytes)))
    }

    /// Processes a STATUS PDU (5.2.1 and 5.2.2.2).
    pub(crate) fn receive_status(&mut self, status: &StatusPdu) {
        let nacked = |sn: u64| status.nacks.iter().any(|nack| nack.sn == sn);
        self.unacknowledged.retain(|&sn, _| sn >= status.ack_sn || nacked(sn));
        let unacknowledged = &self.unacknowledged;
        self.retransmission_buffer.retain(|due| unacknowledged.contains_key(&due.sn));
        // Several parts of a PDU may be missing; one already due is kept.
        let due_before: BTreeSet<u64> = self.retransmission_buffer.iter().map(|d| d.sn).collect();
        for &Nack { sn, part } in status.nacks.iter().filter(|n| !due_before.contains(&n.sn)) {
            let whole = self.unacknowledged.get(&sn).map(|sent| (0, sent.field_bytes));
            let (Some(whole), Some((from, to))) = (whole, part.or(whole)) else { continue };
            let part = (from, to.min(self.sent_bytes(sn, whole.1)));
            if part.0 < part.1 {
                self.retransmission_buffer.push_back(Due { sn, part });
            }
        }
        if self.poll_sn < status.ack_sn {
            self.poll_retransmit_due = None;
        }
    }

    /// Bytes of a part of a PDU with its header.
    fn part_bytes(&self, sent: &SentPdu, (from, to): (u32, u32)) -> u32 {
        let mut at = 0;
        let overlap = |element: &&Element| {
            let begin = at;
            at += element.bytes;
            begin < to && at > from
        };
        let elements = sent.elements.iter().filter(overlap).count();
        let segment = (from, to) != (0, sent.field_bytes);
        self.format.header_bytes(elements, segment, from) + to - from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(poll_pdu: Option<u32>, poll_byte: Option<u64>) -> AmSender {
        AmSender::new(RlcConfig { poll_pdu, poll_byte, ..RlcConfig::default() })
    }

    /// Sends `sdus` of 1000 bytes in PDUs of `room` bytes; returns the SNs that poll.
    fn polls(mut sender: AmSender, sdus: u64, room: u32) -> Vec<u64> {
        (0..sdus).for_each(|id| sender.push(Sdu { id, bytes: 1_000 }));
        let pdus = std::iter::from_fn(|| sender.build(room, 0));
        pdus.filter(|pdu| pdu.poll).map(|pdu| pdu.sn).collect()
    }

    #[test]
    fn polls_by_counters_and_when_emptied() {
        // 12 SDUs in PDUs that hold one each.
        assert_eq!(polls(sender(None, None), 12, 1_002), [11]);
        assert_eq!(polls(sender(Some(5), None), 12, 1_002), [4, 9, 11]);
        assert_eq!(polls(sender(None, Some(3_000)), 12, 1_002), [2, 5, 8, 11]);
        // A forced poll restarts both counters.
        assert_eq!(polls(sender(Some(4), Some(3_000)), 12, 1_002), [2, 5, 8, 11]);
        // The window stalls at 512 PDUs.
        assert_eq!(polls(sender(None, None), 600, 1_002), [511]);
    }

    #[test]
    fn concatenates_and_segments_with_12_bit_length_indicators() {
        let mut sender = sender(None, None);
        (0..3).for_each(|id| sender.push(Sdu { id, bytes: 100 }));
        // 2 fixed, 3 for two length indicators, 295 bytes of data.
        let first = sender.build(300, 0).unwrap();
        assert_eq!((first.size_bytes, first.field_bytes, first.elements.len()), (300, 295, 3));
        assert!(!first.poll && !first.elements[2].ends);
        let rest = sender.build(300, 0).unwrap();
        assert_eq!((rest.size_bytes, rest.poll, sender.queue_bytes()), (7, true, 0));
    }

    #[test]
    fn retransmits_what_is_nacked_in_segments_that_fit() {
        let mut sender = sender(None, None);
        (0..3).for_each(|id| sender.push(Sdu { id, bytes: 100 }));
        (0..3).for_each(|_| drop(sender.build(102, 0).unwrap()));
        let nacks = vec![Nack { sn: 1, part: None }];
        sender.receive_status(&StatusPdu { ack_sn: 3, nacks, format: RlcFormat::Lte });
        assert_eq!((sender.queue_bytes(), sender.vt_a()), (100, 1));
        let head = sender.build(64, 0).unwrap();
        assert_eq!((head.sn, head.part, head.size_bytes, head.poll), (1, (0, 60), 64, false));
        let tail = sender.build(64, 0).unwrap();
        assert_eq!((tail.part, tail.size_bytes, tail.poll), ((60, 100), 44, true));
        assert!(head.is_segment() && tail.is_segment());
    }

    #[test]
    fn asks_again_when_no_status_comes() {
        let mut sender = sender(None, None);
        sender.push(Sdu { id: 0, bytes: 100 });
        assert!(sender.build(200, 0).unwrap().poll);
        sender.tick(59);
        assert_eq!(sender.queue_bytes(), 0);
        sender.tick(60);
        assert_eq!(sender.queue_bytes(), 100);
        let again = sender.build(200, 60).unwrap();
        assert!(again.poll && again.sn == 0 && !again.is_segment());
    }

    #[test]
    fn segments_of_nr_share_their_sdus_number() {
        let config = RlcConfig { nr_sn_bits: Some(12), ..RlcConfig::default() };
        let mut sender = AmSender::new(RlcConfig { poll_pdu: None, poll_byte: None, ..config });
        (0..2).for_each(|id| sender.push(Sdu { id, bytes: 100 }));
        let pdus: Vec<AmdPdu> = std::iter::from_fn(|| sender.build(62, 0)).collect();
        let shown: Vec<_> =
            pdus.iter().map(|pdu| (pdu.sn, pdu.part, pdu.size_bytes, pdu.poll)).collect();
        // 2 bytes of header, 4 with the offset; no concatenation.
        let expected = [
            (0, (0, 60), 62, false),
            (0, (60, 100), 44, false),
            (1, (0, 60), 62, false),
            (1, (60, 100), 44, true),
        ];
        assert_eq!(shown, expected);
        assert!(pdus.iter().all(|pdu| !pdu.is_resegment()));
    }

    #[test]
    fn what_was_not_sent_is_not_sent_again() {
        let config = RlcConfig { nr_sn_bits: Some(12), ..RlcConfig::default() };
        let mut sender = AmSender::new(config);
        sender.push(Sdu { id: 0, bytes: 100 });
        assert!(sender.build(62, 0).is_some());
        assert_eq!(sender.unacknowledged_from(0).collect::<Vec<_>>(), [(0, 60)]);
        let format = RlcFormat::Nr { sn_bits: 12 };
        let nacks = vec![Nack { sn: 0, part: Some((40, 100)) }];
        sender.receive_status(&StatusPdu { ack_sn: 0, nacks, format });
        assert_eq!((sender.retx_bytes(), sender.new_bytes()), (20, 40));
        let again = sender.build(62, 1).unwrap();
        assert_eq!((again.part, again.is_resegment()), ((40, 60), true));
    }
}
