//! 0xB193, LTE_PHY_Serv_Cell_Measurement: RSRP, RSRQ, RSSI and SNR of a serving
//! cell, per receive antenna.
//!
//! Subpacket 25, versions 4, 18, 19, 22, 35, 36, 48, 50 and 59 to 66; a subpacket
//! may announce several cells, of which the first is read. Scales: RSRP `x / 16 - 180` dBm,
//! RSRQ `x / 16 - 30` dB, RSSI `x / 16 - 110` dBm, SNR `x / 10 - 20` dB; a raw
//! 0 is "not measured". (TS 36.214, 5.1 defines the measures.)
//!
//! The combined RSRQ of v22 and v36 is at the position where it equals the larger of the
//! antennas' in public logs; other tools read a word of one antenna there. RSSI and SNR
//! of v36 follow the layout of v35, which the identity `RSRQ = 10 log10(N) + RSRP - RSSI`
//! confirms on public logs.
//!
//! v4 has an SFN and no subframe: the four bits that hold one in later versions take all
//! 16 values equally. v48 and v50 are v36 with a map of antennas before the cell, and in
//! v59 to v66 that map belongs to the cell; no sample of these was available, so a
//! reading is used only if that identity holds.

use airmile_model::Tti;
use serde::Serialize;

use super::shared::{
    RSRP_OFFSET_DBM, RSRQ_OFFSET_DB, RSSI_OFFSET_DBM, TimeAt, get_tti, set_tti, sixteenths,
    to_sixteenths, tti_count,
};
use super::subpacket::{self, Body};
use crate::diag::bits::{Field, Part, Writer, bits_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// Measurements of serving cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServCellMeas {
    /// Message version: 1.
    pub version: u8,
    /// The subpackets that were understood.
    pub subpackets: Vec<ServCellSubpacket>,
}

/// A measurement of a serving cell; `None` is "not measured" or not stored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ServCellSubpacket {
    /// Subpacket version: 4, 18, 19, 22, 35, 36, 48, 50 or 59 to 66.
    pub version: u8,
    /// Downlink EARFCN.
    pub earfcn: u32,
    /// Cells that the subpacket announces; v19 and later.
    pub n_cells: Option<u16>,
    /// Physical cell identity.
    pub pci: u16,
    /// 0 the primary cell, 1.. the secondary cells.
    pub serving_cell: u8,
    /// Whether it is a serving cell; v18 and later.
    pub is_serving: Option<bool>,
    /// Subframe of the measurement; not in v4.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// System frame number of the measurement, if there is no subframe: v4.
    pub sfn: Option<u16>,
    /// RSRP of receive antenna 0 in dBm.
    pub rsrp_rx0_dbm: Option<f32>,
    /// RSRP of receive antenna 1 in dBm.
    pub rsrp_rx1_dbm: Option<f32>,
    /// RSRP of receive antenna 2 in dBm; v35, v48 and later.
    pub rsrp_rx2_dbm: Option<f32>,
    /// RSRP of receive antenna 3 in dBm; v35, v48 and later.
    pub rsrp_rx3_dbm: Option<f32>,
    /// RSRP, combined, in dBm.
    pub rsrp_dbm: Option<f32>,
    /// RSRQ of receive antenna 0 in dB.
    pub rsrq_rx0_db: Option<f32>,
    /// RSRQ of receive antenna 1 in dB.
    pub rsrq_rx1_db: Option<f32>,
    /// RSRQ, combined, in dB.
    pub rsrq_db: Option<f32>,
    /// RSSI of receive antenna 0 in dBm.
    pub rssi_rx0_dbm: Option<f32>,
    /// RSSI of receive antenna 1 in dBm.
    pub rssi_rx1_dbm: Option<f32>,
    /// RSSI, combined, in dBm.
    pub rssi_dbm: Option<f32>,
    /// SNR of receive antenna 0 in dB.
    pub snr_rx0_db: Option<f32>,
    /// SNR of receive antenna 1 in dB.
    pub snr_rx1_db: Option<f32>,
}

const ID: u8 = 25;

/// PRB pairs of the bandwidths of LTE (TS 36.101, table 5.6-1).
const LTE_BANDWIDTHS_PRB: [u16; 6] = [6, 15, 25, 50, 75, 100];
/// Physical cell identities go to 503 (TS 36.211, 6.11).
const MAX_PCI: u16 = 503;
/// Chosen here: the identity holds within 0.6 dB in public logs of v36.
const IDENTITY_TOLERANCE_DB: f32 = 0.75;

