//! 0xB179, LTE_PHY_Connected_Mode_Intra_Freq_Meas, and 0xB195,
//! LTE_PHY_Connected_Mode_Neighbor_Measurement: RSRP and RSRQ of the serving
//! and neighbouring cells.
//!
//! 0xB179, versions 3 and 4: u8 version, 3 bytes, u8 serving index 3 bits, 3
//! bytes, EARFCN (u16 in v3, u32 in v4), u16 PCI, u16 `SFN * 10 + subframe`,
//! i16 RSRP, i16 instantaneous RSRP, i16 RSRQ, i16, u8 neighbours, u8
//! detected, (v4: 2 bytes); neighbour of 12 bytes: u16 PCI, i16 RSRP, i16, i16
//! RSRQ, 4 bytes.
//!
//! 0xB195, subpacket 31: EARFCN (u16 in v3, u32 in v4); u16 cells 6 bits, duplex 2
//! bits (from 7), serving index 4 bits; (v4: 2 bytes); cells of 52 bytes: PCI 10
//! bits at 0, RSRP 12 bits at 12, RSRQ bits 10-19 of the u32 at 20, RSSI bits
//! 11-21 of the u32 at 28. Subpacket 30 is not explained.
//!
//! Scales as in 0xB193.

use airmile_model::Tti;
use serde::Serialize;

use super::shared::{
    RSRP_OFFSET_DBM, RSRQ_OFFSET_DB, RSSI_OFFSET_DBM, TimeAt, get_tti, set_tti, sixteenths,
    to_sixteenths, tti_count,
};
use super::subpacket::{self, Body};
use crate::diag::bits::{Cursor, Field, Part, Writer, bits_at, u8_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// Serving and neighbouring cells of the serving frequency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IntraFreqMeas {
    /// Message version: 3 or 4.
    pub version: u8,
    /// 0 the primary cell, 1.. the secondary cells.
    pub serving_cell: u8,
    /// Downlink EARFCN.
    pub earfcn: u32,
    /// Physical cell identity of the serving cell.
    pub pci: u16,
    /// Subframe of the measurement.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// RSRP of the serving cell in dBm.
    pub rsrp_dbm: Option<f32>,
    /// RSRQ of the serving cell in dB.
    pub rsrq_db: Option<f32>,
    /// Detected cells that the message counts; their table is not explained.
    pub n_detected: u8,
    /// Neighbouring cells.
    pub neighbours: Vec<IntraFreqNeighbour>,
}

/// A neighbouring cell of the serving frequency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct IntraFreqNeighbour {
    /// Physical cell identity.
    pub pci: u16,
    /// RSRP in dBm.
    pub rsrp_dbm: Option<f32>,
    /// RSRQ in dB.
    pub rsrq_db: Option<f32>,
}

/// Neighbouring cells of a frequency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NeighbourMeas {
    /// Message version: 1.
    pub version: u8,
    /// The subpackets that were understood.
    pub subpackets: Vec<NeighbourMeasSubpacket>,
}

/// Neighbouring cells of a frequency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NeighbourMeasSubpacket {
    /// Subpacket version: 3 or 4.
    pub version: u8,
    /// Downlink EARFCN.
    pub earfcn: u32,
    /// Duplex mode: 0 FDD.
    pub duplex: u8,
    /// 0 the primary cell, 1.. the secondary cells.
    pub serving_cell: u8,
    /// The cells.
    pub cells: Vec<NeighbourCell>,
}

/// A neighbouring cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NeighbourCell {
    /// Physical cell identity.
    pub pci: u16,
    /// RSRP in dBm.
    pub rsrp_dbm: Option<f32>,
    /// RSRQ in dB.
    pub rsrq_db: Option<f32>,
    /// RSSI in dBm.
    pub rssi_dbm: Option<f32>,
}

const SERVING: Field = bits_at(4, 0, 3);
const EARFCN_AT: usize = 8;

/// EARFCN, offset of the rest, and bytes after the neighbours' count.
const fn intra_layout(version: u8) -> Option<(Field, usize, usize)> {
    match version {
        3 => Some((u16_at(EARFCN_AT), EARFCN_AT + 2, 0)),
        4 => Some((u32_at(EARFCN_AT), EARFCN_AT + 4, 2)),
        _ => None,
    }
}

// From the byte after the EARFCN.
const PCI: usize = 0;
const TIME: usize = 2;
const RSRP: usize = 4;
const RSRQ: usize = 8;
const NEIGHBOURS: usize = 12;
const DETECTED: usize = 13;
const INTRA_REST: usize = 14;

const NEIGHBOUR_PCI: Field = u16_at(0);
const NEIGHBOUR_RSRP: Field = u16_at(2);
const NEIGHBOUR_RSRQ: Field = u16_at(6);
const NEIGHBOUR_LEN: usize = 12;

