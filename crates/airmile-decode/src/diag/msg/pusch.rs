//! 0xB139, LTE_PHY_PUSCH_Tx_Report: a batch of uplink transmissions.
//!
//! u8 version; u16 at 1: PCI 9 bits, records 5 bits; u16 at 4: `SFN * 10 +
//! subframe` of the dispatch; records from byte 8, of 64 bytes (v43), 68
//! (v102) or 84 (v124).

use airmile_model::{Modulation, Tti};
use serde::Serialize;

use super::shared::{TimeAt, get_tti, set_tti, tti_count};
use crate::diag::bits::{Cursor, Field, Part, Writer, bits_at, u8_at, u16_at};
use crate::diag::msg::Soft;

/// A batch of uplink transmissions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PuschTx {
    /// Message version: 43, 102 or 124.
    pub version: u8,
    /// Physical cell identity, 0 to 503.
    pub pci: u16,
    /// Subframe of the dispatch.
    #[serde(serialize_with = "tti_count")]
    pub dispatch_tti: Option<Tti>,
    /// Transmissions in order.
    pub records: Vec<PuschTxRecord>,
}

/// An uplink transmission.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PuschTxRecord {
    /// Subframe of the transmission.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// Carrier: 0 the primary one; v102 and later.
    pub carrier: Option<u8>,
    /// Whether HARQ acknowledgements were sent on PUSCH.
    pub ack: bool,
    /// Whether CQI was sent on PUSCH.
    pub cqi: bool,
    /// Whether a rank indication was sent on PUSCH.
    pub ri: bool,
    /// 0 for the first transmission, else the number of the retransmission
    /// (3 bits in v43, 5 bits later).
    pub retx_index: u8,
    /// Redundancy version.
    pub rv: u8,
    /// First PRB in slot 0.
    pub start_prb_slot0: u8,
    /// First PRB in slot 1.
    pub start_prb_slot1: u8,
    /// PRB pairs.
    pub n_prb: u8,
    /// Transport block size in bytes.
    pub tbs_bytes: u16,
    /// Code rate in 1/1024.
    pub code_rate_x1024: u16,
    /// Modulation; `None` for a code that no source explains.
    pub modulation: Option<Modulation>,
    /// Power field as stored, 7 bits; see [`PuschTx::tx_power_dbm`].
    pub tx_power_raw: u8,
}

impl PuschTx {
    /// Transmit power of a record in dBm: 7-bit two's complement in v43 and
    /// v124. `None` in v102, whose unit is not established.
    #[must_use]
    pub const fn tx_power_dbm(&self, record: &PuschTxRecord) -> Option<i8> {
        match self.version {
            43 | 124 => Some(((record.tx_power_raw << 1) as i8) >> 1),
            _ => None,
        }
    }
}

const PCI: Field = bits_at(1, 0, 9);
const RECORDS: Field = bits_at(1, 9, 5);
const DISPATCH: TimeAt = TimeAt::Count(u16_at(4));
const HEAD_LEN: usize = 8;

const TIME: TimeAt = TimeAt::Count(u16_at(0));

struct Layout {
    len: usize,
    carrier: Option<Field>,
    ack: Field,
    cqi: Field,
    ri: Field,
    retx: Field,
    rv: Field,
    start0: Field,
    start1: Field,
    n_prb: Field,
    tbs: Field,
    code_rate: Field,
    modulation: Field,
    power: Field,
}

const V43: Layout = Layout {
    len: 64,
    carrier: None,
    ack: bits_at(4, 0, 1),
    cqi: bits_at(4, 1, 1),
    ri: bits_at(4, 2, 1),
    retx: bits_at(20, 26, 3),
    rv: bits_at(4, 5, 2),
    start0: bits_at(8, 11, 7),
    start1: bits_at(8, 18, 7),
    n_prb: bits_at(8, 25, 7),
    tbs: u16_at(12),
    code_rate: u16_at(2),
    modulation: bits_at(20, 15, 2),
    power: bits_at(24, 0, 7),
};

