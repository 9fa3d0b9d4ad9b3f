//! Messages of MAC.

use airmile_decode::diag::msg::*;
use airmile_model::tables;
use serde_json::{Map, Value, json};

use super::{rnti, sfn, subframe};

/// Subheaders as the reference shows them: padding has length -1, and an SDU
/// without a stored length 0.
fn mac_header(header: &MacHeader) -> Value {
    let dl = header.dir == airmile_model::Direction::Dl;
    let last = header.subheaders.len().saturating_sub(1);
    let bytes_of = |index: u8| {
        tables::bsr_upper_bound_bytes(index).map_or(json!(i32::MAX), |bytes| json!(bytes))
    };
    let one = |(i, sub): (usize, &MacSubheader)| {
        let mut out = Map::new();
        let name = match (sub.lcid, dl) {
            (31, _) => "Padding".to_owned(),
            (29, true) => "TA".to_owned(),
            (26, false) => "PHR".to_owned(),
            (28, false) => "T-BSR".to_owned(),
            (29, false) => "S-BSR".to_owned(),
            (30, false) => "L-BSR".to_owned(),
            (lcid, _) => lcid.to_string(),
        };
        out.insert("lc_id".to_owned(), name.into());
        let len = match &sub.content {
            MacContent::Padding { .. } => json!(-1),
            MacContent::ControlElement(bytes) => json!(bytes.len()),
            MacContent::Sdu { .. } if i == last => json!(0),
            MacContent::Sdu { len_bytes } => json!(len_bytes),
        };
        let long =
            matches!(sub.content, MacContent::Sdu { len_bytes: Some(len) } if len >= 1 << 15);
        let first = sub.lcid | u8::from(i < last) << 5 | u8::from(long) << 6;
        out.insert("header_field".to_owned(), first.into());
        out.insert("len".to_owned(), len);
        if let MacContent::ControlElement(bytes) = &sub.content {
            match (sub.lcid, &bytes[..]) {
                (29, &[byte]) if dl => {
                    out.insert("ta_field".to_owned(), byte.into());
                    out.insert("tag_id".to_owned(), (byte >> 6).into());
                    out.insert("ta_command".to_owned(), (byte & 63).into());
                }
                (26, &[byte]) => {
                    out.insert("phr_field".to_owned(), byte.into());
                    out.insert("phr_ind".to_owned(), (byte & 63).into());
                }
                (28 | 29, &[byte]) => {
                    out.insert("s_t_bsr_field".to_owned(), byte.into());
                }
                (30, &[a, b, c]) => {
                    out.insert("l_bsr_field_1".to_owned(), a.into());
                    out.insert("l_bsr_field_2".to_owned(), b.into());
                    out.insert("l_bsr_field_3".to_owned(), c.into());
                }
                _ => {}
            }
            let mut group = |lcg: usize, index: u8| {
                out.insert(format!("bsr_lcg_{lcg}"), index.into());
                out.insert(format!("bsr_lcg_{lcg}_bytes"), bytes_of(index));
            };
            if !dl {
                match BsrElement::parse(sub.lcid, bytes) {
                    Some(BsrElement::Short { lcg, index, .. }) => group(lcg.into(), index),
                    Some(BsrElement::Long { indices }) => {
                        indices.into_iter().enumerate().for_each(|(lcg, index)| group(lcg, index));
                    }
                    None => {}
                }
            }
        }
        Value::Object(out)
    };
    header.subheaders.iter().enumerate().map(one).collect()
}

pub(super) fn mac_dl(m: &MacDl) -> Value {
    let block = |b: &MacDlBlock| {
        let header = b.subheaders();
        if let Some(header) = &header {
            assert!(header.complete, "{b:?}");
        }
        json!({
            "sub_id": b.sub_id, "cell_id": b.cell, "sub_fn": subframe(b.tti), "sfn": sfn(b.tti),
            "rnti_type": rnti(b.rnti_type), "harq_id": b.harq_id,
            "area_id": b.pmch & 0xff, "pmch_id": b.pmch >> 8, "dl_tbs_bytes": b.tbs_bytes,
            "rlc_pdus": b.rlc_pdus, "padding_bytes": b.padding_bytes, "hdr_len": b.header.len(),
            "mac_hdr_ce": header.as_ref().map(mac_header),
        })
    };
    let sub = |s: &MacDlSubpacket| {
        json!({
            "subpacket_id": "DL Transport Block", "version": s.version,
            "num_samples": s.blocks.len(),
            "samples": s.blocks.iter().map(block).collect::<Vec<_>>(),
        })
    };
    let subs: Vec<_> = m.subpackets.iter().map(sub).collect();
    json!({ "version": m.version, "num_subpkt": subs.len(), "subpackets": subs })
}

