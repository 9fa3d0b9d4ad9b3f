//! 0xB126, LTE_PHY_PDSCH_Packet: one per received PDSCH subframe, with the
//! demapper's configuration (RB bitmaps, TBS in bits, antennas, rank).
//!
//! Common to all versions: u8 version; u8 PCI low byte; u16 at 2: PCI bit 8,
//! subframe 4 bits, SFN 10 bits; u16 at 4 RNTI; u16 at 6 antenna word; at 8
//! and 24 the RB bitmaps of slots 0 and 1, 128 bits each (bit i is RB i); at
//! 40 precoding; at 44 and 48 the TBS of each stream in bits, followed by its
//! word at 46 and 50. Versions 23, 103 and 104 have 56 bytes, 122 and 123 64.
//!
//! The two bits below the modulation in a stream's word (one bit in v23) are
//! taken as TBS bits 16 and 17, since a transport block may have 75376 bits
//! (TS 36.213, table 7.1.7.2.1-1). No public log shows them set.

use airmile_model::{Modulation, RntiType, Tti};
use serde::Serialize;

use super::shared::{
    TimeAt, get_tti, modulation_code, modulation_from_code, rnti_code, set_tti, tti_count,
};
use crate::diag::bits::{Cursor, Field, Part, Writer, bits_at, u8_at, u16_at};
use crate::diag::msg::Soft;

/// One PDSCH reception.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PdschPacket {
    /// Message version: 23, 103, 104, 122 or 123.
    pub version: u8,
    /// Physical cell identity, 0 to 503.
    pub pci: u16,
    /// Subframe of the reception.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// RNTI value.
    pub rnti: u16,
    /// Kind of RNTI.
    pub rnti_type: RntiType,
    /// Transmit antenna ports: 1, 2 or 4 (8 as 4 in v122 and later).
    pub n_tx_antennas: u8,
    /// Receive antennas.
    pub n_rx_antennas: u8,
    /// Spatial rank, 1 to 4.
    pub rank: u8,
    /// RBs of slot 0: bit i is RB i.
    pub prb_slot0: u128,
    /// RBs of slot 1: bit i is RB i.
    pub prb_slot1: u128,
    /// Precoding matrix indicator.
    pub pmi_index: u8,
    /// Transmission scheme: 1 single antenna, 2 transmit diversity, 3 open-loop
    /// and 4 closed-loop spatial multiplexing, 5 multi-user MIMO, 6 closed-loop
    /// rank 1, 7 single-port and 8 dual-layer beamforming.
    pub transmission_scheme: u8,
    /// The two streams; an absent second one has a TBS of 0.
    pub streams: [PdschStream; 2],
    /// Traffic-to-pilot power ratio in 1/256.
    pub traffic_to_pilot_x256: u16,
    /// PB of TS 36.213, 5.2; v122 and later.
    pub pb: Option<u8>,
    /// Carrier: 0 the primary one, 1.. secondary ones.
    pub carrier: u8,
    /// Operation mode of the demapper; v122 and later.
    pub op_mode: Option<u8>,
    /// PCI of a strong interfering cell; v122 and later.
    pub strong_interferer_pci: Option<u16>,
    /// Why joint demodulation was skipped; v122 and later.
    pub joint_demod_skip_reason: Option<u8>,
}

/// One stream of a reception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PdschStream {
    /// Transport block size in bits.
    pub tbs_bits: u32,
    /// Modulation.
    pub modulation: Modulation,
}

impl PdschPacket {
    /// PRBs of the assignment: the RBs set in slot 0.
    #[must_use]
    pub const fn n_prb(&self) -> u16 {
        self.prb_slot0.count_ones() as u16
    }
}