const V102: Layout = Layout {
    len: 68,
    carrier: Some(bits_at(2, 0, 2)),
    ack: bits_at(2, 2, 1),
    cqi: bits_at(2, 3, 1),
    ri: bits_at(2, 4, 1),
    retx: bits_at(2, 7, 5),
    rv: bits_at(2, 12, 2),
    start0: bits_at(4, 1, 7),
    start1: bits_at(4, 8, 7),
    n_prb: bits_at(4, 15, 7),
    tbs: u16_at(8),
    code_rate: u16_at(10),
    modulation: bits_at(20, 0, 2),
    power: bits_at(24, 0, 7),
};

const V124: Layout = Layout { len: 84, ..V102 };

const fn layout(version: u8) -> Option<&'static Layout> {
    match version {
        43 => Some(&V43),
        102 => Some(&V102),
        124 => Some(&V124),
        _ => None,
    }
}

/// In v102 and v124 the code rate confirms 1, 2, 3 for QPSK, 16QAM, 64QAM: it
/// equals `(TBS + 24) / (PRBs * 144 * bits per symbol)` less control bits.
const fn modulation(code: u8) -> Option<Modulation> {
    match code {
        1 => Some(Modulation::Qpsk),
        2 => Some(Modulation::Qam16),
        3 => Some(Modulation::Qam64),
        _ => None,
    }
}

const fn modulation_code(modulation: Option<Modulation>) -> u8 {
    match modulation {
        Some(Modulation::Qpsk) => 1,
        Some(Modulation::Qam16) => 2,
        Some(Modulation::Qam64) => 3,
        _ => 0,
    }
}

