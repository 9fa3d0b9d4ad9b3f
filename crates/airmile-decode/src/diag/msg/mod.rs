//! Messages: the payloads of log packets, as typed values and back.
//!
//! Each file holds one message or family: its structs, its layout as field constants,
//! `parse` and `emit`. A message keeps its version, so `emit` writes the layout that it
//! was read from, and `parse(emit(m)) == m`; unexplained bytes are written as zeros. A
//! value too large for its field is written as the field's maximum, and a version without
//! a layout emits nothing.
//!
//! All messages are little-endian. An SFN stored in more than 10 bits is taken modulo
//! 1024 (TS 36.331, MIB). An invalid time (subframe above 9) is `None`, and `None` is
//! written as SFN 1023 subframe 15, the marker used by 0xB066.

pub mod buffer_status;
pub mod mac_block;
pub mod mac_dl_report;
pub mod mac_header;
pub mod neighbours;
pub mod nr_dl_data;
pub mod nr_meas;
pub mod nr_pdsch_status;
pub mod nr_rrc;
pub mod nr_stats;
pub mod nr_ul_tb;
pub mod pdcch;
pub mod pdcp;
pub mod pdsch_decoding;
pub mod pdsch_packet;
pub mod pdsch_stat;
pub mod pusch;
pub mod rlc;
pub mod rlc_header;
pub mod rlc_stats;
pub mod rlm;
pub mod rrc;
pub mod serv_cell;
pub(super) mod shared;
pub mod subpacket;

pub use buffer_status::{
    ChannelBuffer, UlBufferSample, UlBufferStatus, UlBufferSubpacket, UlTxStatistics,
    UlTxStatisticsSubpacket,
};
pub use mac_block::{MacDl, MacDlBlock, MacDlSubpacket, MacUl, MacUlBlock, MacUlSubpacket};
pub use mac_dl_report::{MacDlReport, MacDlReportBlock, MacItem, RlcFields};
pub use mac_header::{BsrElement, MacContent, MacHeader, MacSubheader};
pub use neighbours::{
    IntraFreqMeas, IntraFreqNeighbour, NeighbourCell, NeighbourMeas, NeighbourMeasSubpacket,
};
pub use nr_dl_data::{NrDlData, NrDlDataBlock, NrRlcBearer, NrRlcHead, NrSubPdu};
pub use nr_meas::{NrMeas, NrMeasBeam, NrMeasCell, NrMeasLayer};
pub use nr_pdsch_status::{NrPdschBlock, NrPdschRecord, NrPdschStatus, NrSlot, SizeCheck};
pub use nr_rrc::{NrRrcOta, NrServCell};
pub use nr_stats::{NrCarrierCounters, NrPdschStats, NrUlCounters, NrUlTbStats};
pub use nr_ul_tb::{NrBsr, NrUlBlock, NrUlTb, NrUlTti};
pub use pdcch::{DCI_FORMATS, PdcchCandidate, PdcchDecoding};
pub use pdcp::{PdcpCipher, PdcpCipherSubpacket, PdcpPdu};
pub use pdsch_decoding::{CodeBlock, DecodedStream, PdschDecoding, PdschDecodingRecord};
pub use pdsch_packet::{PdschPacket, PdschStream};
pub use pdsch_stat::{BlockSizeCrc, PdschStat, PdschStatBlock, PdschStatRecord};
pub use pusch::{PuschTx, PuschTxRecord};
pub use rlc::{LoggedPdu, RlcDl, RlcDlSubpacket, RlcUl, RlcUlSubpacket};
pub use rlc_header::{Nack, RlcHeader};
pub use rlc_stats::{BearerCounters, RlcCounters, RlcCountersSubpacket};
pub use rlm::{RlmRecord, RlmReport};
pub use rrc::{RrcMib, RrcOta, RrcServCell};
pub use serv_cell::{ServCellMeas, ServCellSubpacket};

use serde::Serialize;
use thiserror::Error;

use super::bits::Short;