const VERSION: Field = u8_at(0);
const PCI: Field = bits_at(1, 0, 9);
const TIME: TimeAt = TimeAt::Split { sfn: bits_at(2, 5, 10), subframe: bits_at(2, 1, 4) };
const RNTI: Field = u16_at(4);
const RNTI_TYPE: Field = bits_at(6, 0, 4);
const SLOT0_AT: usize = 8;
const SLOT1_AT: usize = 24;
const TBS: [Field; 2] = [u16_at(44), u16_at(48)];

/// The coding of antenna counts.
#[derive(Clone, Copy)]
enum Antennas {
    /// `1 << code`.
    PowerOfTwo,
    /// 0, 1, 2, 3 stand for 1, 2, 4, 4.
    Mapped,
}

impl Antennas {
    const fn decode(self, code: u8) -> u8 {
        match (self, code) {
            (Self::PowerOfTwo, _) => 1 << code,
            (Self::Mapped, 0) => 1,
            (Self::Mapped, 1) => 2,
            (Self::Mapped, _) => 4,
        }
    }

    const fn encode(self, count: u8) -> u8 {
        match count {
            0 | 1 => 0,
            2 | 3 => 1,
            4..=7 => 2,
            _ => match self {
                Self::PowerOfTwo => 3,
                Self::Mapped => 2,
            },
        }
    }
}

/// The differences between versions.
struct Layout {
    len: usize,
    antennas: Antennas,
    n_tx: Field,
    n_rx: Field,
    rank: Field,
    pmi: Field,
    scheme: Field,
    tbs_high: [Field; 2],
    modulation: [Field; 2],
    ratio: Field,
    carrier: Field,
    late: Option<Late>,
}

/// Fields of v122 and later.
struct Late {
    pb: Field,
    op_mode: Field,
    interferer: Field,
    skip_reason: Field,
}

const V23: Layout = Layout {
    len: 56,
    antennas: Antennas::PowerOfTwo,
    n_tx: bits_at(6, 8, 2),
    n_rx: bits_at(6, 10, 1),
    rank: bits_at(6, 14, 2),
    pmi: bits_at(40, 4, 4),
    scheme: bits_at(41, 0, 4),
    tbs_high: [bits_at(46, 0, 1), bits_at(50, 0, 1)],
    modulation: [bits_at(46, 1, 2), bits_at(50, 1, 2)],
    ratio: bits_at(46, 3, 12),
    carrier: bits_at(50, 9, 4),
    late: None,
};

const V104: Layout = Layout {
    tbs_high: [bits_at(46, 0, 2), bits_at(50, 0, 2)],
    modulation: [bits_at(46, 2, 2), bits_at(50, 2, 2)],
    // The word has 16 bits: of the 13 that other tools name, 12 are there.
    ratio: bits_at(46, 4, 12),
    ..V23
};

const V123: Layout = Layout {
    len: 64,
    antennas: Antennas::Mapped,
    n_tx: bits_at(6, 6, 2),
    n_rx: bits_at(6, 8, 2),
    rank: bits_at(6, 12, 2),
    pmi: bits_at(40, 2, 4),
    scheme: bits_at(40, 6, 4),
    carrier: bits_at(50, 6, 4),
    late: Some(Late {
        pb: bits_at(50, 4, 2),
        op_mode: bits_at(52, 0, 4),
        interferer: bits_at(52, 4, 9),
        skip_reason: bits_at(52, 13, 5),
    }),
    ..V104
};

const fn layout(version: u8) -> Option<&'static Layout> {
    match version {
        23 => Some(&V23),
        103 | 104 => Some(&V104),
        122 | 123 => Some(&V123),
        _ => None,
    }
}

/// Bytes that the fields need; the rest of the payload is unexplained.
const READ_LEN: usize = 52;

