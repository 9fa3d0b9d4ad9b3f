//! RLC acknowledged mode (TS 36.322; for NR TS 38.322): sender, receiver and their PDUs.
//! Unacknowledged mode is the same without retransmissions, polls and STATUS PDUs.
//!
//! Sequence numbers are unwrapped internally; [`RlcFormat::wire_sn`] returns the bits sent
//! over the air. PDUs refer to the SDUs in them by identity, not by content.

mod format;
mod receiver;
mod sender;

use std::sync::Arc;

pub(crate) use format::RlcFormat;
pub(crate) use receiver::AmReceiver;
pub(crate) use sender::AmSender;

/// A service data unit: an IP packet with its PDCP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sdu {
    /// The owner's identifier for it.
    pub id: u64,
    /// Bytes.
    pub bytes: u32,
}

/// A part of an SDU in a PDU: a data field element (TS 36.322, 6.2.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) sdu: Sdu,
    pub(crate) bytes: u32,
    /// Whether the SDU ends here.
    pub(crate) ends: bool,
}

/// An AMD PDU, or a segment of one.
#[derive(Debug, Clone)]
pub(crate) struct AmdPdu {
    pub(crate) sn: u64,
    /// Elements of the whole PDU.
    pub(crate) elements: Arc<[Element]>,
    /// Bytes of the whole PDU's data field.
    pub(crate) field_bytes: u32,
    /// The present part of the data field: start and end (exclusive).
    pub(crate) part: (u32, u32),
    /// Size in bytes with the header.
    pub(crate) size_bytes: u32,
    pub(crate) poll: bool,
    /// It is a retransmission.
    pub(crate) retx: bool,
    pub(crate) format: RlcFormat,
}

impl AmdPdu {
    /// Whether it is a part of the data field.
    pub(crate) fn is_segment(&self) -> bool {
        self.part != (0, self.field_bytes)
    }

    /// Whether it is a part of a PDU that was sent before (resegmentation flag of TS
    /// 36.322).
    pub(crate) fn is_resegment(&self) -> bool {
        self.is_segment() && self.retx
    }
}

/// A missing PDU, or the missing part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nack {
    pub(crate) sn: u64,
    pub(crate) part: Option<(u32, u32)>,
}

/// A STATUS PDU (TS 36.322, 6.2.1.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusPdu {
    /// All lower SNs are received except the NACKs.
    pub(crate) ack_sn: u64,
    pub(crate) nacks: Vec<Nack>,
    pub(crate) format: RlcFormat,
}

impl StatusPdu {
    /// Size in bytes with the header.
    pub(crate) fn size_bytes(&self) -> u32 {
        let (fixed, nack, offsets) = self.format.status_bits();
        let nack_bits = |one: &Nack| if one.part.is_some() { nack + offsets } else { nack };
        (fixed + self.nacks.iter().map(nack_bits).sum::<u32>()).div_ceil(8)
    }
}

/// A PDU of either kind.
#[derive(Debug, Clone)]
pub(crate) enum Pdu {
    Data(AmdPdu),
    Status(StatusPdu),
}

impl Pdu {
    pub(crate) fn size_bytes(&self) -> u32 {
        match self {
            Self::Data(pdu) => pdu.size_bytes,
            Self::Status(status) => status.size_bytes(),
        }
    }
}

/// Bytes sent at least once of undelivered SDUs.
///
/// A STATUS PDU acknowledges a PDU that waits for a missing one: it has then left the
/// sender, and only the receiver holds it. Until the STATUS PDU arrives, both do.
pub(crate) fn in_transit_bytes(sender: &AmSender, receiver: &AmReceiver) -> u64 {
    let missing = sender.unacknowledged_from(receiver.vr_r()).filter(|&(sn, _)| !receiver.has(sn));
    receiver.held_bytes() + missing.map(|(_, bytes)| u64::from(bytes)).sum::<u64>()
}

/// The ends of a bearer on one side.
#[derive(Debug, Clone)]
pub(crate) struct RlcEnd {
    pub(crate) sender: AmSender,
    pub(crate) receiver: AmReceiver,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::RlcConfig;

    #[test]
    fn an_acknowledged_pdu_behind_a_missing_one_is_in_transit() {
        let config = RlcConfig { t_reordering_ms: 10, ..RlcConfig::default() };
        let (mut sender, mut receiver) = (AmSender::new(config.clone()), AmReceiver::new(config));
        (0..4).for_each(|id| sender.push(Sdu { id, bytes: 100 }));
        let pdus: Vec<_> = std::iter::from_fn(|| sender.build(102, 0)).collect();
        assert_eq!((pdus.len(), in_transit_bytes(&sender, &receiver)), (4, 400));
        // SN 1 is lost: 0 is delivered, 2 and 3 wait.
        let delivered: Vec<_> =
            [0, 2, 3].iter().flat_map(|&n: &usize| receiver.receive(&pdus[n], 0)).collect();
        assert_eq!((delivered.len(), in_transit_bytes(&sender, &receiver)), (1, 300));
        receiver.tick(10);
        let status = receiver.take_status(100, 10).unwrap();
        assert_eq!(
            status,
            StatusPdu {
                ack_sn: 4,
                nacks: vec![Nack { sn: 1, part: None }],
                format: RlcFormat::Lte
            }
        );
        sender.receive_status(&status);
        assert_eq!(in_transit_bytes(&sender, &receiver), 300);
        // Half of it again: the missing part is still the sender's.
        let head = sender.build(64, 20).unwrap();
        assert!(receiver.receive(&head, 20).is_empty());
        assert_eq!(in_transit_bytes(&sender, &receiver), 300);
        let tail = sender.build(64, 21).unwrap();
        assert_eq!(receiver.receive(&tail, 21).len(), 3);
        assert_eq!(in_transit_bytes(&sender, &receiver), 0);
    }
}
