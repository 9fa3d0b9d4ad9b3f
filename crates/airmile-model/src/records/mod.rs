//! Records: what decoders write and estimators read.

mod grant;
mod measurement;
mod nr;

pub use grant::{Grant, GrantSources};
pub use measurement::{Measurement, Neighbour, RadioLink};
pub use nr::{NrCell, NrMeasurement, NrStats, NrUlStats};

use crate::radio::{Direction, RlcMode, RntiType};
use crate::record;
use crate::row::Row;
use crate::stamp::Stamp;
use crate::tti::Position;

record! { "rlc"
/// One RLC PDU, as delivered to (downlink) or sent by (uplink) the phone's RLC.
pub struct RlcPdu {
    /// Time of delivery in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI of delivery to RLC, so after HARQ (downlink), or of sending (uplink).
    pub position: Position,
    /// `dl` or `ul`.
    pub dir: Direction,
    /// Bearer: the modem's RB configuration index, or the table's number.
    pub bearer: u8,
    /// Whether the bearer is a signalling bearer, if known.
    pub signalling: Option<bool>,
    /// RLC mode.
    pub mode: RlcMode,
    /// Sequence number (wraps at 1024 with 10 bits).
    pub sn: Option<u32>,
    /// Size of the PDU in bytes, header included.
    pub size_bytes: u32,
    /// Poll bit.
    pub poll: Option<bool>,
    /// True: a re-segmented PDU, so an RLC retransmission.
    pub resegment: bool,
    /// True: a STATUS PDU.
    pub status: bool,
}}

record! { "buffer_status"
/// The phone's own uplink buffer of one logical channel (0xB066).
pub struct BufferStatus {
    /// Time in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI of the sample.
    pub position: Position,
    /// Logical channel; null in a row without an active channel.
    pub lcid: Option<u8>,
    /// Priority of the channel, 1 highest.
    pub priority: Option<u8>,
    /// New data in bytes.
    pub new_bytes: u32,
    /// Data to be retransmitted, in bytes.
    pub retx_bytes: u32,
    /// RLC control in bytes.
    pub control_bytes: u32,
}}

record! { "bsr"
/// A buffer status report that the phone sent (TS 36.321, 6.1.3.1).
pub struct BsrReport {
    /// Time in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI of the block that carried it.
    pub position: Position,
    /// Logical channel group, 0 to 3; of NR to 7.
    pub lcg: u8,
    /// Buffer size index, 0 to 63; of NR to 31 (short) or 254 (long).
    pub index: u8,
    /// Maximum buffer in bytes for the index; null for the last index (more than that).
    pub upper_bound_bytes: Option<u32>,
}}

record! { "mac_block"
/// A MAC transport block (0xB063, 0xB064), downlink ones after HARQ success.
pub struct MacBlock {
    /// Time in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI of delivery (downlink) or sending (uplink).
    pub position: Position,
    /// `dl` or `ul`.
    pub dir: Direction,
    /// Kind of RNTI.
    pub rnti: RntiType,
    /// HARQ process.
    pub harq_id: u8,
    /// Transport block size (downlink) or grant (uplink) in bytes.
    pub tbs_bytes: u32,
    /// RLC PDUs in the block.
    pub rlc_pdus: u8,
    /// Padding in bytes.
    pub padding_bytes: u32,
    /// Bytes of SDUs on data bearers; null if the header was not logged completely.
    pub data_bytes: Option<u32>,
    /// Logical channels and control elements in the header, in order, space separated.
    pub lcids: String,
}}

record! { "dci"
/// A DCI candidate that the phone decoded (0xB130).
pub struct Dci {
    /// Time in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI it was received in.
    pub position: Position,
    /// DCI format, such as `1A`.
    pub format: &'static str,
    /// Kind of RNTI.
    pub rnti: RntiType,
    /// Control channel elements: 1, 2, 4 or 8.
    pub aggregation_level: u8,
    /// True: the UE-specific search space.
    pub ue_search_space: bool,
    /// Prune status (1, 3, 4, 6: decoded).
    pub prune_status: u16,
    /// PRB pairs of the cell.
    pub n_prb_cell: Option<u16>,
    /// The DCI's bits as stored.
    pub payload: Vec<u8>,
}}

record! { "pdsch_decode"
/// A turbo decoding result of one stream (0xB132).
pub struct PdschDecode {
    /// Time in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI of the transmission.
    pub position: Position,
    /// Kind of RNTI.
    pub rnti: RntiType,
    /// HARQ process.
    pub harq_id: u8,
    /// Code word.
    pub tb: u8,
    /// Whether the block's CRC passed.
    pub crc_ok: bool,
    /// New data indicator.
    pub ndi: bool,
    /// Redundancy version.
    pub rv: u8,
    /// Number of the retransmission, 0 for the first transmission.
    pub retx_count: u8,
    /// Whether soft bits of earlier transmissions were combined.
    pub combined: bool,
    /// Effective code rate.
    pub code_rate: f32,
    /// Code blocks of the transport block.
    pub code_blocks: u8,
    /// Code blocks whose CRC failed.
    pub code_blocks_failed: u8,
}}

