//! 0xB130, LTE_PHY_PDCCH_Decoding_Result, versions 101 and 121: the DCI
//! candidates of one subframe, with the decoder's verdict.
//!
//! u8 version; u32 at 1: subframe 4 bits, SFN 10 bits, bandwidth code 3 bits,
//! frame structure 2 bits from bit 20, antennas 2 bits, cyclic prefix 2 bits;
//! u8 at 6: carrier in the high 4 bits; u8 at 7: candidates. Candidates from
//! byte 8, 28 bytes each. Version 121 ends with 4 more bytes.

use airmile_model::{RntiType, Tti};
use serde::Serialize;
use smallvec::SmallVec;

use super::shared::{TimeAt, get_tti, hex, rnti_code, set_tti, time_word, tti_count};
use crate::diag::bits::{Cursor, Field, Part, Writer, bits_at, u8_at, u32_at};
use crate::diag::msg::Soft;

/// DCI formats by their code (TS 36.212, 5.3.3.1).
pub const DCI_FORMATS: [&str; 10] = ["0", "1", "1A", "1B", "1C", "1D", "2", "2A", "3", "3A"];

/// The DCI candidates of one subframe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PdcchDecoding {
    /// Message version: 101 or 121.
    pub version: u8,
    /// Subframe they were received in.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// Bandwidth code: MHz are `(code - 1) * 5`; see [`Self::n_prb_cell`].
    pub bandwidth_code: u8,
    /// Frame structure (TS 36.211, 4): 0 FDD, 1 TDD.
    pub frame_structure: u8,
    /// Code of the base station's antennas: 0 one or two.
    pub n_enb_antennas_code: u8,
    /// Downlink cyclic prefix: 0 normal.
    pub cp_code: u8,
    /// Carrier: 0 the primary one, 1.. secondary ones.
    pub carrier: u8,
    /// The candidates.
    pub candidates: SmallVec<[PdcchCandidate; 1]>,
}

impl PdcchDecoding {
    /// PRB pairs of the cell, for the codes that public sources explain (5,
    /// 10, 15, 20 MHz; TS 36.101, table 5.6-1).
    #[must_use]
    pub const fn n_prb_cell(&self) -> Option<u16> {
        match self.bandwidth_code {
            2 => Some(25),
            3 => Some(50),
            4 => Some(75),
            5 => Some(100),
            _ => None,
        }
    }
}

/// A DCI candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PdcchCandidate {
    /// The DCI's bits as stored: the last byte holds the last bits.
    #[serde(serialize_with = "hex")]
    pub payload: [u8; 8],
    /// Control channel elements: 1, 2, 4 or 8.
    pub aggregation_level: u8,
    /// Number of the candidate in its search space.
    pub candidate: u8,
    /// True: the UE-specific search space; false: the common one.
    pub ue_search_space: bool,
    /// Index into [`DCI_FORMATS`].
    pub dci_format: u8,
    /// Kind of RNTI (the "decode state").
    pub rnti_type: RntiType,
    /// Payload size in bits.
    pub payload_bits: u8,
    /// Whether the tail matched.
    pub tail_match: bool,
    /// Mismatching non-zero symbols.
    pub symbol_mismatches: u16,
    /// First control channel element.
    pub start_cce: u8,
    /// Non-zero log-likelihood ratios.
    pub nonzero_llrs: u16,
    /// Norm, without unit.
    pub norm: u16,
    /// Verdict: 1 (format 0), 3 (1A), 4 (1C) and 6 (2, 2A, 2B) are successes.
    pub prune_status: u16,
    /// Energy metric, without unit.
    pub energy: u32,
    /// Normalised energy in 1/65535.
    pub norm_energy_x65535: u32,
    /// Symbol error rate in 1/2^31.
    pub symbol_error_rate_x2_31: u32,
}

impl PdcchCandidate {
    /// Name of the DCI format, such as `1A`.
    #[must_use]
    pub fn dci_format_name(&self) -> Option<&'static str> {
        DCI_FORMATS.get(usize::from(self.dci_format)).copied()
    }

    /// Whether the decoder accepted this candidate.
    #[must_use]
    pub const fn accepted(&self) -> bool {
        matches!(self.prune_status, 1 | 3 | 4 | 6)
    }
}

const TIME: TimeAt = time_word(1, 10);
const BANDWIDTH: Field = bits_at(1, 14, 3);
const FRAME_STRUCTURE: Field = bits_at(1, 20, 2);
const ANTENNAS: Field = bits_at(1, 22, 2);
const CP: Field = bits_at(1, 24, 2);
const CARRIER: Field = bits_at(6, 4, 4);
const CANDIDATES: Field = u8_at(7);
const HEAD_LEN: usize = 8;