pub(super) fn mac_ul(m: &MacUl) -> Value {
    let event = ["None", "Periodic", "High Data Arrival", "Robustness BSR"];
    let trigger = ["No BSR", "Cancelled", "L-BSR", "S-BSR", "Pad L-BSR", "Pad S-BSR", "Pad T-BSR"];
    let block = |b: &MacUlBlock| {
        let header = b.subheaders();
        assert!(header.complete, "{b:?}");
        json!({
            "sub_id": b.sub_id, "cell_id": b.cell, "harq_id": b.harq_id,
            "rnti_type": rnti(b.rnti_type), "sub_fn": subframe(b.tti), "sfn": sfn(b.tti),
            "grant_bytes": b.grant_bytes, "rlc_pdus": b.rlc_pdus,
            "padding_bytes": b.padding_bytes, "bsr_event": event[usize::from(b.bsr_event)],
            "bsr_trig": trigger[usize::from(b.bsr_trigger)], "hdr_len": b.header.len(),
            "mac_hdr_ce": mac_header(&header),
        })
    };
    let sub = |s: &MacUlSubpacket| {
        json!({
            "subpacket_id": "UL Transport Block", "version": s.version,
            "num_samples": s.blocks.len(),
            "samples": s.blocks.iter().map(block).collect::<Vec<_>>(),
        })
    };
    let subs: Vec<_> = m.subpackets.iter().map(sub).collect();
    json!({ "version": m.version, "num_subpkt": subs.len(), "subpackets": subs })
}

pub(super) fn buffer_status(m: &UlBufferStatus) -> Value {
    let channel = |c: &ChannelBuffer| {
        json!({
            "ld_id": c.lcid, "priority": c.priority, "new_uncompressed_bytes": c.new_bytes,
            "new_compressed_bytes": c.new_compressed_bytes, "retx_bytes": c.retx_bytes,
            "ctrl_bytes": c.control_bytes, "total_bytes": c.total_bytes(),
        })
    };
    let sample = |s: &UlBufferSample| {
        json!({
            "sub_id": s.sub_id, "sub_fn": subframe(s.tti), "sys_fn": sfn(s.tti),
            "number_of_active_lcid": s.channels.len(),
            "lcids": s.channels.iter().map(channel).collect::<Vec<_>>(),
        })
    };
    let sub = |s: &UlBufferSubpacket| {
        json!({
            "subpacket_id": "UL Buffer Status SubPacket", "version": s.version,
            "num_samples": s.samples.len(),
            "samples": s.samples.iter().map(sample).collect::<Vec<_>>(),
        })
    };
    let subs: Vec<_> = m.subpackets.iter().map(sub).collect();
    json!({ "version": m.version, "num_subpkt": subs.len(), "subpackets": subs })
}

pub(super) fn tx_statistics(m: &UlTxStatistics) -> Value {
    let sub = |s: &UlTxStatisticsSubpacket| {
        json!({
            "subpacket_id": "UL Tx Statistics SubPacket", "version": s.version,
            "sample": {
                "sub_id": s.sub_id, "number_of_samples": s.n_tti,
                "number_of_padding_bsr": s.padding_bsr, "number_of_regular_bsr": s.regular_bsr,
                "number_of_periodic_bsr": s.periodic_bsr, "number_of_cancel_bsr": s.cancelled_bsr,
                "grant_received": s.granted_bytes, "grant_utilized": s.used_bytes,
            },
        })
    };
    let subs: Vec<_> = m.subpackets.iter().map(sub).collect();
    json!({ "version": m.version, "num_subpkt": subs.len(), "subpackets": subs })
}
