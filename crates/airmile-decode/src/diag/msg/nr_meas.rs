//! 0xB97F, NR5G ML1 Searcher Measurement Database Update: RSRP and RSRQ of NR
//! cells and their beams.
//!
//! u16 minor, u16 major; from 2.9 on 4 bytes; u8 layers, u8 SSB period in ms, 10
//! bytes. Layer of 32 bytes: u32 NR-ARFCN, u8 cells (from 2.9 on the fifth
//! byte), u8 index of the serving cell (the fourth), u16 PCI of the serving
//! cell, u8 SSB; 3.0 has 40, with the index and the SSB at 8 and 9. Cell of 16 bytes:
//! u16 PCI, u16 SFN, u8 beams, 3 bytes, i32 RSRP, i32 RSRQ. Beam of 44 bytes,
//! from 2.10 on of 84: u16 SSB, 2 bytes, u16 receive beams of two antennas,
//! 12 bytes, i32 RSRP by both; filtered RSRP and RSRQ in its last 16 bytes.
//! Powers are in 1/128 dB.

use serde::Serialize;

use crate::diag::bits::{Cursor, Field, Part, Short, Writer, u8_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// NR cells on the measured frequencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrMeas {
    /// Major version: 2 or 3.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
    /// Period of the SSB in ms; 0 if unknown.
    pub ssb_period_ms: u8,
    /// Frequencies.
    pub layers: Vec<NrMeasLayer>,
}

/// A frequency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrMeasLayer {
    /// NR-ARFCN of the SSB.
    pub arfcn: u32,
    /// Index of the serving cell among the cells; 255 none.
    pub serving_index: u8,
    /// Physical cell identity of the serving cell; 65535 none.
    pub serving_pci: u16,
    /// SSB of the serving cell, as stored.
    pub serving_ssb: u8,
    /// The cells.
    pub cells: Vec<NrMeasCell>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrMeasCell {
    /// Physical cell identity, 0 to 1007.
    pub pci: u16,
    /// System frame number of the broadcast channel.
    pub sfn: u16,
    /// RSRP in 1/128 dBm.
    pub rsrp_x128: i32,
    /// RSRQ in 1/128 dB.
    pub rsrq_x128: i32,
    /// Its beams.
    pub beams: Vec<NrMeasBeam>,
}

/// A beam of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NrMeasBeam {
    /// Index of the SSB.
    pub ssb: u16,
    /// Receive beams of two antennas.
    pub rx_beams: [u16; 2],
    /// RSRP by two antennas in 1/128 dBm; 0 none.
    pub rsrp_x128: [i32; 2],
    /// Filtered RSRP and RSRQ for measurements by NR, then by LTE, in 1/128 dB; 0 none.
    pub filtered_x128: [i32; 4],
}

const MINOR: Field = u16_at(0);
const MAJOR: Field = u16_at(2);

/// Positions of a version.
struct Layout {
    /// Offset of the number of layers; the head ends 12 bytes on.
    layers: usize,
    layer_len: usize,
    cells: Field,
    serving_index: Field,
    serving_pci: Field,
    serving_ssb: Field,
    beam_len: usize,
}

const V2_7: Layout = Layout {
    layers: 4,
    layer_len: 32,
    cells: u8_at(4),
    serving_index: u8_at(5),
    serving_pci: u16_at(6),
    serving_ssb: u8_at(8),
    beam_len: 44,
};
const V2_9: Layout = Layout { layers: 8, cells: u8_at(5), serving_index: u8_at(4), ..V2_7 };
const V2_10: Layout = Layout { beam_len: 84, ..V2_9 };
const V3_0: Layout =
    Layout { layer_len: 40, serving_index: u8_at(8), serving_ssb: u8_at(9), ..V2_10 };

const fn layout(major: u16, minor: u16) -> Option<&'static Layout> {
    match (major, minor) {
        (2, 7) => Some(&V2_7),
        (2, 9) => Some(&V2_9),
        (2, 10) => Some(&V2_10),
        (3, 0) => Some(&V3_0),
        _ => None,
    }
}

const CELL_LEN: usize = 16;
/// Filtered values end a beam.
const FILTERED_LEN: usize = 16;

fn i32_of(part: Part<'_>, at: usize) -> i32 {
    part.u32(u32_at(at)).cast_signed()
}

