//! 0xB066, LTE_MAC_UL_Buffer_Status_Internal, and 0xB067,
//! LTE_MAC_UL_Tx_Statistics: the phone's own uplink buffers, once a
//! millisecond, and what became of its grants.
//!
//! 0xB066, subpacket 10, versions 3, 5 and 24: u8 samples (at most 40); per
//! sample (v24: u8 sub id), u16 subframe 4 bits and SFN 10 bits (all ones:
//! unknown), u8 channels; per channel u8 LCID, u8 priority, u32 new bytes (v5,
//! v24: uncompressed, then u32 compressed), u32 bytes to send again, u16
//! control bytes.
//!
//! 0xB067, subpacket 11, versions 1 and 2: (v2: u8 sub id), u8 subframes, u8
//! padding, regular, periodic and cancelled BSRs, u32 granted bytes, u32 used
//! bytes.

use airmile_model::Tti;
use serde::Serialize;
use smallvec::SmallVec;

use super::shared::{TimeAt, get_tti, set_tti, time_word, tti_count};
use super::subpacket::{self, Body};
use crate::diag::bits::{Field, bits_at, u8_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// Uplink buffers over up to 40 ms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UlBufferStatus {
    /// Message version: 1.
    pub version: u8,
    /// The subpackets that were understood.
    pub subpackets: Vec<UlBufferSubpacket>,
}

/// Samples of the uplink buffers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UlBufferSubpacket {
    /// Subpacket version: 3, 5 or 24.
    pub version: u8,
    /// One sample per subframe, in order.
    pub samples: Vec<UlBufferSample>,
}

/// The uplink buffers in one subframe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UlBufferSample {
    /// Sub id; v24.
    pub sub_id: Option<u8>,
    /// Subframe; `None` where the modem marked it unknown.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// Active logical channels.
    pub channels: SmallVec<[ChannelBuffer; 2]>,
}

/// The uplink buffer of a logical channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChannelBuffer {
    /// Logical channel identity.
    pub lcid: u8,
    /// Priority, 1 highest.
    pub priority: u8,
    /// New data in bytes (uncompressed, if the version separates it).
    pub new_bytes: u32,
    /// New compressed data in bytes; v5 and v24.
    pub new_compressed_bytes: Option<u32>,
    /// RLC data to send again, in bytes.
    pub retx_bytes: u32,
    /// RLC control in bytes.
    pub control_bytes: u16,
}

impl ChannelBuffer {
    /// New data in bytes, compressed or not, saturating.
    #[must_use]
    pub fn new_data_bytes(&self) -> u32 {
        self.new_bytes.saturating_add(self.new_compressed_bytes.unwrap_or(0))
    }

    /// All waiting bytes.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        u64::from(self.new_bytes)
            + u64::from(self.new_compressed_bytes.unwrap_or(0))
            + u64::from(self.retx_bytes)
            + u64::from(self.control_bytes)
    }
}

/// Uplink grant bookkeeping.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UlTxStatistics {
    /// Message version: 1.
    pub version: u8,
    /// The subpackets that were understood.
    pub subpackets: Vec<UlTxStatisticsSubpacket>,
}

/// Uplink grant bookkeeping over an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UlTxStatisticsSubpacket {
    /// Subpacket version: 1 or 2.
    pub version: u8,
    /// Sub id; v2.
    pub sub_id: Option<u8>,
    /// Subframes that it covers.
    pub n_tti: u8,
    /// Padding BSRs sent.
    pub padding_bsr: u8,
    /// Regular BSRs sent.
    pub regular_bsr: u8,
    /// Periodic BSRs sent.
    pub periodic_bsr: u8,
    /// BSRs cancelled.
    pub cancelled_bsr: u8,
    /// Bytes granted.
    pub granted_bytes: u32,
    /// Used bytes of the grant.
    pub used_bytes: u32,
}

const BUFFER_ID: u8 = 10;
const STATISTICS_ID: u8 = 11;

const TIME: TimeAt = time_word(0, 10);
/// Bits 14 and 15, set only in the marker of an unknown time.
const TIME_SPARE: Field = bits_at(0, 14, 2);
const CHANNELS: Field = u8_at(2);
const SAMPLE_LEN: usize = 3;

