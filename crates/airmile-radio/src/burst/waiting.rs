//! Records of TTIs that are not closed yet.
//!
//! Most records come in the order of their TTIs, and so those of a TTI adjoin: grants and PDUs have
//! a queue each. A record that comes later than one of a later TTI, and what few TTIs have, waits
//! in a slot of its TTI.

use airmile_model::window::{SegmentTti, Slot, TtiWindow};
use airmile_model::{Grant, RlcPdu, TtiIndex};
use smallvec::SmallVec;

use super::grants::GrantLite;
use super::poll_model::PduLite;
use crate::fifo::Fifo;
use crate::reorder::END;

/// A record with its TTI.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Timed<T> {
    pub tti: i64,
    pub of: T,
}

/// What few TTIs have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TtiExtras {
    pub has_status: bool,
    /// Length of a hole that begins here; 0: none.
    pub hole_ttis: i64,
}

/// Takes the records of TTIs, in order.
pub(super) trait TtiSink {
    /// Grants and PDUs of a TTI in order of arrival.
    fn take_tti(
        &mut self,
        at: SegmentTti,
        grants: &mut [Timed<GrantLite>],
        pdus: &[Timed<PduLite>],
        extras: TtiExtras,
    );
}

/// Records of a TTI that are not in the queues.
#[derive(Debug, Clone, Default)]
struct ApartRecords {
    grants: SmallVec<[Timed<GrantLite>; 1]>,
    pdus: SmallVec<[Timed<PduLite>; 2]>,
    extras: TtiExtras,
}

impl Slot for ApartRecords {
    fn clear(&mut self) {
        // Lists that do not fit in a slot are freed.
        *self = Self::default();
    }
}

/// The records of waiting TTIs.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingTtis {
    /// Timing segment of the queues: the newest.
    segment: u32,
    grants: Fifo<Timed<GrantLite>>,
    pdus: Fifo<Timed<PduLite>>,
    /// Of a TTI that has records here and in a queue, those in the queue came first.
    apart: TtiWindow<ApartRecords>,
}

impl WaitingTtis {
    #[inline]
    pub(super) fn push_grant(&mut self, at: SegmentTti, grant: &Grant) {
        if self.is_of_queues(at.0) && is_next(&self.grants, at.1) {
            self.grants.push(Timed { tti: at.1.0, of: GrantLite::new(grant) });
        } else {
            let grant = Timed { tti: at.1.0, of: GrantLite::new(grant) };
            self.apart.at(at).grants.push(grant);
        }
    }

    #[inline]
    pub(super) fn push_pdu(&mut self, at: SegmentTti, pdu: &RlcPdu) {
        if self.is_of_queues(at.0) && is_next(&self.pdus, at.1) {
            self.pdus.push(Timed { tti: at.1.0, of: PduLite::new(pdu) });
        } else {
            let pdu = Timed { tti: at.1.0, of: PduLite::new(pdu) };
            self.apart.at(at).pdus.push(pdu);
        }
    }

    /// Takes a STATUS PDU.
    pub(super) fn push_status(&mut self, at: SegmentTti) {
        self.is_of_queues(at.0);
        self.apart.at(at).extras.has_status = true;
    }

    /// Takes a hole in the log that begins at a TTI.
    pub(super) fn push_hole(&mut self, at: SegmentTti, n_tti: i64) {
        self.is_of_queues(at.0);
        let hole_ttis = &mut self.apart.at(at).extras.hole_ttis;
        *hole_ttis = n_tti.max(*hole_ttis);
    }

    /// Whether a timing segment is that of the queues; a new one is from now on.
    #[inline]
    fn is_of_queues(&mut self, segment: u32) -> bool {
        if segment > self.segment {
            self.put_aside();
            self.segment = segment;
        }
        segment == self.segment
    }

    /// Moves the records of the queues to slots.
    #[cold]
    fn put_aside(&mut self) {
        for grants in self.grants.as_slice().chunk_by(|a, b| a.tti == b.tti) {
            let slot = self.apart.at((self.segment, TtiIndex(grants[0].tti)));
            slot.grants.insert_many(0, grants.iter().cloned());
        }
        for pdus in self.pdus.as_slice().chunk_by(|a, b| a.tti == b.tti) {
            let slot = self.apart.at((self.segment, TtiIndex(pdus[0].tti)));
            slot.pdus.insert_many(0, pdus.iter().cloned());
        }
        self.grants.pop(usize::MAX);
        self.pdus.pop(usize::MAX);
    }

