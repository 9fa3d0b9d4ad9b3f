//! Identity and bandwidth of the cells.

use airmile_model::radio::lte_bandwidth_at_least;
use airmile_model::{CellInfo, Stamp};

use super::Assembler;

impl Assembler {
    pub(super) fn blank_cell(&self, at: Stamp, cell: u8, source: &'static str) -> CellInfo {
        CellInfo::new(at, self.timing.now(at.ns).unwrap_or_default().0, cell, source)
    }

    pub(super) fn cell_info(&mut self, info: CellInfo) {
        if let Some(n_prb) = info.n_prb_dl {
            let at = (info.timing_segment, info.cell);
            self.bandwidth_prb.insert(at, n_prb);
            self.reported_bandwidth.insert(at, (n_prb, info.source));
        }
        self.emit_now(info);
    }

    pub(super) fn report_bandwidth(
        &mut self,
        at: Stamp,
        cell: u8,
        n_prb: u16,
        source: &'static str,
    ) {
        let key = (self.timing.now(at.ns).unwrap_or_default().0, cell);
        self.bandwidth_prb.insert(key, n_prb);
        if self.reported_bandwidth.insert(key, (n_prb, source)) != Some((n_prb, source)) {
            self.emit_now(CellInfo { n_prb_dl: Some(n_prb), ..self.blank_cell(at, cell, source) });
        }
    }

    /// If no message gives the bandwidth: the smallest one that holds the highest RB ever
    /// assigned.
    pub(super) fn infer_bandwidth(&mut self, at: Stamp, cell: u8, highest: u16, n_tx_antennas: u8) {
        let key = (self.timing.now(at.ns).unwrap_or_default().0, cell);
        let seen = self.highest_prb.entry(key).or_default();
        if highest <= *seen {
            return;
        }
        *seen = highest;
        if !self.bandwidth_prb.contains_key(&key)
            && let Some(n_prb) = lte_bandwidth_at_least(highest)
            && self.reported_bandwidth.insert(key, (n_prb, "inferred")) != Some((n_prb, "inferred"))
        {
            self.emit_now(CellInfo {
                n_prb_dl: Some(n_prb),
                n_tx_antennas: Some(n_tx_antennas),
                ..self.blank_cell(at, cell, "inferred")
            });
        }
    }
}

pub(super) fn bandwidth(n_prb: u8) -> Option<u16> {
    Some(u16::from(n_prb)).filter(|n| *n > 0)
}
