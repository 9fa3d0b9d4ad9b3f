//! Messages of the physical layer.

use airmile_decode::diag::msg::*;
use airmile_model::{Modulation, Tti};
use serde_json::{Value, json};

use super::{carrier, rnti, serving_cell, sfn, subframe, yes};

fn modulation(modulation: Modulation) -> Value {
    match modulation {
        Modulation::Qpsk => "QPSK",
        Modulation::Qam16 => "16QAM",
        Modulation::Qam64 => "64QAM",
        Modulation::Qam256 => "256QAM",
    }
    .into()
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

const RSRP: f64 = -180.0;
const RSRQ: f64 = -30.0;
const RSSI: f64 = -110.0;

/// "Not measured" is the scale's low end in the reference.
fn or(value: Option<f32>, low_end: f64) -> Value {
    value.map_or(low_end, f64::from).into()
}

pub(super) fn pdsch_packet(m: &PdschPacket) -> Value {
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

pub(super) fn pdsch_stat(m: &PdschStat) -> Value {
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

pub(super) fn pdsch_decoding(m: &PdschDecoding) -> Value {
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

pub(super) fn pdcch(m: &PdcchDecoding) -> Value {
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

pub(super) fn pusch(m: &PuschTx) -> Value {
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

pub(super) fn serv_cell(m: &ServCellMeas) -> Value {
    let sub = |s: &ServCellSubpacket| {
        let snr = |value: Option<f32>| or(value, -20.0);
        json!({
            "subpacket_id": 25, "subpacket_version": s.version, "earfcn": s.earfcn,
            "num_of_cells": s.n_cells, "physical_cell_id": s.pci,
            "serving_cell_index": serving_cell(s.serving_cell),
            "is_serving_cell": s.is_serving.map(u8::from),
            "current_sfn": s.sfn.unwrap_or_else(|| sfn(s.tti)), "current_subframe_number": subframe(s.tti),
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

pub(super) fn neighbours(m: &NeighbourMeas) -> Value {
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

pub(super) fn intra(m: &IntraFreqMeas) -> Value {
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

pub(super) fn rlm(m: &RlmReport) -> Value {
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
