//! From records to a modem log: the DIAG messages that a phone would write, in its
//! batches and with its delays, framed as a `.mi2log`/`.qmdl` or a `.dlf`.
//!
//! Fields that records lack are filled in plausibly or left at zero: RNTI, PRB positions,
//! cell identity (test PLMN 001-01), decoder iterations, framing bits of RLC headers, the
//! SN that a STATUS PDU acknowledges. Apart from these, reading the log returns the
//! records.
//!
//! | message | written |
//! |---|---|
//! | 0xB126, 0xB130, 0xB193 | 1 to 3 ms after the air |
//! | 0xB132 | batches of 10, 2 ms after the last or 100 ms after the first |
//! | 0xB173 | batches of 21, 4 ms after the last or 300 ms after the first |
//! | 0xB063, 0xB064 | batches of 10, or 60 ms after the first |
//! | 0xB066 | batches of 40, one sample a millisecond |
//! | 0xB067 | every 100 ms |
//! | 0xB082, 0xB092 | batches of 40, or 100 ms after the first |
//! | 0xB139 | batches of 11, or 10 ms after the last |
//! | 0xB0C1, 0xB0C2 | at once |
//! | 0xB887, 0xB872 | batches of 10 slots, 4 ms after the last, or 60 ms after the first |
//! | 0xB888 | every 40 ms |

mod batch;
mod downlink;
mod live;
mod nr;
mod uplink;

use std::collections::BTreeMap;

use crate::diag::msg::{
    Message, PdcchCandidate, RrcMib, RrcServCell, ServCellMeas, ServCellSubpacket,
};
use crate::diag::{dlf, frame, hdlc, time};
use airmile_model::{CellInfo, Direction, Measurement, Position, Record, Stamp, TtiIndex};

pub use self::live::LiveLog;

use self::batch::Batch;
use self::downlink::Downlink;
use self::uplink::Uplink;

/// The framing of packets in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// HDLC with CRC, as `.mi2log` and `.qmdl` have it.
    Hdlc,
    /// Length-prefixed log records, as `.dlf` has it.
    Dlf,
}

/// The messages and their versions: sets that occur together in public logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A phone of 2016: 0xB126 v23, 0xB063 v2, 0xB193 v19.
    Lte2016,
    /// A phone of 2018: all layers, 0xB126 v104 and 0xB173 v24 among them.
    Lte2018,
    /// A phone of 2021 with two SIMs: 0xB126 v123, no 0xB173 and no 0xB132,
    /// packets wrapped for subscription 1.
    Lte2021,
}

/// Message versions of a profile; `None`: not logged.
#[derive(Debug, Clone, Copy)]
struct Versions {
    pdsch_packet: u8,
    pdsch_stat: Option<u8>,
    pdsch_decoding: Option<u8>,
    pdcch: Option<u8>,
    mac_dl: u8,
    mac_ul: Option<u8>,
    ul_buffer: Option<u8>,
    ul_statistics: Option<u8>,
    rlc: Option<u8>,
    pusch: Option<u8>,
    serv_cell: u8,
    mib: Option<u8>,
    serv_cell_info: Option<u8>,
}

const LTE_2016: Versions = Versions {
    pdsch_packet: 23,
    pdsch_stat: None,
    pdsch_decoding: None,
    pdcch: None,
    mac_dl: 2,
    mac_ul: None,
    ul_buffer: None,
    ul_statistics: None,
    rlc: None,
    pusch: None,
    serv_cell: 19,
    mib: None,
    serv_cell_info: None,
};

const LTE_2018: Versions = Versions {
    pdsch_packet: 104,
    pdsch_stat: Some(24),
    pdsch_decoding: Some(106),
    pdcch: Some(101),
    mac_dl: 4,
    mac_ul: Some(2),
    ul_buffer: Some(24),
    ul_statistics: Some(2),
    rlc: Some(3),
    pusch: Some(102),
    serv_cell: 22,
    mib: Some(2),
    serv_cell_info: Some(3),
};

const LTE_2021: Versions = Versions {
    pdsch_packet: 123,
    pdsch_stat: None,
    pdsch_decoding: None,
    pdcch: Some(121),
    pusch: Some(124),
    serv_cell: 36,
    ..LTE_2018
};