impl Message {
    /// Whether its layout is from a single public source, without a sample: it is read only
    /// on request.
    #[must_use]
    pub const fn is_experimental(&self) -> bool {
        matches!(self, Self::NrDlData(_))
    }

    /// Checks the layout of an NR message; `None` for messages whose blocks have nothing
    /// to check.
    #[must_use]
    pub fn size_check(&self) -> Option<SizeCheck> {
        match self {
            Self::NrPdschStatus(m) => Some(m.size_check()),
            _ => None,
        }
    }
}

/// An error in a message's bytes, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("DIAG 0x{code:04X} v{version}: {field} at payload byte {at} {why}")]
pub struct MessageError {
    /// Log code.
    pub code: u16,
    /// Message version (the payload's first byte); 0 if the payload is empty.
    pub version: u8,
    /// The field or part.
    pub field: &'static str,
    /// Its offset in the payload, in bytes.
    pub at: usize,
    /// The error.
    pub why: &'static str,
}

/// A message, and its unreadable parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The readable part.
    pub message: Message,
    /// Why the rest is missing.
    pub problem: Option<MessageError>,
}

/// The result of a message's own parser: `None` if the version is unknown, otherwise the
/// message and its unreadable parts.
pub type Soft<T> = Result<Option<(T, Option<Short>)>, Short>;