impl PdschPacket {
    /// The log code.
    pub const CODE: u16 = 0xB126;
    /// The versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[23, 103, 104, 122, 123];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(1, "version")?.u8(VERSION);
        let Some(layout) = layout(version) else { return Ok(None) };
        let need = if layout.late.is_some() { READ_LEN + 4 } else { READ_LEN };
        let part = cursor.take(need, "record")?;
        let stream = |i: usize| PdschStream {
            tbs_bits: part.u32(TBS[i]) | part.u32(layout.tbs_high[i]) << 16,
            modulation: modulation_from_code(part.u8(layout.modulation[i])),
        };
        let late = layout.late.as_ref();
        let packet = Self {
            version,
            pci: part.u16(PCI),
            tti: get_tti(part, TIME),
            rnti: part.u16(RNTI),
            rnti_type: RntiType::from_code(part.u8(RNTI_TYPE)),
            n_tx_antennas: layout.antennas.decode(part.u8(layout.n_tx)),
            n_rx_antennas: layout.antennas.decode(part.u8(layout.n_rx)),
            rank: 1 + part.u8(layout.rank),
            prb_slot0: bitmap(part, SLOT0_AT),
            prb_slot1: bitmap(part, SLOT1_AT),
            pmi_index: part.u8(layout.pmi),
            transmission_scheme: part.u8(layout.scheme),
            streams: [stream(0), stream(1)],
            traffic_to_pilot_x256: part.u16(layout.ratio),
            pb: late.map(|late| part.u8(late.pb)),
            carrier: part.u8(layout.carrier),
            op_mode: late.map(|late| part.u8(late.op_mode)),
            strong_interferer_pci: late.map(|late| part.u16(late.interferer)),
            joint_demod_skip_reason: late.map(|late| part.u8(late.skip_reason)),
        };
        Ok(Some((packet, None)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some(layout) = layout(self.version) else { return Vec::new() };
        let mut writer = Writer::new(SLOT0_AT);
        writer.raw(&self.prb_slot0.to_le_bytes());
        writer.raw(&self.prb_slot1.to_le_bytes());
        writer.part(layout.len - SLOT1_AT - 16);
        set_tti(&mut writer, 0, TIME, self.tti);
        writer
            .set(0, VERSION, self.version)
            .set(0, PCI, self.pci)
            .set(0, RNTI, self.rnti)
            .set(0, RNTI_TYPE, rnti_code(self.rnti_type))
            .set(0, layout.n_tx, layout.antennas.encode(self.n_tx_antennas))
            .set(0, layout.n_rx, layout.antennas.encode(self.n_rx_antennas))
            .set(0, layout.rank, self.rank.saturating_sub(1))
            .set(0, layout.pmi, self.pmi_index)
            .set(0, layout.scheme, self.transmission_scheme)
            .set(0, layout.ratio, self.traffic_to_pilot_x256)
            .set(0, layout.carrier, self.carrier);
        for (i, stream) in self.streams.iter().enumerate() {
            writer
                .set(0, TBS[i], stream.tbs_bits & 0xffff)
                .set(0, layout.tbs_high[i], stream.tbs_bits >> 16)
                .set(0, layout.modulation[i], modulation_code(stream.modulation));
        }
        if let Some(late) = &layout.late {
            writer
                .set(0, late.pb, self.pb.unwrap_or(0))
                .set(0, late.op_mode, self.op_mode.unwrap_or(0))
                .set(0, late.interferer, self.strong_interferer_pci.unwrap_or(0))
                .set(0, late.skip_reason, self.joint_demod_skip_reason.unwrap_or(0));
        }
        writer.finish()
    }
}

fn bitmap(part: Part<'_>, at: usize) -> u128 {
    let word = part.bytes().get(at..).and_then(|tail| tail.first_chunk::<16>());
    word.map_or(0, |word| u128::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::msg::shared::bytes_of;

    fn check(text: &str) -> PdschPacket {
        let payload = bytes_of(text);
        let (packet, problem) = PdschPacket::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        assert_eq!(packet.emit(), payload);
        packet
    }

    #[test]
    fn v23_byte_by_byte() {
        let packet = check(
            "17 4D           # version 23; PCI 333 = 0x14D, low byte
             09 40           # 0x4009: PCI bit 8, subframe 4 << 1, SFN 512 << 5
             34 12           # RNTI 0x1234
             00 45           # C-RNTI, 2 Tx 1 << 8, 2 Rx 1 << 10, rank 2 1 << 14
             F0 0F 00 00 00 00 00 00     # slot 0: RBs 4 to 11
             FF 03 00 00 00 00 00 00     # and 64 to 73
             00 F0 0F 00 00 00 00 00     # slot 1: RBs 12 to 19
             FF 03 00 00 00 00 00 00     # and 64 to 73
             30 04 00 00     # PMI 3 << 4, scheme 4
             38 18           # stream 0: 6200 bits
             02 0C           # 16QAM 1 << 1, ratio 384 << 3
             A8 0F           # stream 1: 4008 bits
             00 02           # QPSK, carrier 1 << 9
             00 00 00 00",
        );
        assert_eq!((packet.pci, packet.tti, packet.rnti), (333, Tti::new(512, 4), 0x1234));
        assert_eq!(packet.rnti_type, RntiType::C);
        assert_eq!((packet.n_tx_antennas, packet.n_rx_antennas, packet.rank), (2, 2, 2));
        assert_eq!(packet.prb_slot0, 0xff << 4 | 0x3ff << 64);
        assert_eq!(packet.prb_slot1, 0xff << 12 | 0x3ff << 64);
        assert_eq!(packet.n_prb(), 18);
        assert_eq!((packet.pmi_index, packet.transmission_scheme), (3, 4));
        let first = PdschStream { tbs_bits: 6200, modulation: Modulation::Qam16 };
        let second = PdschStream { tbs_bits: 4008, modulation: Modulation::Qpsk };
        assert_eq!(packet.streams, [first, second]);
        assert_eq!((packet.traffic_to_pilot_x256, packet.carrier), (384, 1));
    }

    #[test]
    fn v123_byte_by_byte() {
        let packet = check(
            "7B 4D           # version 123; PCI 77
             92 57           # 0x5792: subframe 9 << 1, SFN 700 << 5
             45 23           # RNTI 0x2345
             80 01           # C-RNTI, 4 Tx 2 << 6, 2 Rx 1 << 8, rank 1
             FF FF 00 00 00 00 FF FF     # slot 0: RBs 0 to 15, 48 to 63
             00 00 00 00 0F 00 00 00     # and 96 to 99
             FF FF 00 00 00 00 FF FF     # slot 1 alike
             00 00 00 00 0F 00 00 00
             94 00 00 00     # 0x94: PMI 5 << 2, scheme 2 << 6
             20 31           # stream 0: 12576 bits
             08 12           # 64QAM 2 << 2, ratio 288 << 4
             00 00           # stream 1: none
             A0 00           # PB 2 << 4, carrier 2 << 6
             E3 24 00 00     # 0x24E3: mode 3, interferer 78 << 4, reason 1 << 13
             00 00 00 00 00 00 00 00",
        );
        assert_eq!((packet.pci, packet.tti, packet.rnti), (77, Tti::new(700, 9), 0x2345));
        assert_eq!((packet.n_tx_antennas, packet.n_rx_antennas, packet.rank), (4, 2, 1));
        assert_eq!((packet.n_prb(), packet.transmission_scheme), (36, 2));
        assert_eq!(packet.pmi_index, 5);
        let first = PdschStream { tbs_bits: 12576, modulation: Modulation::Qam64 };
        assert_eq!(packet.streams[0], first);
        assert_eq!(packet.streams[1].tbs_bits, 0);
        assert_eq!((packet.traffic_to_pilot_x256, packet.pb, packet.carrier), (288, Some(2), 2));
        assert_eq!((packet.op_mode, packet.strong_interferer_pci), (Some(3), Some(78)));
        assert_eq!(packet.joint_demod_skip_reason, Some(1));
    }
}