impl Profile {
    const fn versions(self) -> Versions {
        match self {
            Self::Lte2016 => LTE_2016,
            Self::Lte2018 => LTE_2018,
            Self::Lte2021 => LTE_2021,
        }
    }

    /// Subscription of the multi-SIM wrapper; 0: no wrapper.
    const fn subscription(self) -> u8 {
        match self {
            Self::Lte2016 | Self::Lte2018 => 0,
            Self::Lte2021 => 1,
        }
    }
}

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Container.
    pub framing: Framing,
    /// Messages.
    pub profile: Profile,
    /// Begins with the second half of a frame, as rotated HDLC logs do.
    pub torn_start: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { framing: Framing::Hdlc, profile: Profile::Lte2018, torn_start: false }
    }
}

/// Why records cannot be written as a modem log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModemLogError {
    /// The cell's identity and bandwidth are unknown.
    #[error("no cell_info record with pci, earfcn, n_prb_dl: a modem log needs one")]
    NoCell,
    /// Records of different timing segments.
    #[error("records of several timing segments: write one log for each")]
    SeveralSegments,
}

/// Writes the records, which are in time order, as a modem log.
///
/// # Errors
/// Records that one log cannot hold; see [`ModemLogError`].
pub fn write(records: &[Record], options: &Options) -> Result<Vec<u8>, ModemLogError> {
    let mut log = LogCollector::new(records, options.profile)?;
    for record in records {
        log.push(record);
    }
    Ok(frame_all(log.finish(), options))
}

/// Writes an NR modem's log and, if `lte` has records, that of the LTE leg with it, as a
/// phone with EN-DC does. Both are in time order.
///
/// # Errors
/// Records that one log cannot hold; see [`ModemLogError`].
pub fn write_nr(
    lte: &[Record],
    nr: &[Record],
    options: &Options,
) -> Result<Vec<u8>, ModemLogError> {
    nr::check(nr)?;
    let mut messages = Vec::new();
    if !lte.is_empty() {
        let mut log = LogCollector::new(lte, options.profile)?;
        lte.iter().for_each(|record| log.push(record));
        messages.extend(log.finish());
    }
    let mut log = nr::NrLog::default();
    nr.iter().for_each(|record| log.push(record));
    messages.extend(log.finish());
    messages.sort_by_key(|(at, _)| *at);
    Ok(frame_all(messages, options))
}

/// The serving cell, and the phone's invented RNTI in it.
#[derive(Debug, Clone, Copy)]
struct Cell {
    pci: u16,
    earfcn: u32,
    n_prb: u16,
    n_tx_antennas: u8,
}

/// Time of TTI index 0 where no record has a stamp (chosen here: 2026-01-05, 09:00 UTC).
const UNSTAMPED_ORIGIN_NS: i64 = 1_767_603_600_000_000_000;

/// RNTI of the phone (chosen here: a C-RNTI, TS 36.321, table 7.1-1).
const C_RNTI: u16 = 0x4D2A;

/// A test network (ITU-T E.212: MCC 001 is for tests), with a made-up cell.
const MCC: u16 = 1;
const MNC: u16 = 1;
const TRACKING_AREA: u16 = 1;
const CELL_IDENTITY: u32 = 0x000_1A01;

/// EARFCNs of an uplink lie this far above the downlink's (TS 36.101, 5.7.3).
const UPLINK_EARFCN_OFFSET: u32 = 18_000;

/// A message and the TTI-based time, in ms, at which it is written.
type Written = (f64, Message);

/// Candidates decoded on the control channel, by TTI.
type Candidates = BTreeMap<TtiIndex, Vec<PdcchCandidate>>;

/// Collects messages with the time of their writing.
struct LogCollector {
    versions: Versions,
    cell: Cell,
    /// Time of TTI index 0 in ns.
    origin_ns: i64,
    out: Vec<Written>,
    downlink: Downlink,
    uplink: Uplink,
    candidates: Candidates,
    statistics: Batch<uplink::Statistics>,
}