impl PuschTx {
    /// The log code.
    pub const CODE: u16 = 0xB139;
    /// The versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[43, 102, 124];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(1, "version")?.u8(u8_at(0));
        let Some(layout) = layout(version) else { return Ok(None) };
        let head = cursor.take(HEAD_LEN, "message head")?;
        let mut problem = None;
        let records = cursor.list(head.u8(RECORDS).into(), &mut problem, |cursor, _| {
            cursor.take(layout.len, "record").map(|part| PuschTxRecord::parse(part, layout))
        });
        let tx =
            Self { version, pci: head.u16(PCI), dispatch_tti: get_tti(head, DISPATCH), records };
        Ok(Some((tx, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some(layout) = layout(self.version) else { return Vec::new() };
        let mut writer = Writer::new(HEAD_LEN);
        set_tti(&mut writer, 0, DISPATCH, self.dispatch_tti);
        writer.set(0, u8_at(0), self.version).set(0, PCI, self.pci).set(
            0,
            RECORDS,
            self.records.len() as u64,
        );
        for record in &self.records {
            let start = writer.part(layout.len);
            set_tti(&mut writer, start, TIME, record.tti);
            if let Some(field) = layout.carrier {
                writer.set(start, field, record.carrier.unwrap_or(0));
            }
            writer
                .set(start, layout.ack, record.ack)
                .set(start, layout.cqi, record.cqi)
                .set(start, layout.ri, record.ri)
                .set(start, layout.retx, record.retx_index)
                .set(start, layout.rv, record.rv)
                .set(start, layout.start0, record.start_prb_slot0)
                .set(start, layout.start1, record.start_prb_slot1)
                .set(start, layout.n_prb, record.n_prb)
                .set(start, layout.tbs, record.tbs_bytes)
                .set(start, layout.code_rate, record.code_rate_x1024)
                .set(start, layout.modulation, modulation_code(record.modulation))
                .set(start, layout.power, record.tx_power_raw);
        }
        writer.finish()
    }
}

impl PuschTxRecord {
    fn parse(part: Part<'_>, layout: &Layout) -> Self {
        Self {
            tti: get_tti(part, TIME),
            carrier: layout.carrier.map(|field| part.u8(field)),
            ack: part.flag(layout.ack),
            cqi: part.flag(layout.cqi),
            ri: part.flag(layout.ri),
            retx_index: part.u8(layout.retx),
            rv: part.u8(layout.rv),
            start_prb_slot0: part.u8(layout.start0),
            start_prb_slot1: part.u8(layout.start1),
            n_prb: part.u8(layout.n_prb),
            tbs_bytes: part.u16(layout.tbs),
            code_rate_x1024: part.u16(layout.code_rate),
            modulation: modulation(part.u8(layout.modulation)),
            tx_power_raw: part.u8(layout.power),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::msg::shared::bytes_of;

    #[test]
    fn v102_second_retransmission() {
        let mut payload = bytes_of(
            "66 4D 02 00     # version 102; 0x024D: PCI 77, one record 1 << 9
             07 14 00 00     # 0x1407 = 5127: SFN 512, subframe 7
             04 14           # 5124: SFN 512, subframe 4
             05 21           # 0x2105: carrier 1, ACK 1 << 2, retx 2 << 7, RV 2 << 12
             14 1E 06 00     # 0x61E14: start 10 << 1 and 30 << 8, 12 PRBs << 15
             88 02 00 02     # 648 bytes, rate 512 / 1024
             00 00 00 00 00 00 00 00
             02 00 00 00     # 16QAM
             28 00 00 00     # power 40",
        );
        payload.resize(HEAD_LEN + 68, 0);
        let (tx, problem) = PuschTx::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        assert_eq!((tx.pci, tx.dispatch_tti), (77, Tti::new(512, 7)));
        let record = &tx.records[0];
        assert_eq!((record.tti, record.carrier), (Tti::new(512, 4), Some(1)));
        assert_eq!((record.ack, record.cqi, record.ri), (true, false, false));
        assert_eq!((record.start_prb_slot0, record.start_prb_slot1, record.n_prb), (10, 30, 12));
        assert_eq!((record.tbs_bytes, record.code_rate_x1024), (648, 512));
        assert_eq!((record.retx_index, record.rv), (2, 2));
        assert_eq!((record.modulation, record.tx_power_raw), (Some(Modulation::Qam16), 40));
        assert_eq!(tx.tx_power_dbm(record), None);
        assert_eq!(tx.emit(), payload);
    }

    #[test]
    fn power_is_seven_bit_twos_complement() {
        let mut payload = bytes_of("7C 00 02 00 00 00 00 00");
        payload.resize(HEAD_LEN + 84, 0);
        payload[HEAD_LEN + 24] = 117;
        let (tx, _) = PuschTx::parse(&payload).unwrap().unwrap();
        assert_eq!(tx.tx_power_dbm(&tx.records[0]), Some(-11));
    }

    #[test]
    fn v43_as_described() {
        let mut payload = bytes_of("2B 4D 02 00 07 14 00 00");
        payload.resize(HEAD_LEN + 64, 0);
        let words: [(usize, u32); 6] = [
            (0, 5124 | 600 << 16),
            (4, 0b101 | 2 << 5),
            (8, 11 << 11 | 31 << 18 | 20 << 25),
            (12, 2000),
            (20, 2 << 15 | 3 << 26),
            (24, 120),
        ];
        for (at, word) in words {
            payload[HEAD_LEN + at..][..4].copy_from_slice(&word.to_le_bytes());
        }
        let (tx, problem) = PuschTx::parse(&payload).unwrap().unwrap();
        assert_eq!((tx.pci, problem), (77, None));
        let record = &tx.records[0];
        assert_eq!((record.tti, record.code_rate_x1024), (Tti::new(512, 4), 600));
        assert_eq!((record.ack, record.cqi, record.ri), (true, false, true));
        assert_eq!((record.rv, record.retx_index), (2, 3));
        assert_eq!((record.start_prb_slot0, record.start_prb_slot1, record.n_prb), (11, 31, 20));
        assert_eq!((record.tbs_bytes, record.carrier), (2000, None));
        assert_eq!(tx.tx_power_dbm(record), Some(-8));
    }
}
