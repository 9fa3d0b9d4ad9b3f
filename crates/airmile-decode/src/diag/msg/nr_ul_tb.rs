//! 0xB872, NR5G L2 UL TB: the block that the phone built for each uplink grant of NR.
//! From public sources, without a sample: a message is read if its blocks end with the
//! payload, its slots exist and no block is larger than its grant.
//!
//! u32 version (4 alone, or u16 minor and u16 major 2 or 3), u8 TTIs, 3 bytes.
//! TTI: u8 slot, 1 byte, u16 frame (10 bits), u8 blocks (4 bits), 3 bytes.
//! Block of 20 bytes, in major 3 of 24: u16 numerology 3 bits and HARQ process
//! 4 bits; u32 grant at 4, u32 bytes built at 8, both in bytes; length of the
//! control elements (6 bits) in the fourth byte from the end; then those, with
//! their subheaders (TS 38.321, 6.1.2).

use airmile_model::nr_tables::nr_bsr_upper_bound_bytes;
use airmile_model::{BsrReport, Direction, Grant, GrantSources, Position, Stamp};
use serde::Serialize;

use super::nr_pdsch_status::NrSlot;
use super::shared::hex;
use crate::diag::bits::{Cursor, Field, Short, Writer, bits_at, u8_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// Uplink transport blocks of NR.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrUlTb {
    /// Major version: 0 (for a plain version number), 2 or 3.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
    /// Slots in order.
    pub ttis: Vec<NrUlTti>,
}

/// The blocks of an uplink slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrUlTti {
    /// Frame, 0 to 1023.
    pub frame: u16,
    /// Slot in the frame.
    pub slot: u8,
    /// The blocks, 15 at most.
    pub blocks: Vec<NrUlBlock>,
}

/// An uplink transport block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrUlBlock {
    /// Numerology.
    pub numerology: u8,
    /// HARQ process.
    pub harq_id: u8,
    /// Granted bytes.
    pub grant_bytes: u32,
    /// Used bytes of the grant.
    pub built_bytes: u32,
    /// Control elements with their subheaders, 63 bytes at most.
    #[serde(serialize_with = "hex")]
    pub control: Vec<u8>,
}

/// A buffer status report of NR (TS 38.321, 6.1.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NrBsr {
    /// Logical channel group, 0 to 7.
    pub lcg: u8,
    /// Buffer size index.
    pub index: u8,
    /// Whether the index belongs to the 8-bit table, as in the long format.
    pub long: bool,
}

impl NrBsr {
    /// The record of a report in a block.
    pub(crate) fn record(self, at: Option<Stamp>, position: Position) -> BsrReport {
        let Self { lcg, index, long } = self;
        let upper_bound_bytes = nr_bsr_upper_bound_bytes(index, long);
        BsrReport { at, position, lcg, index, upper_bound_bytes }
    }
}

impl NrUlBlock {
    /// Granted bytes that were not used.
    pub(crate) const fn padding_bytes(&self) -> u32 {
        self.grant_bytes.saturating_sub(self.built_bytes)
    }

    /// The record of the grant, without its time.
    pub(crate) fn grant(&self, position: Position) -> Grant {
        let mut grant = Grant::new(position, Direction::Ul, 0);
        grant.n_prb = None;
        grant.tbs_bytes = Some(self.grant_bytes);
        grant.harq_id = Some(self.harq_id);
        // The MAC layer builds a block once.
        grant.retx = Some(false);
        grant.padding_bytes = Some(self.padding_bytes());
        grant.sources = GrantSources::NR_UL_TB;
        grant
    }

    /// The reports among the control elements.
    #[must_use]
    pub fn reports(&self) -> Vec<NrBsr> {
        self.read().0
    }

    /// Bytes of the control elements up to the last report before any other.
    #[must_use]
    pub fn reports_len(&self) -> usize {
        self.read().1
    }

