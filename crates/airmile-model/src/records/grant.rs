//! Granted blocks, and the messages that reported them.

use crate::radio::{Direction, Modulation, RntiType};
use crate::record;
use crate::stamp::Stamp;
use crate::tti::Position;

/// The inputs from which a grant was assembled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GrantSources(u16);

impl GrantSources {
    /// A grant table (CSV) given by the user.
    pub const TABLE: Self = Self(1);
    /// 0xB173, LTE_PHY_PDSCH_Stat_Indication.
    pub const PDSCH_STAT: Self = Self(2);
    /// 0xB126, LTE_PHY_PDSCH_Packet.
    pub const PDSCH_DEMAP: Self = Self(4);
    /// 0xB132, LTE_PHY_PDSCH_Decoding_Result.
    pub const PDSCH_DECODE: Self = Self(8);
    /// 0xB063 or 0xB064, MAC transport blocks.
    pub const MAC: Self = Self(16);
    /// 0xB139, LTE_PHY_PUSCH_Tx_Report.
    pub const PUSCH_TX: Self = Self(32);
    /// 0xB130, LTE_PHY_PDCCH_Decoding_Result.
    pub const PDCCH: Self = Self(64);
    /// The emulator.
    pub const EMULATOR: Self = Self(128);
    /// 0xB887, NR5G MAC PDSCH Status.
    pub const NR_PDSCH_STATUS: Self = Self(256);
    /// A passive sniffer's table.
    pub const SNIFFER: Self = Self(512);
    /// 0xB872, NR5G L2 UL TB.
    pub const NR_UL_TB: Self = Self(1024);

    const NAMES: [(Self, &'static str); 11] = [
        (Self::TABLE, "table"),
        (Self::PDSCH_STAT, "0xB173"),
        (Self::PDSCH_DEMAP, "0xB126"),
        (Self::PDSCH_DECODE, "0xB132"),
        (Self::MAC, "0xB063/4"),
        (Self::PUSCH_TX, "0xB139"),
        (Self::PDCCH, "0xB130"),
        (Self::EMULATOR, "emulator"),
        (Self::NR_PDSCH_STATUS, "0xB887"),
        (Self::SNIFFER, "sniffer"),
        (Self::NR_UL_TB, "0xB872"),
    ];

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the members.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(s, _)| self.contains(*s)).map(|(_, name)| name)
    }
}

impl crate::row::Field for GrantSources {
    fn columns(
        name: &'static str,
        doc: &'static str,
        nullable: bool,
        out: &mut Vec<crate::row::Column>,
    ) {
        out.push(crate::row::Column { name, kind: crate::row::ColumnType::Int, nullable, doc });
    }
    fn values<'a>(&'a self, sink: &mut dyn FnMut(crate::row::Value<'a>)) {
        sink(crate::row::Value::Int(self.0.into()));
    }
}

record! { "grant"
/// One transport block of a downlink assignment or an uplink grant.
/// `n_prb` is the whole assignment's, repeated on each of its blocks.
pub struct Grant {
    /// Time of the TTI in nanoseconds since the Unix epoch, from the log's clock.
    pub at: Option<Stamp>,
    /// Unwrapped subframe (LTE) or slot (NR) of this transmission.
    pub position: Position,
    /// `dl` or `ul`.
    pub dir: Direction,
    /// PRB pairs of the whole assignment; unknown if only the MAC layer logged the block.
    pub n_prb: Option<u16>,
    /// PRB pairs of the cell.
    pub n_prb_cell: Option<u16>,
    /// Spatial layers of the assignment.
    pub layers: Option<u8>,
    /// Transport block of the assignment: 0 or 1.
    pub tb: u8,
    /// Transport block size in bytes.
    pub tbs_bytes: Option<u32>,
    /// MCS index (TS 36.213, 7.1.7.1); 29 to 31 are retransmissions.
    pub mcs: Option<u8>,
    /// Modulation.
    pub modulation: Option<Modulation>,
    /// HARQ process.
    pub harq_id: Option<u8>,
    /// New data indicator, as signalled.
    pub ndi: Option<bool>,
    /// Redundancy version.
    pub rv: Option<u8>,
    /// True: a HARQ retransmission, carries no new data.
    pub retx: Option<bool>,
    /// Whether the block's CRC passed.
    pub crc_ok: Option<bool>,
    /// Kind of RNTI.
    pub rnti: RntiType,
    /// MAC padding in bytes; known only for blocks that the MAC layer logged.
    pub padding_bytes: Option<u32>,
    /// Bytes of MAC SDUs on data bearers (LCID 3 to 10); 0: control only.
    pub data_bytes: Option<u32>,
    /// Bit set of the messages from which it was assembled (see `docs/records.md`).
    pub sources: GrantSources,
}}

impl Grant {
    /// A grant with only the required fields known.
    #[must_use]
    pub const fn new(position: Position, dir: Direction, n_prb: u16) -> Self {
        Self {
            at: None,
            position,
            dir,
            n_prb: Some(n_prb),
            n_prb_cell: None,
            layers: None,
            tb: 0,
            tbs_bytes: None,
            mcs: None,
            modulation: None,
            harq_id: None,
            ndi: None,
            rv: None,
            retx: None,
            crc_ok: None,
            rnti: RntiType::C,
            padding_bytes: None,
            data_bytes: None,
            sources: GrantSources(0),
        }
    }
}