/// A signed 16-bit value on the scale of [`sixteenths`].
fn signed_sixteenths(part: Part<'_>, field: Field, offset: f32) -> Option<f32> {
    let raw = part.u16(field) as i16;
    if raw == 0 { None } else { Some(f32::from(raw) * 0.0625 + offset) }
}

fn set_signed(writer: &mut Writer, start: usize, field: Field, value: Option<f32>, offset: f32) {
    // `as` saturates; a value that lands on 0 would read as "not measured".
    let raw = value.map_or(0, |value| match ((value - offset) * 16.0).round() as i16 {
        0 => 1,
        raw => raw,
    });
    writer.set(start, field, raw as u16);
}

impl IntraFreqMeas {
    /// The log code.
    pub const CODE: u16 = 0xB179;
    /// The versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[3, 4];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(1, "version")?.u8(u8_at(0));
        let Some((earfcn, at, gap)) = intra_layout(version) else { return Ok(None) };
        let head = cursor.take(at + INTRA_REST + gap, "serving cell")?;
        let mut problem = None;
        let count = head.u8(u8_at(at + NEIGHBOURS));
        let neighbours = cursor.list(count.into(), &mut problem, |cursor, _| {
            let part = cursor.take(NEIGHBOUR_LEN, "neighbouring cell")?;
            Ok(IntraFreqNeighbour {
                pci: part.u16(NEIGHBOUR_PCI),
                rsrp_dbm: signed_sixteenths(part, NEIGHBOUR_RSRP, RSRP_OFFSET_DBM),
                rsrq_db: signed_sixteenths(part, NEIGHBOUR_RSRQ, RSRQ_OFFSET_DB),
            })
        });
        let meas = Self {
            version,
            serving_cell: head.u8(SERVING),
            earfcn: head.u32(earfcn),
            pci: head.u16(u16_at(at + PCI)),
            tti: get_tti(head, TimeAt::Count(u16_at(at + TIME))),
            rsrp_dbm: signed_sixteenths(head, u16_at(at + RSRP), RSRP_OFFSET_DBM),
            rsrq_db: signed_sixteenths(head, u16_at(at + RSRQ), RSRQ_OFFSET_DB),
            n_detected: head.u8(u8_at(at + DETECTED)),
            neighbours,
        };
        Ok(Some((meas, problem)))
    }

    /// The payload of this message; the detected cells' count is written
    /// without their table.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some((earfcn, at, gap)) = intra_layout(self.version) else { return Vec::new() };
        let mut writer = Writer::new(at + INTRA_REST + gap);
        set_tti(&mut writer, 0, TimeAt::Count(u16_at(at + TIME)), self.tti);
        writer
            .set(0, u8_at(0), self.version)
            .set(0, SERVING, self.serving_cell)
            .set(0, earfcn, self.earfcn)
            .set(0, u16_at(at + PCI), self.pci)
            .set(0, u8_at(at + NEIGHBOURS), self.neighbours.len() as u64)
            .set(0, u8_at(at + DETECTED), self.n_detected);
        set_signed(&mut writer, 0, u16_at(at + RSRP), self.rsrp_dbm, RSRP_OFFSET_DBM);
        set_signed(&mut writer, 0, u16_at(at + RSRQ), self.rsrq_db, RSRQ_OFFSET_DB);
        for neighbour in &self.neighbours {
            let start = writer.part(NEIGHBOUR_LEN);
            writer.set(start, NEIGHBOUR_PCI, neighbour.pci);
            set_signed(&mut writer, start, NEIGHBOUR_RSRP, neighbour.rsrp_dbm, RSRP_OFFSET_DBM);
            set_signed(&mut writer, start, NEIGHBOUR_RSRQ, neighbour.rsrq_db, RSRQ_OFFSET_DB);
        }
        writer.finish()
    }
}

const ID: u8 = 31;

/// The head of a subpacket's version.
struct SubHead {
    earfcn: Field,
    cells: Field,
    duplex: Field,
    serving: Field,
    len: usize,
}

const fn sub_head(version: u8) -> Option<SubHead> {
    let (earfcn, at, len) = match version {
        3 => (u16_at(0), 2, 4),
        4 => (u32_at(0), 4, 8),
        _ => return None,
    };
    Some(SubHead {
        earfcn,
        cells: bits_at(at, 0, 6),
        duplex: bits_at(at, 7, 2),
        serving: bits_at(at, 9, 4),
        len,
    })
}

const CELL_PCI: Field = bits_at(0, 0, 10);
const CELL_RSRP: Field = bits_at(12, 0, 12);
const CELL_RSRQ: Field = bits_at(20, 10, 10);
const CELL_RSSI: Field = bits_at(28, 11, 11);
const CELL_LEN: usize = 52;