/// Positions from the byte after the subpacket's head.
struct Layout {
    /// Bytes that the fields up to RSSI need.
    need: usize,
    /// Bytes that the SNR also needs; without them it is `None`.
    full: usize,
    /// Bytes logged by phones (or written here, without a public log).
    len: usize,
    earfcn: Field,
    n_cells: Option<Field>,
    pci: Field,
    serving: Field,
    is_serving: Option<Field>,
    /// Offset of the SFN, with the subframe below it.
    time: Time,
    rsrp: [Option<Field>; 5],
    rsrq: [Option<Field>; 3],
    rssi: [Option<Field>; 3],
    snr: [Option<Field>; 2],
}

const fn some(at: usize, low: usize, bits: u32) -> Option<Field> {
    Some(bits_at(at, low, bits))
}

/// Time of a measurement.
#[derive(Clone, Copy)]
enum Time {
    Subframe(TimeAt),
    Frame(Field),
}

const fn time_at(at: usize) -> Time {
    Time::Subframe(TimeAt::Split { sfn: bits_at(at, 0, 10), subframe: bits_at(at, 10, 4) })
}

const V4: Layout = Layout {
    need: 40,
    full: 64,
    len: 64,
    earfcn: u16_at(0),
    n_cells: None,
    pci: bits_at(2, 0, 9),
    serving: bits_at(2, 9, 3),
    is_serving: None,
    time: Time::Frame(bits_at(4, 0, 10)),
    rsrp: [some(12, 10, 12), some(16, 12, 12), None, None, some(20, 12, 12)],
    rsrq: [some(24, 12, 10), some(28, 0, 10), some(28, 20, 10)],
    rssi: [some(32, 10, 11), some(32, 21, 11), some(36, 0, 11)],
    snr: [some(60, 0, 9), some(60, 9, 9)],
};

const V18: Layout = Layout {
    need: 45,
    full: 45,
    len: 48,
    earfcn: u32_at(0),
    n_cells: None,
    pci: bits_at(4, 0, 9),
    serving: bits_at(4, 9, 3),
    is_serving: some(4, 12, 1),
    time: time_at(8),
    rsrp: [some(21, 2, 11), some(25, 4, 11), None, None, some(29, 4, 11)],
    rsrq: [some(33, 4, 9), some(37, 2, 10), some(37, 12, 10)],
    rssi: [some(41, 2, 11), some(41, 13, 11), some(41, 13, 11)],
    snr: [None, None],
};

const V19: Layout = Layout {
    need: 52,
    full: 76,
    len: 360,
    earfcn: u32_at(0),
    n_cells: Some(u16_at(4)),
    pci: bits_at(8, 0, 9),
    serving: bits_at(8, 9, 3),
    is_serving: some(8, 12, 1),
    time: time_at(12),
    rsrp: [some(24, 10, 12), some(28, 12, 12), None, None, some(32, 12, 12)],
    rsrq: [some(36, 12, 10), some(40, 0, 10), some(40, 20, 10)],
    rssi: [some(44, 10, 11), some(44, 21, 11), some(48, 0, 11)],
    snr: [some(72, 0, 9), some(72, 9, 9)],
};

const V22: Layout = Layout {
    need: 64,
    full: 88,
    len: 488,
    rsrp: [some(24, 10, 12), some(28, 12, 12), None, None, some(36, 12, 12)],
    rsrq: [some(40, 12, 10), some(44, 0, 10), some(48, 10, 10)],
    rssi: [some(52, 10, 11), some(52, 21, 11), some(60, 0, 11)],
    snr: [some(84, 0, 9), some(84, 9, 9)],
    ..V19
};

const V35: Layout = Layout {
    rsrp: [some(24, 10, 12), some(28, 12, 12), some(32, 12, 12), some(36, 0, 12), some(36, 12, 12)],
    ..V22
};

const V36: Layout = Layout {
    need: 68,
    full: 92,
    len: 520,
    rsrp: [some(24, 10, 12), some(28, 12, 12), None, None, some(40, 0, 12)],
    rsrq: [some(44, 0, 10), some(44, 20, 10), some(52, 0, 10)],
    rssi: [some(56, 0, 11), some(56, 11, 11), some(64, 0, 11)],
    snr: [some(88, 0, 9), some(88, 9, 9)],
    ..V19
};

