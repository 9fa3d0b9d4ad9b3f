//! Differences between the PDUs of LTE's RLC (TS 36.322, 6) and NR's (TS 38.322, 6).

use crate::scenario::RlcConfig;

/// Format of RLC PDUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RlcFormat {
    /// LTE's: SDUs are concatenated, each PDU has a sequence number of 10 bits.
    #[default]
    Lte,
    /// NR's: each SDU has a sequence number, which its segments share.
    Nr {
        /// 12 or 18.
        sn_bits: u8,
    },
}

impl RlcFormat {
    pub(crate) fn of_bearer(config: &RlcConfig) -> Self {
        config.nr_sn_bits.map_or(Self::Lte, |sn_bits| Self::Nr { sn_bits })
    }

    /// AM_Window_Size (TS 36.322, 7.2; TS 38.322, 7.2).
    pub(crate) const fn window(self) -> u64 {
        match self {
            Self::Lte => 512,
            Self::Nr { sn_bits } => 1 << (sn_bits - 1),
        }
    }

    /// The sequence number as in the header.
    pub(crate) const fn wire_sn(self, sn: u64) -> u32 {
        let numbers = match self {
            Self::Lte => 1 << 10,
            Self::Nr { sn_bits } => 1 << sn_bits,
        };
        (sn % numbers) as u32
    }

    /// Header length of an AMD PDU with a number of elements, whose part of the data field
    /// starts at `from`. LTE: 2 bytes, 4 with the segment offset, and a length indicator of
    /// 12 bits for each element but the last (TS 36.322, 6.2.1.4 and 6.2.1.5). NR: 2 bytes,
    /// or 3 with 18 bits, and the segment offset in all but the first segment (TS 38.322,
    /// 6.2.2.4).
    pub(crate) fn header_bytes(self, elements: usize, segment: bool, from: u32) -> u32 {
        match self {
            Self::Lte => {
                let fixed = if segment { 4 } else { 2 };
                fixed + (elements.saturating_sub(1) as u32 * 12).div_ceil(8)
            }
            Self::Nr { sn_bits } => {
                let fixed = if sn_bits > 12 { 3 } else { 2 };
                if from > 0 { fixed + 2 } else { fixed }
            }
        }
    }

    /// Bits of a STATUS PDU without NACKs, of a NACK, and of the offsets of a part. LTE:
    /// D/C, CPT, ACK_SN and E1 are 15 bits, a NACK_SN with E1 and E2 12, SOstart with
    /// SOend 30 (TS 36.322, 6.2.1.6). NR: whole bytes (TS 38.322, 6.2.2.5).
    pub(crate) const fn status_bits(self) -> (u32, u32, u32) {
        match self {
            Self::Lte => (15, 12, 30),
            Self::Nr { sn_bits } if sn_bits > 12 => (24, 24, 32),
            Self::Nr { .. } => (24, 16, 32),
        }
    }
}
