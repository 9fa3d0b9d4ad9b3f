//! RLC AM PDU headers (TS 36.322, 6.2.1.3 to 6.2.1.6).

use serde::Serialize;

/// The header of an RLC AM PDU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RlcHeader {
    /// A data PDU or segment of one.
    Data {
        /// Sequence number.
        sn: u32,
        /// RF: true for a segment of a PDU sent before.
        resegment: bool,
        /// P: requests a STATUS PDU from the receiver.
        poll: bool,
        /// FI: bit 1 set, the first byte does not begin an SDU; bit 0 set, the
        /// last byte does not end one.
        framing: u8,
        /// E: length indicators follow.
        extension: bool,
        /// LSF of a segment: whether it ends the PDU; `None` if it is not one
        /// or the bytes were not logged.
        last_segment: Option<bool>,
        /// SO of a segment: its offset in the PDU's data in bytes.
        segment_offset_bytes: Option<u16>,
        /// Length indicators in bytes, as far as they were logged.
        length_indicators_bytes: Vec<u16>,
    },
    /// A STATUS PDU.
    Status {
        /// The sequence number up to which all but `nacks` were received.
        ack_sn: u32,
        /// PDUs reported lost, as far as they were logged.
        nacks: Vec<Nack>,
        /// Whether the list was logged to its end.
        complete: bool,
    },
    /// A control PDU of a type reserved by TS 36.322.
    Control {
        /// CPT, 1 to 7.
        control_type: u8,
    },
}

/// A loss reported by a STATUS PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Nack {
    /// Sequence number.
    pub sn: u32,
    /// The missing part: first and last byte (`0x7fff`, `0xffff` with long
    /// sequence numbers: to the end); `None` for the whole PDU.
    pub segment: Option<(u16, u16)>,
}

impl RlcHeader {
    /// Parses the first bytes of a PDU; `sn_bits` is 10 or 16. `None` if the sequence
    /// number was not logged completely.
    #[must_use]
    pub fn parse(bytes: &[u8], sn_bits: u8) -> Option<Self> {
        let mut bits = Bits { bytes, at: 0 };
        let long = sn_bits == 16;
        let sn_bits = if long { 16 } else { 10 };
        let offset_bits = if long { 16 } else { 15 };
        if bits.take(1)? == 0 {
            return match bits.take(3)? {
                0 => status(bits, sn_bits, offset_bits),
                other => Some(Self::Control { control_type: other as u8 }),
            };
        }
        let resegment = bits.take(1)? == 1;
        let poll = bits.take(1)? == 1;
        let framing = bits.take(2)? as u8;
        let extension = bits.take(1)? == 1;
        // With a long SN two bits fill the first byte: LSF (of a segment) and R1.
        let mut last_segment = if long { Some(bits.take(2)? & 2 != 0) } else { None };
        let sn = bits.take(sn_bits)?;
        let mut segment_offset_bytes = None;
        if resegment {
            if !long {
                last_segment = bits.take(1).map(|bit| bit == 1);
            }
            segment_offset_bytes = bits.take(offset_bits).map(|offset| offset as u16);
        } else {
            last_segment = None;
        }
        let mut length_indicators_bytes = Vec::new();
        let mut more = extension && (!resegment || segment_offset_bytes.is_some());
        while more {
            let (Some(next), Some(length)) = (bits.take(1), bits.take(11)) else { break };
            length_indicators_bytes.push(length as u16);
            more = next == 1;
        }
        Some(Self::Data {
            sn,
            resegment,
            poll,
            framing,
            extension,
            last_segment,
            segment_offset_bytes,
            length_indicators_bytes,
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn emit(&self, sn_bits: u8) -> Vec<u8> {
        let long = sn_bits == 16;
        let sn_bits = if long { 16 } else { 10 };
        let offset_bits = if long { 16 } else { 15 };
        let mut out = BitWriter::default();
        match self {
            Self::Data {
                sn,
                resegment,
                poll,
                framing,
                extension,
                last_segment,
                segment_offset_bytes,
                length_indicators_bytes,
            } => {
                let last = u32::from(last_segment.unwrap_or(false));
                out.put(1, 1).put(u32::from(*resegment), 1).put(u32::from(*poll), 1);
                out.put(u32::from(*framing), 2).put(u32::from(*extension), 1);
                if long {
                    out.put(last << 1, 2);
                }
                out.put(*sn, sn_bits);
                if *resegment {
                    if !long {
                        out.put(last, 1);
                    }
                    out.put(u32::from(segment_offset_bytes.unwrap_or(0)), offset_bits);
                }
                let count = length_indicators_bytes.len();
                for (i, &length) in length_indicators_bytes.iter().enumerate() {
                    out.put(u32::from(i + 1 < count), 1).put(u32::from(length), 11);
                }
            }
            Self::Status { ack_sn, nacks, .. } => {
                // After ACK_SN and each NACK_SN stands E1, whether another NACK_SN
                // follows; a NACK_SN also has E2, whether SOstart and SOend do.
                out.put(0, 4).put(*ack_sn, sn_bits).put(u32::from(!nacks.is_empty()), 1);
                for (i, nack) in nacks.iter().enumerate() {
                    out.put(nack.sn, sn_bits).put(u32::from(i + 1 < nacks.len()), 1);
                    out.put(u32::from(nack.segment.is_some()), 1);
                    if let Some((start, end)) = nack.segment {
                        out.put(start.into(), offset_bits).put(end.into(), offset_bits);
                    }
                }
            }
            Self::Control { control_type } => {
                out.put(0, 1).put(u32::from(*control_type), 3);
            }
        }
        out.bytes
    }
}

fn status(mut bits: Bits<'_>, sn_bits: u32, offset_bits: u32) -> Option<RlcHeader> {
    let ack_sn = bits.take(sn_bits)?;
    let mut nacks = Vec::new();
    let mut more = bits.take(1);
    while more == Some(1) {
        let (Some(sn), Some(e1), Some(e2)) = (bits.take(sn_bits), bits.take(1), bits.take(1))
        else {
            more = None;
            break;
        };
        let mut segment = None;
        if e2 == 1 {
            let (Some(start), Some(end)) = (bits.take(offset_bits), bits.take(offset_bits)) else {
                more = None;
                break;
            };
            segment = Some((start as u16, end as u16));
        }
        nacks.push(Nack { sn, segment });
        more = Some(e1);
    }
    Some(RlcHeader::Status { ack_sn, nacks, complete: more == Some(0) })
}

/// Reads bits, most significant first (TS 36.322, 6.1).
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// The next `count` bits, at most 16.
    fn take(&mut self, count: u32) -> Option<u32> {
        let mut value = 0;
        for bit in self.at..self.at + count as usize {
            value = value << 1 | u32::from(self.bytes.get(bit / 8)? >> (7 - bit % 8) & 1);
        }
        self.at += count as usize;
        Some(value)
    }
}

/// Writes bits, most significant first, filling the last byte with zeros.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    used: usize,
}

impl BitWriter {
    fn put(&mut self, value: u32, count: u32) -> &mut Self {
        for i in (0..count).rev() {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> i & 1) as u8) << (7 - self.used % 8);
            }
            self.used += 1;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn data_and_status_bit_by_bit() {
        // D/C 1, RF 0, P 1, FI 10, E 0, SN 10_0010_1100.
        let bytes = [0b1011_0010, 0b0010_1100];
        let Some(RlcHeader::Data { sn, poll, resegment, framing, .. }) =
            RlcHeader::parse(&bytes, 10)
        else {
            panic!("not data");
        };
        assert_eq!((sn, poll, resegment, framing), (556, true, false, 2));
        // D/C 0, CPT 000, ACK_SN 10_0000_0101, E1 0, filling 0.
        let status = RlcHeader::Status { ack_sn: 517, nacks: vec![], complete: true };
        assert_eq!(RlcHeader::parse(&[0b0000_1000, 0b0001_0100], 10), Some(status));
    }

