//! Messages in the reference's field names and texts.

use airmile_decode::diag::msg::*;
use airmile_model::{Modulation, RntiType, Tti, tables};
use serde_json::{Map, Value, json};

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

fn modulation(modulation: Modulation) -> Value {
    match modulation {
        Modulation::Qpsk => "QPSK",
        Modulation::Qam16 => "16QAM",
        Modulation::Qam64 => "64QAM",
        Modulation::Qam256 => "256QAM",
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

fn ordinal(n: u8) -> Value {
    match n {
        0 => "First",
        1 => "Second",
        2 => "Third",
        3 => "Fourth",
        4 => "Fifth",
        _ => "later",
    }
    .into()
}

fn mhz(n_prb: u8) -> Value {
    format!("{} MHz", n_prb / 5).into()
}

const RSRP: f64 = -180.0;
const RSRQ: f64 = -30.0;
const RSSI: f64 = -110.0;

/// "Not measured" is the scale's low end in the reference.
fn or(value: Option<f32>, low_end: f64) -> Value {
    value.map_or(low_end, f64::from).into()
}

/// The message as the reference would show it.
pub fn project(message: &Message) -> Value {
    match message {
        Message::PdschPacket(m) => pdsch_packet(m),
        Message::PdschStat(m) => pdsch_stat(m),
        Message::PdschDecoding(m) => pdsch_decoding(m),
        Message::PdcchDecoding(m) => pdcch(m),
        Message::MacDl(m) => mac_dl(m),
        Message::MacUl(m) => mac_ul(m),
        Message::UlBufferStatus(m) => buffer_status(m),
        Message::UlTxStatistics(m) => tx_statistics(m),
        Message::RlcDl(m) => rlc_dl(m),
        Message::RlcUl(m) => rlc_ul(m),
        Message::PdcpDl(m) => pdcp(m.version, &m.subpackets, "pdcpdl_ciph_data"),
        Message::PdcpUl(m) => pdcp(m.version, &m.subpackets, "pdcpul_ciph_data"),
        Message::RlcDlStats(m) => crate::counters::counters(m),
        Message::RlcUlStats(m) => crate::counters::counters(m),
        // None is in the logs.
        Message::NrPdschStats(_) => Value::Null,
        Message::PuschTx(m) => pusch(m),
        Message::ServCellMeas(m) => serv_cell(m),
        Message::NeighbourMeas(m) => neighbours(m),
        Message::IntraFreqMeas(m) => intra(m),
        Message::RlmReport(m) => rlm(m),
        Message::RrcOta(m) => rrc_ota(m),
        Message::RrcMib(m) => json!({
            "version": m.version, "physical_cell_id": m.pci, "freq": m.earfcn, "sfn": m.sfn,
            "number_of_antenna": m.n_tx_antennas, "dl_bw": mhz(m.n_prb_dl),
        }),
        Message::RrcServCell(m) => json!({
            "version": m.version, "cell_id": m.pci,
            "downlink_frequency": m.earfcn_dl, "uplink_frequency": m.earfcn_ul,
            "downlink_bandwidth": mhz(m.n_prb_dl), "uplink_bandwidth": mhz(m.n_prb_ul),
            "cell_identity": m.cell_identity, "tac": m.tac, "band_indicator": m.band,
            "mcc": m.mcc, "mnc_digit": m.mnc_digits, "mnc": m.mnc,
            "allowed_access": m.allowed_access,
        }),
    }
}

fn pdsch_packet(m: &PdschPacket) -> Value {
    let antennas = |count: u8| match (m.version, count) {
        (122.., 1) => json!("1 antenna"),
        (122.., count) => json!(format!("{count} antennas")),
        (_, count) => json!(count),
    };
    let word = |bitmap: u128, i: u32| format!("0x{:016x}", (bitmap >> (64 * i)) as u64);
    let scheme = [
        "?",
        "Single antenna",
        "Transmit diversity",
        "Open-loop spatial multiplexing",
        "Closed-loop spatial multiplexing",
    ];
    let mut out = json!({
        "version": m.version, "serving_cell_id": m.pci,
        "system_frame_number": sfn(m.tti), "subframe_number": subframe(m.tti),
        "pdsch_rntil_id": m.rnti, "pdsch_rnti_type": rnti(m.rnti_type),
        "number_of_tx_antennas": antennas(m.n_tx_antennas),
        "number_of_rx_antennas": antennas(m.n_rx_antennas),
        "spatial_rank": format!("Rank {}", m.rank),
        "rb_allocation_slot_0_0": word(m.prb_slot0, 0),
        "rb_allocation_slot_0_1": word(m.prb_slot0, 1),
        "rb_allocation_slot_1_0": word(m.prb_slot1, 0),
        "rb_allocation_slot_1_1": word(m.prb_slot1, 1),
        "pmi_index": m.pmi_index,
        "transmission_scheme": scheme.get(usize::from(m.transmission_scheme)),
        "tbs_0": m.streams[0].tbs_bits, "mcs_0": modulation(m.streams[0].modulation),
        "tbs_1": m.streams[1].tbs_bits, "mcs_1": modulation(m.streams[1].modulation),
        "traffic_to_pilot_ratio": f64::from(m.traffic_to_pilot_x256) / 256.0,
        "carrier_index": carrier(m.carrier),
    });
    if let (Some(pb), Some(pci)) = (m.pb, m.strong_interferer_pci) {
        out["pb"] = pb.into();
        out["strong_icell_id"] = pci.into();
    }
    out
}

fn pdsch_stat(m: &PdschStat) -> Value {
    let block = |b: &PdschStatBlock| {
        json!({
            "harq_id": b.harq_id, "rv": b.rv, "ndi": u8::from(b.ndi),
            "crc_result": yes(b.crc_ok, "Pass", "Fail"), "rnti_type": rnti(b.rnti_type),
            "tb_index": b.tb, "discarded_retx_present": yes(b.discarded_retx, "Present", "None"),
            "did_recombining": yes(b.recombined, "Yes", "No"), "tb_size": b.tbs_bytes,
            "mcs": b.mcs, "num_rbs": b.n_prb, "modulation_type": b.modulation.map(modulation),
            "ack_nack_decision": yes(b.crc_ok, "ACK", "NACK"),
        })
    };
    let record = |r: &PdschStatRecord| {
        json!({
            "subframe_num": subframe(r.tti), "frame_num": sfn(r.tti), "num_rbs": r.n_prb,
            "num_layers": r.layers, "num_transport_blocks_present": r.blocks.len(),
            "serving_cell_index": serving_cell(r.serving_cell),
            "hsic_enabled": yes(r.hsic != Some(0), "Enabled", "Disabled"),
            "transport_blocks": r.blocks.iter().map(block).collect::<Vec<_>>(),
            "pmch_id": r.pmch_id, "area_id": r.area_id,
        })
    };
    let records: Vec<_> = m.records.iter().map(record).collect();
    json!({ "version": m.version, "num_records": records.len(), "records": records })
}

fn pdsch_decoding(m: &PdschDecoding) -> Value {
    let code_block = |b: &CodeBlock| {
        json!({
            "energy_metric": b.energy, "iteration_number": b.iterations,
            "code_block_crc_pass": yes(b.crc_ok, "Pass", "Fail"),
            "early_termination": yes(b.early_stop, "Yes", "No"),
        })
    };
    let stream = |s: &DecodedStream| {
        json!({
            "transport_block_crc": yes(s.crc_ok, "Pass", "Fail"), "ndi": u8::from(s.ndi),
            "code_block_size_plus": s.code_block_bits,
            "num_code_block_plus_data": s.code_blocks.len() - 1,
            "num_code_block_plus": s.code_blocks.len(), "max_tdec_iter": s.max_iterations,
            "retransmission_number": ordinal(s.retx_count), "rvid": s.rv,
            "harq_combining": yes(s.combined, "Enabled", "Disabled"),
            "decob_tb_crc": u8::from(s.derate_crc_ok),
            "effective_code_rate_data": s.code_rate_x1024, "num_re": s.resource_elements,
            "codeword_index": s.codeword,
            "energy_metrics": s.code_blocks.iter().map(code_block).collect::<Vec<_>>(),
        })
    };
    let record = |r: &PdschDecodingRecord| {
        let tti = m.first_tti.map(|first| first.wrapping_add(r.tti_offset.into()));
        json!({
            "subframe_offset": r.tti_offset, "subframe_number": subframe(tti),
            "pdsch_channel_id": r.rnti, "harq_id": r.harq_id, "rnti_type": rnti(r.rnti_type),
            "codeword_swap": u8::from(r.codeword_swap), "number_of_streams": r.streams.len(),
            "streams": r.streams.iter().map(stream).collect::<Vec<_>>(),
        })
    };
    json!({
        "version": m.version, "serving_cell_id": m.pci,
        "starting_subframe_number": subframe(m.first_tti),
        "starting_system_frame_number": sfn(m.first_tti),
        "ue_category": m.ue_category, "num_dl_harq": m.n_harq, "tm_mode": m.transmission_mode,
        "nir": m.soft_buffer_bits, "carrier_index": carrier(m.carrier),
        "number_of_records": m.records.len(),
        "records": m.records.iter().map(record).collect::<Vec<_>>(),
    })
}

fn pdcch(m: &PdcchDecoding) -> Value {
    let prune = |c: &PdcchCandidate| -> Value {
        match c.prune_status {
            1 => "SUCCESS_DCI0",
            3 => "SUCCESS_DCI1A",
            4 => "SUCCESS_DCI1C",
            6 => "SUCCESS_DCI2_2A_2B",
            8 => "TAIL_MISMATCH",
            9 => "FAIL_SURVIVOR_SELECT",
            10 => "PADDING_ERROR",
            17 => "DUPLICATE_HARQ_ID_ERROR",
            26 => "INVALID_RB_NUM_DCI0",
            _ => "?",
        }
        .into()
    };
    let candidate = |c: &PdcchCandidate| {
        let format = c.dci_format_name().map_or("Reserved".to_owned(), |f| format!("Format {f}"));
        json!({
            "payload": format!("0x{}", airmile_model::row::hex(&c.payload)),
            "aggregation_level": format!("Agg{}", c.aggregation_level), "candidate": c.candidate,
            "search_space_type": yes(c.ue_search_space, "UE-specific", "Common"),
            "dci_format": format, "decode_states": rnti(c.rnti_type),
            "payload_size": c.payload_bits, "tail_match": yes(c.tail_match, "Match", "Mismatch"),
            "non_zero_symbol_mismatch_count": c.symbol_mismatches, "start_cce": c.start_cce,
            "non_zero_llr_count": c.nonzero_llrs, "normal": c.norm, "prune_status": prune(c),
            "energy_metric": c.energy,
            "norm_energy_metric": f64::from(c.norm_energy_x65535) / 65_535.0,
            "symbol_error_rate": f64::from(c.symbol_error_rate_x2_31) / f64::from(1u32 << 31),
        })
    };
    json!({
        "version": m.version, "subframe_number": subframe(m.tti),
        "system_frame_number": sfn(m.tti),
        "band_width_mhz": m.n_prb_cell().map(|n_prb| n_prb / 5),
        "frame_structure": yes(m.frame_structure == 0, "FDD", "TDD"),
        "num_enb_antennas": yes(m.n_enb_antennas_code == 0, "1 or 2", "more"),
        "dl_cp": yes(m.cp_code == 0, "Normal", "Extended"), "carrier_index": carrier(m.carrier),
        "number_of_hypothesis": m.candidates.len(),
        "hypothesis": m.candidates.iter().map(candidate).collect::<Vec<_>>(),
    })
}

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

fn mac_dl(m: &MacDl) -> Value {
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

fn mac_ul(m: &MacUl) -> Value {
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

fn buffer_status(m: &UlBufferStatus) -> Value {
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

fn tx_statistics(m: &UlTxStatistics) -> Value {
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

fn rlc_dl(m: &RlcDl) -> Value {
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

fn rlc_ul(m: &RlcUl) -> Value {
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

fn pdcp(version: u8, subpackets: &[PdcpCipherSubpacket], list: &str) -> Value {
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

fn pusch(m: &PuschTx) -> Value {
    let record = |r: &PuschTxRecord| {
        let modulation = match r.modulation {
            Some(Modulation::Qpsk) => "QPSK",
            Some(Modulation::Qam16) => "16-QAM",
            Some(Modulation::Qam64) => "64-QAM",
            _ => "?",
        };
        json!({
            "current_sfn_sf": r.tti.map(Tti::count), "carrier_index": r.carrier.map(carrier),
            "ul_carrier_index": r.carrier.map(carrier),
            "ack": yes(r.ack, "Exists", "None"), "cqi": yes(r.cqi, "Exists", "None"),
            "ri": yes(r.ri, "Exists", "None"), "re_tx_index": ordinal(r.retx_index),
            "redund_ver": r.rv, "start_rb_slot_0": r.start_prb_slot0,
            "start_rb_slot_1": r.start_prb_slot1, "num_of_rb": r.n_prb,
            "pusch_tb_size": r.tbs_bytes, "coding_rate": f64::from(r.code_rate_x1024) / 1024.0,
            "pusch_mod_order": modulation,
        })
    };
    json!({
        "version": m.version, "serving_cell_id": m.pci, "number_of_records": m.records.len(),
        "dispatch_sfn_sf": m.dispatch_tti.map(Tti::count),
        "records": m.records.iter().map(record).collect::<Vec<_>>(),
    })
}

fn serv_cell(m: &ServCellMeas) -> Value {
    let sub = |s: &ServCellSubpacket| {
        let snr = |value: Option<f32>| or(value, -20.0);
        json!({
            "subpacket_id": 25, "subpacket_version": s.version, "earfcn": s.earfcn,
            "num_of_cells": s.n_cells, "physical_cell_id": s.pci,
            "serving_cell_index": serving_cell(s.serving_cell),
            "is_serving_cell": s.is_serving.map(u8::from),
            "current_sfn": sfn(s.tti), "current_subframe_number": subframe(s.tti),
            "rsrp_rx_0": or(s.rsrp_rx0_dbm, RSRP), "rsrp_rx_1": or(s.rsrp_rx1_dbm, RSRP),
            "rsrp": or(s.rsrp_dbm, RSRP), "rsrq_rx_0": or(s.rsrq_rx0_db, RSRQ),
            "rsrq_rx_1": or(s.rsrq_rx1_db, RSRQ), "rsrq": or(s.rsrq_db, RSRQ),
            "rssi_rx_0": or(s.rssi_rx0_dbm, RSSI), "rssi_rx_1": or(s.rssi_rx1_dbm, RSSI),
            "rssi": or(s.rssi_dbm, RSSI),
            "ftl_snr_rx_0": snr(s.snr_rx0_db), "ftl_snr_rx_1": snr(s.snr_rx1_db),
        })
    };
    let subs: Vec<_> = m.subpackets.iter().map(sub).collect();
    json!({ "version": m.version, "number_of_subpackets": subs.len(), "subpackets": subs })
}

fn neighbours(m: &NeighbourMeas) -> Value {
    let cell = |c: &NeighbourCell| {
        json!({
            "physical_cell_id": c.pci, "inst_measured_rsrp": or(c.rsrp_dbm, RSRP),
            "inst_measured_rsrq": or(c.rsrq_db, RSRQ), "inst_measured_rssi": or(c.rssi_dbm, RSSI),
        })
    };
    let sub = |s: &NeighbourMeasSubpacket| {
        json!({
            "subpacket_id": 31, "version": s.version, "earfcn": s.earfcn,
            "num_cells": s.cells.len(), "deplexing_mode": yes(s.duplex == 0, "FDD", "TDD"),
            "serving_cell_index": serving_cell(s.serving_cell),
            "neighbor_cells": s.cells.iter().map(cell).collect::<Vec<_>>(),
        })
    };
    let subs: Vec<_> = m.subpackets.iter().map(sub).collect();
    json!({ "version": m.version, "number_of_subpackets": subs.len(), "subpackets": subs })
}

fn intra(m: &IntraFreqMeas) -> Value {
    let neighbour = |n: &IntraFreqNeighbour| {
        json!({
            "physical_cell_id": n.pci, "rsrp_dbm": or(n.rsrp_dbm, RSRP),
            "rsrq_db": or(n.rsrq_db, RSRQ),
        })
    };
    json!({
        "version": m.version, "serving_cell_index": serving_cell(m.serving_cell),
        "earfcn": m.earfcn, "serving_physical_cell_id": m.pci,
        "sub_frame_number": m.tti.map(Tti::count),
        "rsrp_dbm": or(m.rsrp_dbm, RSRP), "rsrq_db": or(m.rsrq_db, RSRQ),
        "number_of_neighbor_cells": m.neighbours.len(),
        "number_of_detected_cells": m.n_detected,
        "neighbor_cells": m.neighbours.iter().map(neighbour).collect::<Vec<_>>(),
    })
}

fn rlm(m: &RlmReport) -> Value {
    let record = |r: &RlmRecord| {
        let percent = |raw: u16| f64::from(raw) * 100.0 / 32_768.0;
        json!({
            "system_frame_number": sfn(r.tti), "sub_frame_number": subframe(r.tti),
            "out_of_sync_bler": percent(r.out_of_sync_bler_x32768),
            "in_sync_bler": percent(r.in_sync_bler_x32768),
            "out_of_sync_count": r.out_of_sync_count, "in_sync_count": r.in_sync_count,
            "t310_timer_status": r.t310_state,
        })
    };
    json!({
        "version": m.version, "number_of_records": m.records.len(),
        "records": m.records.iter().map(record).collect::<Vec<_>>(),
    })
}

fn rrc_ota(m: &RrcOta) -> Value {
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