const V48: Layout = Layout {
    need: 72,
    full: 108,
    len: 152,
    pci: bits_at(12, 0, 9),
    serving: bits_at(12, 9, 3),
    is_serving: some(12, 12, 1),
    time: time_at(16),
    rsrp: [some(28, 10, 12), some(32, 12, 12), some(36, 12, 12), some(40, 0, 12), some(44, 0, 12)],
    rsrq: [some(48, 0, 10), some(48, 20, 10), some(56, 0, 10)],
    rssi: [some(60, 0, 11), some(60, 11, 11), some(68, 0, 11)],
    snr: [some(104, 0, 9), some(104, 9, 9)],
    ..V36
};

const V59: Layout = Layout {
    need: 76,
    full: 112,
    len: 156,
    pci: bits_at(16, 0, 9),
    serving: bits_at(16, 9, 3),
    is_serving: some(16, 12, 1),
    time: time_at(20),
    rsrp: [some(32, 10, 12), some(36, 12, 12), some(40, 12, 12), some(44, 0, 12), some(48, 0, 12)],
    rsrq: [some(52, 0, 10), some(52, 20, 10), some(60, 0, 10)],
    rssi: [some(64, 0, 11), some(64, 11, 11), some(72, 0, 11)],
    snr: [some(108, 0, 9), some(108, 9, 9)],
    ..V48
};

const fn layout(version: u8) -> Option<&'static Layout> {
    match version {
        4 => Some(&V4),
        18 => Some(&V18),
        19 => Some(&V19),
        22 => Some(&V22),
        35 => Some(&V35),
        36 => Some(&V36),
        48 | 50 => Some(&V48),
        59..=66 => Some(&V59),
        _ => None,
    }
}

