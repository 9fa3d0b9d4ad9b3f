//! 0xB857, NR5G L2 DL Data PDU, version 6: the MAC subheaders and RLC headers of each
//! downlink transport block of NR. One public source describes it, and no sample was
//! available: a reader takes it only on request
//! ([`LogReader::experimental`](crate::diag::LogReader::experimental)), and a message is
//! read only if its parts end with the payload, its slots exist, no block has more than its
//! size, and each data subheader belongs to a bearer that the message lists.
//!
//! u32 version, u32 blocks, u16 last time, u8 bearers, 1 byte. Bearer of 28 bytes: u8
//! LCID; from bit 8 on the PDCP SN length 2 bits, kind 3 bits (1 SRB, 2 DRB), RLC index 2
//! bits, RLC SN length 2 bits, RLC mode 2 bits (1 AM); u32 each of the PDCP counters
//! RX_NEXT and the next to deliver, and of the RLC counters RX_Next,
//! RX_Next_Status_Trigger, RX_Highest_Status, RX_Next_Highest. Block: u32 size in bytes,
//! u16 slot, u16 frame, u16 subheaders, u16 carrier, u32 logged subheaders; each of these
//! has 12 bytes: the MAC subheader (TS 38.321, 6.1.2), then the RLC header (TS 38.322,
//! 6.2.2). The coding of SN lengths is unknown, so sequence numbers are not read.

use serde::Serialize;

use super::shared::hex;
use crate::diag::bits::{Cursor, Field, Part, Short, Writer, bits_at, u8_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// Downlink transport blocks of NR with their subheaders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrDlData {
    /// Time of the last block, as stored.
    pub last_time: u16,
    /// The logical channels.
    pub bearers: Vec<NrRlcBearer>,
    /// The blocks.
    pub blocks: Vec<NrDlDataBlock>,
}

/// A logical channel with its RLC entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NrRlcBearer {
    /// Logical channel.
    pub lcid: u8,
    /// Length of PDCP's sequence numbers, as stored.
    pub pdcp_sn_code: u8,
    /// 1 signalling, 2 data.
    pub kind: u8,
    /// RLC index.
    pub rlc_index: u8,
    /// Length of RLC's sequence numbers, as stored.
    pub rlc_sn_code: u8,
    /// 1 is AM.
    pub rlc_mode: u8,
    /// Two counters of PDCP and four of RLC.
    pub counters: [u32; 6],
}

/// A downlink transport block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrDlDataBlock {
    /// Size in bytes.
    pub tbs_bytes: u32,
    /// Slot in the frame.
    pub slot: u16,
    /// Frame, 0 to 1023.
    pub frame: u16,
    /// Subheaders in the block.
    pub subheaders: u16,
    /// Carrier.
    pub carrier: u16,
    /// The logged subheaders.
    pub logged: Vec<NrSubPdu>,
}

/// The beginning of a MAC subPDU: its subheader and what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NrSubPdu(#[serde(serialize_with = "hex")] pub [u8; LOGGED_LEN]);

/// The RLC header of a PDU, without its sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NrRlcHead {
    /// A control PDU.
    Control,
    /// A data PDU with its poll bit.
    Data {
        /// Poll bit.
        poll: bool,
    },
}

impl NrRlcBearer {
    /// Whether it carries signalling.
    #[must_use]
    pub const fn is_signalling(&self) -> bool {
        self.kind == 1
    }

    /// Whether its RLC entity is in acknowledged mode.
    #[must_use]
    pub const fn is_am(&self) -> bool {
        self.rlc_mode == 1
    }
}

impl NrSubPdu {
    /// Logical channel or kind of control element.
    #[must_use]
    pub const fn lcid(&self) -> u8 {
        self.0[0] & 63
    }

    /// Whether it is an SDU of a logical channel (TS 38.321, table 6.2.1-1).
    #[must_use]
    pub const fn is_sdu(&self) -> bool {
        matches!(self.lcid(), 1..=32)
    }

    const fn is_padding(&self) -> bool {
        self.lcid() == 63
    }

    /// Bytes of the subheader and of what it announces; `None` for control elements whose
    /// length is not in their subheader and for padding.
    #[must_use]
    pub fn length(&self) -> Option<(u32, u32)> {
        match self.lcid() {
            // Fixed control elements (TS 38.321, 6.1.3).
            62 => Some((1, 6)),
            61 | 58 => Some((1, 1)),
            59 | 60 => Some((1, 0)),
            57 => Some((1, 4)),
            // With a length; of CCCH only the uplink's has none (TS 38.321, 6.1.2).
            0..=32 | 53 | 54 | 55 if self.0[0] & 64 == 0 => Some((2, self.0[1].into())),
            0..=32 | 53 | 54 | 55 => Some((3, u16::from_be_bytes([self.0[1], self.0[2]]).into())),
            _ => None,
        }
    }

