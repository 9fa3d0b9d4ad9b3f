//! Small enumerations of the air interface, in 3GPP's terms.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// The direction of data.
    Direction {
        /// Base station to phone.
        Dl = "dl",
        /// Phone to base station.
        Ul = "ul",
    }
}

vocabulary! {
    /// The kind of radio network temporary identifier a block was sent to
    /// (TS 36.321, 7.1). User data goes to `c` and `sps`.
    RntiType {
        /// C-RNTI: this user.
        C = "c",
        /// SPS C-RNTI: this user, semi-persistent.
        Sps = "sps",
        /// P-RNTI: paging.
        P = "p",
        /// RA-RNTI: random access response.
        Ra = "ra",
        /// Temporary C-RNTI.
        TempC = "tc",
        /// SI-RNTI: system information.
        Si = "si",
        /// TPC-PUSCH-RNTI: uplink power control.
        TpcPusch = "tpc_pusch",
        /// TPC-PUCCH-RNTI: uplink power control.
        TpcPucch = "tpc_pucch",
        /// M-RNTI: multicast.
        Mbms = "mbms",
        /// An undocumented value.
        Other = "other",
    }
}

impl RntiType {
    /// From the code common to Qualcomm's messages.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::C,
            1 => Self::Sps,
            2 => Self::P,
            3 => Self::Ra,
            4 => Self::TempC,
            5 => Self::Si,
            6 => Self::TpcPusch,
            7 => Self::TpcPucch,
            8 => Self::Mbms,
            _ => Self::Other,
        }
    }

    /// Whether blocks of this kind may hold this user's data.
    #[must_use]
    pub const fn is_user(self) -> bool {
        matches!(self, Self::C | Self::Sps)
    }
}

vocabulary! {
    /// Modulation of a transport block.
    Modulation {
        /// 2 bits per symbol.
        Qpsk = "qpsk",
        /// 4 bits per symbol.
        Qam16 = "16qam",
        /// 6 bits per symbol.
        Qam64 = "64qam",
        /// 8 bits per symbol.
        Qam256 = "256qam",
    }
}

impl Modulation {
    /// From bits per symbol (Qm of TS 36.213, 7.1.7).
    #[must_use]
    pub const fn from_bits_per_symbol(qm: u8) -> Option<Self> {
        match qm {
            2 => Some(Self::Qpsk),
            4 => Some(Self::Qam16),
            6 => Some(Self::Qam64),
            8 => Some(Self::Qam256),
            _ => None,
        }
    }

    /// Bits per symbol.
    #[must_use]
    pub const fn bits_per_symbol(self) -> u8 {
        match self {
            Self::Qpsk => 2,
            Self::Qam16 => 4,
            Self::Qam64 => 6,
            Self::Qam256 => 8,
        }
    }
}

vocabulary! {
    /// RLC mode of a bearer (TS 36.322, 4.2).
    RlcMode {
        /// Transparent.
        Tm = "tm",
        /// Unacknowledged: no poll bits.
        Um = "um",
        /// Acknowledged: poll bits, STATUS PDUs.
        Am = "am",
    }
}

/// Bandwidths that LTE has, in PRB pairs (TS 36.101, table 5.6-1).
pub const LTE_BANDWIDTHS_PRB: [u16; 6] = [6, 15, 25, 50, 75, 100];

/// The smallest LTE bandwidth that holds `n_prb` PRBs; `None` above 100.
#[must_use]
pub fn lte_bandwidth_at_least(n_prb: u16) -> Option<u16> {
    LTE_BANDWIDTHS_PRB.into_iter().find(|&bandwidth| bandwidth >= n_prb)
}