impl ServCellMeas {
    /// The log code.
    pub const CODE: u16 = 0xB193;
    /// The subpacket versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[4, 18, 19, 22, 35, 36];
    /// Subpacket versions whose layout no sample confirms: an inconsistent reading is
    /// dropped.
    pub const CHECKED_VERSIONS: &'static [u8] = &[48, 50, 59, 60, 61, 62, 63, 64, 65, 66];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let parsed = subpacket::parse_all(payload, |body: &mut Body<'_>, _| {
            let version = body.version;
            let Some(layout) = layout(version).filter(|_| body.id == ID) else { return Ok(None) };
            let len = layout.full.min(body.cursor.left()).max(layout.need);
            let part = body.cursor.take(len, "measurement")?;
            let cell = ServCellSubpacket::parse(part, version, layout);
            let checked = Self::CHECKED_VERSIONS.contains(&version);
            Ok(Some(cell).filter(|cell| !checked || cell.adds_up()))
        })?;
        Ok(parsed.map(|(version, subpackets, problem)| (Self { version, subpackets }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = subpacket::emit_head(self.version, self.subpackets.len());
        for sub in &self.subpackets {
            let Some(layout) = layout(sub.version) else { continue };
            subpacket::emit(&mut writer, ID, sub.version, |writer| sub.emit(writer, layout));
        }
        writer.finish()
    }
}

impl ServCellSubpacket {
    fn parse(part: Part<'_>, version: u8, layout: &Layout) -> Self {
        let scaled =
            |field: Option<Field>, offset| field.and_then(|f| sixteenths(part.get(f), offset));
        let snr = |field: Option<Field>| {
            let raw = field.map(|field| part.u16(field)).filter(|&raw| raw != 0);
            raw.map(|raw| f32::from(raw) * 0.1 - 20.0)
        };
        let [rsrp_rx0, rsrp_rx1, rsrp_rx2, rsrp_rx3, rsrp] =
            layout.rsrp.map(|field| scaled(field, RSRP_OFFSET_DBM));
        let [rsrq_rx0_db, rsrq_rx1_db, rsrq_db] =
            layout.rsrq.map(|field| scaled(field, RSRQ_OFFSET_DB));
        let [rssi_rx0_dbm, rssi_rx1_dbm, rssi_dbm] =
            layout.rssi.map(|field| scaled(field, RSSI_OFFSET_DBM));
        let [snr_rx0_db, snr_rx1_db] = layout.snr.map(snr);
        let (tti, sfn) = match layout.time {
            Time::Subframe(at) => (get_tti(part, at), None),
            Time::Frame(field) => (None, Some(part.u16(field))),
        };
        Self {
            version,
            earfcn: part.u32(layout.earfcn),
            n_cells: layout.n_cells.map(|field| part.u16(field)),
            pci: part.u16(layout.pci),
            serving_cell: part.u8(layout.serving),
            is_serving: layout.is_serving.map(|field| part.flag(field)),
            tti,
            sfn,
            rsrp_rx0_dbm: rsrp_rx0,
            rsrp_rx1_dbm: rsrp_rx1,
            rsrp_rx2_dbm: rsrp_rx2,
            rsrp_rx3_dbm: rsrp_rx3,
            rsrp_dbm: rsrp,
            rsrq_rx0_db,
            rsrq_rx1_db,
            rsrq_db,
            rssi_rx0_dbm,
            rssi_rx1_dbm,
            rssi_dbm,
            snr_rx0_db,
            snr_rx1_db,
        }
    }

    /// Whether time and identity are valid, and power and quality of at least one antenna
    /// and of their combination fit a bandwidth of LTE: `RSRQ = 10 log10(N) + RSRP -
    /// RSSI` (TS 36.214, 5.1.3).
    fn adds_up(&self) -> bool {
        let fits = |rsrp: Option<f32>, rsrq: Option<f32>, rssi: Option<f32>| {
            let (rsrp, rsrq, rssi) = (rsrp?, rsrq?, rssi?);
            let n_prb_db = rsrq - rsrp + rssi;
            let nearest = LTE_BANDWIDTHS_PRB
                .into_iter()
                .map(|n_prb| (10.0 * f32::from(n_prb).log10() - n_prb_db).abs())
                .fold(f32::INFINITY, f32::min);
            Some(nearest <= IDENTITY_TOLERANCE_DB)
        };
        let of_rx0 = fits(self.rsrp_rx0_dbm, self.rsrq_rx0_db, self.rssi_rx0_dbm);
        let of_rx1 = fits(self.rsrp_rx1_dbm, self.rsrq_rx1_db, self.rssi_rx1_dbm);
        self.tti.is_some()
            && self.pci <= MAX_PCI
            && of_rx0 != Some(false)
            && of_rx1 != Some(false)
            && of_rx0.or(of_rx1) == Some(true)
    }

    fn emit(&self, writer: &mut Writer, layout: &Layout) {
        let start = writer.part(layout.len);
        match layout.time {
            Time::Subframe(at) => set_tti(writer, start, at, self.tti),
            Time::Frame(field) => {
                writer.set(start, field, self.sfn.unwrap_or(0));
            }
        }
        writer.set(start, layout.earfcn, self.earfcn).set(start, layout.pci, self.pci).set(
            start,
            layout.serving,
            self.serving_cell,
        );
        if let Some(field) = layout.n_cells {
            writer.set(start, field, self.n_cells.unwrap_or(1));
        }
        if let Some(field) = layout.is_serving {
            writer.set(start, field, self.is_serving.unwrap_or(true));
        }
        let rsrp = [
            self.rsrp_rx0_dbm,
            self.rsrp_rx1_dbm,
            self.rsrp_rx2_dbm,
            self.rsrp_rx3_dbm,
            self.rsrp_dbm,
        ];
        let rsrq = [self.rsrq_rx0_db, self.rsrq_rx1_db, self.rsrq_db];
        let rssi = [self.rssi_rx0_dbm, self.rssi_rx1_dbm, self.rssi_dbm];
        let scaled = (layout.rsrp.iter().zip(rsrp).map(|pair| (pair, RSRP_OFFSET_DBM)))
            .chain(layout.rsrq.iter().zip(rsrq).map(|pair| (pair, RSRQ_OFFSET_DB)))
            .chain(layout.rssi.iter().zip(rssi).map(|pair| (pair, RSSI_OFFSET_DBM)));
        for ((field, value), offset) in scaled {
            if let Some(field) = field {
                writer.set(start, *field, to_sixteenths(value, offset));
            }
        }
        for (field, value) in layout.snr.iter().zip([self.snr_rx0_db, self.snr_rx1_db]) {
            if let Some(field) = field {
                let raw = value.map_or(0, |db| ((db + 20.0) * 10.0).round().max(1.0) as u64);
                writer.set(start, *field, raw);
            }
        }
    }
}

#[cfg(test)]
mod tests;
