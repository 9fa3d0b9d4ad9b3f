//! Builds one downlink grant from the messages about the same TTI.
//!
//! All of them give the air interface's own subframe, so records are matched by (timing
//! segment, TTI, cell, kind of RNTI). Precedence by field:
//!
//! | field | from, best first |
//! |---|---|
//! | `n_prb` | 0xB126 (bits set in slot 0), 0xB173 |
//! | `tbs_bytes` | 0xB126, 0xB063, 0xB173 (up to version 40 less its CRC) |
//! | `modulation` | 0xB126, 0xB173, the MCS |
//! | `layers` | 0xB126 (rank), number of blocks in 0xB173 |
//! | `mcs` | 0xB173 |
//! | `harq_id`, `ndi`, `rv` | 0xB173, 0xB132; `harq_id` also 0xB063 |
//! | `crc_ok` | 0xB173, 0xB132, 0xB063 (only good blocks reach the MAC layer) |
//! | `retx` | 0xB132's count, 0xB173's combining, RV and MCS, NDI of the process |
//! | `padding_bytes`, `data_bytes` | 0xB063 |
//!
//! 0xB173's block size includes the 24 bits of CRC (TS 36.212, 5.3.2.1) up to
//! version 40; that of version 48 does not.

use airmile_model::tables::{McsTable, mcs_entry, tbs_bits};
use airmile_model::{Direction, Grant, GrantSources, Modulation, Position, RntiType};
use smallvec::SmallVec;

use crate::diag::msg::{BlockSizeCrc, DecodedStream, PdschPacket, PdschStatBlock};

/// Bytes of a transport block's CRC (TS 36.212, 5.1.1: CRC24A).
const TB_CRC_BYTES: u32 = 3;

/// The fields of 0xB126.
#[derive(Debug, Clone, Copy)]
struct Demap {
    n_prb: u16,
    rank: u8,
    tbs_bits: [u32; 2],
    modulation: [Modulation; 2],
}

/// The fields of 0xB173 for one block.
#[derive(Debug, Clone, Copy)]
struct Stat {
    n_prb: u16,
    harq_id: u8,
    rv: u8,
    ndi: bool,
    crc_ok: bool,
    recombined: bool,
    tbs_bytes: u32,
    size_crc: BlockSizeCrc,
    mcs: u8,
    modulation: Option<Modulation>,
}

/// The fields of 0xB132 for one stream.
#[derive(Debug, Clone, Copy)]
struct Decode {
    harq_id: u8,
    ndi: bool,
    rv: u8,
    crc_ok: bool,
    retx_count: u8,
}

/// The fields of 0xB063 for one block.
#[derive(Debug, Clone, Copy)]
pub(super) struct DlMacBlock {
    pub(super) harq_id: u8,
    pub(super) tbs_bytes: u32,
    pub(super) padding_bytes: u32,
    pub(super) data_bytes: Option<u32>,
}

/// The fields of all messages for one assignment.
#[derive(Debug, Clone, Default)]
pub(super) struct DlParts {
    demap: Option<Demap>,
    stat: [Option<Stat>; 2],
    decode: [Option<Decode>; 2],
    mac: SmallVec<[DlMacBlock; 2]>,
}

impl DlParts {
    pub(super) fn add_demap(&mut self, packet: &PdschPacket) {
        let [first, second] = packet.streams;
        self.demap = Some(Demap {
            n_prb: packet.n_prb(),
            rank: packet.rank,
            tbs_bits: [first.tbs_bits, second.tbs_bits],
            modulation: [first.modulation, second.modulation],
        });
    }

    pub(super) fn add_stat(&mut self, n_prb: u8, block: &PdschStatBlock, size_crc: BlockSizeCrc) {
        self.stat[usize::from(block.tb & 1)] = Some(Stat {
            n_prb: n_prb.into(),
            harq_id: block.harq_id,
            rv: block.rv,
            ndi: block.ndi,
            crc_ok: block.crc_ok,
            recombined: block.recombined,
            tbs_bytes: block.tbs_bytes.into(),
            size_crc,
            mcs: block.mcs,
            modulation: block.modulation,
        });
    }

    pub(super) fn add_decode(&mut self, harq_id: u8, stream: &DecodedStream) {
        self.decode[usize::from(stream.codeword & 1)] = Some(Decode {
            harq_id,
            ndi: stream.ndi,
            rv: stream.rv,
            crc_ok: stream.crc_ok,
            retx_count: stream.retx_count,
        });
    }

    pub(super) fn add_mac(&mut self, block: DlMacBlock) {
        self.mac.push(block);
    }

