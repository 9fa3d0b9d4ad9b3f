//! Helpers of several messages.

use airmile_model::{Modulation, RntiType, Tti};
use serde::Serializer;

use crate::diag::bits::{Field, Part, Writer};

/// The position of a message's time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimeAt {
    /// SFN and subframe in fields of their own.
    Split {
        /// System frame number, 10 bits or more.
        sfn: Field,
        /// Subframe, 4 bits.
        subframe: Field,
    },
    /// `SFN * 10 + subframe` in one 16-bit field.
    Count(Field),
}

/// The time of a part; `None` if it is invalid.
#[inline]
pub(crate) fn get_tti(part: Part<'_>, at: TimeAt) -> Option<Tti> {
    match at {
        TimeAt::Split { sfn, subframe } => Tti::new(part.u16(sfn), part.u8(subframe)),
        TimeAt::Count(count) => Tti::from_count(part.u16(count)),
    }
}

/// Writes a time, or the marker for an unknown one.
pub(crate) fn set_tti(writer: &mut Writer, start: usize, at: TimeAt, tti: Option<Tti>) {
    match at {
        TimeAt::Split { sfn, subframe } => {
            writer.set(start, sfn, tti.map_or(1023, Tti::sfn));
            writer.set(start, subframe, tti.map_or(15, Tti::subframe));
        }
        TimeAt::Count(count) => {
            writer.set(start, count, tti.map_or(u16::MAX, Tti::count));
        }
    }
}

/// Subframe in bits 0-3 and SFN above it in the 16-bit word at `at`.
pub(crate) const fn time_word(at: usize, sfn_bits: u32) -> TimeAt {
    TimeAt::Split { sfn: Field::new(at, 4, sfn_bits), subframe: Field::new(at, 0, 4) }
}

/// The code of an RNTI type; an unexplained type becomes 15.
pub(crate) fn rnti_code(rnti: RntiType) -> u8 {
    let index = RntiType::ALL.iter().position(|&known| known == rnti);
    match index {
        Some(index) if rnti != RntiType::Other => index as u8,
        _ => 15,
    }
}

/// Modulation from the two-bit code 0 QPSK .. 3 256QAM.
pub(crate) const fn modulation_from_code(code: u8) -> Modulation {
    match code & 3 {
        0 => Modulation::Qpsk,
        1 => Modulation::Qam16,
        2 => Modulation::Qam64,
        _ => Modulation::Qam256,
    }
}

/// The two-bit code of a modulation.
pub(crate) const fn modulation_code(modulation: Modulation) -> u8 {
    modulation.bits_per_symbol() / 2 - 1
}

/// The value at the low end of a linear scale of 1/16 dB, where 0 means "not measured".
#[inline]
pub(crate) fn sixteenths(raw: u64, offset: f32) -> Option<f32> {
    if raw == 0 { None } else { Some(raw as f32 * 0.0625 + offset) }
}

/// The inverse of [`sixteenths`].
pub(crate) fn to_sixteenths(value: Option<f32>, offset: f32) -> u64 {
    value.map_or(0, |value| ((value - offset) * 16.0).round().max(1.0) as u64)
}

/// RSRP scale: `x / 16 - 180` dBm.
pub(crate) const RSRP_OFFSET_DBM: f32 = -180.0;
/// RSRQ scale: `x / 16 - 30` dB.
pub(crate) const RSRQ_OFFSET_DB: f32 = -30.0;
/// RSSI scale: `x / 16 - 110` dBm.
pub(crate) const RSSI_OFFSET_DBM: f32 = -110.0;

/// Serialises a wrapped time as `SFN * 10 + subframe`.
pub(crate) fn tti_count<S: Serializer>(tti: &Option<Tti>, to: S) -> Result<S::Ok, S::Error> {
    match tti {
        Some(tti) => to.serialize_some(&tti.count()),
        None => to.serialize_none(),
    }
}

/// Serialises bytes as lower-case hexadecimal.
pub(crate) fn hex<S: Serializer>(bytes: impl AsRef<[u8]>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&airmile_model::row::hex(bytes.as_ref()))
}

/// Bytes from hexadecimal text with spaces, for tests; `#` begins a comment
/// that ends with the line.
#[cfg(test)]
pub(crate) fn bytes_of(text: &str) -> Vec<u8> {
    text.lines()
        .filter_map(|line| line.split('#').next())
        .flat_map(str::split_whitespace)
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}