const LCID: Field = u8_at(0);
const PRIORITY: Field = u8_at(1);
const NEW: Field = u32_at(2);

/// The differences between versions of a channel's entry.
struct Layout {
    compressed: Option<Field>,
    retx: Field,
    control: Field,
    len: usize,
}

const V3: Layout = Layout { compressed: None, retx: u32_at(6), control: u16_at(10), len: 12 };
const V24: Layout =
    Layout { compressed: Some(u32_at(6)), retx: u32_at(10), control: u16_at(14), len: 16 };

const fn layout(version: u8) -> Option<&'static Layout> {
    match version {
        3 => Some(&V3),
        5 | 24 => Some(&V24),
        _ => None,
    }
}

impl UlBufferStatus {
    /// The log code.
    pub const CODE: u16 = 0xB066;
    /// The subpacket versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[3, 5, 24];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let parsed = subpacket::parse_all(payload, |body: &mut Body<'_>, problem| {
            let version = body.version;
            let Some(layout) = layout(version).filter(|_| body.id == BUFFER_ID) else {
                return Ok(None);
            };
            let cursor = &mut body.cursor;
            let count = cursor.take(1, "number of samples")?.u8(u8_at(0));
            let samples = cursor.list(count.into(), problem, |cursor, problem| {
                let sub_id = match version {
                    24 => Some(cursor.take(1, "sub id")?.u8(u8_at(0))),
                    _ => None,
                };
                let head = cursor.take(SAMPLE_LEN, "sample")?;
                let count = head.u8(CHANNELS).into();
                let channels = cursor.inline_list(count, problem, |cursor, _| {
                    let part = cursor.take(layout.len, "logical channel")?;
                    Ok(ChannelBuffer {
                        lcid: part.u8(LCID),
                        priority: part.u8(PRIORITY),
                        new_bytes: part.u32(NEW),
                        new_compressed_bytes: layout.compressed.map(|field| part.u32(field)),
                        retx_bytes: part.u32(layout.retx),
                        control_bytes: part.u16(layout.control),
                    })
                });
                Ok(UlBufferSample { sub_id, tti: get_tti(head, TIME), channels })
            });
            Ok(Some(UlBufferSubpacket { version, samples }))
        })?;
        Ok(parsed.map(|(version, subpackets, problem)| (Self { version, subpackets }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = subpacket::emit_head(self.version, self.subpackets.len());
        for sub in &self.subpackets {
            let Some(layout) = layout(sub.version) else { continue };
            subpacket::emit(&mut writer, BUFFER_ID, sub.version, |writer| {
                writer.byte(sub.samples.len() as u64);
                for sample in &sub.samples {
                    if sub.version == 24 {
                        writer.byte(sample.sub_id.unwrap_or(0));
                    }
                    let start = writer.part(SAMPLE_LEN);
                    set_tti(writer, start, TIME, sample.tti);
                    if sample.tti.is_none() {
                        writer.set(start, TIME_SPARE, 3u8);
                    }
                    writer.set(start, CHANNELS, sample.channels.len() as u64);
                    for channel in &sample.channels {
                        let start = writer.part(layout.len);
                        writer
                            .set(start, LCID, channel.lcid)
                            .set(start, PRIORITY, channel.priority)
                            .set(start, NEW, channel.new_bytes)
                            .set(start, layout.retx, channel.retx_bytes)
                            .set(start, layout.control, channel.control_bytes);
                        if let Some(field) = layout.compressed {
                            writer.set(start, field, channel.new_compressed_bytes.unwrap_or(0));
                        }
                    }
                }
            });
        }
        writer.finish()
    }
}

const N_TTI: Field = u8_at(0);
const PADDING_BSR: Field = u8_at(1);
const REGULAR_BSR: Field = u8_at(2);
const PERIODIC_BSR: Field = u8_at(3);
const CANCELLED_BSR: Field = u8_at(4);
const GRANTED: Field = u32_at(5);
const USED: Field = u32_at(9);
const STATISTICS_LEN: usize = 13;

impl UlTxStatistics {
    /// The log code.
    pub const CODE: u16 = 0xB067;
    /// The subpacket versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[1, 2];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let parsed = subpacket::parse_all(payload, |body: &mut Body<'_>, _| {
            let version = body.version;
            if body.id != STATISTICS_ID || !Self::VERSIONS.contains(&version) {
                return Ok(None);
            }
            let sub_id = match version {
                2 => Some(body.cursor.take(1, "sub id")?.u8(u8_at(0))),
                _ => None,
            };
            let part = body.cursor.take(STATISTICS_LEN, "statistics")?;
            Ok(Some(UlTxStatisticsSubpacket {
                version,
                sub_id,
                n_tti: part.u8(N_TTI),
                padding_bsr: part.u8(PADDING_BSR),
                regular_bsr: part.u8(REGULAR_BSR),
                periodic_bsr: part.u8(PERIODIC_BSR),
                cancelled_bsr: part.u8(CANCELLED_BSR),
                granted_bytes: part.u32(GRANTED),
                used_bytes: part.u32(USED),
            }))
        })?;
        Ok(parsed.map(|(version, subpackets, problem)| (Self { version, subpackets }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = subpacket::emit_head(self.version, self.subpackets.len());
        for sub in &self.subpackets {
            subpacket::emit(&mut writer, STATISTICS_ID, sub.version, |writer| {
                if sub.version == 2 {
                    writer.byte(sub.sub_id.unwrap_or(0));
                }
                let start = writer.part(STATISTICS_LEN);
                writer
                    .set(start, N_TTI, sub.n_tti)
                    .set(start, PADDING_BSR, sub.padding_bsr)
                    .set(start, REGULAR_BSR, sub.regular_bsr)
                    .set(start, PERIODIC_BSR, sub.periodic_bsr)
                    .set(start, CANCELLED_BSR, sub.cancelled_bsr)
                    .set(start, GRANTED, sub.granted_bytes)
                    .set(start, USED, sub.used_bytes);
            });
        }
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::msg::shared::bytes_of;

    #[test]
    fn tx_statistics_v2() {
        let payload = bytes_of(
            "01 01 00 00     # version 1, one subpacket
             0B 02 14 00     # id 11, version 2, 20 = 4 + 1 + 13 bytes and 2 of filling
             01 32           # sub id 1, 50 subframes
             04 03 02 01     # padding, regular, periodic, cancelled
             70 11 01 00     # granted: 70000
             00 10 00 00     # used: 4096
             00 00",
        );
        let (message, problem) = UlTxStatistics::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        let sub = message.subpackets[0];
        assert_eq!(sub.sub_id, Some(1));
        assert_eq!((sub.n_tti, sub.padding_bsr, sub.regular_bsr), (50, 4, 3));
        assert_eq!((sub.periodic_bsr, sub.cancelled_bsr), (2, 1));
        assert_eq!((sub.granted_bytes, sub.used_bytes), (70_000, 4096));
        assert_eq!(message.emit(), payload);
    }

    #[test]
    fn unknown_time_is_all_ones() {
        let payload = bytes_of("01 01 00 00 0A 03 08 00 01 FF FF 00");
        let (message, problem) = UlBufferStatus::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        assert_eq!(message.subpackets[0].samples[0].tti, None);
        assert_eq!(message.emit(), payload);
    }

    #[test]
    fn v3_has_no_sub_id_and_no_compressed_bytes() {
        let payload =
            bytes_of("01 01 00 00 0A 03 14 00 01 36 16 01 03 0A 00 01 00 00 02 00 00 00 04 00");
        let (message, problem) = UlBufferStatus::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        let sample = &message.subpackets[0].samples[0];
        assert_eq!((sample.sub_id, sample.tti), (None, Tti::new(355, 6)));
        let channel = sample.channels[0];
        assert_eq!((channel.lcid, channel.priority, channel.new_bytes), (3, 10, 256));
        assert_eq!((channel.retx_bytes, channel.control_bytes), (2, 4));
        assert_eq!((channel.new_compressed_bytes, channel.total_bytes()), (None, 262));
    }
}