    /// The grants, one per block.
    pub(super) fn each_grant(
        mut self,
        position: Position,
        rnti: RntiType,
        n_prb_cell: Option<u16>,
        mut give: impl FnMut(Grant),
    ) {
        let blank =
            Grant { rnti, n_prb: None, n_prb_cell, ..Grant::new(position, Direction::Dl, 0) };
        let is_present = [0, 1].map(|tb: usize| {
            let demapped = self.demap.is_some_and(|d| d.tbs_bits[tb] > 0);
            demapped || self.stat[tb].is_some() || self.decode[tb].is_some()
        });
        let n_blocks = is_present.iter().filter(|present| **present).count();
        for tb in [0, 1] {
            if is_present[tb] {
                let mut grant = Grant { tb: tb as u8, ..blank.clone() };
                self.fill(&mut grant, tb, n_blocks);
                give(grant);
            }
        }
        // Blocks that only the MAC layer logged.
        for (i, mac) in self.mac.iter().enumerate() {
            let mut grant = Grant { tb: (n_blocks + i).min(1) as u8, ..blank.clone() };
            apply_mac(&mut grant, *mac);
            give(grant);
        }
    }

    fn fill(&mut self, grant: &mut Grant, tb: usize, n_blocks: usize) {
        if let Some(demap) = self.demap.filter(|d| d.tbs_bits[tb] > 0) {
            grant.n_prb = Some(demap.n_prb);
            grant.layers = Some(demap.rank);
            grant.tbs_bytes = Some(demap.tbs_bits[tb] / 8);
            grant.modulation = Some(demap.modulation[tb]);
            grant.sources = grant.sources.union(GrantSources::PDSCH_DEMAP);
        }
        if let Some(stat) = self.stat[tb] {
            grant.n_prb = grant.n_prb.or(Some(stat.n_prb));
            grant.layers = grant.layers.or(Some(n_blocks as u8));
            grant.mcs = Some(stat.mcs);
            grant.modulation = grant.modulation.or(stat.modulation);
            grant.harq_id = Some(stat.harq_id);
            grant.ndi = Some(stat.ndi);
            grant.rv = Some(stat.rv);
            grant.crc_ok = Some(stat.crc_ok);
            grant.sources = grant.sources.union(GrantSources::PDSCH_STAT);
            if stat.recombined || stat.rv != 0 || is_retx_mcs(&stat) {
                grant.retx = Some(true);
            }
        }
        if let Some(decode) = self.decode[tb] {
            grant.harq_id = grant.harq_id.or(Some(decode.harq_id));
            grant.ndi = grant.ndi.or(Some(decode.ndi));
            grant.rv = grant.rv.or(Some(decode.rv));
            grant.crc_ok = grant.crc_ok.or(Some(decode.crc_ok));
            if decode.retx_count > 0 {
                grant.retx = Some(true);
            }
            grant.sources = grant.sources.union(GrantSources::PDSCH_DECODE);
        }
        if let Some(mac) = self.take_mac(grant) {
            apply_mac(grant, mac);
        }
        if grant.tbs_bytes.is_none() {
            grant.tbs_bytes = self.stat[tb].map(|stat| stat_tbs_bytes(&stat));
        }
    }

    /// The MAC block of this grant: same HARQ process, and same size if that is known. A
    /// failed block has none.
    fn take_mac(&mut self, grant: &Grant) -> Option<DlMacBlock> {
        if grant.crc_ok == Some(false) {
            return None;
        }
        let fits = |mac: &DlMacBlock| {
            grant.harq_id.is_none_or(|id| id == mac.harq_id)
                && grant.tbs_bytes.is_none_or(|bytes| bytes == mac.tbs_bytes)
        };
        let at = self.mac.iter().position(fits)?;
        Some(self.mac.remove(at))
    }
}

fn apply_mac(grant: &mut Grant, mac: DlMacBlock) {
    grant.harq_id = grant.harq_id.or(Some(mac.harq_id));
    grant.crc_ok = grant.crc_ok.or(Some(true));
    grant.tbs_bytes = grant.tbs_bytes.or(Some(mac.tbs_bytes));
    grant.padding_bytes = Some(mac.padding_bytes);
    grant.data_bytes = mac.data_bytes;
    grant.sources = grant.sources.union(GrantSources::MAC);
}

/// MCS indexes that give only a modulation, so mark a retransmission: 29 to 31, and 28
/// with the 256QAM table (TS 36.213, 7.1.7.1).
fn is_retx_mcs(stat: &Stat) -> bool {
    stat.mcs >= 29 || (stat.mcs == 28 && stat.modulation == Some(Modulation::Qpsk))
}