    /// The RLC header of an SDU of an AM bearer.
    #[must_use]
    pub fn rlc(&self) -> Option<NrRlcHead> {
        let (at, _) = self.length().filter(|(_, length)| self.is_sdu() && *length > 0)?;
        let first = *self.0.get(at as usize)?;
        Some(match first >> 7 {
            0 => NrRlcHead::Control,
            _ => NrRlcHead::Data { poll: first & 64 != 0 },
        })
    }
}

impl NrDlDataBlock {
    /// Bytes with their subheaders of all that is no padding; `None` if a length is
    /// unknown or not all subheaders were logged.
    #[must_use]
    pub fn used_bytes(&self) -> Option<u32> {
        let all = self.logged.len() == usize::from(self.subheaders);
        all.then(|| self.known_bytes()).flatten()
    }

    /// Padding, its subheader included; `None` if unknown.
    #[must_use]
    pub fn padding_bytes(&self) -> Option<u32> {
        Some(self.tbs_bytes.saturating_sub(self.used_bytes()?))
    }

    /// Bytes of SDUs; `None` as for padding.
    #[must_use]
    pub fn sdu_bytes(&self) -> Option<u32> {
        self.used_bytes()?;
        let sdus = self.logged.iter().filter(|pdu| pdu.is_sdu());
        sdus.map(|pdu| pdu.length().map(|(_, bytes)| bytes)).sum()
    }

    fn known_bytes(&self) -> Option<u32> {
        let content = self.logged.iter().filter(|pdu| !pdu.is_padding());
        content.map(|pdu| pdu.length().map(|(head, body)| head + body)).sum()
    }

    /// Whether its fields can be true together.
    fn is_sound(&self, bearers: &[NrRlcBearer]) -> bool {
        let known = self.logged.iter().filter_map(NrSubPdu::length).map(|(head, body)| head + body);
        let is_listed = |pdu: &NrSubPdu| bearers.iter().any(|b| b.lcid == pdu.lcid());
        self.frame < 1024
            && self.slot < MAX_SLOTS
            && self.logged.len() <= usize::from(self.subheaders)
            && known.fold(0, u32::saturating_add) <= self.tbs_bytes
            && self.logged.iter().filter(|pdu| pdu.is_sdu()).all(is_listed)
            && self.logged.iter().rev().skip(1).all(|pdu| !pdu.is_padding())
    }
}

const VERSION: Field = u32_at(0);
const BLOCKS: Field = u32_at(4);
const LAST_TIME: Field = u16_at(8);
const BEARERS: Field = u8_at(10);
const HEAD_LEN: usize = 12;

const LCID: Field = u8_at(0);
const PDCP_SN: Field = bits_at(0, 8, 2);
const KIND: Field = bits_at(0, 10, 3);
const RLC_INDEX: Field = bits_at(0, 13, 2);
const RLC_SN: Field = bits_at(0, 15, 2);
const RLC_MODE: Field = bits_at(0, 17, 2);
const COUNTERS_AT: usize = 4;
const BEARER_LEN: usize = 28;

const SIZE: Field = u32_at(0);
const SLOT: Field = u16_at(4);
const FRAME: Field = u16_at(6);
const SUBHEADERS: Field = u16_at(8);
const CARRIER: Field = u16_at(10);
const LOGGED: Field = u32_at(12);
const BLOCK_LEN: usize = 16;

/// Bytes of a logged subheader.
const LOGGED_LEN: usize = 12;
/// Slots of a frame at 240 kHz (TS 38.211, table 4.3.2-1).
const MAX_SLOTS: u16 = 160;

