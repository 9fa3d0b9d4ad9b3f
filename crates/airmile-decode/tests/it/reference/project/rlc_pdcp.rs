//! Messages of RLC and PDCP.

use airmile_decode::diag::msg::*;
use serde_json::{Value, json};

use super::{sfn, subframe, yes};

fn rlc_pdu(p: &LoggedPdu, bearer: u8, sn_bits: u8, dl: bool) -> Value {
    let name = if dl { "RLCDL" } else { "RLCUL" };
    let mut out = json!({
        "rb_cfg_idx": bearer, "sys_fn": sfn(p.tti), "sub_fn": subframe(p.tti),
        "pdu_bytes": p.size_bytes, "logged_bytes": p.head.len(), "d_c_lookahead": p.head[0],
    });
    let bit = |flag: bool| yes(flag, "1", "0");
    match p.header(sn_bits).unwrap() {
        RlcHeader::Data {
            sn,
            resegment,
            poll,
            framing,
            extension,
            last_segment,
            segment_offset_bytes,
            length_indicators_bytes,
        } => {
            out["pdu_type"] = format!("{name} DATA").into();
            out["status"] = "PDU DATA".into();
            out["sn"] = sn.into();
            out["rf"] = bit(resegment);
            out["p"] = bit(poll);
            out["fi"] = format!("{framing:02b}").into();
            out["e"] = bit(extension);
            out["lsf"] = last_segment.map(u8::from).into();
            out["so"] = segment_offset_bytes.into();
            let li = length_indicators_bytes.iter().map(|li| json!({ "li": li }));
            out["rlc_data_li"] = li.collect();
        }
        RlcHeader::Status { ack_sn, nacks, complete } => {
            assert!(complete, "{p:?}");
            out["pdu_type"] = format!("{name} CTRL").into();
            out["status"] = "PDU CTRL".into();
            out["sn"] = format!("ACK_SN = {ack_sn}").into();
            out["cpt"] = "STATUS(0)".into();
            let nacks = nacks.iter().map(|nack| json!({ "nack_sn": nack.sn }));
            out["rlc_ctrl_nack"] = nacks.collect();
        }
        RlcHeader::Control { control_type } => panic!("control PDU {control_type}"),
    }
    out
}

pub(super) fn rlc_dl(m: &RlcDl) -> Value {
    let sub = |s: &RlcDlSubpacket| {
        let pdu = |p| rlc_pdu(p, s.bearer, s.sn_bits, true);
        json!({
            "subpacket_id": 65, "subpacket_version": s.version, "rb_cfg_idx": s.bearer,
            "rb_mode": yes(s.mode == 1, "AM", "?"), "sn_length": s.sn_bits,
            "vr_r": s.vr_r, "vr_x": s.vr_x, "vr_ms": s.vr_ms, "vr_h": s.vr_h,
            "number_of_pdus": s.pdus.len(),
            "rlcdl_pdus": s.pdus.iter().map(pdu).collect::<Vec<_>>(),
        })
    };
    let subs: Vec<_> = m.subpackets.iter().map(sub).collect();
    json!({ "version": m.version, "number_of_subpackets": subs.len(), "subpackets": subs })
}

pub(super) fn rlc_ul(m: &RlcUl) -> Value {
    let sub = |s: &RlcUlSubpacket| {
        let pdu = |p| rlc_pdu(p, s.bearer, s.sn_bits, false);
        json!({
            "subpacket_id": 70, "subpacket_version": s.version, "rb_cfg_idx": s.bearer,
            "rb_mode": yes(s.mode == 1, "AM", "?"), "sn_length": s.sn_bits,
            "vt_a": s.vt_a, "vt_s": s.vt_s, "pdu_without_poll": s.pdus_without_poll,
            "byte_without_poll": s.bytes_without_poll, "poll_sn": s.poll_sn,
            "number_of_pdus": s.pdus.len(),
            "rlcul_pdus": s.pdus.iter().map(pdu).collect::<Vec<_>>(),
        })
    };
    let subs: Vec<_> = m.subpackets.iter().map(sub).collect();
    json!({ "version": m.version, "number_of_subpackets": subs.len(), "subpackets": subs })
}

pub(super) fn pdcp(version: u8, subpackets: &[PdcpCipherSubpacket], list: &str) -> Value {
    let pdu = |p: &PdcpPdu| {
        let bits = ["5 bit", "7 bit", "12 bit"].get(usize::from(p.sn_length_code));
        json!({
            "cfg_idx": p.bearer, "mode": yes(p.acknowledged_mode, "AM", "UM"),
            "sn_length": bits, "bearer_id": p.bearer_id, "valid_pdu": yes(p.valid, "Yes", "No"),
            "pdu_size": p.size_bytes, "sub_fn": subframe(p.tti), "sys_fn": sfn(p.tti), "sn": p.sn,
        })
    };
    let sub = |s: &PdcpCipherSubpacket| {
        json!({
            "subpacket_id": 195, "subpacket_version": s.version, "num_pdus": s.pdus.len(),
            list: s.pdus.iter().map(pdu).collect::<Vec<_>>(),
        })
    };
    let subs: Vec<_> = subpackets.iter().map(sub).collect();
    json!({ "version": version, "num_subpkts": subs.len(), "subpackets": subs })
}
