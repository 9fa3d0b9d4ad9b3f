//! 0xB087 and 0xB097 in the reference's field names.

use airmile_decode::diag::msg::{BearerCounters, RlcCounters};
use serde_json::{Map, Value, json};

/// The reference's names of ours.
const NAMES: [(&str, &[&str]); 15] = [
    ("data_pdus", &["num_data_pdu", "num_new_data_pdu"]),
    ("data_bytes", &["data_pdu_bytes", "num_new_data_pdu_bytes"]),
    ("status_pdus", &["num_status_rxed", "num_ctrl_pdu_tx"]),
    ("status_bytes", &["status_rxed_bytes", "num_ctrl_pdu_bytes_tx"]),
    ("retx_pdus", &["num_retx_pdu"]),
    ("retx_bytes", &["retx_pdu_bytes", "num_retx_pdu_bytes"]),
    ("sdus", &["num_sdu"]),
    ("sdu_bytes", &["num_sdu_bytes"]),
    ("control_pdus", &["num_ctrl_pdu", "num_ctrl_pdu_rx"]),
    ("complete_nacks", &["num_complete_nack"]),
    ("segment_nacks", &["num_segm_nack"]),
    ("invalid_pdus", &["num_invalid_ctrl_pdu_rx"]),
    ("polls", &["num_poll"]),
    ("t_reordering_expiries", &["num_t_reorder_expired"]),
    ("t_reordering_starts", &["num_t_reorder_start"]),
];

pub fn counters<const CODE: u16>(m: &RlcCounters<CODE>) -> Value {
    let dl = CODE == 0xB087;
    let bearer = |b: &BearerCounters| {
        let mut out = Map::new();
        out.insert("rb_cfg_idx".into(), b.bearer.into());
        out.insert("mode".into(), ["?", "AM", "UM", "TM"][usize::from(b.mode.min(3))].into());
        for (name, theirs) in NAMES {
            if let Some(count) = b.count::<CODE>(name) {
                theirs.iter().for_each(|name| drop(out.insert((*name).into(), count.into())));
            }
        }
        Value::Object(out)
    };
    let subs: Vec<Value> = m
        .subpackets
        .iter()
        .map(|s| {
            let bearers: Vec<Value> = s.bearers.iter().map(bearer).collect();
            json!({
                "subpacket_id": if dl { 66 } else { 71 }, "subpacket_version": s.version,
                "num_rbs": bearers.len(), "rlc_pdcp_q_full_count": s.queue_full,
                "rlcdl_error_count": s.errors, "rlcul_error_count": s.errors, "rbs": bearers,
            })
        })
        .collect();
    json!({ "version": m.version, "num_subpkt": subs.len(), "subpackets": subs })
}