/// 0xB173's size without the CRC. If the version leaves it open, the standard's sizes for
/// this MCS and number of PRBs decide.
fn stat_tbs_bytes(stat: &Stat) -> u32 {
    let without_crc = stat.tbs_bytes.saturating_sub(TB_CRC_BYTES);
    let is_standard = |bytes: u32| {
        [McsTable::Pdsch64Qam, McsTable::Pdsch256Qam].into_iter().any(|table| {
            let i_tbs = mcs_entry(table, stat.mcs).and_then(|entry| entry.i_tbs);
            i_tbs.and_then(|i_tbs| tbs_bits(i_tbs, stat.n_prb)) == Some(8 * bytes)
        })
    };
    match stat.size_crc {
        BlockSizeCrc::Without => stat.tbs_bytes,
        BlockSizeCrc::With if !is_standard(without_crc) && is_standard(stat.tbs_bytes) => {
            stat.tbs_bytes
        }
        BlockSizeCrc::Unknown if is_standard(stat.tbs_bytes) || !is_standard(without_crc) => {
            stat.tbs_bytes
        }
        BlockSizeCrc::With | BlockSizeCrc::Unknown => without_crc,
    }
}

/// Distinguishes new data from retransmissions if no message states it: by the NDI of the
/// process, or (0xB126 alone) by a failed block of the same size one HARQ round trip or
/// more earlier. Each failed block has one retransmission, which may also fail.
#[derive(Debug, Clone, Default)]
pub(super) struct HarqMemory {
    ndi: Vec<(HarqKey, bool)>,
    failed: Vec<Failed>,
}

type HarqKey = (u8, u8, u8);

#[derive(Debug, Clone, Copy)]
struct Failed {
    cell: u8,
    tti: i64,
    bytes: u32,
    harq_id: Option<u8>,
}

/// FDD: a retransmission follows 8 ms or more after (TS 36.213, 7).
const HARQ_RTT_TTIS: i64 = 8;
/// A failed block that is not retransmitted within this time is given up (chosen here:
/// base stations retransmit at the next few opportunities).
const HARQ_PATIENCE_TTIS: i64 = 4 * HARQ_RTT_TTIS;

impl HarqMemory {
    /// Sets `retx` of a user's grant; grants come in TTI order.
    pub(super) fn settle(&mut self, grant: &mut Grant, mac_logged_around: impl Fn() -> bool) {
        let tti = grant.position.tti.0;
        self.failed.retain(|f| tti - f.tti <= HARQ_PATIENCE_TTIS);
        let earlier = self.take_failed(grant);
        if let (Some(harq_id), Some(ndi)) = (grant.harq_id, grant.ndi) {
            let key = (grant.position.cell, harq_id, grant.tb);
            match self.ndi.iter_mut().find(|(k, _)| *k == key) {
                Some((_, last)) => {
                    // An unchanged NDI marks a retransmission only while one is due:
                    // after a long pause, a toggle may have been missed.
                    grant.retx = grant.retx.or(Some(*last == ndi && earlier.is_some()));
                    *last = ndi;
                }
                None => {
                    self.ndi.push((key, ndi));
                    grant.retx = grant.retx.or(Some(false));
                }
            }
        } else if grant.crc_ok.is_none() && mac_logged_around() {
            grant.crc_ok = Some(false);
        }
        if grant.retx.is_none() && (grant.crc_ok.is_some() || mac_logged_around()) {
            grant.retx = Some(earlier.is_some());
        }
        if grant.retx == Some(false)
            && let Some(unused) = earlier
        {
            self.failed.push(unused);
        }
        if grant.crc_ok == Some(false) {
            self.failed.push(Failed {
                cell: grant.position.cell,
                tti,
                bytes: grant.tbs_bytes.unwrap_or(0),
                harq_id: grant.harq_id,
            });
        }
    }

    /// The earliest failed block that this one may retransmit.
    fn take_failed(&mut self, grant: &Grant) -> Option<Failed> {
        let bytes = grant.tbs_bytes.unwrap_or(0);
        let fits = |f: &Failed| {
            f.cell == grant.position.cell
                && f.bytes == bytes
                && grant.position.tti.0 - f.tti >= HARQ_RTT_TTIS
                && f.harq_id.zip(grant.harq_id).is_none_or(|(a, b)| a == b)
        };
        let (at, _) =
            self.failed.iter().enumerate().filter(|(_, f)| fits(f)).min_by_key(|(_, f)| f.tti)?;
        Some(self.failed.swap_remove(at))
    }
}