record! { "ul_tx_stats"
/// Statistics of uplink grants over an interval (0xB067).
pub struct UlTxStats {
    /// Time in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// Subframes that it covers.
    pub n_tti: u8,
    /// Padding BSRs.
    pub padding_bsr: u8,
    /// Regular BSRs.
    pub regular_bsr: u8,
    /// Periodic BSRs.
    pub periodic_bsr: u8,
    /// Cancelled BSRs.
    pub cancelled_bsr: u8,
    /// Granted bytes.
    pub granted_bytes: u32,
    /// Used bytes of the grants.
    pub used_bytes: u32,
}}

record! { "rrc"
/// An RRC message over the air (0xB0C0, of NR 0xB821), without its contents.
pub struct RrcMessage {
    /// Time of writing in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI by the time of writing.
    pub position: Position,
    /// `dl` or `ul`.
    pub dir: Option<Direction>,
    /// RRC channel, by the PDU type of the message's version.
    pub channel: Option<&'static str>,
    /// PDU type as stored.
    pub pdu_type: u8,
    /// Physical cell identity.
    pub pci: u16,
    /// Downlink EARFCN.
    pub earfcn: u32,
    /// Size of the message in bytes.
    pub size_bytes: u32,
    /// True: an RRCConnectionReconfiguration with mobilityControlInfo, so a
    /// handover command; null on other channels than DL-DCCH.
    pub handover: Option<bool>,
}}

record! { "pdcp"
/// A PDCP data PDU (0xB0A3, 0xB0B3), without its contents.
pub struct PdcpPdu {
    /// Time in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI stated by the message.
    pub position: Position,
    /// `dl` or `ul`.
    pub dir: Direction,
    /// Bearer: the modem's RB configuration index.
    pub bearer: u8,
    /// Whether the bearer is a signalling bearer.
    pub signalling: bool,
    /// RLC mode of the bearer.
    pub mode: RlcMode,
    /// Bits of the sequence number, if its code is known.
    pub sn_bits: Option<u8>,
    /// Sequence number; its low 12 bits if it is longer.
    pub sn: u16,
    /// Size of the PDU in bytes.
    pub size_bytes: u32,
    /// Whether the modem marks the PDU as valid.
    pub valid: bool,
}}

record! { "rlc_stats"
/// Counters of a bearer's RLC since it was set up (0xB087, 0xB097).
pub struct RlcStats {
    /// Time of writing in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// `dl` or `ul`.
    pub dir: Direction,
    /// Bearer: the modem's RB configuration index.
    pub bearer: u8,
    /// RLC mode.
    pub mode: RlcMode,
    /// Data PDUs received (downlink), new ones sent (uplink).
    pub data_pdus: u32,
    /// Their bytes.
    pub data_bytes: u32,
    /// Retransmitted PDUs.
    pub retx_pdus: u32,
    /// Their bytes.
    pub retx_bytes: u32,
    /// SDUs.
    pub sdus: u32,
    /// Their bytes.
    pub sdu_bytes: u32,
    /// STATUS PDUs received (downlink), sent (uplink).
    pub status_pdus: u32,
    /// PDUs that STATUS PDUs reported missing.
    pub complete_nacks: u32,
}}

record! { "cell_use"
/// PRBs of a cell that a passive sniffer observed as assigned in a TTI, to all users.
pub struct CellUse {
    /// Time of the TTI in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI.
    pub position: Position,
    /// `dl` or `ul`.
    pub dir: Direction,
    /// PRB pairs assigned, to all RNTIs.
    pub n_prb: u32,
    /// Of them, to the selected RNTI.
    pub n_prb_own: u32,
    /// PRB pairs of the cell.
    pub n_prb_cell: Option<u16>,
    /// RNTIs with an assignment.
    pub n_rnti: u16,
}}

record! { "cell_info"
/// A cell's parameters from a message (0xB0C1, 0xB0C2, 0xB130), or inferred.
pub struct CellInfo {
    /// Time in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// Timing segment it holds for.
    pub timing_segment: u32,
    /// 0 the primary cell, 1.. the secondary cells.
    pub cell: u8,
    /// Physical cell identity.
    pub pci: Option<u16>,
    /// Downlink EARFCN.
    pub earfcn: Option<u32>,
    /// Downlink bandwidth in PRB pairs.
    pub n_prb_dl: Option<u16>,
    /// Uplink bandwidth in PRB pairs.
    pub n_prb_ul: Option<u16>,
    /// Transmit antenna ports.
    pub n_tx_antennas: Option<u8>,
    /// Band indicator.
    pub band: Option<u32>,
    /// Its source: a message code, or `inferred`.
    pub source: &'static str,
}}

