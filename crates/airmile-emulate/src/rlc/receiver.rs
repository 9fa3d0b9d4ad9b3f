//! The receiving side of an AM RLC entity (TS 36.322, 5.1.3.2 and 5.2.3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use airmile_model::spans::merged;

use super::{AmdPdu, Element, Nack, RlcFormat, Sdu, StatusPdu};
use crate::scenario::RlcConfig;

/// A PDU that has arrived at least in part.
#[derive(Debug, Clone)]
struct Arrived {
    elements: Arc<[Element]>,
    field_bytes: u32,
    /// Received parts, ordered and disjoint.
    parts: Vec<(u32, u32)>,
}

impl Arrived {
    fn add(&mut self, part: (u32, u32)) {
        self.parts.push(part);
        self.parts = merged(std::mem::take(&mut self.parts));
    }

    fn is_whole(&self) -> bool {
        self.parts == [(0, self.field_bytes)]
    }

    /// The parts that are missing, in order.
    fn missing(&self) -> impl Iterator<Item = (u32, u32)> {
        let starts = std::iter::once(0).chain(self.parts.iter().map(|part| part.1));
        let ends = self.parts.iter().map(|part| part.0).chain([self.field_bytes]);
        starts.zip(ends).filter(|(from, to)| from < to)
    }
}

/// The receiver. Its state variables have the standard's names (7.1).
#[derive(Debug, Clone)]
pub(crate) struct AmReceiver {
    config: RlcConfig,
    format: RlcFormat,
    arrived: BTreeMap<u64, Arrived>,
    vr_r: u64,
    vr_ms: u64,
    vr_h: u64,
    vr_x: u64,
    /// TTI at which t-Reordering expires.
    reordering_due: Option<i64>,
    /// First TTI at which t-StatusProhibit allows a STATUS PDU.
    status_allowed: i64,
    status_owed: bool,
    /// In-sequence bytes of an incomplete SDU.
    partial_bytes: u64,
    /// Identity of that SDU.
    partial_of: Option<u64>,
    /// SDUs that t-Reordering has released (UM).
    late: Vec<Sdu>,
    /// SNs of polls waiting for VR(MS) to pass them (5.2.3).
    delayed_polls: BTreeSet<u64>,
}

impl AmReceiver {
    pub(crate) fn new(config: RlcConfig) -> Self {
        Self {
            format: RlcFormat::of_bearer(&config),
            config,
            arrived: BTreeMap::new(),
            vr_r: 0,
            vr_ms: 0,
            vr_h: 0,
            vr_x: 0,
            reordering_due: None,
            status_allowed: i64::MIN,
            status_owed: false,
            partial_bytes: 0,
            partial_of: None,
            late: Vec::new(),
            delayed_polls: BTreeSet::new(),
        }
    }

    /// Processes a PDU; returns the SDUs that are complete and in sequence.
    pub(crate) fn receive(&mut self, pdu: &AmdPdu, tti: i64) -> Vec<Sdu> {
        let x = pdu.sn;
        let known = self.arrived.get(&x).is_some_and(Arrived::is_whole);
        let discarded = x < self.vr_r || x >= self.vr_r + self.format.window() || known;
        if pdu.poll {
            if discarded || x < self.vr_ms {
                self.status_owed = true;
            } else {
                self.delayed_polls.insert(x);
            }
        }
        let mut delivered = Vec::new();
        if !discarded {
            let fresh = || Arrived {
                elements: Arc::clone(&pdu.elements),
                field_bytes: pdu.field_bytes,
                parts: Vec::new(),
            };
            self.arrived.entry(x).or_insert_with(fresh).add(pdu.part);
            self.advance(x, &mut delivered);
            self.keep_reordering(tti);
        }
        self.release_poll();
        delivered
    }

    /// 5.1.3.2.3: moves the state variables after PDU `x` was placed.
    fn advance(&mut self, x: u64, delivered: &mut Vec<Sdu>) {
        self.vr_h = self.vr_h.max(x + 1);
        self.vr_ms = self.first_missing(self.vr_ms);
        while self.arrived.get(&self.vr_r).is_some_and(Arrived::is_whole) {
            if let Some(whole) = self.arrived.remove(&self.vr_r) {
                self.reassemble(&whole.elements, delivered);
            }
            self.vr_r += 1;
        }
        self.vr_ms = self.vr_ms.max(self.vr_r);
    }

    /// The rest of an SDU is discarded if a part was given up.
    fn reassemble(&mut self, elements: &[Element], delivered: &mut Vec<Sdu>) {
        for element in elements {
            if self.partial_of != Some(element.sdu.id) {
                (self.partial_of, self.partial_bytes) = (Some(element.sdu.id), 0);
            }
            self.partial_bytes += u64::from(element.bytes);
            if element.ends {
                if self.partial_bytes == u64::from(element.sdu.bytes) {
                    delivered.push(element.sdu);
                }
                (self.partial_of, self.partial_bytes) = (None, 0);
            }
        }
    }

    /// VR(R): the first missing SN.
    pub(crate) const fn vr_r(&self) -> u64 {
        self.vr_r
    }