    fn read(&self) -> (Vec<NrBsr>, usize) {
        let mut out = Vec::new();
        let mut rest = &self.control[..];
        let (mut end, mut reports_alone) = (0, true);
        while let Some((&head, after)) = rest.split_first() {
            let lcid = head & 63;
            let (length, after) = match (lcid, after) {
                // Of variable length, with a length field of 8 or 16 bits.
                (LONG_BSR | LONG_TRUNCATED_BSR, &[high, low, ref after @ ..]) if head & 64 != 0 => {
                    (usize::from(u16::from_be_bytes([high, low])), after)
                }
                (LONG_BSR | LONG_TRUNCATED_BSR, &[length, ref after @ ..]) => {
                    (usize::from(length), after)
                }
                (SHORT_BSR | SHORT_TRUNCATED_BSR, after) => (1, after),
                (SINGLE_ENTRY_PHR | C_RNTI, after) => (2, after),
                // Any other ends the known part.
                _ => break,
            };
            let Some((body, after)) = after.split_at_checked(length) else { break };
            match (lcid, body) {
                (SHORT_BSR | SHORT_TRUNCATED_BSR, &[byte]) => {
                    out.push(NrBsr { lcg: byte >> 5, index: byte & 31, long: false });
                }
                (LONG_BSR | LONG_TRUNCATED_BSR, &[groups, ref sizes @ ..]) => {
                    let present = (0..8).filter(|lcg| groups >> lcg & 1 == 1);
                    let reports = present.zip(sizes);
                    out.extend(reports.map(|(lcg, &index)| NrBsr { lcg, index, long: true }));
                }
                _ => {}
            }
            rest = after;
            reports_alone &= (SHORT_TRUNCATED_BSR..=LONG_BSR).contains(&lcid);
            if reports_alone {
                end = self.control.len() - rest.len();
            }
        }
        (out, end)
    }
}

// TS 38.321, table 6.2.1-2.
const SINGLE_ENTRY_PHR: u8 = 57;
const C_RNTI: u8 = 58;
const SHORT_TRUNCATED_BSR: u8 = 59;
const LONG_TRUNCATED_BSR: u8 = 60;
const SHORT_BSR: u8 = 61;
const LONG_BSR: u8 = 62;

const MINOR: Field = u16_at(0);
const MAJOR: Field = u16_at(2);
const TTIS: Field = u8_at(4);
const HEAD_LEN: usize = 8;

const SLOT: Field = u8_at(0);
const FRAME: Field = bits_at(2, 0, 10);
const BLOCKS: Field = bits_at(4, 0, 4);
const TTI_LEN: usize = 8;

const NUMEROLOGY: Field = bits_at(0, 0, 3);
const HARQ: Field = bits_at(0, 3, 4);
const GRANT: Field = u32_at(4);
const BUILT: Field = u32_at(8);

/// Length of a block, and of its control elements.
const fn block_layout(major: u16, minor: u16) -> Option<(usize, Field)> {
    match (major, minor) {
        (0, 4) | (2, _) => Some((20, bits_at(16, 0, 6))),
        (3, _) => Some((24, bits_at(20, 0, 6))),
        _ => None,
    }
}