impl NrMeas {
    /// The log code.
    pub const CODE: u16 = 0xB97F;
    /// The versions, major and minor, that have a layout.
    pub const VERSIONS: &'static [(u16, u16)] = &[(2, 7), (2, 9), (2, 10), (3, 0)];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(4, "version")?;
        let (major, minor) = (version.u16(MAJOR), version.u16(MINOR));
        let Some(layout) = layout(major, minor) else { return Ok(None) };
        let head = cursor.take(layout.layers + 12, "message head")?;
        let mut problem = None;
        let count = head.u8(u8_at(layout.layers));
        let layers = cursor
            .list(count.into(), &mut problem, |cursor, problem| layer(cursor, layout, problem));
        let ssb_period_ms = head.u8(u8_at(layout.layers + 1));
        Ok(Some((Self { major, minor, ssb_period_ms, layers }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some(layout) = layout(self.major, self.minor) else { return Vec::new() };
        let mut writer = Writer::new(layout.layers + 12);
        writer
            .set(0, MINOR, self.minor)
            .set(0, MAJOR, self.major)
            .set(0, u8_at(layout.layers), self.layers.len() as u64)
            .set(0, u8_at(layout.layers + 1), self.ssb_period_ms);
        for layer in &self.layers {
            let start = writer.part(layout.layer_len);
            writer
                .set(start, u32_at(0), layer.arfcn)
                .set(start, layout.cells, layer.cells.len() as u64)
                .set(start, layout.serving_index, layer.serving_index)
                .set(start, layout.serving_pci, layer.serving_pci)
                .set(start, layout.serving_ssb, layer.serving_ssb);
            for cell in &layer.cells {
                cell.emit(&mut writer, layout);
            }
        }
        writer.finish()
    }
}

fn layer(
    cursor: &mut Cursor<'_>,
    layout: &Layout,
    problem: &mut Option<Short>,
) -> Result<NrMeasLayer, Short> {
    let part = cursor.take(layout.layer_len, "layer")?;
    let cells = cursor.list(part.u8(layout.cells).into(), problem, |cursor, problem| {
        let part = cursor.take(CELL_LEN, "cell")?;
        let beams = cursor.list(part.u8(u8_at(4)).into(), problem, |cursor, _| {
            let part = cursor.take(layout.beam_len, "beam")?;
            let filtered = layout.beam_len - FILTERED_LEN;
            Ok(NrMeasBeam {
                ssb: part.u16(u16_at(0)),
                rx_beams: [part.u16(u16_at(4)), part.u16(u16_at(6))],
                rsrp_x128: [i32_of(part, 20), i32_of(part, 24)],
                filtered_x128: std::array::from_fn(|i| i32_of(part, filtered + 4 * i)),
            })
        });
        Ok(NrMeasCell {
            pci: part.u16(u16_at(0)),
            sfn: part.u16(u16_at(2)),
            rsrp_x128: i32_of(part, 8),
            rsrq_x128: i32_of(part, 12),
            beams,
        })
    });
    Ok(NrMeasLayer {
        arfcn: part.u32(u32_at(0)),
        serving_index: part.u8(layout.serving_index),
        serving_pci: part.u16(layout.serving_pci),
        serving_ssb: part.u8(layout.serving_ssb),
        cells,
    })
}

impl NrMeasCell {
    fn emit(&self, writer: &mut Writer, layout: &Layout) {
        let start = writer.part(CELL_LEN);
        writer
            .set(start, u16_at(0), self.pci)
            .set(start, u16_at(2), self.sfn)
            .set(start, u8_at(4), self.beams.len() as u64)
            .set(start, u32_at(8), self.rsrp_x128.cast_unsigned())
            .set(start, u32_at(12), self.rsrq_x128.cast_unsigned());
        for beam in &self.beams {
            let start = writer.part(layout.beam_len);
            writer
                .set(start, u16_at(0), beam.ssb)
                .set(start, u16_at(4), beam.rx_beams[0])
                .set(start, u16_at(6), beam.rx_beams[1])
                .set(start, u32_at(20), beam.rsrp_x128[0].cast_unsigned())
                .set(start, u32_at(24), beam.rsrp_x128[1].cast_unsigned());
            let filtered = layout.beam_len - FILTERED_LEN;
            for (i, value) in beam.filtered_x128.iter().enumerate() {
                writer.set(start, u32_at(filtered + 4 * i), value.cast_unsigned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_both_ways() {
        let beam = NrMeasBeam {
            ssb: 3,
            rx_beams: [7, 8],
            rsrp_x128: [-13_000, -14_000],
            filtered_x128: [-12_800, -1_280, 0, 0],
        };
        let cell = NrMeasCell {
            pci: 700,
            sfn: 254,
            rsrp_x128: -12_800,
            rsrq_x128: -1_408,
            beams: vec![beam; 2],
        };
        let layer = NrMeasLayer {
            arfcn: 634_080,
            serving_index: 0,
            serving_pci: 700,
            serving_ssb: 3,
            cells: vec![cell; 2],
        };
        let lens = [
            16 + 32 + 2 * (16 + 88),
            20 + 32 + 2 * (16 + 88),
            20 + 32 + 2 * (16 + 168),
            20 + 40 + 2 * (16 + 168),
        ];
        for (&(major, minor), len) in NrMeas::VERSIONS.iter().zip(lens) {
            let meas = NrMeas { major, minor, ssb_period_ms: 20, layers: vec![layer.clone()] };
            let payload = meas.emit();
            assert_eq!(payload.len(), len, "{major}.{minor}");
            assert_eq!(NrMeas::parse(&payload), Ok(Some((meas.clone(), None))));
            let (cut, problem) = NrMeas::parse(&payload[..len - 1]).unwrap().unwrap();
            assert_eq!(problem.unwrap().field, "beam");
            assert_eq!(cut.layers[0].cells[1].beams.len(), 1);
        }
    }
}