    /// The first grant to come of a TTI, of those that a condition holds for.
    pub(super) fn find_grant(
        &mut self,
        at: SegmentTti,
        is: impl Fn(&GrantLite) -> bool,
    ) -> Option<&mut GrantLite> {
        let queue = self.grants.as_mut_slice();
        let first = queue.partition_point(|grant| (self.segment, TtiIndex(grant.tti)) < at);
        let n_grants = if at.0 == self.segment { n_of(&queue[first..], at.1.0) } else { 0 };
        let mut of_tti = queue[first..][..n_grants].iter();
        let found = match of_tti.position(|grant| is(&grant.of)) {
            Some(i) => queue.get_mut(first + i),
            None => self.apart.at(at).grants.iter_mut().find(|grant| is(&grant.of)),
        };
        found.map(|grant| &mut grant.of)
    }

    /// Removes the TTIs before a mark, and passes them on in order.
    pub(super) fn take_before(&mut self, mark: SegmentTti, sink: &mut impl TtiSink) {
        while let Some(at) = self.apart.first().filter(|at| *at < mark) {
            self.take_queued(at, sink);
            self.take_apart(at, sink);
        }
        self.take_queued(mark, sink);
    }

    /// Passes on the TTIs of the queues before a mark.
    fn take_queued(&mut self, mark: SegmentTti, sink: &mut impl TtiSink) {
        let segment = self.segment;
        if mark.0 < segment {
            return;
        }
        let is_before = |tti: i64| tti < mark.1.0 || mark.0 > segment;
        let (mut grants, mut pdus) = (self.grants.as_mut_slice(), self.pdus.as_slice());
        let waiting = (grants.len(), pdus.len());
        loop {
            let tti = match (grants.first(), pdus.first()) {
                (Some(grant), Some(pdu)) => grant.tti.min(pdu.tti),
                (Some(grant), None) => grant.tti,
                (None, Some(pdu)) => pdu.tti,
                (None, None) => break,
            };
            if !is_before(tti) {
                break;
            }
            let n_grants = n_of(grants, tti);
            let (now, after) = std::mem::take(&mut grants).split_at_mut(n_grants);
            let (pdus_now, pdus_after) = pdus.split_at(n_of(pdus, tti));
            (grants, pdus) = (after, pdus_after);
            sink.take_tti((segment, TtiIndex(tti)), now, pdus_now, TtiExtras::default());
        }
        let waiting = (waiting.0 - grants.len(), waiting.1 - pdus.len());
        self.grants.pop(waiting.0);
        self.pdus.pop(waiting.1);
    }

    /// Passes on the first TTI that has a slot; earlier ones of the queues are taken.
    #[cold]
    fn take_apart(&mut self, at: SegmentTti, sink: &mut impl TtiSink) {
        let Some((_, slot)) = self.apart.first_before(END) else { return };
        if at.0 == self.segment {
            let grants = of_first(self.grants.as_slice(), at.1.0);
            let pdus = of_first(self.pdus.as_slice(), at.1.0);
            slot.grants.insert_many(0, grants.iter().cloned());
            slot.pdus.insert_many(0, pdus.iter().cloned());
            let (n_grants, n_pdus) = (grants.len(), pdus.len());
            self.grants.pop(n_grants);
            self.pdus.pop(n_pdus);
        }
        sink.take_tti(at, &mut slot.grants, &slot.pdus, slot.extras);
        self.apart.remove_first();
    }
}

/// Whether a record of a TTI can be the last of a queue.
#[inline]
fn is_next<T>(queue: &Fifo<Timed<T>>, tti: TtiIndex) -> bool {
    queue.last().is_none_or(|last| last.tti <= tti.0)
}

/// Number of the first records that are of a TTI.
#[inline]
fn n_of<T>(records: &[Timed<T>], tti: i64) -> usize {
    records.iter().take_while(|record| record.tti == tti).count()
}