impl LogCollector {
    fn new(records: &[Record], profile: Profile) -> Result<Self, ModemLogError> {
        let cell = records.iter().find_map(serving_cell).ok_or(ModemLogError::NoCell)?;
        let mut segments = records.iter().filter_map(position).map(|at| at.timing_segment);
        let first = segments.next();
        if segments.any(|segment| Some(segment) != first) {
            return Err(ModemLogError::SeveralSegments);
        }
        let stamped = |record: &Record| Some((record.at()?, position(record)?));
        let origin = records.iter().find_map(stamped).map(|(at, of)| origin_ns(at, of));
        Ok(Self {
            versions: profile.versions(),
            cell,
            origin_ns: origin.unwrap_or(UNSTAMPED_ORIGIN_NS),
            out: Vec::new(),
            downlink: Downlink::new(),
            uplink: Uplink::new(records),
            candidates: BTreeMap::new(),
            statistics: uplink::statistics_batch(),
        })
    }

    fn push(&mut self, record: &Record) {
        if let Some(at) = position(record) {
            let now = at.tti.0;
            self.downlink.write_due(now, &self.versions, self.cell, &mut self.out);
            self.uplink.write_due(now, &self.versions, self.cell, &mut self.out);
        }
        match record {
            Record::Grant(grant) if grant.dir == Direction::Dl => {
                self.downlink.grant(grant, &self.versions, self.cell, &mut self.out);
                self.candidate(grant.position.tti, downlink::candidate(grant));
            }
            Record::Grant(grant) => {
                self.uplink.grant(grant, self.cell);
                // PUSCH follows its grant by 4 ms (TS 36.213, 8); a retransmission needs
                // none.
                if grant.retx != Some(true) {
                    self.candidate(grant.position.tti.plus(-4), uplink::candidate(grant));
                }
            }
            Record::MacBlock(block) if block.dir == Direction::Dl => {
                self.downlink.mac_block(block);
            }
            Record::MacBlock(block) => {
                self.statistics_due(block.position.tti.0);
                let item = self.uplink.mac_block(block);
                self.statistics.push(block.position.tti.0, item);
            }
            Record::Rlc(pdu) if pdu.dir == Direction::Dl => {
                self.downlink.rlc(pdu);
            }
            Record::Rlc(pdu) => self.uplink.rlc(pdu),
            Record::BufferStatus(status) => {
                self.uplink.buffer(status);
            }
            Record::Measurement(measurement) => self.measurement(measurement),
            Record::CellInfo(info) => self.cell_info(info),
            _ => {}
        }
    }

    fn candidate(&mut self, tti: TtiIndex, candidate: PdcchCandidate) {
        if self.versions.pdcch.is_some() {
            self.candidates.entry(tti).or_default().push(candidate);
        }
    }

    fn statistics_due(&mut self, now: i64) {
        if let (Some(version), Some((at, items))) =
            (self.versions.ul_statistics, self.statistics.due(now))
        {
            self.out.push((at, uplink::statistics(version, &items)));
        }
    }

    fn measurement(&mut self, m: &Measurement) {
        let subpacket = ServCellSubpacket {
            version: self.versions.serv_cell,
            earfcn: m.earfcn,
            n_cells: Some(1),
            pci: m.pci,
            serving_cell: m.position.cell,
            is_serving: Some(true),
            tti: Some(m.position.tti.wrapped()),
            sfn: Some(m.position.tti.wrapped().sfn()),
            rsrp_rx0_dbm: m.rsrp_rx0_dbm,
            rsrp_rx1_dbm: m.rsrp_rx1_dbm,
            rsrp_rx2_dbm: None,
            rsrp_rx3_dbm: None,
            rsrp_dbm: m.rsrp_dbm,
            rsrq_rx0_db: m.rsrq_rx0_db,
            rsrq_rx1_db: m.rsrq_rx1_db,
            rsrq_db: m.rsrq_db,
            rssi_rx0_dbm: m.rssi_rx0_dbm,
            rssi_rx1_dbm: m.rssi_rx1_dbm,
            rssi_dbm: m.rssi_dbm,
            snr_rx0_db: m.snr_rx0_db,
            snr_rx1_db: m.snr_rx1_db,
        };
        let message = ServCellMeas { version: 1, subpackets: vec![subpacket] };
        self.out.push((prompt(m.position.tti, ServCellMeas::CODE), message.into()));
    }