impl NrUlTb {
    /// The log code.
    pub const CODE: u16 = 0xB872;

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(4, "version")?;
        let (major, minor) = (version.u16(MAJOR), version.u16(MINOR));
        let Some((block_len, control)) = block_layout(major, minor) else { return Ok(None) };
        let count = cursor.take(HEAD_LEN, "message head")?.u8(TTIS);
        let mut problem = None;
        let ttis = cursor.list(count.into(), &mut problem, |cursor, _| {
            let head = cursor.take(TTI_LEN, "TTI")?;
            let mut blocks = Vec::new();
            for _ in 0..head.u8(BLOCKS) {
                let part = cursor.take(block_len, "transport block")?;
                let control = cursor.take(part.u8(control).into(), "control elements")?;
                blocks.push(NrUlBlock {
                    numerology: part.u8(NUMEROLOGY),
                    harq_id: part.u8(HARQ),
                    grant_bytes: part.u32(GRANT),
                    built_bytes: part.u32(BUILT),
                    control: control.bytes().to_vec(),
                });
            }
            Ok::<_, Short>(NrUlTti { frame: head.u16(FRAME), slot: head.u8(SLOT), blocks })
        });
        let closes = problem.is_some() || cursor.left() == 0;
        let message = Self { major, minor, ttis };
        let sound = closes && message.ttis.iter().all(NrUlTti::is_sound);
        Ok(sound.then_some((message, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some((block_len, control)) = block_layout(self.major, self.minor) else {
            return Vec::new();
        };
        let mut writer = Writer::new(HEAD_LEN);
        writer.set(0, MINOR, self.minor).set(0, MAJOR, self.major).set(
            0,
            TTIS,
            self.ttis.len() as u64,
        );
        for tti in &self.ttis {
            let start = writer.part(TTI_LEN);
            let blocks = &tti.blocks[..tti.blocks.len().min(15)];
            writer.set(start, SLOT, tti.slot).set(start, FRAME, tti.frame).set(
                start,
                BLOCKS,
                blocks.len() as u64,
            );
            for block in blocks {
                let start = writer.part(block_len);
                let elements = &block.control[..block.control.len().min(63)];
                writer
                    .set(start, NUMEROLOGY, block.numerology)
                    .set(start, HARQ, block.harq_id)
                    .set(start, GRANT, block.grant_bytes)
                    .set(start, BUILT, block.built_bytes)
                    .set(start, control, elements.len() as u64)
                    .raw(elements);
            }
        }
        writer.finish()
    }
}

impl NrUlTti {
    fn is_sound(&self) -> bool {
        self.blocks
            .iter()
            .all(|block| self.time(block).exists() && block.built_bytes <= block.grant_bytes)
    }

    /// The slot of a block.
    #[must_use]
    pub const fn time(&self, block: &NrUlBlock) -> NrSlot {
        NrSlot { frame: self.frame, slot: self.slot, numerology: block.numerology }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::msg::shared::bytes_of;

    #[test]
    fn v2_1_byte_by_byte() {
        let payload = bytes_of(
            "01 00 02 00 01 00 00 00     # 2.1, one TTI
             09 00 2C 01 02 00 00 00     # slot 9, frame 300, two blocks
             29 00 00 00                 # 30 kHz, HARQ 5 << 3
             C8 00 00 00 B4 00 00 00     # 200 granted, 180 built
             00 00 00 00 02 00 00 00     # two bytes of control elements
             3D 45                       # short BSR, LCG 2, index 5
             31 00 00 00 0A 00 00 00 0A 00 00 00 00 00 00 00 08 00 00 00
             3E 03 05 07 FE  39 40 41    # long BSR of 3 bytes, LCG 0 and 2; PHR",
        );
        let (message, problem) = NrUlTb::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        let tti = &message.ttis[0];
        let [first, second] = &tti.blocks[..] else { panic!("{tti:?}") };
        assert_eq!(tti.time(first), NrSlot { frame: 300, slot: 9, numerology: 1 });
        assert_eq!((first.harq_id, first.grant_bytes, first.built_bytes), (5, 200, 180));
        assert_eq!(first.reports(), [NrBsr { lcg: 2, index: 5, long: false }]);
        let long = |lcg, index| NrBsr { lcg, index, long: true };
        assert_eq!(second.reports(), [long(0, 7), long(2, 254)]);
        assert_eq!((first.reports_len(), second.reports_len()), (2, 5));
        assert_eq!(message.emit(), payload);
    }

    #[test]
    fn major_3_has_longer_blocks() {
        let block = NrUlBlock {
            numerology: 0,
            harq_id: 3,
            grant_bytes: 1000,
            built_bytes: 1000,
            control: vec![0x3d, 0],
        };
        let tti = NrUlTti { frame: 1, slot: 9, blocks: vec![block; 2] };
        let message = NrUlTb { major: 3, minor: 8, ttis: vec![tti] };
        let payload = message.emit();
        assert_eq!(payload.len(), 8 + 8 + 2 * (24 + 2));
        assert_eq!(NrUlTb::parse(&payload), Ok(Some((message, None))));
        // As 2.x it does not match.
        let mut other = payload;
        other[2] = 2;
        assert_eq!(NrUlTb::parse(&other), Ok(None));
    }

    #[test]
    fn what_cannot_be_is_not_read() {
        let block = NrUlBlock {
            numerology: 1,
            harq_id: 0,
            grant_bytes: 10,
            built_bytes: 11,
            control: Vec::new(),
        };
        let tti = |slot, block| NrUlTti { frame: 1, slot, blocks: vec![block] };
        let of = |tti| NrUlTb { major: 2, minor: 1, ttis: vec![tti] }.emit();
        assert_eq!(NrUlTb::parse(&of(tti(0, block.clone()))), Ok(None), "more than granted");
        let block = NrUlBlock { built_bytes: 9, ..block };
        assert_eq!(NrUlTb::parse(&of(tti(20, block.clone()))), Ok(None), "no such slot");
        assert!(NrUlTb::parse(&of(tti(19, block))).unwrap().is_some());
    }

    #[test]
    fn control_elements_of_any_bytes_end() {
        for byte in 0..=255 {
            let control = vec![byte; 9];
            let block =
                NrUlBlock { numerology: 0, harq_id: 0, grant_bytes: 9, built_bytes: 9, control };
            assert!(block.reports().len() <= 64);
        }
    }
}
