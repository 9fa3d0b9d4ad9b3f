//! The grants of a TTI, and what they show together.

use airmile_model::Grant;

use super::cut::CutPadding;

/// A block with at most this many bytes besides padding holds RLC STATUS or MAC control
/// only (a STATUS PDU is 2 bytes and more, TS 36.322, 6.2.1.6; a user's smallest IP
/// packet is 20 bytes).
const CONTROL_BYTES: u32 = 12;

/// A downlink grant, with the fields that rows need.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GrantLite {
    pub cell: u8,
    pub numerology: u8,
    pub at_ns: Option<i64>,
    pub prb: Option<u16>,
    pub prb_cell: Option<u16>,
    pub harq_id: Option<u8>,
    pub tb: u8,
    pub tbs_bytes: u32,
    pub padding_bytes: Option<u32>,
    pub mac_control_only: bool,
    pub retx: bool,
    pub failed: bool,
    /// Its padding and that of other blocks, if it comes from counters.
    pub counted: CutPadding,
}

impl GrantLite {
    #[inline]
    pub(super) fn new(grant: &Grant) -> Self {
        Self {
            cell: grant.position.cell,
            numerology: grant.position.numerology,
            at_ns: grant.at.map(|at| at.ns),
            prb: grant.n_prb,
            prb_cell: grant.n_prb_cell,
            harq_id: grant.harq_id,
            tb: grant.tb.min(1),
            tbs_bytes: grant.tbs_bytes.unwrap_or(0),
            padding_bytes: grant.padding_bytes,
            mac_control_only: grant.data_bytes == Some(0),
            retx: is_retransmission(grant),
            failed: grant.crc_ok == Some(false),
            counted: CutPadding::default(),
        }
    }
}

/// Whether a block carries no new data. If the source does not show it: MCS 29 to 31 are
/// for retransmissions only (TS 36.213, 7.1.7.1), and a first transmission has redundancy
/// version 0 (TS 36.321, 5.4.2.2).
fn is_retransmission(grant: &Grant) -> bool {
    grant.retx.unwrap_or_else(|| {
        grant.mcs.is_some_and(|mcs| mcs >= 29) || grant.rv.is_some_and(|rv| rv != 0)
    })
}

/// What the grants of a TTI show.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct GrantSummary {
    pub at_ns: Option<i64>,
    /// PRB pairs over all carriers; `None` if only higher layers logged the block.
    pub prb: Option<u32>,
    /// PRB pairs of all carriers active at the time.
    pub prb_cell: u32,
    /// Bytes of the blocks sent for the first time.
    pub tbs_bytes: u32,
    /// Known padding of those blocks.
    known_padding: u32,
    pub numerology: u8,
    /// Whether a grant was logged (RLC may be logged alone).
    pub has_grant: bool,
    /// Blocks sent for the first time.
    pub(super) new_blocks: u8,
    /// Of them, those of a known HARQ process that neither the first transmission nor a later one
    /// brought.
    pub(super) lost_blocks: u8,
    /// Of them, those whose padding is known.
    padded_blocks: u8,
    /// Of them, those without a data bearer according to MAC.
    control_blocks: u8,
    /// Its padding and that of other rows, if it comes from counters.
    pub counted: CutPadding,
}

impl GrantSummary {
    /// Of a lone block that is sent for the first time.
    #[inline]
    pub(super) fn of_lone(grant: &GrantLite, prb_cell: u32) -> Self {
        Self {
            at_ns: grant.at_ns,
            prb: grant.prb.map(u32::from),
            prb_cell,
            tbs_bytes: grant.tbs_bytes,
            known_padding: grant.padding_bytes.unwrap_or(0),
            numerology: grant.numerology,
            has_grant: true,
            new_blocks: 1,
            lost_blocks: (grant.failed && grant.harq_id.is_some()).into(),
            padded_blocks: grant.padding_bytes.is_some().into(),
            control_blocks: grant.mac_control_only.into(),
            counted: grant.counted,
        }
    }

    /// Of grants in order of cell.
    pub(super) fn of<'a>(grants: impl Iterator<Item = &'a GrantLite>, prb_cell: u32) -> Self {
        let mut out = Self { prb_cell, ..Self::default() };
        // By cell: `n_prb` is the whole assignment's, repeated on each of its blocks.
        let mut prb: Option<(u8, u16, u32)> = None;
        for grant in grants {
            out.add(grant);
            if let Some(n) = grant.prb {
                prb = Some(match prb {
                    Some((cell, most, before)) if cell == grant.cell => (cell, most.max(n), before),
                    Some((_, most, before)) => (grant.cell, n, before + u32::from(most)),
                    None => (grant.cell, n, 0),
                });
            }
        }
        out.prb = prb.map(|(_, most, before)| before + u32::from(most));
        out
    }

    fn add(&mut self, grant: &GrantLite) {
        self.has_grant = true;
        self.at_ns = self.at_ns.or(grant.at_ns);
        self.numerology = grant.numerology;
        if !grant.retx {
            self.tbs_bytes = self.tbs_bytes.saturating_add(grant.tbs_bytes);
            self.new_blocks = self.new_blocks.saturating_add(1);
            let is_lost = grant.failed && grant.harq_id.is_some();
            self.lost_blocks = self.lost_blocks.saturating_add(is_lost.into());
            self.learn_content(grant);
        }
    }

    /// Takes a retransmission of one of its new blocks that was received.
    pub(super) fn receive_later(&mut self, grant: &GrantLite) {
        self.lost_blocks = self.lost_blocks.saturating_sub(1);
        self.learn_content(grant);
    }

    /// Records the contents of one of its new blocks. A modem logs them only once the
    /// block has been received, for some of them with a HARQ retransmission.
    fn learn_content(&mut self, grant: &GrantLite) {
        if let Some(padding) = grant.padding_bytes
            && self.padded_blocks < self.new_blocks
        {
            self.padded_blocks += 1;
            self.known_padding = self.known_padding.saturating_add(padding);
        }
        if grant.mac_control_only && self.control_blocks < self.new_blocks {
            self.control_blocks += 1;
        }
        self.counted = self.counted.max(grant.counted);
    }

    /// Whether a block was sent for the first time.
    pub(super) const fn new_data(&self) -> bool {
        self.new_blocks > 0
    }

    /// Padding of the blocks sent for the first time; `None` unless known for each.
    pub(super) fn padding_bytes(&self) -> Option<u32> {
        let is_known = self.new_data() && self.padded_blocks == self.new_blocks;
        is_known.then_some(self.known_padding)
    }

    /// Whether it may hold user data, according to MAC and sizes.
    pub(super) fn may_hold_data(&self) -> bool {
        let filled = self.padding_bytes().map(|padding| self.tbs_bytes.saturating_sub(padding));
        let control_only = self.control_blocks == self.new_blocks;
        self.new_data() && !control_only && filled.is_none_or(|bytes| bytes > CONTROL_BYTES)
    }

    /// Data bytes: from RLC if it was logged, else all but padding.
    pub(super) fn data_bytes(&self, rlc_bytes: u32) -> u64 {
        if rlc_bytes > 0 {
            rlc_bytes.into()
        } else {
            self.tbs_bytes.saturating_sub(self.padding_bytes().unwrap_or(0)).into()
        }
    }

    /// Share of the active carriers' PRBs.
    pub(super) fn prb_fraction(&self) -> Option<f64> {
        let prb = self.prb?;
        (self.prb_cell > 0).then(|| f64::from(prb) / f64::from(self.prb_cell))
    }
}
