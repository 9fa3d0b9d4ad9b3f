//! 0xB132, LTE_PHY_PDSCH_Decoding_Result, version 106: turbo decoding per
//! subframe, stream and code block.
//!
//! u8 version; u32 at 1: PCI 9 bits, first subframe 4 bits, first SFN 10 bits
//! (from bit 13), UE category 4 bits (from 24), HARQ processes 4 bits (from
//! 28); u8 at 5: transmission mode in the high 4 bits; u32 at 8: soft-buffer
//! size 23 bits, carrier 4 bits, records 5 bits (from 27). Records from byte
//! 12: a head of 12 bytes, then streams of 140 bytes each, which hold 32 words
//! for code blocks whatever their number.

use airmile_model::{RntiType, Tti};
use serde::Serialize;
use smallvec::SmallVec;

use super::shared::{TimeAt, get_tti, rnti_code, set_tti, tti_count};
use crate::diag::bits::{Cursor, Field, Part, Short, Writer, bits_at, u8_at, u16_at};
use crate::diag::msg::Soft;

/// A batch of decoding results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PdschDecoding {
    /// Message version: 106.
    pub version: u8,
    /// Physical cell identity, 0 to 503.
    pub pci: u16,
    /// Subframe that the records' offsets count from.
    #[serde(serialize_with = "tti_count")]
    pub first_tti: Option<Tti>,
    /// UE category.
    pub ue_category: u8,
    /// Downlink HARQ processes.
    pub n_harq: u8,
    /// Transmission mode (TS 36.213, 7.1).
    pub transmission_mode: u8,
    /// Soft-buffer size N_IR in soft bits (TS 36.212, 5.1.4.1.2).
    pub soft_buffer_bits: u32,
    /// Carrier: 0 the primary one, 1.. secondary ones.
    pub carrier: u8,
    /// Results in order of reception.
    pub records: Vec<PdschDecodingRecord>,
}

/// The decoding result of one subframe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PdschDecodingRecord {
    /// Subframes (ms) after [`PdschDecoding::first_tti`].
    pub tti_offset: u16,
    /// RNTI value.
    pub rnti: u16,
    /// HARQ process.
    pub harq_id: u8,
    /// Kind of RNTI.
    pub rnti_type: RntiType,
    /// Whether the code words are swapped.
    pub codeword_swap: bool,
    /// One or two streams.
    pub streams: SmallVec<[DecodedStream; 1]>,
}

/// The decoding result of one stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecodedStream {
    /// Whether the transport block's CRC passed.
    pub crc_ok: bool,
    /// New data indicator.
    pub ndi: bool,
    /// Size of the (larger) code blocks in bits.
    pub code_block_bits: u16,
    /// Limit on the decoder's iterations.
    pub max_iterations: u8,
    /// Number of the retransmission, 0 for the first transmission.
    pub retx_count: u8,
    /// Redundancy version.
    pub rv: u8,
    /// Whether soft bits of earlier transmissions were combined.
    pub combined: bool,
    /// Whether the block's CRC passed in the de-rate stage.
    pub derate_crc_ok: bool,
    /// Effective code rate in 1/1024.
    pub code_rate_x1024: u16,
    /// Resource elements of the assignment.
    pub resource_elements: u16,
    /// Code word, 0 or 1.
    pub codeword: u8,
    /// The code blocks, 1 to 32.
    pub code_blocks: SmallVec<[CodeBlock; 4]>,
}

/// The decoding result of one code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CodeBlock {
    /// Energy metric, without unit.
    pub energy: u32,
    /// Decoder iterations.
    pub iterations: u8,
    /// Whether the code block's CRC passed.
    pub crc_ok: bool,
    /// Whether the decoder stopped early.
    pub early_stop: bool,
}

const PCI: Field = bits_at(1, 0, 9);
const FIRST: TimeAt = TimeAt::Split { sfn: bits_at(1, 13, 10), subframe: bits_at(1, 9, 4) };
const UE_CATEGORY: Field = bits_at(1, 24, 4);
const N_HARQ: Field = bits_at(1, 28, 4);
const TRANSMISSION_MODE: Field = bits_at(5, 4, 4);
const SOFT_BUFFER: Field = bits_at(8, 0, 23);
const CARRIER: Field = bits_at(8, 23, 4);
const RECORDS: Field = bits_at(8, 27, 5);
const HEAD_LEN: usize = 12;

const OFFSET: Field = u16_at(0);
const RNTI: Field = u16_at(2);
const HARQ_ID: Field = bits_at(4, 0, 4);
const RNTI_TYPE: Field = bits_at(4, 4, 4);
const STREAMS: Field = bits_at(7, 6, 2);
const CODEWORD_SWAP: Field = bits_at(7, 5, 1);
const RECORD_LEN: usize = 12;

const CRC: Field = bits_at(0, 0, 1);
const NDI: Field = bits_at(0, 1, 1);
const CODE_BLOCK_BITS: Field = bits_at(0, 2, 13);
const CODE_BLOCKS: Field = bits_at(0, 15, 5);
const MAX_ITERATIONS: Field = bits_at(0, 20, 4);
const RETX: Field = bits_at(0, 24, 6);
const RV: Field = bits_at(0, 30, 2);
const COMBINED: Field = bits_at(4, 2, 1);
const DERATE_CRC: Field = bits_at(4, 3, 1);
const CODE_RATE: Field = bits_at(4, 4, 10);
const RESOURCE_ELEMENTS: Field = bits_at(4, 14, 15);
const CODEWORD: Field = bits_at(4, 30, 1);
const STREAM_HEAD_LEN: usize = 12;
const CODE_BLOCK_SLOTS: usize = 32;
const STREAM_LEN: usize = STREAM_HEAD_LEN + 4 * CODE_BLOCK_SLOTS;

