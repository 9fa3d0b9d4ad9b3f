//! Names of log codes.

/// Log codes and their names, in ascending order.
pub const NAMES: &[(u16, &str)] = &[
    (0xB060, "LTE_MAC_Configuration"),
    (0xB061, "LTE_MAC_Rach_Trigger"),
    (0xB062, "LTE_MAC_Rach_Attempt"),
    (0xB063, "LTE_MAC_DL_Transport_Block"),
    (0xB064, "LTE_MAC_UL_Transport_Block"),
    (0xB066, "LTE_MAC_UL_Buffer_Status_Internal"),
    (0xB067, "LTE_MAC_UL_Tx_Statistics"),
    (0xB081, "LTE_RLC_DL_Config_Log_Packet"),
    (0xB082, "LTE_RLC_DL_AM_All_PDU"),
    (0xB083, "LTE_RLC_DL_AM_Control_PDU"),
    (0xB087, "LTE_RLC_DL_Stats"),
    (0xB091, "LTE_RLC_UL_Config_Log_Packet"),
    (0xB092, "LTE_RLC_UL_AM_All_PDU"),
    (0xB097, "LTE_RLC_UL_Stats"),
    (0xB0A0, "LTE_PDCP_DL_Config"),
    (0xB0A1, "LTE_PDCP_DL_Data_PDU"),
    (0xB0A3, "LTE_PDCP_DL_Cipher_Data_PDU"),
    (0xB0A4, "LTE_PDCP_DL_Stats"),
    (0xB0A5, "LTE_PDCP_DL_SRB_Integrity_Data_PDU"),
    (0xB0B0, "LTE_PDCP_UL_Config"),
    (0xB0B3, "LTE_PDCP_UL_Cipher_Data_PDU"),
    (0xB0B4, "LTE_PDCP_UL_Stats"),
    (0xB0B5, "LTE_PDCP_UL_SRB_Integrity_Data_PDU"),
    (0xB0B6, "LTE_PDCP_UL_Delay_Statistics"),
    (0xB0C0, "LTE_RRC_OTA_Packet"),
    (0xB0C1, "LTE_RRC_MIB_Packet"),
    (0xB0C2, "LTE_RRC_Serv_Cell_Info"),
    (0xB0CD, "LTE_RRC_Supported_CA_Combos"),
    (0xB0E2, "LTE_NAS_ESM_OTA_Incoming_Packet"),
    (0xB0E3, "LTE_NAS_ESM_OTA_Outgoing_Packet"),
    (0xB0E5, "LTE_NAS_ESM_State"),
    (0xB0EC, "LTE_NAS_EMM_OTA_Incoming_Packet"),
    (0xB0ED, "LTE_NAS_EMM_OTA_Outgoing_Packet"),
    (0xB0EE, "LTE_NAS_EMM_State"),
    (0xB114, "LTE_LL1_Serving_Cell_Timing"),
    (0xB116, "LTE_LL1_Serving_Cell_Measurement_Results"),
    (0xB126, "LTE_PHY_PDSCH_Packet"),
    (0xB12A, "LTE_LL1_PCFICH_Decoding_Results"),
    (0xB130, "LTE_PHY_PDCCH_Decoding_Result"),
    (0xB132, "LTE_PHY_PDSCH_Decoding_Result"),
    (0xB139, "LTE_PHY_PUSCH_Tx_Report"),
    (0xB13C, "LTE_PHY_PUCCH_Tx_Report"),
    (0xB144, "LTE_LL1_RACH_Tx_Report"),
    (0xB14D, "LTE_PHY_PUCCH_CSF"),
    (0xB14E, "LTE_PHY_PUSCH_CSF"),
    (0xB167, "LTE_ML1_Random_Access_Request_MSG1_Report"),
    (0xB168, "LTE_ML1_Random_Access_Response_MSG2_Report"),
    (0xB169, "LTE_ML1_UE_Identification_Message_MSG3_Report"),
    (0xB16A, "LTE_ML1_Contention_Resolution_Message_MSG4_Report"),
    (0xB16B, "LTE_PHY_PDCCH_PHICH_Indication_Report"),
    (0xB16C, "LTE_ML1_DCI_Information_Report"),
    (0xB16D, "LTE_ML1_GM_TX_Report"),
    (0xB16E, "LTE_PHY_PUSCH_Power_Control"),
    (0xB16F, "LTE_PHY_PUCCH_Power_Control"),
    (0xB172, "LTE_ML1_Uplink_PKT_Build_Indication"),
    (0xB173, "LTE_PHY_PDSCH_Stat_Indication"),
    (0xB179, "LTE_PHY_Connected_Mode_Intra_Freq_Meas"),
    (0xB184, "LTE_ML1_CA_Metrics"),
    (0xB187, "LTE_PHY_Inter_RAT_Measurement"),
    (0xB18A, "LTE_PHY_RLM_Report"),
    (0xB18F, "LTE_ML1_AdvRx_IC_Cell_List"),
    (0xB192, "LTE_PHY_Idle_Neighbor_Cell_Meas"),
    (0xB193, "LTE_PHY_Serv_Cell_Measurement"),
    (0xB195, "LTE_PHY_Connected_Mode_Neighbor_Measurement"),
    (0xB196, "LTE_ML1_Cell_Measurement_Results"),
    (0xB197, "LTE_ML1_Serving_Cell_Information"),
    (0xB198, "LTE_RRC_CDRX_Events_Info"),
    (0xB800, "5G_NR_NAS_SM5G_Plain_OTA_Incoming_Msg"),
    (0xB801, "5G_NR_NAS_SM5G_Plain_OTA_Outgoing_Msg"),
    (0xB80A, "5G_NR_NAS_MM5G_Plain_OTA_Incoming_Msg"),
    (0xB80B, "5G_NR_NAS_MM5G_Plain_OTA_Outgoing_Msg"),
    (0xB80C, "5G_NR_NAS_MM5G_State"),
    (0xB821, "5G_NR_RRC_OTA_Packet"),
    (0xB822, "5G_NR_RRC_MIB_Info"),
    (0xB823, "5G_NR_RRC_Serving_Cell_Info"),
    (0xB825, "5G_NR_RRC_Configuration_Info"),
    (0xB826, "5G_NR_RRC_Supported_CA_Combos"),
    (0xB840, "5G_NR_PDCP_DL_Data_PDU"),
    (0xB842, "5G_NR_PDCP_DL_RBS_Stats"),
    (0xB84D, "5G_NR_RLC_DL_Stats"),
    (0xB84E, "5G_NR_RLC_DL_Status_PDU"),
    (0xB857, "5G_NR_L2_DL_Data_PDU"),
    (0xB860, "5G_NR_PDCP_UL_Stats"),
    (0xB861, "5G_NR_PDCP_UL_Control_PDU"),
    (0xB868, "5G_NR_RLC_UL_Stats"),
    (0xB869, "5G_NR_RLC_UL_Status_PDU"),
    (0xB870, "5G_NR_L2_UL_Data_PDU"),
    (0xB871, "5G_NR_L2_UL_Config"),
    (0xB872, "5G_NR_L2_UL_TB"),
    (0xB873, "5G_NR_L2_UL_BSR"),
    (0xB881, "5G_NR_MAC_UL_TB_Stats"),
    (0xB883, "5G_NR_MAC_UL_Physical_Channel_Schedule_Report"),
    (0xB885, "5G_NR_MAC_DCI_Info"),
    (0xB886, "5G_NR_MAC_DL_TB_Report"),
    (0xB887, "5G_NR_MAC_PDSCH_Status"),
    (0xB888, "5G_NR_MAC_PDSCH_Stats"),
    (0xB889, "5G_NR_MAC_RACH_Trigger"),
    (0xB88A, "5G_NR_MAC_RACH_Attempt"),
    (0xB890, "5G_NR_MAC_CDRX_Events_Info"),
    (0xB896, "5G_NR_MAC_UCI_Payload_Information"),
    (0xB89B, "5G_NR_MAC_UCI_Information"),
    (0xB89C, "5G_NR_MAC_Flow_Control"),
    (0xB8A7, "5G_NR_MAC_CSF_Report"),
    (0xB97F, "5G_NR_ML1_Searcher_Measurement_Database_Update_Ext"),
];

/// The name of a log code.
#[must_use]
pub fn name(code: u16) -> Option<&'static str> {
    let i = NAMES.binary_search_by_key(&code, |&(code, _)| code).ok()?;
    Some(NAMES[i].1)
}

/// Whether a number may be a log code: its upper 4 bits are the equipment identity, of
/// which 1 (common, CDMA), 4 (WCDMA), 5 (GSM), 6 (other), 7 (UMTS) and 11 (LTE, NR) are
/// in use.
#[must_use]
pub const fn plausible(code: u16) -> bool {
    matches!(code >> 12, 1 | 4 | 5 | 6 | 7 | 0xb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascending_and_plausible() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(NAMES.iter().all(|&(code, _)| plausible(code)));
        assert_eq!(name(0xb173), Some("LTE_PHY_PDSCH_Stat_Indication"));
        assert_eq!(name(0xb000), None);
    }

    #[test]
    fn decoded_messages_have_names() {
        assert!(crate::diag::Message::CODES.iter().all(|&code| name(code).is_some()));
    }
}