const AGGREGATION: Field = bits_at(8, 0, 2);
const CANDIDATE: Field = bits_at(8, 2, 3);
const SEARCH_SPACE: Field = bits_at(8, 5, 1);
const FORMAT: Field = bits_at(8, 6, 4);
const RNTI_TYPE: Field = bits_at(8, 10, 4);
const PAYLOAD_BITS: Field = bits_at(8, 14, 8);
const TAIL_MATCH: Field = bits_at(8, 22, 1);
const MISMATCHES: Field = bits_at(8, 23, 9);
const START_CCE: Field = bits_at(12, 1, 7);
const NONZERO_LLRS: Field = bits_at(12, 8, 9);
const NORM: Field = bits_at(12, 17, 15);
const PRUNE_STATUS: Field = bits_at(16, 0, 11);
const ENERGY: Field = bits_at(16, 11, 21);
const NORM_ENERGY: Field = u32_at(20);
const SYMBOL_ERROR_RATE: Field = u32_at(24);
const CANDIDATE_LEN: usize = 28;

impl PdcchDecoding {
    /// The log code.
    pub const CODE: u16 = 0xB130;
    /// The versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[101, 121];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(1, "version")?.u8(u8_at(0));
        if !Self::VERSIONS.contains(&version) {
            return Ok(None);
        }
        let head = cursor.take(HEAD_LEN, "message head")?;
        let mut problem = None;
        let count = head.u8(CANDIDATES).into();
        let candidates = cursor.inline_list(count, &mut problem, |cursor, _| {
            cursor.take(CANDIDATE_LEN, "candidate").map(PdcchCandidate::parse)
        });
        let decoding = Self {
            version,
            tti: get_tti(head, TIME),
            bandwidth_code: head.u8(BANDWIDTH),
            frame_structure: head.u8(FRAME_STRUCTURE),
            n_enb_antennas_code: head.u8(ANTENNAS),
            cp_code: head.u8(CP),
            carrier: head.u8(CARRIER),
            candidates,
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
        set_tti(&mut writer, 0, TIME, self.tti);
        writer
            .set(0, u8_at(0), self.version)
            .set(0, BANDWIDTH, self.bandwidth_code)
            .set(0, FRAME_STRUCTURE, self.frame_structure)
            .set(0, ANTENNAS, self.n_enb_antennas_code)
            .set(0, CP, self.cp_code)
            .set(0, CARRIER, self.carrier)
            .set(0, CANDIDATES, self.candidates.len() as u64);
        for candidate in &self.candidates {
            candidate.emit(&mut writer);
        }
        if self.version == 121 {
            writer.part(4);
        }
        writer.finish()
    }
}

impl PdcchCandidate {
    fn parse(part: Part<'_>) -> Self {
        Self {
            payload: part.bytes().first_chunk::<8>().copied().unwrap_or_default(),
            aggregation_level: 1 << part.u8(AGGREGATION),
            candidate: part.u8(CANDIDATE),
            ue_search_space: part.flag(SEARCH_SPACE),
            dci_format: part.u8(FORMAT),
            rnti_type: RntiType::from_code(part.u8(RNTI_TYPE)),
            payload_bits: part.u8(PAYLOAD_BITS),
            tail_match: part.flag(TAIL_MATCH),
            symbol_mismatches: part.u16(MISMATCHES),
            start_cce: part.u8(START_CCE),
            nonzero_llrs: part.u16(NONZERO_LLRS),
            norm: part.u16(NORM),
            prune_status: part.u16(PRUNE_STATUS),
            energy: part.u32(ENERGY),
            norm_energy_x65535: part.u32(NORM_ENERGY),
            symbol_error_rate_x2_31: part.u32(SYMBOL_ERROR_RATE),
        }
    }

    fn emit(&self, writer: &mut Writer) {
        let start = writer.len();
        writer.raw(&self.payload);
        writer.part(CANDIDATE_LEN - self.payload.len());
        writer
            .set(start, AGGREGATION, self.aggregation_level.checked_ilog2().unwrap_or(0))
            .set(start, CANDIDATE, self.candidate)
            .set(start, SEARCH_SPACE, self.ue_search_space)
            .set(start, FORMAT, self.dci_format)
            .set(start, RNTI_TYPE, rnti_code(self.rnti_type))
            .set(start, PAYLOAD_BITS, self.payload_bits)
            .set(start, TAIL_MATCH, self.tail_match)
            .set(start, MISMATCHES, self.symbol_mismatches)
            .set(start, START_CCE, self.start_cce)
            .set(start, NONZERO_LLRS, self.nonzero_llrs)
            .set(start, NORM, self.norm)
            .set(start, PRUNE_STATUS, self.prune_status)
            .set(start, ENERGY, self.energy)
            .set(start, NORM_ENERGY, self.norm_energy_x65535)
            .set(start, SYMBOL_ERROR_RATE, self.symbol_error_rate_x2_31);
    }
}