impl NrDlData {
    /// The log code.
    pub const CODE: u16 = 0xB857;
    /// The version that has a layout.
    pub const VERSION: u32 = 6;

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        if cursor.peek(4, "version")?.u32(VERSION) != Self::VERSION {
            return Ok(None);
        }
        let head = cursor.take(HEAD_LEN, "message head")?;
        let mut problem = None;
        let bearers = cursor.list(head.u8(BEARERS).into(), &mut problem, |cursor, _| {
            Ok(bearer(cursor.take(BEARER_LEN, "bearer")?))
        });
        let mut blocks = Vec::new();
        // Not as many as stated: no more than there are bytes for.
        for _ in 0..head.u32(BLOCKS) {
            match block(&mut cursor) {
                Ok(block) => blocks.push(block),
                Err(_) => return Ok(None),
            }
        }
        let message = Self { last_time: head.u16(LAST_TIME), bearers, blocks };
        let closes = problem.is_none() && cursor.left() == 0;
        Ok((closes && message.is_sound()).then_some((message, None)))
    }

    fn is_sound(&self) -> bool {
        let is_bearer = |(i, bearer): (usize, &NrRlcBearer)| {
            // Logical channels 1 to 4 are the signalling bearers' (TS 38.331, 9.2.1).
            let kind = if bearer.lcid <= 4 { 1..=2 } else { 2..=2 };
            (1..=32).contains(&bearer.lcid)
                && kind.contains(&bearer.kind)
                && self.bearers[..i].iter().all(|other| other.lcid != bearer.lcid)
        };
        !self.blocks.is_empty()
            && self.bearers.iter().enumerate().all(is_bearer)
            && self.blocks.iter().all(|block| block.is_sound(&self.bearers))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = Writer::new(HEAD_LEN);
        writer
            .set(0, VERSION, Self::VERSION)
            .set(0, BLOCKS, self.blocks.len() as u64)
            .set(0, LAST_TIME, self.last_time)
            .set(0, BEARERS, self.bearers.len() as u64);
        for bearer in &self.bearers {
            let start = writer.part(BEARER_LEN);
            writer
                .set(start, LCID, bearer.lcid)
                .set(start, PDCP_SN, bearer.pdcp_sn_code)
                .set(start, KIND, bearer.kind)
                .set(start, RLC_INDEX, bearer.rlc_index)
                .set(start, RLC_SN, bearer.rlc_sn_code)
                .set(start, RLC_MODE, bearer.rlc_mode);
            for (i, &counter) in bearer.counters.iter().enumerate() {
                writer.set(start, u32_at(COUNTERS_AT + 4 * i), counter);
            }
        }
        for block in &self.blocks {
            let start = writer.part(BLOCK_LEN);
            writer
                .set(start, SIZE, block.tbs_bytes)
                .set(start, SLOT, block.slot)
                .set(start, FRAME, block.frame)
                .set(start, SUBHEADERS, block.subheaders)
                .set(start, CARRIER, block.carrier)
                .set(start, LOGGED, block.logged.len() as u64);
            for pdu in &block.logged {
                writer.raw(&pdu.0);
            }
        }
        writer.finish()
    }

    /// The bearer of a logical channel.
    #[must_use]
    pub fn bearer(&self, lcid: u8) -> Option<&NrRlcBearer> {
        self.bearers.iter().find(|bearer| bearer.lcid == lcid)
    }
}

fn bearer(part: Part<'_>) -> NrRlcBearer {
    NrRlcBearer {
        lcid: part.u8(LCID),
        pdcp_sn_code: part.u8(PDCP_SN),
        kind: part.u8(KIND),
        rlc_index: part.u8(RLC_INDEX),
        rlc_sn_code: part.u8(RLC_SN),
        rlc_mode: part.u8(RLC_MODE),
        counters: std::array::from_fn(|i| part.u32(u32_at(COUNTERS_AT + 4 * i))),
    }
}