fn of_first<T>(records: &[Timed<T>], tti: i64) -> &[Timed<T>] {
    &records[..n_of(records, tti)]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use airmile_model::{Direction, Position, RlcMode};
    use proptest::prelude::*;

    use super::*;

    /// What is known of a TTI: grants and PDUs by number, a STATUS PDU, a hole.
    type Contents = (Vec<u32>, Vec<u32>, bool, i64);

    #[derive(Default)]
    struct Taken(Vec<(SegmentTti, Contents)>);

    impl TtiSink for Taken {
        fn take_tti(
            &mut self,
            at: SegmentTti,
            grants: &mut [Timed<GrantLite>],
            pdus: &[Timed<PduLite>],
            extras: TtiExtras,
        ) {
            let grants = grants.iter().map(|grant| grant.of.tbs_bytes).collect();
            let pdus = pdus.iter().map(|pdu| pdu.of.size_bytes).collect();
            self.0.push((at, (grants, pdus, extras.has_status, extras.hole_ttis)));
        }
    }

    fn grant(number: u32) -> Grant {
        Grant { tbs_bytes: Some(number), ..Grant::new(Position::lte(0), Direction::Dl, 10) }
    }

    fn pdu(number: u32) -> RlcPdu {
        RlcPdu {
            at: None,
            position: Position::lte(0),
            dir: Direction::Dl,
            bearer: 3,
            signalling: None,
            mode: RlcMode::Am,
            sn: None,
            size_bytes: number,
            poll: None,
            resegment: false,
            status: false,
        }
    }

    fn push(waiting: &mut WaitingTtis, expected: &mut Contents, at: SegmentTti, what: u32, n: u32) {
        match what {
            0 => {
                waiting.push_status(at);
                expected.2 = true;
            }
            1 => {
                waiting.push_hole(at, n.into());
                expected.3 = n.into();
            }
            2..7 => {
                waiting.push_grant(at, &grant(n));
                expected.0.push(n);
            }
            _ => {
                waiting.push_pdu(at, &pdu(n));
                expected.1.push(n);
            }
        }
    }

    proptest! {
        /// TTIs advance, some records are late, and segments begin: each TTI is taken once, in
        /// order, with its records in order of arrival.
        #[test]
        fn ttis_are_taken_as_from_a_map(
            steps in prop::collection::vec((0_i64..3, 0_i64..60, 0_u32..12, 0_u32..50), 1..300),
        ) {
            let (mut waiting, mut taken) = (WaitingTtis::default(), Taken::default());
            let mut map: BTreeMap<SegmentTti, Contents> = BTreeMap::new();
            let mut expected = Vec::new();
            let (mut segment, mut tti, mut mark) = (0_u32, 100_i64, (0, TtiIndex(0)));
            for (n, (ahead, late, what, event)) in (1..).zip(steps) {
                tti += ahead;
                match event {
                    0 => (segment, tti) = (segment + 1, tti - 20),
                    1..5 => {
                        mark = mark.max((segment, TtiIndex(tti - 10)));
                        let rest = map.split_off(&mark);
                        expected.extend(std::mem::replace(&mut map, rest));
                        waiting.take_before(mark, &mut taken);
                    }
                    _ => {}
                }
                let late = if late < 40 { 0 } else { late - 40 };
                let of = segment - u32::from(late > 15).min(segment);
                let at = (of, TtiIndex(tti - late));
                if at >= mark {
                    push(&mut waiting, map.entry(at).or_default(), at, what, n);
                }
            }
            waiting.take_before(END, &mut taken);
            expected.extend(map);
            prop_assert_eq!(taken.0, expected);
        }

        #[test]
        fn the_first_grant_of_a_tti_is_found(
            ttis in prop::collection::vec(0_i64..6, 1..30),
            wanted in 0_i64..6,
        ) {
            let mut waiting = WaitingTtis::default();
            for (n, tti) in (0..).zip(&ttis) {
                waiting.push_grant((1, TtiIndex(*tti)), &grant(n));
            }
            let found = waiting.find_grant((1, TtiIndex(wanted)), |grant| grant.tbs_bytes % 2 == 1);
            let of_tti = |(n, tti): &(u32, &i64)| **tti == wanted && n % 2 == 1;
            let expected = (0..).zip(&ttis).find(of_tti).map(|(n, _)| n);
            prop_assert_eq!(found.map(|grant| grant.tbs_bytes), expected);
        }
    }
}