impl NeighbourMeas {
    /// The log code.
    pub const CODE: u16 = 0xB195;
    /// The subpacket versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[3, 4];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let parsed = subpacket::parse_all(payload, |body: &mut Body<'_>, problem| {
            let version = body.version;
            let Some(layout) = sub_head(version).filter(|_| body.id == ID) else {
                return Ok(None);
            };
            let head = body.cursor.take(layout.len, "frequency")?;
            let cells = body.cursor.list(head.u8(layout.cells).into(), problem, |cursor, _| {
                let part = cursor.take(CELL_LEN, "cell")?;
                Ok(NeighbourCell {
                    pci: part.u16(CELL_PCI),
                    rsrp_dbm: sixteenths(part.get(CELL_RSRP), RSRP_OFFSET_DBM),
                    rsrq_db: sixteenths(part.get(CELL_RSRQ), RSRQ_OFFSET_DB),
                    rssi_dbm: sixteenths(part.get(CELL_RSSI), RSSI_OFFSET_DBM),
                })
            });
            Ok(Some(NeighbourMeasSubpacket {
                version,
                earfcn: head.u32(layout.earfcn),
                duplex: head.u8(layout.duplex),
                serving_cell: head.u8(layout.serving),
                cells,
            }))
        })?;
        Ok(parsed.map(|(version, subpackets, problem)| (Self { version, subpackets }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = subpacket::emit_head(self.version, self.subpackets.len());
        for sub in &self.subpackets {
            let Some(layout) = sub_head(sub.version) else { continue };
            subpacket::emit(&mut writer, ID, sub.version, |writer| {
                let start = writer.part(layout.len);
                writer
                    .set(start, layout.earfcn, sub.earfcn)
                    .set(start, layout.cells, sub.cells.len() as u64)
                    .set(start, layout.duplex, sub.duplex)
                    .set(start, layout.serving, sub.serving_cell);
                for cell in &sub.cells {
                    let start = writer.part(CELL_LEN);
                    writer
                        .set(start, CELL_PCI, cell.pci)
                        .set(start, CELL_RSRP, to_sixteenths(cell.rsrp_dbm, RSRP_OFFSET_DBM))
                        .set(start, CELL_RSRQ, to_sixteenths(cell.rsrq_db, RSRQ_OFFSET_DB))
                        .set(start, CELL_RSSI, to_sixteenths(cell.rssi_dbm, RSSI_OFFSET_DBM));
                }
            });
        }
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::msg::shared::bytes_of;

    #[test]
    fn neighbours_v3_have_a_short_earfcn() {
        let mut payload = bytes_of(
            "01 01 00 00     # version 1, one subpacket
             1F 03 3C 00     # id 31, version 3, 60 = 4 + 4 + 52 bytes
             14 05           # EARFCN 1300
             01 02           # one cell, FDD, serving index 1 << 9
             4E 00 00 00     # PCI 78
             00 00 00 00 00 00 00 00
             B0 04 00 00     # RSRP 1200
             00 00 00 00
             00 80 04 00     # RSRQ 288 << 10
             00 00 00 00
             00 80 0C 00     # RSSI 400 << 11",
        );
        payload.resize(4 + 60, 0);
        let (meas, problem) = NeighbourMeas::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        let sub = &meas.subpackets[0];
        assert_eq!((sub.earfcn, sub.duplex, sub.serving_cell), (1300, 0, 1));
        let cell = NeighbourCell {
            pci: 78,
            rsrp_dbm: Some(-105.0),
            rsrq_db: Some(-12.0),
            rssi_dbm: Some(-85.0),
        };
        assert_eq!(sub.cells, [cell]);
        assert_eq!(meas.emit(), payload);
    }

    #[test]
    fn intra_v4() {
        let payload = bytes_of(
            "04 00 00 00
             01 00 00 00     # serving index 1
             14 05 00 00     # EARFCN 1300
             4D 00           # PCI 77
             04 14           # 0x1404 = 5124: SFN 512, subframe 4
             00 05 00 00     # RSRP 1280, the instantaneous one not kept
             40 01 00 00     # RSRQ 320
             02 03 00 00     # two neighbours, three detected
             4E 00 B0 04 00 00 20 01 00 00 00 00     # PCI 78, RSRP 1200, RSRQ 288
             4F 00 A0 04 00 00 10 01 00 00 00 00     # PCI 79, RSRP 1184, RSRQ 272",
        );
        let (meas, problem) = IntraFreqMeas::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        assert_eq!((meas.earfcn, meas.pci, meas.tti), (1300, 77, Tti::new(512, 4)));
        assert_eq!((meas.serving_cell, meas.n_detected), (1, 3));
        assert_eq!((meas.rsrp_dbm, meas.rsrq_db), (Some(-100.0), Some(-10.0)));
        let neighbour =
            |pci, rsrp, rsrq| IntraFreqNeighbour { pci, rsrp_dbm: Some(rsrp), rsrq_db: Some(rsrq) };
        assert_eq!(meas.neighbours, [neighbour(78, -105.0, -12.0), neighbour(79, -106.0, -13.0)]);
        assert_eq!(meas.emit(), payload);
    }
}