macro_rules! messages {
    (
        $($(#[$doc:meta])* $variant:ident($type:ty) = $code:literal),+ ;
        $($(#[$later_doc:meta])* $later:ident($later_type:ty) = $later_code:literal),+ $(,)?
    ) => {
        /// A log packet's payload, decoded.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        pub enum Message {
            $($(#[$doc])* $variant($type),)+
            $($(#[$later_doc])* $later($later_type),)+
        }

        impl Message {
            /// The log codes known to [`Message::parse`], in ascending order.
            pub const CODES: &'static [u16] = &[$($code),+];

            /// Decodes a payload: `None` if code or version is unknown.
            ///
            /// # Errors
            ///
            /// The message's fixed head is incomplete. A payload that ends later returns
            /// the readable part, with the problem.
            pub fn parse(code: u16, payload: &[u8]) -> Result<Option<Parsed>, MessageError> {
                let version = payload.first().copied().unwrap_or(0);
                let error = |short: Short| MessageError {
                    code, version, field: short.field, at: short.at, why: short.why,
                };
                // The types of later versions first: each knows its own.
                $(if code == $later_code
                    && let Some((message, problem)) = <$later_type>::parse(payload).map_err(error)?
                {
                    let message = Self::$later(message);
                    return Ok(Some(Parsed { message, problem: problem.map(error) }));
                })+
                match code {
                    $($code => match <$type>::parse(payload) {
                        Ok(None) => Ok(None),
                        Ok(Some((message, problem))) => Ok(Some(Parsed {
                            message: Self::$variant(message),
                            problem: problem.map(error),
                        })),
                        Err(short) => Err(error(short)),
                    },)+
                    _ => Ok(None),
                }
            }

            /// The payload of this message.
            #[must_use]
            pub fn emit(&self) -> Vec<u8> {
                match self {
                    $(Self::$variant(message) => message.emit(),)+
                    $(Self::$later(message) => message.emit(),)+
                }
            }

            /// The message's log code.
            #[must_use]
            pub const fn code(&self) -> u16 {
                match self {
                    $(Self::$variant(_) => $code,)+
                    $(Self::$later(_) => $later_code,)+
                }
            }
        }

        $(impl From<$type> for Message {
            fn from(message: $type) -> Self { Self::$variant(message) }
        })+
        $(impl From<$later_type> for Message {
            fn from(message: $later_type) -> Self { Self::$later(message) }
        })+
    };
}

messages! {
    /// 0xB063, LTE_MAC_DL_Transport_Block.
    MacDl(MacDl) = 0xB063,
    /// 0xB064, LTE_MAC_UL_Transport_Block.
    MacUl(MacUl) = 0xB064,
    /// 0xB066, LTE_MAC_UL_Buffer_Status_Internal.
    UlBufferStatus(UlBufferStatus) = 0xB066,
    /// 0xB067, LTE_MAC_UL_Tx_Statistics.
    UlTxStatistics(UlTxStatistics) = 0xB067,
    /// 0xB082, LTE_RLC_DL_AM_All_PDU.
    RlcDl(RlcDl) = 0xB082,
    /// 0xB087, LTE_RLC_DL_Stats.
    RlcDlStats(RlcCounters<0xB087>) = 0xB087,
    /// 0xB092, LTE_RLC_UL_AM_All_PDU.
    RlcUl(RlcUl) = 0xB092,
    /// 0xB097, LTE_RLC_UL_Stats.
    RlcUlStats(RlcCounters<0xB097>) = 0xB097,
    /// 0xB0A3, LTE_PDCP_DL_Cipher_Data_PDU.
    PdcpDl(PdcpCipher<0xB0A3>) = 0xB0A3,
    /// 0xB0B3, LTE_PDCP_UL_Cipher_Data_PDU.
    PdcpUl(PdcpCipher<0xB0B3>) = 0xB0B3,
    /// 0xB0C0, LTE_RRC_OTA_Packet.
    RrcOta(RrcOta) = 0xB0C0,
    /// 0xB0C1, LTE_RRC_MIB_Packet.
    RrcMib(RrcMib) = 0xB0C1,
    /// 0xB0C2, LTE_RRC_Serv_Cell_Info.
    RrcServCell(RrcServCell) = 0xB0C2,
    /// 0xB126, LTE_PHY_PDSCH_Packet.
    PdschPacket(PdschPacket) = 0xB126,
    /// 0xB130, LTE_PHY_PDCCH_Decoding_Result.
    PdcchDecoding(PdcchDecoding) = 0xB130,
    /// 0xB132, LTE_PHY_PDSCH_Decoding_Result.
    PdschDecoding(PdschDecoding) = 0xB132,
    /// 0xB139, LTE_PHY_PUSCH_Tx_Report.
    PuschTx(PuschTx) = 0xB139,
    /// 0xB173, LTE_PHY_PDSCH_Stat_Indication.
    PdschStat(PdschStat) = 0xB173,
    /// 0xB179, LTE_PHY_Connected_Mode_Intra_Freq_Meas.
    IntraFreqMeas(IntraFreqMeas) = 0xB179,
    /// 0xB18A, LTE_PHY_RLM_Report.
    RlmReport(RlmReport) = 0xB18A,
    /// 0xB193, LTE_PHY_Serv_Cell_Measurement.
    ServCellMeas(ServCellMeas) = 0xB193,
    /// 0xB195, LTE_PHY_Connected_Mode_Neighbor_Measurement.
    NeighbourMeas(NeighbourMeas) = 0xB195,
    /// 0xB821, NR RRC OTA packet.
    NrRrcOta(NrRrcOta) = 0xB821,
    /// 0xB823, NR RRC serving cell information.
    NrServCell(NrServCell) = 0xB823,
    /// 0xB857, NR5G L2 DL Data PDU.
    NrDlData(NrDlData) = 0xB857,
    /// 0xB872, NR5G L2 UL TB.
    NrUlTb(NrUlTb) = 0xB872,
    /// 0xB881, NR5G MAC UL TB Stats.
    NrUlTbStats(NrUlTbStats) = 0xB881,
    /// 0xB887, NR5G MAC PDSCH Status.
    NrPdschStatus(NrPdschStatus) = 0xB887,
    /// 0xB888, NR5G MAC PDSCH Stats.
    NrPdschStats(NrPdschStats) = 0xB888,
    /// 0xB97F, NR5G ML1 Searcher Measurement Database Update.
    NrMeas(NrMeas) = 0xB97F;

    // Later versions that have a type of their own.

    /// 0xB063 of version 49 and later.
    MacDlReport(MacDlReport) = 0xB063,
}