    fn header() -> impl Strategy<Value = (RlcHeader, u8)> {
        let sn_bits = prop_oneof![Just(10u8), Just(16)];
        sn_bits.prop_flat_map(|sn_bits| {
            let sn = 0u32..1 << sn_bits;
            let offset = 0u16..if sn_bits == 16 { 0xffff } else { 0x7fff };
            let segment = prop::option::of((any::<bool>(), offset.clone()));
            let lengths = prop::collection::vec(0u16..2048, 0..4);
            let data = (sn.clone(), any::<bool>(), 0u8..4, segment, lengths).prop_map(
                |(sn, poll, framing, segment, lengths)| RlcHeader::Data {
                    sn,
                    resegment: segment.is_some(),
                    poll,
                    framing,
                    extension: !lengths.is_empty(),
                    last_segment: segment.map(|(last, _)| last),
                    segment_offset_bytes: segment.map(|(_, offset)| offset),
                    length_indicators_bytes: lengths,
                },
            );
            let nack = (sn.clone(), prop::option::of((offset.clone(), offset)))
                .prop_map(|(sn, segment)| Nack { sn, segment });
            let status = (sn, prop::collection::vec(nack, 0..6))
                .prop_map(|(ack_sn, nacks)| RlcHeader::Status { ack_sn, nacks, complete: true });
            let control = (1u8..8).prop_map(|control_type| RlcHeader::Control { control_type });
            (prop_oneof![data, status, control], Just(sn_bits))
        })
    }

    proptest! {
        #[test]
        fn headers_both_ways((header, sn_bits) in header()) {
            prop_assert_eq!(RlcHeader::parse(&header.emit(sn_bits), sn_bits), Some(header));
        }

        #[test]
        fn no_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), sn_bits: u8) {
            let _ = RlcHeader::parse(&bytes, sn_bits);
        }
    }
}
