//! What inputs lack for a better result, and how to capture it.

use airmile_model::Direction;
use airmile_radio::burst::EvidenceChoice;
use airmile_radio::evidence::EvidenceCounts;
use schemars::JsonSchema;
use serde::Serialize;

/// A kind of missing evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissingKind {
    /// Records of the radio.
    Radio,
    /// Start and end of transfers.
    Transfers,
    /// Packets.
    Packets,
    /// The alignment of clocks.
    Clock,
    /// Details of an application's log.
    Application,
    /// A readable file.
    File,
}

/// Evidence that the inputs lack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Missing {
    /// Its kind.
    pub kind: MissingKind,
    /// What is missing.
    pub what: String,
    /// How to capture it.
    pub how_to_capture: String,
    /// The directions whose verdicts lack it.
    #[serde(skip)]
    pub(super) verdicts_on: &'static [Direction],
}

impl Missing {
    /// Of both directions.
    pub(super) fn new(
        kind: MissingKind,
        what: impl Into<String>,
        how_to_capture: impl Into<String>,
    ) -> Self {
        let (what, how_to_capture) = (what.into(), how_to_capture.into());
        Self { kind, what, how_to_capture, verdicts_on: &[Direction::Dl, Direction::Ul] }
    }

    /// Whether verdicts on transfers of a direction lack it.
    pub(super) fn is_of(&self, dir: Direction) -> bool {
        self.verdicts_on.contains(&dir)
    }
}

/// What would improve the result.
pub(super) fn missing(
    counts: &EvidenceCounts,
    choice: EvidenceChoice,
    transfers_given: bool,
) -> Vec<Missing> {
    let mut out = Vec::new();
    let (dl, ul): (&[_], &[_]) = (&[Direction::Dl], &[Direction::Ul]);
    let mut add = |verdicts_on, what: &str, how: &str| {
        out.push(Missing { verdicts_on, ..Missing::new(MissingKind::Radio, what, how) });
    };
    if counts.dl_blocks == 0 {
        add(
            dl,
            "downlink allocations (0xB173 or 0xB126)",
            "enable LTE_PHY_PDSCH_Stat_Indication and LTE_PHY_PDSCH_Packet in MobileInsight or \
             QXDM, and log while the transfer runs",
        );
    } else if counts.dl_blocks_with_prb == 0 {
        add(
            dl,
            "the PRBs of downlink assignments (0xB173 or 0xB126)",
            "enable LTE_PHY_PDSCH_Stat_Indication or LTE_PHY_PDSCH_Packet",
        );
    }
    let auto = choice == EvidenceChoice::Auto && !counts.is_nr();
    if counts.is_nr() && counts.nr_counters == 0 && counts.dl_blocks_with_padding == 0 {
        add(
            dl,
            "NR's padding counters (0xB888), which show which blocks left data queued",
            "enable NR5G MAC PDSCH Stats (0xB888) with 0xB887",
        );
    }
    // On a signalling bearer they are logged: no data passed on one that has any.
    let polls = counts.dl_pdus_with_poll + counts.dl_signalling_pdus;
    if counts.dl_blocks > 2 * counts.dl_um_pdus && polls == 0 && auto {
        add(
            dl,
            "RLC poll bits (0xB082), the standard's own mark of an emptied buffer",
            "enable LTE_RLC_DL_AM_All_PDU",
        );
    }
    if counts.dl_blocks > 0 && counts.dl_blocks_with_padding == 0 && auto {
        add(
            dl,
            "MAC padding (0xB063), which marks a block larger than the queue",
            "enable LTE_MAC_DL_Transport_Block",
        );
    }
    if counts.dl_blocks_with_harq * 2 < counts.dl_blocks && !counts.is_nr() {
        add(
            dl,
            "HARQ process and new-data indicator of blocks (0xB173)",
            "enable LTE_PHY_PDSCH_Stat_Indication; without it retransmissions look like data",
        );
    }
    let has_buffer = counts.buffer_samples + counts.bsr_reports > 0;
    match (counts.ul_blocks > 0, has_buffer) {
        (true, true) if counts.is_nr() || counts.buffer_samples > 0 => {}
        (true, true) => add(
            ul,
            "samples of the phone's uplink buffer (0xB066), which show what uploads waited for",
            "enable LTE_MAC_UL_Buffer_Status_Internal",
        ),
        _ if counts.is_nr() => add(
            ul,
            "the uplink's blocks with buffer status reports (0xB872), for a verdict on uploads",
            "enable NR5G L2 UL TB (0xB872)",
        ),
        (_, false) => add(
            ul,
            "the phone's uplink buffer (0xB066 or 0xB064)",
            "enable LTE_MAC_UL_Buffer_Status_Internal",
        ),
        (false, true) => add(
            ul,
            "the uplink's blocks (0xB139 or 0xB064), for a verdict on uploads",
            "enable LTE_PHY_PUSCH_Tx_Report",
        ),
    }
    if counts.measurements == 0 && !counts.is_nr() {
        add(&[], "signal quality (0xB193)", "enable LTE_PHY_Serv_Cell_Measurement");
    }
    if !transfers_given {
        out.push(Missing::new(
            MissingKind::Transfers,
            "when the application's transfers started and ended",
            "pass --transfers FILE with id,start_us,end_us,bytes; without it transfers are \
             activity split at pauses, and the time before the first and after the last block is \
             unknown",
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With blocks and buffer status reports of LTE, uploads lack samples of the buffer, and downloads nothing
    /// that only an upload needs. No verdict is by signal quality.
    #[test]
    fn a_transfer_lacks_what_its_direction_needs() {
        let counts = EvidenceCounts {
            dl_blocks: 10,
            dl_blocks_with_prb: 10,
            dl_blocks_with_padding: 10,
            dl_blocks_with_harq: 10,
            dl_pdus_with_poll: 10,
            ul_blocks: 10,
            bsr_reports: 10,
            ..EvidenceCounts::default()
        };
        let all = missing(&counts, EvidenceChoice::Auto, false);
        let of = |dir| {
            let of_dir = all.iter().filter(|one| one.is_of(dir));
            of_dir.map(|one| one.what.as_str()).collect::<Vec<_>>()
        };
        let transfers = "when the application's transfers started and ended";
        assert!(all.iter().any(|one| one.what == "signal quality (0xB193)"));
        assert_eq!(of(Direction::Dl), [transfers]);
        assert!(of(Direction::Ul)[0].contains("0xB066") && of(Direction::Ul)[1..] == [transfers]);
    }
}