fn block(cursor: &mut Cursor<'_>) -> Result<NrDlDataBlock, Short> {
    let part = cursor.take(BLOCK_LEN, "transport block")?;
    let mut logged = Vec::new();
    for _ in 0..part.u32(LOGGED) {
        let bytes = cursor.take(LOGGED_LEN, "subheader")?.bytes();
        logged.push(NrSubPdu(std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0))));
    }
    Ok(NrDlDataBlock {
        tbs_bytes: part.u32(SIZE),
        slot: part.u16(SLOT),
        frame: part.u16(FRAME),
        subheaders: part.u16(SUBHEADERS),
        carrier: part.u16(CARRIER),
        logged,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::diag::msg::shared::bytes_of;

    const DRB: NrRlcBearer = NrRlcBearer {
        lcid: 4,
        pdcp_sn_code: 1,
        kind: 2,
        rlc_index: 3,
        rlc_sn_code: 2,
        rlc_mode: 1,
        counters: [1, 2, 3, 4, 5, 6],
    };

    fn payload() -> Vec<u8> {
        bytes_of(
            "06 00 00 00 01 00 00 00  2A 00 01 00      # v6, one block, one bearer
             04 69 03 00                               # LCID 4: 1, 2 << 2, 3 << 5, 2 << 7, 1 << 9
             01 00 00 00 02 00 00 00 03 00 00 00 04 00 00 00 05 00 00 00 06 00 00 00
             D0 07 00 00 09 00 2C 01  03 00 00 00 03 00 00 00  # 2,000 bytes, slot 9, frame 300
             44 05 DC 80 00 01 80 01 00 00 00 00       # 1,500 bytes, no poll
             04 64 C0 00 02 80 02 00 00 00 00 00       # 100 bytes, poll
             3F 00 00 00 00 00 00 00 00 00 00 00       # padding",
        )
    }

    #[test]
    fn a_block_byte_by_byte() {
        let payload = payload();
        let (message, problem) = NrDlData::parse(&payload).unwrap().unwrap();
        assert_eq!((message.bearers.as_slice(), problem), (&[DRB][..], None));
        let [block] = &message.blocks[..] else { panic!("{message:?}") };
        assert_eq!((block.frame, block.slot, block.tbs_bytes), (300, 9, 2_000));
        // 3 + 1,500 and 2 + 100.
        assert_eq!((block.padding_bytes(), block.sdu_bytes()), (Some(395), Some(1_600)));
        let heads: Vec<_> = block.logged.iter().map(NrSubPdu::rlc).collect();
        let data = |poll| Some(NrRlcHead::Data { poll });
        assert_eq!(heads, [data(false), data(true), None]);
        assert_eq!(message.emit(), payload);
    }

    #[test]
    fn downlink_ccch_has_a_length() {
        let payload = bytes_of(
            "06 00 00 00 01 00 00 00  2A 00 00 00      # v6, one block, no bearer
             90 01 00 00 09 00 2C 01  04 00 00 00 04 00 00 00  # 400 bytes, slot 9, frame 300
             3E 12 34 56 78 9A BC 00 00 00 00 00       # contention resolution, 6 bytes
             00 0C 20 40 00 00 00 00 00 00 00 00       # CCCH, 12 bytes
             40 01 2C 20 40 00 00 00 00 00 00 00       # CCCH, 300 bytes
             3F 00 00 00 00 00 00 00 00 00 00 00       # padding",
        );
        let (message, _) = NrDlData::parse(&payload).unwrap().unwrap();
        let block = &message.blocks[0];
        let lengths: Vec<_> = block.logged.iter().map(NrSubPdu::length).collect();
        assert_eq!(lengths, [Some((1, 6)), Some((2, 12)), Some((3, 300)), None]);
        assert_eq!(block.padding_bytes(), Some(400 - 7 - 14 - 303));
        assert_eq!(message.emit(), payload);
    }

    #[test]
    fn what_does_not_add_up_is_not_read() {
        // Another version, a block fewer, a bearer of another channel or kind, a smaller
        // block, a slot and a frame that do not exist, more logged than there are.
        let wrong =
            [(0, 7), (4, 0), (10, 0), (12, 5), (13, 0x71), (41, 1), (45, 1), (47, 4), (48, 2)];
        for (at, byte) in wrong {
            let mut payload = payload();
            payload[at] = byte;
            assert_eq!(NrDlData::parse(&payload), Ok(None), "byte {at}");
        }
        let payload = payload();
        for len in HEAD_LEN..payload.len() {
            assert_eq!(NrDlData::parse(&payload[..len]), Ok(None), "{len} bytes");
        }
    }

    #[test]
    fn a_subheader_that_was_not_logged_leaves_padding_unknown() {
        let mut payload = payload();
        payload[48] = 4;
        let (message, _) = NrDlData::parse(&payload).unwrap().unwrap();
        assert_eq!(message.blocks[0].padding_bytes(), None);
    }

    fn sdu() -> impl Strategy<Value = NrSubPdu> {
        (any::<[u8; LOGGED_LEN]>(), any::<bool>()).prop_map(|(mut bytes, is_data)| {
            bytes[0] = if is_data { 4 | bytes[0] & 64 } else { 61 };
            NrSubPdu(bytes)
        })
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(
            blocks in prop::collection::vec(
                (0u16..160, 0u16..1024, any::<u16>(), prop::collection::vec(sdu(), 0..6)), 1..5,
            ),
            counters in any::<[u32; 6]>(),
            last_time in any::<u16>(),
        ) {
            let blocks = blocks.into_iter().map(|(slot, frame, carrier, logged)| NrDlDataBlock {
                tbs_bytes: 1 << 20, slot, frame, carrier,
                subheaders: logged.len() as u16 + carrier % 2, logged,
            });
            let bearers = vec![NrRlcBearer { counters, ..DRB }];
            let message = NrDlData { last_time, bearers, blocks: blocks.collect() };
            let parsed = NrDlData::parse(&message.emit());
            prop_assert_eq!(parsed, Ok(Some((message, None))));
        }

        #[test]
        fn no_panic_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut payload = payload();
            payload.extend(&bytes);
            if let Ok(Some((message, _))) = NrDlData::parse(&payload) {
                let _ = message.emit();
            }
            let _ = NrDlData::parse(&[&payload[..12], &bytes].concat());
        }
    }
}