    /// Received bytes of undelivered SDUs: below VR(R) those of an incomplete SDU, above it
    /// the PDUs waiting for earlier ones.
    pub(crate) fn held_bytes(&self) -> u64 {
        let whole = self.arrived.values().filter(|arrived| arrived.is_whole());
        self.partial_bytes + whole.map(|arrived| u64::from(arrived.field_bytes)).sum::<u64>()
    }

    /// Whether all of a PDU has arrived.
    pub(crate) fn has(&self, sn: u64) -> bool {
        sn < self.vr_r || self.arrived.get(&sn).is_some_and(Arrived::is_whole)
    }

    fn first_missing(&self, from: u64) -> u64 {
        (from..).find(|&sn| !self.has(sn)).unwrap_or(from)
    }

    fn keep_reordering(&mut self, tti: i64) {
        if self.reordering_due.is_some() && self.vr_x <= self.vr_r {
            self.reordering_due = None;
        }
        if self.reordering_due.is_none() && self.vr_h > self.vr_r {
            self.start_reordering(tti);
        }
    }

    fn start_reordering(&mut self, tti: i64) {
        self.vr_x = self.vr_h;
        self.reordering_due = Some(tti + i64::from(self.config.t_reordering_ms));
    }

    fn release_poll(&mut self) {
        let waiting = self.delayed_polls.split_off(&self.vr_ms);
        self.status_owed |= !self.delayed_polls.is_empty();
        self.delayed_polls = waiting;
    }

    /// Checks whether t-Reordering has expired (5.1.3.2.4).
    pub(crate) fn tick(&mut self, tti: i64) {
        if self.reordering_due.is_none_or(|due| due > tti) {
            return;
        }
        self.reordering_due = None;
        if self.config.unacknowledged {
            self.give_up();
        }
        self.vr_ms = self.first_missing(self.vr_x);
        if self.vr_h > self.vr_ms {
            self.start_reordering(tti);
        }
        self.status_owed = !self.config.unacknowledged;
        self.release_poll();
    }

    /// Skips missing PDUs below VR(X) (TS 36.322, 5.1.2.2.4); SDUs with a missing part are
    /// discarded.
    fn give_up(&mut self) {
        let until = self.first_missing(self.vr_x);
        let mut late = std::mem::take(&mut self.late);
        while self.vr_r < until {
            if let Some(whole) = self.arrived.remove(&self.vr_r).filter(Arrived::is_whole) {
                self.reassemble(&whole.elements, &mut late);
            }
            self.vr_r += 1;
        }
        self.late = late;
    }

    /// SDUs that t-Reordering has released.
    pub(crate) fn take_late(&mut self) -> Vec<Sdu> {
        std::mem::take(&mut self.late)
    }

    /// Size of the STATUS PDU that is due, 0 if none is.
    pub(crate) fn status_bytes(&self, tti: i64) -> u32 {
        if self.status_owed && tti >= self.status_allowed { self.status().size_bytes() } else { 0 }
    }

    /// The STATUS PDU that is due, truncated to fit: ACK_SN is then the first missing SN
    /// without a NACK (5.2.3). `None` if not even that fits.
    pub(crate) fn take_status(&mut self, room: u32, tti: i64) -> Option<StatusPdu> {
        if self.status_bytes(tti) == 0 {
            return None;
        }
        let mut status = self.status();
        while status.size_bytes() > room {
            let last = status.nacks.last()?.sn;
            status.nacks.retain(|nack| nack.sn < last);
            status.ack_sn = last;
        }
        self.status_owed = false;
        self.status_allowed = tti + i64::from(self.config.t_status_prohibit_ms);
        Some(status)
    }