impl PdschDecoding {
    /// The log code.
    pub const CODE: u16 = 0xB132;
    /// The versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[106];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(1, "version")?.u8(u8_at(0));
        if !Self::VERSIONS.contains(&version) {
            return Ok(None);
        }
        let head = cursor.take(HEAD_LEN, "message head")?;
        let mut problem = None;
        let records = cursor.list(head.u8(RECORDS).into(), &mut problem, record);
        let decoding = Self {
            version,
            pci: head.u16(PCI),
            first_tti: get_tti(head, FIRST),
            ue_category: head.u8(UE_CATEGORY),
            n_harq: head.u8(N_HARQ),
            transmission_mode: head.u8(TRANSMISSION_MODE),
            soft_buffer_bits: head.u32(SOFT_BUFFER),
            carrier: head.u8(CARRIER),
            records,
        };
        Ok(Some((decoding, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        if !Self::VERSIONS.contains(&self.version) {
            return Vec::new();
        }
        let mut writer = Writer::new(HEAD_LEN);
        set_tti(&mut writer, 0, FIRST, self.first_tti);
        writer
            .set(0, u8_at(0), self.version)
            .set(0, PCI, self.pci)
            .set(0, UE_CATEGORY, self.ue_category)
            .set(0, N_HARQ, self.n_harq)
            .set(0, TRANSMISSION_MODE, self.transmission_mode)
            .set(0, SOFT_BUFFER, self.soft_buffer_bits)
            .set(0, CARRIER, self.carrier)
            .set(0, RECORDS, self.records.len() as u64);
        for record in &self.records {
            let start = writer.part(RECORD_LEN);
            writer
                .set(start, OFFSET, record.tti_offset)
                .set(start, RNTI, record.rnti)
                .set(start, HARQ_ID, record.harq_id)
                .set(start, RNTI_TYPE, rnti_code(record.rnti_type))
                .set(start, STREAMS, record.streams.len() as u64)
                .set(start, CODEWORD_SWAP, record.codeword_swap);
            for stream in &record.streams {
                stream.emit(&mut writer);
            }
        }
        writer.finish()
    }
}

fn record(
    cursor: &mut Cursor<'_>,
    problem: &mut Option<Short>,
) -> Result<PdschDecodingRecord, Short> {
    let head = cursor.take(RECORD_LEN, "record head")?;
    let streams = cursor.inline_list(head.u8(STREAMS).into(), problem, |cursor, _| {
        cursor.take(STREAM_LEN, "stream").map(DecodedStream::parse)
    });
    Ok(PdschDecodingRecord {
        tti_offset: head.u16(OFFSET),
        rnti: head.u16(RNTI),
        harq_id: head.u8(HARQ_ID),
        rnti_type: RntiType::from_code(head.u8(RNTI_TYPE)),
        codeword_swap: head.flag(CODEWORD_SWAP),
        streams,
    })
}

/// Fields of the code-block word `i` of a stream.
const fn code_block_fields(i: usize) -> (Field, Field, Field, Field) {
    let at = STREAM_HEAD_LEN + 4 * i;
    (bits_at(at, 0, 21), bits_at(at, 21, 4), bits_at(at, 25, 1), bits_at(at, 26, 1))
}

impl DecodedStream {
    fn parse(part: Part<'_>) -> Self {
        // Five bits: never more than the slots.
        let n_code_blocks = usize::from(part.u8(CODE_BLOCKS)) + 1;
        let code_block = |i| {
            let (energy, iterations, crc, early) = code_block_fields(i);
            CodeBlock {
                energy: part.u32(energy),
                iterations: part.u8(iterations),
                crc_ok: part.flag(crc),
                early_stop: part.flag(early),
            }
        };
        Self {
            crc_ok: part.flag(CRC),
            ndi: part.flag(NDI),
            code_block_bits: part.u16(CODE_BLOCK_BITS),
            max_iterations: part.u8(MAX_ITERATIONS),
            retx_count: part.u8(RETX),
            rv: part.u8(RV),
            combined: part.flag(COMBINED),
            derate_crc_ok: part.flag(DERATE_CRC),
            code_rate_x1024: part.u16(CODE_RATE),
            resource_elements: part.u16(RESOURCE_ELEMENTS),
            codeword: part.u8(CODEWORD),
            code_blocks: (0..n_code_blocks).map(code_block).collect(),
        }
    }

    fn emit(&self, writer: &mut Writer) {
        let start = writer.part(STREAM_LEN);
        writer
            .set(start, CRC, self.crc_ok)
            .set(start, NDI, self.ndi)
            .set(start, CODE_BLOCK_BITS, self.code_block_bits)
            .set(start, CODE_BLOCKS, self.code_blocks.len().saturating_sub(1) as u64)
            .set(start, MAX_ITERATIONS, self.max_iterations)
            .set(start, RETX, self.retx_count)
            .set(start, RV, self.rv)
            .set(start, COMBINED, self.combined)
            .set(start, DERATE_CRC, self.derate_crc_ok)
            .set(start, CODE_RATE, self.code_rate_x1024)
            .set(start, RESOURCE_ELEMENTS, self.resource_elements)
            .set(start, CODEWORD, self.codeword);
        for (i, block) in self.code_blocks.iter().take(CODE_BLOCK_SLOTS).enumerate() {
            let (energy, iterations, crc, early) = code_block_fields(i);
            writer
                .set(start, energy, block.energy)
                .set(start, iterations, block.iterations)
                .set(start, crc, block.crc_ok)
                .set(start, early, block.early_stop);
        }
    }
}