    fn cell_info(&mut self, info: &CellInfo) {
        let Cell { pci, earfcn, n_prb, n_tx_antennas } = self.cell;
        let at_ms = info.at.map_or(0.0, |at| (at.ns - self.origin_ns) as f64 / 1e6);
        let tti = TtiIndex(at_ms as i64);
        let n_prb_dl = byte(n_prb);
        if let Some(version) = self.versions.mib {
            let sfn = tti.wrapped().sfn();
            let mib = RrcMib { version, pci, earfcn, sfn, n_tx_antennas, n_prb_dl };
            self.out.push((at_ms, mib.into()));
        }
        if let Some(version) = self.versions.serv_cell_info {
            let serving = RrcServCell {
                version,
                pci,
                earfcn_dl: earfcn,
                earfcn_ul: earfcn + UPLINK_EARFCN_OFFSET,
                n_prb_dl,
                n_prb_ul: byte(info.n_prb_ul.unwrap_or(n_prb)),
                cell_identity: CELL_IDENTITY,
                tac: TRACKING_AREA,
                band: info.band.unwrap_or(0),
                mcc: MCC,
                mnc_digits: 2,
                mnc: MNC,
                allowed_access: 0,
            };
            self.out.push((at_ms, serving.into()));
        }
    }

    /// All messages in order of writing, with their time in ns.
    fn finish(mut self) -> Vec<(i64, Message)> {
        self.downlink.write_due(i64::MAX, &self.versions, self.cell, &mut self.out);
        self.uplink.write_due(i64::MAX, &self.versions, self.cell, &mut self.out);
        self.statistics_due(i64::MAX);
        let candidates = std::mem::take(&mut self.candidates);
        self.decoded(candidates);
        let ns = |ms: f64| self.origin_ns + (ms * 1e6) as i64;
        let mut out: Vec<(i64, Message)> =
            self.out.into_iter().map(|(ms, message)| (ns(ms), message)).collect();
        out.sort_by_key(|(at, _)| *at);
        out
    }
}

/// The writing time of a message that is written at once: 1 to 3 ms after its TTI,
/// pseudo-random and the same in every run.
fn prompt(tti: TtiIndex, code: u16) -> f64 {
    let mixed = (tti.0 as u64 ^ u64::from(code) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    tti.0 as f64 + 1.0 + 2.0 * ((mixed >> 40) as f64 / (1u64 << 24) as f64)
}

fn byte(value: u16) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

fn serving_cell(record: &Record) -> Option<Cell> {
    let Record::CellInfo(info) = record else { return None };
    Some(Cell {
        pci: info.pci?,
        earfcn: info.earfcn?,
        n_prb: info.n_prb_dl?,
        n_tx_antennas: info.n_tx_antennas.unwrap_or(1),
    })
}

/// The position of a record that is written.
const fn position(record: &Record) -> Option<Position> {
    match record {
        Record::Grant(r) => Some(r.position),
        Record::Rlc(r) => Some(r.position),
        Record::BufferStatus(r) => Some(r.position),
        Record::MacBlock(r) => Some(r.position),
        Record::Measurement(r) => Some(r.position),
        _ => None,
    }
}

const fn origin_ns(at: Stamp, of: Position) -> i64 {
    at.ns - of.tti.0 * 1_000_000
}

fn frame_all(messages: Vec<(i64, Message)>, options: &Options) -> Vec<u8> {
    let mut out = Vec::new();
    let mut packet = Vec::new();
    for (at_ns, message) in messages {
        let (code, ts_raw, payload) = (message.code(), time::from_unix_ns(at_ns), message.emit());
        match options.framing {
            Framing::Dlf => dlf::emit(code, ts_raw, &payload, &mut out),
            Framing::Hdlc => {
                packet.clear();
                frame::emit_log(
                    options.profile.subscription(),
                    code,
                    ts_raw,
                    &payload,
                    &mut packet,
                );
                let start = out.len();
                hdlc::encode(&packet, &mut out);
                if options.torn_start && start == 0 {
                    // The rest of a frame that begins in an earlier file.
                    let torn = out[out.len() / 2..].to_vec();
                    out.splice(0..0, torn);
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod nr_tests;
#[cfg(test)]
mod tests;