    /// 6.2.1.6: the missing parts below VR(MS).
    fn status(&self) -> StatusPdu {
        let mut nacks = Vec::new();
        for sn in self.vr_r..self.vr_ms {
            match self.arrived.get(&sn) {
                Some(arrived) => {
                    nacks.extend(arrived.missing().map(|part| Nack { sn, part: Some(part) }));
                }
                None => nacks.push(Nack { sn, part: None }),
            }
        }
        StatusPdu { ack_sn: self.vr_ms, nacks, format: self.format }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pdu(sn: u64, poll: bool, part: (u32, u32)) -> AmdPdu {
        let elements = [Element { sdu: Sdu { id: sn, bytes: 100 }, bytes: 100, ends: true }].into();
        AmdPdu {
            sn,
            elements,
            field_bytes: 100,
            part,
            size_bytes: 102,
            poll,
            retx: part != (0, 100),
            format: RlcFormat::Lte,
        }
    }

    fn ids(sdus: &[Sdu]) -> Vec<u64> {
        sdus.iter().map(|sdu| sdu.id).collect()
    }

    #[test]
    fn delivers_in_sequence_and_reports_what_is_missing() {
        let mut receiver = AmReceiver::new(RlcConfig::default());
        assert_eq!(ids(&receiver.receive(&pdu(0, false, (0, 100)), 0)), [0]);
        assert_eq!(ids(&receiver.receive(&pdu(2, true, (0, 100)), 1)).len(), 0);
        // The poll waits for t-Reordering, as HARQ may still bring SN 1.
        assert_eq!(receiver.status_bytes(1), 0);
        receiver.tick(40);
        assert_eq!(receiver.status_bytes(40), 0);
        receiver.tick(41);
        let status = receiver.take_status(100, 41).unwrap();
        assert_eq!(
            status,
            StatusPdu {
                ack_sn: 3,
                nacks: vec![Nack { sn: 1, part: None }],
                format: RlcFormat::Lte
            }
        );
        assert_eq!(status.size_bytes(), 4);
        // Two segments complete it.
        assert_eq!(ids(&receiver.receive(&pdu(1, false, (60, 100)), 50)).len(), 0);
        assert_eq!(receiver.status().nacks, [Nack { sn: 1, part: Some((0, 60)) }]);
        assert_eq!(ids(&receiver.receive(&pdu(1, true, (0, 60)), 51)), [1, 2]);
        // t-StatusProhibit delays the answer.
        assert_eq!(receiver.status_bytes(60), 0);
        assert_eq!(
            receiver.take_status(100, 61),
            Some(StatusPdu { ack_sn: 3, nacks: vec![], format: RlcFormat::Lte })
        );
    }

    #[test]
    fn every_missing_part_is_named_and_a_status_is_cut_to_its_room() {
        let mut receiver = AmReceiver::new(RlcConfig::default());
        for part in [(20, 40), (60, 80)] {
            receiver.receive(&pdu(0, false, part), 0);
        }
        receiver.receive(&pdu(2, false, (0, 100)), 0);
        receiver.receive(&pdu(4, true, (0, 100)), 0);
        // t-Reordering expires for SN 0, restarts for the rest, expires.
        receiver.tick(100);
        receiver.tick(200);
        let part = |from, to| Nack { sn: 0, part: Some((from, to)) };
        let whole = |sn| Nack { sn, part: None };
        let parts = [part(0, 20), part(40, 60), part(80, 100)];
        let all = [&parts[..], &[whole(1), whole(3)]].concat();
        assert_eq!(receiver.status(), StatusPdu { ack_sn: 5, nacks: all, format: RlcFormat::Lte });
        let cut = |room| receiver.clone().take_status(room, 200);
        // 15 bits, three NACKs of 42 and one of 12.
        let three = [&parts[..], &[whole(1)]].concat();
        assert_eq!(cut(20), Some(StatusPdu { ack_sn: 3, nacks: three, format: RlcFormat::Lte }));
        // A PDU is reported with all its missing parts, or not at all.
        assert_eq!(cut(17), Some(StatusPdu { ack_sn: 0, nacks: vec![], format: RlcFormat::Lte }));
        assert_eq!(cut(1), None);
    }

    #[test]
    fn unacknowledged_goes_on_without_what_is_missing() {
        let config = RlcConfig { unacknowledged: true, ..RlcConfig::default() };
        let mut receiver = AmReceiver::new(config);
        assert_eq!(ids(&receiver.receive(&pdu(0, false, (0, 100)), 0)), [0]);
        // SN 1 is lost; SN 2 has the end of an SDU that began in it, and one more.
        let whole = Element { sdu: Sdu { id: 9, bytes: 60 }, bytes: 60, ends: true };
        let tail = Element { sdu: Sdu { id: 8, bytes: 90 }, bytes: 40, ends: true };
        let second = AmdPdu { elements: [tail, whole].into(), ..pdu(2, false, (0, 100)) };
        assert_eq!(ids(&receiver.receive(&second, 1)).len(), 0);
        receiver.tick(40);
        assert_eq!(ids(&receiver.take_late()).len(), 0);
        receiver.tick(41);
        assert_eq!(ids(&receiver.take_late()), [9]);
        assert_eq!(receiver.status_bytes(41), 0);
        assert_eq!(ids(&receiver.receive(&pdu(3, false, (0, 100)), 42)), [3]);
    }

    #[test]
    fn a_later_poll_does_not_hide_one_that_waits() {
        let mut receiver = AmReceiver::new(RlcConfig::default());
        receiver.receive(&pdu(1, true, (0, 100)), 0);
        receiver.receive(&pdu(3, true, (0, 100)), 0);
        assert_eq!(receiver.status_bytes(0), 0);
        // VR(MS) passes the first poll, the second still waits.
        receiver.receive(&pdu(0, false, (0, 100)), 1);
        assert_eq!(
            receiver.take_status(100, 1),
            Some(StatusPdu { ack_sn: 2, nacks: vec![], format: RlcFormat::Lte })
        );
        assert_eq!(receiver.delayed_polls, [3].into());
    }

    #[test]
    fn answers_a_poll_in_sequence_at_once_and_ignores_duplicates() {
        let mut receiver = AmReceiver::new(RlcConfig::default());
        assert_eq!(ids(&receiver.receive(&pdu(0, true, (0, 100)), 0)), [0]);
        assert_eq!(receiver.take_status(100, 0).unwrap().size_bytes(), 2);
        assert_eq!(ids(&receiver.receive(&pdu(0, true, (0, 100)), 30)).len(), 0);
        assert_eq!(receiver.status_bytes(30), 2);
    }
}
