//! Builds one uplink grant from 0xB139 (the transmission) and 0xB064 (its contents).
//!
//! | field | from |
//! |---|---|
//! | `n_prb`, `rv`, `modulation`, `retx` | 0xB139 |
//! | `tbs_bytes` | 0xB139, 0xB064 |
//! | `harq_id`, `padding_bytes`, `data_bytes` | 0xB064 |

use airmile_model::{Direction, Grant, GrantSources, Modulation, Position, RntiType};

use crate::diag::msg::{MacUlBlock, PuschTxRecord};

#[derive(Debug, Clone, Copy)]
struct Pusch {
    n_prb: u16,
    tbs_bytes: u32,
    rv: u8,
    retx: bool,
    modulation: Option<Modulation>,
}

#[derive(Debug, Clone, Copy)]
struct Mac {
    harq_id: u8,
    grant_bytes: u32,
    padding_bytes: u32,
    data_bytes: Option<u32>,
}

/// The fields of all messages for one uplink transmission.
#[derive(Debug, Clone, Default)]
pub(super) struct UlParts {
    pusch: Option<Pusch>,
    mac: Option<Mac>,
}

impl UlParts {
    pub(super) fn add_pusch(&mut self, record: &PuschTxRecord) {
        self.pusch = Some(Pusch {
            n_prb: record.n_prb.into(),
            tbs_bytes: record.tbs_bytes.into(),
            rv: record.rv,
            retx: record.retx_index > 0,
            modulation: record.modulation,
        });
    }

    pub(super) fn add_mac(&mut self, block: &MacUlBlock, data_bytes: Option<u32>) {
        self.mac = Some(Mac {
            harq_id: block.harq_id,
            grant_bytes: block.grant_bytes.into(),
            padding_bytes: block.padding_bytes.into(),
            data_bytes,
        });
    }

    pub(super) fn grant(
        &self,
        position: Position,
        rnti: RntiType,
        n_prb_cell: Option<u16>,
    ) -> Grant {
        let mut grant = Grant::new(position, Direction::Ul, 0);
        grant.n_prb = None;
        grant.n_prb_cell = n_prb_cell;
        grant.rnti = rnti;
        if let Some(pusch) = self.pusch {
            grant.n_prb = Some(pusch.n_prb);
            grant.tbs_bytes = Some(pusch.tbs_bytes);
            grant.rv = Some(pusch.rv);
            grant.retx = Some(pusch.retx);
            grant.modulation = pusch.modulation;
            grant.sources = grant.sources.union(GrantSources::PUSCH_TX);
        }
        if let Some(mac) = self.mac {
            grant.tbs_bytes = grant.tbs_bytes.or(Some(mac.grant_bytes));
            grant.harq_id = Some(mac.harq_id);
            grant.padding_bytes = Some(mac.padding_bytes);
            grant.data_bytes = mac.data_bytes;
            // The MAC layer logs a block once, when it is built.
            grant.retx = grant.retx.or(Some(false));
            grant.sources = grant.sources.union(GrantSources::MAC);
        }
        grant
    }
}
