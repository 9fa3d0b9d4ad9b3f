//! Messages in the reference's field names and texts.

mod mac;
mod phy;
mod rlc_pdcp;
mod rrc;

use airmile_decode::diag::msg::*;
use airmile_model::{RntiType, Tti};
use serde_json::Value;

/// Message and version, for the table.
pub fn version(message: &Message) -> String {
    let sub = |version: u8, subs: Option<u8>| match subs {
        Some(sub) => format!("v{version}/{sub}"),
        None => format!("v{version}/-"),
    };
    let version = match message {
        Message::MacDl(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        Message::MacUl(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        Message::UlBufferStatus(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        Message::UlTxStatistics(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        Message::RlcDl(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        Message::RlcUl(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        Message::RlcDlStats(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        Message::RlcUlStats(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        Message::PdcpDl(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        Message::PdcpUl(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        Message::ServCellMeas(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        Message::NeighbourMeas(m) => sub(m.version, m.subpackets.first().map(|s| s.version)),
        other => format!("v{}", other.emit()[0]),
    };
    format!("0x{:04X} {version}", message.code())
}

fn rnti(rnti: RntiType) -> Value {
    match rnti {
        RntiType::C => "C-RNTI",
        RntiType::P => "P-RNTI",
        RntiType::Ra => "RA-RNTI",
        RntiType::TempC => "Temporary-C-RNTI",
        RntiType::Si => "SI-RNTI",
        _ => "another RNTI",
    }
    .into()
}

fn carrier(index: u8) -> Value {
    if index == 0 { "PCC".into() } else { format!("SCC{index}").into() }
}

fn serving_cell(index: u8) -> Value {
    if index == 0 { "PCell".into() } else { format!("{index}_SCell").into() }
}

/// SFN and subframe; the marker for unknown ones as the reference shows it.
fn sfn(tti: Option<Tti>) -> u16 {
    tti.map_or(1023, Tti::sfn)
}

fn subframe(tti: Option<Tti>) -> u8 {
    tti.map_or(15, Tti::subframe)
}

fn yes(flag: bool, yes: &str, no: &str) -> Value {
    if flag { yes } else { no }.into()
}

/// The message as the reference would show it.
pub fn project(message: &Message) -> Value {
    match message {
        Message::PdschPacket(m) => phy::pdsch_packet(m),
        Message::PdschStat(m) => phy::pdsch_stat(m),
        Message::PdschDecoding(m) => phy::pdsch_decoding(m),
        Message::PdcchDecoding(m) => phy::pdcch(m),
        Message::MacDl(m) => mac::mac_dl(m),
        Message::MacUl(m) => mac::mac_ul(m),
        Message::UlBufferStatus(m) => mac::buffer_status(m),
        Message::UlTxStatistics(m) => mac::tx_statistics(m),
        Message::RlcDl(m) => rlc_pdcp::rlc_dl(m),
        Message::RlcUl(m) => rlc_pdcp::rlc_ul(m),
        Message::PdcpDl(m) => rlc_pdcp::pdcp(m.version, &m.subpackets, "pdcpdl_ciph_data"),
        Message::PdcpUl(m) => rlc_pdcp::pdcp(m.version, &m.subpackets, "pdcpul_ciph_data"),
        Message::RlcDlStats(m) => crate::reference::counters::counters(m),
        Message::RlcUlStats(m) => crate::reference::counters::counters(m),
        // None is in the logs.
        Message::MacDlReport(_)
        | Message::NrDlData(_)
        | Message::NrMeas(_)
        | Message::NrPdschStats(_)
        | Message::NrPdschStatus(_)
        | Message::NrServCell(_)
        | Message::NrUlTb(_)
        | Message::NrUlTbStats(_) => Value::Null,
        Message::PuschTx(m) => phy::pusch(m),
        Message::ServCellMeas(m) => phy::serv_cell(m),
        Message::NeighbourMeas(m) => phy::neighbours(m),
        Message::IntraFreqMeas(m) => phy::intra(m),
        Message::RlmReport(m) => phy::rlm(m),
        Message::NrRrcOta(m) => rrc::nr_ota(m),
        Message::RrcOta(m) => rrc::ota(m),
        Message::RrcMib(m) => rrc::mib(m),
        Message::RrcServCell(m) => rrc::serving_cell(m),
    }
}
