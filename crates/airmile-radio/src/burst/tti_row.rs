//! One scheduled TTI of the user, with everything known of it.

use smallvec::SmallVec;

use super::poll_model::PollMark;

/// A block with at most this many bytes besides padding holds RLC STATUS or MAC control
/// only (a STATUS PDU is 2 bytes and more, TS 36.322, 6.2.1.6; a user's smallest IP
/// packet is 20 bytes).
const CONTROL_BYTES: u32 = 12;

/// One scheduled TTI of the user.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TtiRow {
    pub segment: u32,
    pub tti: i64,
    pub at_ns: Option<i64>,
    pub numerology: u8,
    /// PRB pairs over all carriers; `None` if only higher layers logged the block.
    pub prb: Option<u32>,
    /// PRB pairs of all carriers active at the time.
    pub prb_cell: u32,
    /// Bytes of the blocks sent for the first time.
    pub tbs_bytes: u32,
    /// Whether a grant was logged (RLC may be logged alone).
    pub has_grant: bool,
    /// Whether a block was sent for the first time.
    pub new_data: bool,
    /// A STATUS PDU was in it.
    pub has_status: bool,
    /// RLC data bytes, headers included.
    pub rlc_bytes: u32,
    /// Its data bearers' last PDUs.
    pub marks: SmallVec<[PollMark; 1]>,
    /// Blocks sent for the first time.
    pub(super) new_blocks: u8,
    /// Known padding of those blocks.
    known_padding: u32,
    /// Of them, those whose padding is known.
    padded_blocks: u8,
    /// Of them, those without a data bearer according to MAC.
    control_blocks: u8,
    /// Whether its padding comes from counters, alone or summed with other rows'.
    pub(super) counted: bool,
}

impl TtiRow {
    pub(super) fn new(segment: u32, tti: i64) -> Self {
        Self {
            segment,
            tti,
            at_ns: None,
            numerology: 0,
            prb: None,
            prb_cell: 0,
            tbs_bytes: 0,
            has_grant: false,
            new_data: false,
            has_status: false,
            rlc_bytes: 0,
            marks: SmallVec::new(),
            new_blocks: 0,
            known_padding: 0,
            padded_blocks: 0,
            control_blocks: 0,
            counted: false,
        }
    }

    /// Records the contents of one of its new blocks. A modem logs them only once the
    /// block has been received, for some of them with a HARQ retransmission.
    pub(super) fn learn_content(&mut self, padding_bytes: Option<u32>, mac_control_only: bool) {
        if let Some(padding) = padding_bytes
            && self.padded_blocks < self.new_blocks
        {
            self.padded_blocks += 1;
            self.known_padding = self.known_padding.saturating_add(padding);
        }
        if mac_control_only && self.control_blocks < self.new_blocks {
            self.control_blocks += 1;
        }
    }

    /// Padding of the blocks sent for the first time; `None` unless known for each.
    pub(super) fn padding_bytes(&self) -> Option<u32> {
        let is_known = self.new_data && self.padded_blocks == self.new_blocks;
        is_known.then_some(self.known_padding)
    }

    /// Whether it may hold user data, according to MAC and sizes.
    pub(super) fn may_hold_data(&self) -> bool {
        let filled = self.padding_bytes().map(|padding| self.tbs_bytes.saturating_sub(padding));
        let control_only = self.control_blocks == self.new_blocks;
        self.new_data && !control_only && filled.is_none_or(|bytes| bytes > CONTROL_BYTES)
    }

    /// Data bytes: from RLC if it was logged, else all but padding.
    pub(super) fn data_bytes(&self) -> u64 {
        if self.rlc_bytes > 0 {
            self.rlc_bytes.into()
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
