//! Differences between the MAC PDUs of LTE (TS 36.321, 6) and NR (TS 38.321, 6).

use airmile_model::nr_tables::nr_bsr_upper_bound_bytes;
use airmile_model::tables::bsr_upper_bound_bytes;

use super::uplink::transform_size;
use crate::scenario::NrConfig;

/// Format of MAC PDUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MacFormat {
    /// LTE's.
    #[default]
    Lte,
    /// NR's: each SDU has its length, padding is last.
    Nr,
}

impl MacFormat {
    pub(crate) const fn of_cell(nr: Option<NrConfig>) -> Self {
        if nr.is_some() { Self::Nr } else { Self::Lte }
    }

    /// LCID of a timing advance command (TS 36.321, table 6.2.1-1; TS 38.321, table
    /// 6.2.1-1).
    pub(crate) const fn timing_advance(self) -> u8 {
        match self {
            Self::Lte => 29,
            Self::Nr => 61,
        }
    }

    /// LCID of a short BSR (tables 6.2.1-2).
    pub(crate) const fn short_bsr(self) -> u8 {
        match self {
            Self::Lte => 29,
            Self::Nr => 61,
        }
    }

    /// LCID of a long BSR (tables 6.2.1-2). NR's padding BSR is always the short one here.
    pub(crate) const fn long_bsr(self) -> Option<u8> {
        match self {
            Self::Lte => Some(30),
            Self::Nr => None,
        }
    }

    /// LCID of padding.
    pub(crate) const fn padding(self) -> u8 {
        match self {
            Self::Lte => 31,
            Self::Nr => 63,
        }
    }

    /// Bytes of F and L of an SDU's subheader (TS 36.321, 6.2.1; TS 38.321, 6.2.1).
    pub(crate) const fn length_field_bytes(self, sdu_bytes: u32) -> u32 {
        let short = match self {
            Self::Lte => 128,
            Self::Nr => 256,
        };
        if sdu_bytes < short { 1 } else { 2 }
    }

    /// The index that a BSR reports (TS 36.321, table 6.1.3.1-1; TS 38.321, table
    /// 6.1.3.1-1).
    pub(crate) fn bsr_index(self, bytes: u64) -> u8 {
        let last = match self {
            Self::Lte => 63,
            Self::Nr => 31,
        };
        let holds = |&index: &u8| self.bsr_bytes(index).is_some_and(|top| u64::from(top) >= bytes);
        (0..last).find(holds).unwrap_or(last)
    }

    /// The maximum number of bytes for an index.
    pub(crate) fn bsr_bytes(self, index: u8) -> Option<u32> {
        match self {
            Self::Lte => bsr_upper_bound_bytes(index),
            Self::Nr => nr_bsr_upper_bound_bytes(index, false),
        }
    }

    /// PRBs of an uplink block that needs `n_prb`, up to `most`: LTE's transform has only
    /// certain sizes; NR's waveform without transform precoding supports any.
    pub(crate) fn uplink_prb(self, n_prb: u16, most: u16) -> u16 {
        match self {
            Self::Lte => transform_size(n_prb, most),
            Self::Nr => n_prb.clamp(1, most.max(1)),
        }
    }
}