impl CellInfo {
    /// A cell of which nothing is known yet.
    #[must_use]
    pub const fn new(at: Stamp, timing_segment: u32, cell: u8, source: &'static str) -> Self {
        Self {
            at: Some(at),
            timing_segment,
            cell,
            pci: None,
            earfcn: None,
            n_prb_dl: None,
            n_prb_ul: None,
            n_tx_antennas: None,
            band: None,
            source,
        }
    }
}

record! { "hole"
/// A span of the log in which records of a kind are known to be missing.
pub struct Hole {
    /// Time at which it begins.
    pub at: Option<Stamp>,
    /// First TTI of the hole.
    pub position: Position,
    /// TTIs that it lasts.
    pub n_tti: i64,
    /// The reason for assuming a hole.
    pub why: &'static str,
}}

record! { "unknown"
/// A message that is not decoded; its bytes are kept.
pub struct UnknownMessage {
    /// Time of writing.
    pub at: Option<Stamp>,
    /// Log code, as in 0xB173.
    pub code: u16,
    /// Version: the first payload byte.
    pub version: Option<u8>,
    /// Byte offset of its frame in the input.
    pub offset: u64,
    /// Subscription of a multi-SIM phone, 1-based; 0 unknown.
    pub subscription: u8,
    /// The payload.
    pub payload: Vec<u8>,
}}

macro_rules! any_record {
    ($($variant:ident($type:ty)),+ $(,)?) => {
        /// Any record of a modem log or table.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "each variant is the record of its name")]
        pub enum Record { $($variant($type),)+ }

        $(impl From<$type> for Record {
            fn from(record: $type) -> Self { Self::$variant(record) }
        })+

        impl Record {
            /// Names of all record types, as taken by `--only`.
            pub const NAMES: &'static [&'static str] = &[$(<$type as Row>::NAME),+];

            /// The record type's name.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$type as Row>::NAME),+ }
            }

            /// The record as a JSON object, without its type.
            #[must_use]
            pub fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
                match self { $(Self::$variant(record) => record.to_json()),+ }
            }

            /// Its values, in the columns' order.
            pub fn values<'a>(&'a self, sink: &mut dyn FnMut(crate::row::Value<'a>)) {
                match self { $(Self::$variant(record) => record.values(sink)),+ }
            }

            /// Name, documentation and columns of every record type.
            #[must_use]
            pub fn tables() -> Vec<(&'static str, &'static str, Vec<crate::row::Column>)> {
                vec![$((<$type as Row>::NAME, <$type as Row>::DOC, <$type as Row>::columns())),+]
            }

            /// Its time, if it has one.
            #[must_use]
            pub const fn at(&self) -> Option<Stamp> {
                match self { $(Self::$variant(record) => record.at),+ }
            }
        }
    };
}

any_record! {
    Grant(Grant),
    Rlc(RlcPdu),
    BufferStatus(BufferStatus),
    Bsr(BsrReport),
    MacBlock(MacBlock),
    Dci(Dci),
    PdschDecode(PdschDecode),
    UlTxStats(UlTxStats),
    Measurement(Box<Measurement>),
    Neighbour(Neighbour),
    RadioLink(RadioLink),
    Rrc(RrcMessage),
    Pdcp(PdcpPdu),
    RlcStats(RlcStats),
    NrStats(NrStats),
    NrUlStats(NrUlStats),
    NrMeasurement(NrMeasurement),
    NrCell(NrCell),
    CellUse(CellUse),
    CellInfo(CellInfo),
    Hole(Hole),
    Unknown(UnknownMessage),
}

// Boxed: by far the largest record, and rare.
impl From<Measurement> for Record {
    fn from(record: Measurement) -> Self {
        Self::Measurement(Box::new(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_as_many_values_as_columns() {
        let grant = Grant::new(Position::lte(5), Direction::Dl, 3);
        let mut count = 0;
        grant.values(&mut |_| count += 1);
        assert_eq!(count, Grant::columns().len());
        let json = grant.to_json();
        assert_eq!(json["tti"], 5);
        assert_eq!(json["dir"], "dl");
        assert!(json["time_ns"].is_null());
    }

    /// Millions of records pass, and those of two seconds are in memory at once.
    #[test]
    fn a_record_is_small() {
        assert!(size_of::<Record>() <= 96, "{}", size_of::<Record>());
    }

    #[test]
    fn column_names_are_unique_in_a_table() {
        for (table, _, columns) in Record::tables() {
            let mut names: Vec<_> = columns.iter().map(|c| c.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), columns.len(), "{table}");
        }
    }
}
