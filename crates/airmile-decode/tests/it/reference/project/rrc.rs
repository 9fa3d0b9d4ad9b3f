//! Messages of RRC.

use airmile_decode::diag::msg::*;
use serde_json::{Value, json};

fn mhz(n_prb: u8) -> Value {
    format!("{} MHz", n_prb / 5).into()
}

pub(super) fn ota(m: &RrcOta) -> Value {
    let word = m.tti.map(|tti| tti.sfn() << 4 | u16::from(tti.subframe()));
    let channel = m.channel().map(|channel| format!("LTE-RRC_{}", channel.replace('-', "_")));
    let hex = |byte: u8| json!(format!("0x{byte:x}"));
    json!({
        "pkt_version": m.version, "rrc_release_number": m.rrc_release, "major_minor": m.rrc_version,
        "rrc_version_number": hex(m.rrc_version), "nr_rrc_release_number": m.nr_release,
        "nr_rrc_version_number": m.nr_version.map(hex), "radio_bearer_id": m.bearer,
        "physical_cell_id": m.pci, "freq": m.earfcn, "sysframenum_subframenum": word,
        "pdu_number": m.pdu_type, "sib_mask_in_si": m.sib_mask, "msg_length": m.message.len(),
        "msg": { "raw_type": channel, "hex": airmile_model::row::hex(&m.message) },
    })
}

pub(super) fn nr_ota(m: &NrRrcOta) -> Value {
    json!({
        "pkt_version": m.version, "rrc_release_number": m.rrc_release,
        "rrc_version_number": format!("0x{:x}", m.rrc_version), "radio_bearer_id": m.bearer,
        "physical_cell_id": m.pci, "freq": m.arfcn, "pdu_number": m.pdu_id,
        "msg_length": m.message.len(), "msg": { "hex": airmile_model::row::hex(&m.message) },
    })
}

pub(super) fn mib(m: &RrcMib) -> Value {
    json!({
        "version": m.version, "physical_cell_id": m.pci, "freq": m.earfcn, "sfn": m.sfn,
        "number_of_antenna": m.n_tx_antennas, "dl_bw": mhz(m.n_prb_dl),
    })
}

pub(super) fn serving_cell(m: &RrcServCell) -> Value {
    json!({
        "version": m.version, "cell_id": m.pci,
        "downlink_frequency": m.earfcn_dl, "uplink_frequency": m.earfcn_ul,
        "downlink_bandwidth": mhz(m.n_prb_dl), "uplink_bandwidth": mhz(m.n_prb_ul),
        "cell_identity": m.cell_identity, "tac": m.tac, "band_indicator": m.band,
        "mcc": m.mcc, "mnc_digit": m.mnc_digits, "mnc": m.mnc,
        "allowed_access": m.allowed_access,
    })
}
