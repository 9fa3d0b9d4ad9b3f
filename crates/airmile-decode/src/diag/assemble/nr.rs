//! Messages of NR: each states its slot, and nothing is joined.

use airmile_model::{Direction, Grant, GrantSources, Position, Stamp};

use super::Assembler;
use super::nr_order::NrDlBlock;
use crate::diag::msg::NrPdschStatus;

/// Carriers that are told apart (TS 38.331, maxNrofServingCells is 32).
const MAX_CARRIERS: usize = 32;

impl Assembler {
    /// Index of a carrier by its NR-ARFCN, in order of appearance: where the
    /// message keeps its own index is not known.
    fn nr_carrier(&mut self, arfcn: u32) -> u8 {
        let at = match self.nr_arfcns.iter().position(|known| *known == arfcn) {
            Some(at) => at,
            None if self.nr_arfcns.len() < MAX_CARRIERS => {
                self.nr_arfcns.push(arfcn);
                self.nr_arfcns.len() - 1
            }
            None => MAX_CARRIERS - 1,
        };
        at as u8
    }

    pub(super) fn nr_pdsch_status(&mut self, at: Stamp, m: &NrPdschStatus) {
        for record in &m.records {
            for block in &record.blocks {
                if !record.time.exists() {
                    self.untimed += 1;
                    continue;
                }
                let mut grant = Grant::new(Position::default(), Direction::Dl, block.n_prb);
                grant.tb = block.tb;
                grant.tbs_bytes = Some(block.tbs_bytes);
                grant.mcs = Some(block.mcs);
                grant.modulation = Some(block.modulation);
                grant.harq_id = Some(block.harq_id);
                grant.ndi = Some(block.ndi);
                grant.rv = Some(block.rv);
                grant.layers = Some(block.layers);
                grant.rnti = block.rnti_type;
                grant.crc_ok = Some(block.crc_ok);
                grant.retx = Some(!block.new_data || block.retx_count > 0);
                grant.sources = GrantSources::NR_PDSCH_STATUS;
                let block = NrDlBlock {
                    time: record.time,
                    carrier: self.nr_carrier(block.arfcn),
                    pci: Some(block.pci),
                    arfcn: Some(block.arfcn),
                    grant,
                };
                self.nr.push(at, block);
            }
        }
    }
}
