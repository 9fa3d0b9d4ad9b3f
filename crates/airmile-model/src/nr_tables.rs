//! Tables of NR: transport block sizes (TS 38.214 v16, 5.1.3) and buffer sizes
//! (TS 38.321 v16, 6.1.3.1).

use crate::radio::Modulation;
use crate::tables::BSR;

/// The MCS table in use (TS 38.214, 5.1.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NrMcsTable {
    /// Table 5.1.3.1-1, up to 64QAM.
    Qam64,
    /// Table 5.1.3.1-2, up to 256QAM.
    Qam256,
    /// Table 5.1.3.1-3, up to 64QAM with low spectral efficiency.
    Qam64LowSe,
}

impl NrMcsTable {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Qam64, Self::Qam256, Self::Qam64LowSe];
}

/// The meaning of an MCS index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NrMcs {
    /// Modulation.
    pub modulation: Modulation,
    /// Target code rate, times 2048: the tables have halves of 1/1024.
    pub code_rate_x2048: u16,
}

/// Rows of an MCS table: code rates times 1024 at QPSK, 16QAM, 64QAM, 256QAM.
/// Rates with a half are doubled in [`nr_mcs`].
type Rows = [&'static [u16]; 4];

const QAM64: Rows = [
    &[120, 157, 193, 251, 308, 379, 449, 526, 602, 679],
    &[340, 378, 434, 490, 553, 616, 658],
    &[438, 466, 517, 567, 616, 666, 719, 772, 822, 873, 910, 948],
    &[],
];
const QAM256: Rows = [
    &[120, 193, 308, 449, 602],
    &[378, 434, 490, 553, 616, 658],
    &[466, 517, 567, 616, 666, 719, 772, 822, 873],
    // 682.5 and 916.5 stand here without their half.
    &[682, 711, 754, 797, 841, 885, 916, 948],
];
const QAM64_LOW_SE: Rows = [
    &[30, 40, 50, 64, 78, 99, 120, 157, 193, 251, 308, 379, 449, 526, 602],
    &[340, 378, 434, 490, 553, 616],
    &[438, 466, 517, 567, 616, 666, 719, 772],
    &[],
];

const MODULATIONS: [Modulation; 4] =
    [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64, Modulation::Qam256];

/// Looks up an MCS index; `None` for those of retransmissions (29 to 31, with 256QAM 28
/// to 31) and above.
#[must_use]
pub fn nr_mcs(table: NrMcsTable, index: u8) -> Option<NrMcs> {
    let rows = match table {
        NrMcsTable::Qam64 => &QAM64,
        NrMcsTable::Qam256 => &QAM256,
        NrMcsTable::Qam64LowSe => &QAM64_LOW_SE,
    };
    let mut left = usize::from(index);
    for (rates, modulation) in rows.iter().zip(MODULATIONS) {
        if let Some(&rate) = rates.get(left) {
            let half = modulation == Modulation::Qam256 && matches!(rate, 682 | 916);
            return Some(NrMcs { modulation, code_rate_x2048: 2 * rate + u16::from(half) });
        }
        left -= rates.len();
    }
    None
}

/// Resource elements of a PRB that carry data in an allocation: 12 a symbol,
/// less those of DMRS and the configured overhead, at most 156.
#[must_use]
pub const fn nr_data_res_per_prb(symbols: u16, dmrs_res: u16, overhead_res: u16) -> u16 {
    let free = (12 * symbols).saturating_sub(dmrs_res + overhead_res);
    if free < MAX_RES_PER_PRB { free } else { MAX_RES_PER_PRB }
}

/// The maximum number of resource elements per PRB that count (TS 38.214, 5.1.3.2 step 1).
const MAX_RES_PER_PRB: u16 = 156;

/// TS 38.214, table 5.1.3.2-1, in bits.
const SMALL_SIZES: [u32; 93] = [
    24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184,
    192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 408, 432, 456, 480, 504, 528,
    552, 576, 608, 640, 672, 704, 736, 768, 808, 848, 888, 928, 984, 1032, 1064, 1128, 1160, 1192,
    1224, 1256, 1288, 1320, 1352, 1416, 1480, 1544, 1608, 1672, 1736, 1800, 1864, 1928, 2024, 2088,
    2152, 2216, 2280, 2408, 2472, 2536, 2600, 2664, 2728, 2792, 2856, 2976, 3104, 3240, 3368, 3496,
    3624, 3752, 3824,
];

/// Transport block size in bits (TS 38.214, 5.1.3.2, steps 2 to 4) of
/// `n_prb` PRBs with `data_res_per_prb` each; `None` for no allocation.
#[must_use]
pub fn nr_tbs_bits(mcs: NrMcs, layers: u8, n_prb: u16, data_res_per_prb: u16) -> Option<u32> {
    let n_re = u64::from(data_res_per_prb.min(MAX_RES_PER_PRB)) * u64::from(n_prb);
    // N_info, times 2048.
    let info = n_re
        * u64::from(mcs.code_rate_x2048)
        * u64::from(mcs.modulation.bits_per_symbol())
        * u64::from(layers);
    let bits = info >> 11;
    if bits == 0 {
        return None;
    }
    if info <= 3824 << 11 {
        // Step 3.
        let n = bits.ilog2().saturating_sub(6).max(3);
        let quantised = (bits >> n << n).max(24);
        return SMALL_SIZES.into_iter().find(|&size| u64::from(size) >= quantised);
    }
    // Step 4: ties are rounded up.
    let less = info - (24 << 11);
    let n = (less >> 11).ilog2() - 5;
    let step = 1_u64 << (n + 11);
    let quantised = (((less + step / 2) / step) << n).max(3840);
    let with_crc = quantised + 24;
    let code_blocks = if mcs.code_rate_x2048 <= 512 {
        with_crc.div_ceil(3816)
    } else if quantised > 8424 {
        with_crc.div_ceil(8424)
    } else {
        1
    };
    u32::try_from(8 * code_blocks * with_crc.div_ceil(8 * code_blocks) - 24).ok()
}

/// Whether a new transmission may have this size: by one of the MCS tables that have this
/// modulation at this index, with some number of symbols, DMRS of type 1 and overhead.
/// All of them use multiples of 6 resource elements of a PRB (TS 38.211, 7.4.1.1.2; TS
/// 38.214, 5.1.3.2).
#[must_use]
pub fn nr_size_is_possible(
    bytes: u32,
    mcs: u8,
    modulation: Modulation,
    layers: u8,
    n_prb: u16,
) -> bool {
    NrMcsTable::ALL
        .into_iter()
        .any(|table| !nr_data_res_of(table, bytes, mcs, modulation, layers, n_prb).is_empty())
}

/// The data resource elements of a PRB, multiples of 6, with which a new transmission has
/// this size by one MCS table; see [`nr_size_is_possible`].
#[must_use]
pub fn nr_data_res_of(
    table: NrMcsTable,
    bytes: u32,
    mcs: u8,
    modulation: Modulation,
    layers: u8,
    n_prb: u16,
) -> Vec<u16> {
    let mcs = nr_mcs(table, mcs).filter(|mcs| mcs.modulation == modulation);
    let (Some(mcs), Some(bits), 1..=MAX_PRB) = (mcs, bytes.checked_mul(8), n_prb) else {
        return Vec::new();
    };
    (1..=MAX_RES_PER_PRB / 6)
        .map(|n| 6 * n)
        .filter(|&res| nr_tbs_bits(mcs, layers, n_prb, res) == Some(bits))
        .collect()
}

/// PRBs of the widest carrier (TS 38.101-1, table 5.3.2-1; 275 in TS 38.211, 4.4.2).
const MAX_PRB: u16 = 275;

/// TS 38.321, table 6.1.3.1-1, in bytes; index 31 means more than the last.
const SHORT_BUFFER_SIZES: [u32; 31] = [
    0, 10, 14, 20, 28, 38, 53, 74, 102, 142, 198, 276, 384, 535, 745, 1038, 1446, 2014, 2806, 3909,
    5446, 7587, 10_570, 14_726, 20_516, 28_581, 39_818, 55_474, 77_284, 107_669, 150_000,
];

/// TS 38.321, table 6.1.3.1-2, in bytes; index 254 means more than the last.
const LONG_BUFFER_SIZES: [u32; 254] = [
    0, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 25, 26, 28, 30, 32, 34, 36, 38, 40, 43,
    46, 49, 52, 55, 59, 62, 66, 71, 75, 80, 85, 91, 97, 103, 110, 117, 124, 132, 141, 150, 160,
    170, 181, 193, 205, 218, 233, 248, 264, 281, 299, 318, 339, 361, 384, 409, 436, 464, 494, 526,
    560, 597, 635, 677, 720, 767, 817, 870, 926, 987, 1051, 1119, 1191, 1269, 1351, 1439, 1532,
    1631, 1737, 1850, 1970, 2098, 2234, 2379, 2533, 2698, 2873, 3059, 3258, 3469, 3694, 3934, 4189,
    4461, 4751, 5059, 5387, 5737, 6109, 6506, 6928, 7378, 7857, 8367, 8910, 9488, 10_104, 10_760,
    11_458, 12_202, 12_994, 13_838, 14_736, 15_692, 16_711, 17_795, 18_951, 20_181, 21_491, 22_885,
    24_371, 25_953, 27_638, 29_431, 31_342, 33_376, 35_543, 37_850, 40_307, 42_923, 45_709, 48_676,
    51_836, 55_200, 58_784, 62_599, 66_663, 70_990, 75_598, 80_505, 85_730, 91_295, 97_221,
    103_532, 110_252, 117_409, 125_030, 133_146, 141_789, 150_992, 160_793, 171_231, 182_345,
    194_182, 206_786, 220_209, 234_503, 249_725, 265_935, 283_197, 301_579, 321_155, 342_002,
    364_202, 387_842, 413_018, 439_827, 468_377, 498_780, 531_156, 565_634, 602_350, 641_449,
    683_087, 727_427, 774_645, 824_928, 878_475, 935_498, 996_222, 1_060_888, 1_129_752, 1_203_085,
    1_281_179, 1_364_342, 1_452_903, 1_547_213, 1_647_644, 1_754_595, 1_868_488, 1_989_774,
    2_118_933, 2_256_475, 2_402_946, 2_558_924, 2_725_027, 2_901_912, 3_090_279, 3_290_873,
    3_504_487, 3_731_968, 3_974_215, 4_232_186, 4_506_902, 4_799_451, 5_110_989, 5_442_750,
    5_796_046, 6_172_275, 6_572_925, 6_999_582, 7_453_933, 7_937_777, 8_453_028, 9_001_725,
    9_586_039, 10_208_280, 10_870_913, 11_576_557, 12_328_006, 13_128_233, 13_980_403, 14_887_889,
    15_854_280, 16_883_401, 17_979_324, 19_146_385, 20_389_201, 21_712_690, 23_122_088, 24_622_972,
    26_221_280, 27_923_336, 29_735_875, 31_666_069, 33_721_553, 35_910_462, 38_241_455, 40_723_756,
    43_367_187, 46_182_206, 49_179_951, 52_372_284, 55_771_835, 59_392_055, 63_247_269, 67_352_729,
    71_724_679, 76_380_419, 81_338_368,
];

/// Maximum buffer in bytes of a BSR index, by the table of 5 bits or (`long`) of 8;
/// `None` for the index above all and a reserved one.
#[must_use]
pub fn nr_bsr_upper_bound_bytes(index: u8, long: bool) -> Option<u32> {
    let table = if long { &LONG_BUFFER_SIZES[..] } else { &SHORT_BUFFER_SIZES[..] };
    table.get(usize::from(index)).copied()
}

/// Minimum buffer in bytes of a BSR index of LTE or NR: a byte more than the maximum of the index
/// below. The maximum of the index itself (absent for the last one) shows which table it is of; `None`
/// for index 0 and what is in no table.
#[must_use]
pub fn bsr_lower_bound_bytes(index: u8, upper_bound_bytes: Option<u32>) -> Option<u32> {
    let at = usize::from(index);
    let tables = [&BSR[..], &SHORT_BUFFER_SIZES, &LONG_BUFFER_SIZES];
    let table = tables.into_iter().find(|table| match upper_bound_bytes {
        None => at == table.len(),
        upper => table.get(at).copied() == upper,
    })?;
    Some(table.get(at.checked_sub(1)?)? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mcs(table: NrMcsTable, index: u8) -> NrMcs {
        nr_mcs(table, index).unwrap()
    }

    #[test]
    fn mcs_tables_at_their_corners() {
        let of = |table, index| {
            nr_mcs(table, index).map(|m| (m.modulation.bits_per_symbol(), m.code_rate_x2048))
        };
        assert_eq!(of(NrMcsTable::Qam64, 0), Some((2, 240)));
        assert_eq!(of(NrMcsTable::Qam64, 9), Some((2, 1358)));
        assert_eq!(of(NrMcsTable::Qam64, 10), Some((4, 680)));
        assert_eq!(of(NrMcsTable::Qam64, 28), Some((6, 1896)));
        assert_eq!(of(NrMcsTable::Qam64, 29), None);
        assert_eq!(of(NrMcsTable::Qam256, 19), Some((6, 1746)));
        assert_eq!(of(NrMcsTable::Qam256, 20), Some((8, 1365)));
        assert_eq!(of(NrMcsTable::Qam256, 26), Some((8, 1833)));
        assert_eq!(of(NrMcsTable::Qam256, 27), Some((8, 1896)));
        assert_eq!(of(NrMcsTable::Qam256, 28), None);
        assert_eq!(of(NrMcsTable::Qam64LowSe, 0), Some((2, 60)));
        assert_eq!(of(NrMcsTable::Qam64LowSe, 28), Some((6, 1544)));
        assert_eq!(of(NrMcsTable::Qam64LowSe, 29), None);
    }

    /// Computed by hand, following the steps of 5.1.3.2.
    #[test]
    fn sizes_computed_by_hand() {
        // 10 PRBs of 132: 1320 REs; * 120/1024 * 2 = 309.375; n = 3; 304.
        assert_eq!(nr_tbs_bits(mcs(NrMcsTable::Qam64, 0), 1, 10, 132), Some(304));
        // 1 PRB of 144, two layers: 144 * 517/1024 * 6 * 2 = 872.44; n = 3; 872 -> 888.
        assert_eq!(nr_tbs_bits(mcs(NrMcsTable::Qam256, 12), 2, 1, 144), Some(888));
        // 273 PRBs of 144, four layers: 39312 * 948/1024 * 32 = 1164618; n = 15;
        // round(35.54) * 32768 = 1179648; 141 code blocks; 8 * 141 * 1046 - 24.
        assert_eq!(nr_tbs_bits(mcs(NrMcsTable::Qam256, 27), 4, 273, 144), Some(1_179_864));
        // Low rate: 100 PRBs of 132 at 30/1024: 13200 * 30/1024 * 2 = 773.4; n = 3; 768.
        assert_eq!(nr_tbs_bits(mcs(NrMcsTable::Qam64LowSe, 0), 1, 100, 132), Some(768));
        // 273 PRBs of 156 at 193/1024 (at most 1/4): 42588 * 193/1024 * 2 = 16053.7;
        // n = 8; round(62.62) * 256 = 16128; 5 code blocks of 3816; 8 * 5 * 404 - 24.
        assert_eq!(nr_tbs_bits(mcs(NrMcsTable::Qam64, 2), 1, 273, 156), Some(16_136));
        // One code block above 3824: 50 PRBs of 132 at 308/1024: 6600 * 0.30078 * 2 =
        // 3970.3; n = 6; round(61.66) * 64 = 3968; 8 * 499 - 24.
        assert_eq!(nr_tbs_bits(mcs(NrMcsTable::Qam64, 4), 1, 50, 132), Some(3968));
        assert_eq!(nr_tbs_bits(mcs(NrMcsTable::Qam64, 4), 1, 0, 132), None);
    }

    #[test]
    fn resource_elements_by_hand() {
        // 12 symbols, one of DMRS without data (12) and no overhead.
        assert_eq!(nr_data_res_per_prb(12, 12, 0), 132);
        // 14 symbols, 6 of DMRS: 162, of which 156 count.
        assert_eq!(nr_data_res_per_prb(14, 6, 0), 156);
        assert_eq!(nr_data_res_per_prb(1, 12, 6), 0);
    }

    /// The maximum size of a 100 MHz carrier, as quoted by base station vendors.
    #[test]
    fn the_largest_size() {
        assert_eq!(nr_tbs_bits(mcs(NrMcsTable::Qam256, 27), 4, 273, 156), Some(1_277_992));
    }

    /// Sizes increase monotonically with the allocation.
    #[test]
    fn more_prbs_never_carry_less() {
        for table in NrMcsTable::ALL {
            for index in 0..28 {
                let sizes: Vec<_> =
                    (1..=275).map(|n| nr_tbs_bits(mcs(table, index), 2, n, 132)).collect();
                assert!(sizes.is_sorted(), "{table:?} {index}");
            }
        }
    }

    #[test]
    fn a_size_off_by_one_byte_is_none() {
        let fits = |bytes| nr_size_is_possible(bytes, 16, Modulation::Qam64, 3, 196);
        assert!(fits(40_986));
        assert!(!fits(40_985) && !fits(40_987) && !fits(0) && !fits(u32::MAX));
        // MCS 16 is 16QAM in the table up to 64QAM, and 64QAM in that up to 256QAM.
        assert!(!nr_size_is_possible(40_986, 16, Modulation::Qpsk, 3, 196));
        assert!(!nr_size_is_possible(40_986, 16, Modulation::Qam64, 3, 0));
    }

    #[test]
    fn buffer_sizes_grow_by_a_constant_factor() {
        assert_eq!(nr_bsr_upper_bound_bytes(0, false), Some(0));
        assert_eq!(nr_bsr_upper_bound_bytes(30, false), Some(150_000));
        assert_eq!(nr_bsr_upper_bound_bytes(31, false), None);
        assert_eq!(nr_bsr_upper_bound_bytes(253, true), Some(81_338_368));
        assert_eq!(nr_bsr_upper_bound_bytes(254, true), None);
        assert!(SHORT_BUFFER_SIZES.is_sorted() && LONG_BUFFER_SIZES.is_sorted());
        // From a certain size on, both are geometric despite rounding to bytes.
        let growth = |pair: &[u32]| f64::from(pair[1]) / f64::from(pair[0]);
        let short: Vec<_> = SHORT_BUFFER_SIZES[6..].windows(2).map(growth).collect();
        assert!(short.iter().all(|g| (1.37..1.40).contains(g)), "{short:?}");
        let long: Vec<_> = LONG_BUFFER_SIZES[120..].windows(2).map(growth).collect();
        assert!(long.iter().all(|g| (1.0648..1.0651).contains(g)), "{long:?}");
    }

    #[test]
    fn lower_bounds_are_of_the_same_table() {
        for (table, lasts) in [(&BSR[..], 63), (&SHORT_BUFFER_SIZES, 31), (&LONG_BUFFER_SIZES, 254)]
        {
            assert_eq!(table.len(), lasts);
            for index in 1..=lasts {
                let least = bsr_lower_bound_bytes(index as u8, table.get(index).copied());
                assert_eq!(least, Some(table[index - 1] + 1), "{index} of {lasts}");
            }
        }
        assert_eq!(bsr_lower_bound_bytes(0, Some(0)), None);
        assert_eq!(bsr_lower_bound_bytes(255, None), None);
        assert_eq!(bsr_lower_bound_bytes(7, Some(1)), None);
    }
}
