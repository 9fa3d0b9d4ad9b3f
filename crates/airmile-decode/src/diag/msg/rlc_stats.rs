//! 0xB087 and 0xB097, LTE_RLC_DL_Stats and LTE_RLC_UL_Stats: counters of each
//! bearer since it was set up.
//!
//! Subpacket 66 version 3 (downlink) or 71 version 1 (uplink): u8 bearers,
//! (downlink: u32 full queues), u32 errors; per bearer u8 RB configuration
//! index, u8 mode, then 65 (downlink) or 31 (uplink) u32 counters, of which
//! some are explained: those that differ from 0 in the few samples that exist.

use serde::Serialize;

use super::subpacket::{self, Body};
use crate::diag::bits::{Field, u8_at, u32_at};
use crate::diag::msg::Soft;

/// Counters; `CODE` is 0xB087 (downlink) or 0xB097 (uplink).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RlcCounters<const CODE: u16> {
    /// Message version: 1.
    pub version: u8,
    /// The subpackets that were understood.
    pub subpackets: Vec<RlcCountersSubpacket>,
}

/// Counters of one subpacket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RlcCountersSubpacket {
    /// Subpacket version: 3 (downlink) or 1 (uplink).
    pub version: u8,
    /// Full queues towards PDCP; 0 in the uplink.
    pub queue_full: u32,
    /// Errors.
    pub errors: u32,
    /// Per bearer.
    pub bearers: Vec<BearerCounters>,
}

/// Counters of one bearer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BearerCounters {
    /// RB configuration index.
    pub bearer: u8,
    /// Mode: 1 AM, 2 UM.
    pub mode: u8,
    /// All counters, in the order stored.
    pub counters: Vec<u32>,
}

/// Downlink counters confirmed by samples, with their positions; the same again "since
/// reset" from 33 on.
const DL_PLACES: [(&str, usize); 12] = [
    ("data_pdus", 1),
    ("data_bytes", 2),
    ("status_pdus", 4),
    ("status_bytes", 5),
    ("retx_pdus", 10),
    ("retx_bytes", 11),
    ("sdus", 22),
    ("sdu_bytes", 23),
    ("control_pdus", 26),
    ("complete_nacks", 27),
    ("t_reordering_expiries", 29),
    ("t_reordering_starts", 30),
];
/// Uplink counters alike; again from 17 on.
const UL_PLACES: [(&str, usize); 13] = [
    ("data_pdus", 1),
    ("data_bytes", 2),
    ("sdus", 3),
    ("sdu_bytes", 4),
    ("status_pdus", 5),
    ("status_bytes", 6),
    ("retx_pdus", 7),
    ("retx_bytes", 8),
    ("control_pdus", 9),
    ("complete_nacks", 10),
    ("segment_nacks", 11),
    ("invalid_pdus", 12),
    ("polls", 13),
];

impl BearerCounters {
    /// A counter by its name; `None` if its position is unknown.
    #[must_use]
    pub fn count<const CODE: u16>(&self, name: &str) -> Option<u32> {
        let places: &[_] = if CODE == 0xB087 { &DL_PLACES } else { &UL_PLACES };
        let at = places.iter().find(|(n, _)| *n == name)?.1;
        self.counters.get(at).copied()
    }
}

const BEARERS: Field = u8_at(0);
const BEARER: Field = u8_at(0);
const MODE: Field = u8_at(1);

impl<const CODE: u16> RlcCounters<CODE> {
    const IS_DL: bool = CODE == 0xB087;
    const ID: u8 = if Self::IS_DL { 66 } else { 71 };
    const N_COUNTERS: usize = if Self::IS_DL { 65 } else { 31 };
    const HEAD_LEN: usize = if Self::IS_DL { 9 } else { 5 };
    const ERRORS: Field = u32_at(Self::HEAD_LEN - 4);
    /// The subpacket versions that have a layout.
    pub const VERSIONS: &'static [u8] = if Self::IS_DL { &[3] } else { &[1] };

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let parsed = subpacket::parse_all(payload, |body: &mut Body<'_>, problem| {
            let version = body.version;
            if body.id != Self::ID || !Self::VERSIONS.contains(&version) {
                return Ok(None);
            }
            let head = body.cursor.take(Self::HEAD_LEN, "counters head")?;
            let bearers = body.cursor.list(head.u8(BEARERS).into(), problem, |cursor, _| {
                let part = cursor.take(2 + 4 * Self::N_COUNTERS, "bearer")?;
                Ok(BearerCounters {
                    bearer: part.u8(BEARER),
                    mode: part.u8(MODE),
                    counters: (0..Self::N_COUNTERS).map(|i| part.u32(u32_at(2 + 4 * i))).collect(),
                })
            });
            Ok(Some(RlcCountersSubpacket {
                version,
                queue_full: if Self::IS_DL { head.u32(u32_at(1)) } else { 0 },
                errors: head.u32(Self::ERRORS),
                bearers,
            }))
        })?;
        Ok(parsed.map(|(version, subpackets, problem)| (Self { version, subpackets }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = subpacket::emit_head(self.version, self.subpackets.len());
        for sub in &self.subpackets {
            subpacket::emit(&mut writer, Self::ID, sub.version, |writer| {
                let start = writer.part(Self::HEAD_LEN);
                writer.set(start, BEARERS, sub.bearers.len() as u64);
                writer.set(start, Self::ERRORS, sub.errors);
                if Self::IS_DL {
                    writer.set(start, u32_at(1), sub.queue_full);
                }
                for bearer in &sub.bearers {
                    let start = writer.part(2 + 4 * Self::N_COUNTERS);
                    writer.set(start, BEARER, bearer.bearer).set(start, MODE, bearer.mode);
                    for (i, &count) in bearer.counters.iter().take(Self::N_COUNTERS).enumerate() {
                        writer.set(start, u32_at(2 + 4 * i), count);
                    }
                }
            });
        }
        writer.finish()
    }
}
