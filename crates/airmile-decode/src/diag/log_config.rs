//! Turning logs on: the LOG_CONFIG command (0x73) and its answers.
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | u8 | 0x73 |
//! | 1 | 3 | zero |
//! | 4 | u32 | operation: 0 disable, 1 retrieve ranges, 3 set mask |
//! | 8 | u32 | status, in answers only: 0 done |
//!
//! Answer of operation 1: 16 numbers (u32), the items of each equipment. Of operation 3,
//! after the status in the answer: u32 equipment, u32 items, a bit for each item, the
//! lowest bit first. The item of code 0xB173 is 0x173, its equipment 0xB. A refused
//! command is returned after 0x13 to 0x18.
//!
//! Layout as in public DIAG clients; no modem was available to confirm it.

use std::collections::BTreeSet;

use thiserror::Error;

/// The command byte.
pub const CMD_LOG_CONFIG: u8 = 0x73;
const RETRIEVE_RANGES: u32 = 1;
const SET_MASK: u32 = 3;
const EQUIPMENTS: usize = 16;

/// The codes read by the estimators; see [`super::msg`].
pub const WANTED: &[u16] = &[
    0xB063, 0xB064, 0xB066, 0xB067, 0xB082, 0xB087, 0xB092, 0xB097, 0xB0A3, 0xB0B3, 0xB0C0, 0xB0C1,
    0xB0C2, 0xB126, 0xB130, 0xB132, 0xB139, 0xB173, 0xB179, 0xB18A, 0xB193, 0xB195, 0xB821, 0xB823,
    0xB872, 0xB881, 0xB887, 0xB888, 0xB97F,
];

/// An answer to a LOG_CONFIG command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogConfigResponse {
    /// Items of each equipment.
    Ranges([u32; EQUIPMENTS]),
    /// The enabled codes of an equipment.
    Mask {
        /// Equipment: the code's highest four bits.
        equipment: u8,
        /// Enabled codes.
        codes: BTreeSet<u16>,
    },
    /// An answer to another operation.
    Other(u32),
}

/// Why a LOG_CONFIG command failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The modem rejects the command.
    #[error("the modem refuses LOG_CONFIG ({})", refusal(*.0))]
    Refused(u8),
    /// The modem accepted the command, but failed.
    #[error("LOG_CONFIG operation {operation} failed with status {status}")]
    Status {
        /// The operation.
        operation: u32,
        /// As returned by the modem.
        status: u32,
    },
    /// The answer is truncated.
    #[error("LOG_CONFIG answer of {len} bytes ends inside its {field}")]
    Cut {
        /// What is missing.
        field: &'static str,
        /// The available bytes.
        len: usize,
    },
}

const fn refusal(code: u8) -> &'static str {
    match code {
        0x13 => "unknown command",
        0x14 => "bad parameters",
        0x15 => "bad length",
        0x16 => "bad device",
        0x17 => "not in this mode",
        _ => "locked: diagnostics need a security code",
    }
}

/// The command that requests the ranges.
#[must_use]
pub fn retrieve_ranges() -> Vec<u8> {
    header(RETRIEVE_RANGES)
}

/// The command that enables just these codes of an equipment with this number of items.
#[must_use]
pub fn set_mask(equipment: u8, items: u32, codes: &[u16]) -> Vec<u8> {
    let mut out = header(SET_MASK);
    out.extend(u32::from(equipment).to_le_bytes());
    out.extend(items.to_le_bytes());
    out.extend(mask(equipment, items, codes));
    out
}

fn header(operation: u32) -> Vec<u8> {
    let mut out = vec![CMD_LOG_CONFIG, 0, 0, 0];
    out.extend(operation.to_le_bytes());
    out
}

fn mask(equipment: u8, items: u32, codes: &[u16]) -> Vec<u8> {
    // No equipment has more items than a code can address.
    let items = items.min(0x1000) as usize;
    let mut mask = vec![0_u8; items.div_ceil(8)];
    for &code in codes.iter().filter(|code| (**code >> 12) as u8 == equipment) {
        let item = usize::from(code & 0xfff);
        if let Some(byte) = mask.get_mut(item / 8).filter(|_| item < items) {
            *byte |= 1 << (item % 8);
        }
    }
    mask
}

/// Parses a packet as an answer to LOG_CONFIG; `None` if it is no answer.
///
/// # Errors
///
/// The modem refused the command or failed, or the answer is truncated.
pub fn parse_answer(packet: &[u8]) -> Option<Result<LogConfigResponse, ConfigError>> {
    match packet {
        [CMD_LOG_CONFIG, ..] => Some(parse_body(packet)),
        [code @ 0x13..=0x18, CMD_LOG_CONFIG, ..] => Some(Err(ConfigError::Refused(*code))),
        _ => None,
    }
}

fn parse_body(packet: &[u8]) -> Result<LogConfigResponse, ConfigError> {
    let cut = |field| ConfigError::Cut { field, len: packet.len() };
    let u32_at = |at: usize| {
        let bytes = packet.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map(|bytes| u32::from_le_bytes(*bytes))
    };
    let operation = u32_at(4).ok_or_else(|| cut("operation"))?;
    let status = u32_at(8).ok_or_else(|| cut("status"))?;
    if status != 0 {
        return Err(ConfigError::Status { operation, status });
    }
    match operation {
        RETRIEVE_RANGES => {
            let mut ranges = [0; EQUIPMENTS];
            for (i, items) in ranges.iter_mut().enumerate() {
                *items = u32_at(12 + 4 * i).ok_or_else(|| cut("ranges"))?;
            }
            Ok(LogConfigResponse::Ranges(ranges))
        }
        SET_MASK => {
            let equipment = u32_at(12).ok_or_else(|| cut("equipment"))? as u8 & 0xf;
            let items = u32_at(16).ok_or_else(|| cut("items"))?.min(0x1000) as usize;
            let mask = packet.get(20..20 + items.div_ceil(8)).ok_or_else(|| cut("mask"))?;
            let on = (0..items).filter(|item| mask[item / 8] >> (item % 8) & 1 == 1);
            let codes = on.map(|item| u16::from(equipment) << 12 | item as u16).collect();
            Ok(LogConfigResponse::Mask { equipment, codes })
        }
        other => Ok(LogConfigResponse::Other(other)),
    }
}

/// The exchange that enables [`WANTED`]: send [`LogSetup::begin`], pass each received
/// packet to it, and send what it returns.
#[derive(Debug, Clone, Default)]
pub struct LogSetup {
    asked: bool,
}

/// The next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigStep {
    /// None: the packet was unrelated.
    Wait,
    /// Send this packet.
    Send(Vec<u8>),
    /// Logs are enabled.
    Done {
        /// The enabled codes.
        on: BTreeSet<u16>,
        /// The codes that the modem left disabled, or lacks.
        off: BTreeSet<u16>,
    },
}

impl LogSetup {
    /// The first packet to send.
    #[must_use]
    pub fn begin(&mut self) -> Vec<u8> {
        self.asked = false;
        retrieve_ranges()
    }

    /// Takes a packet from the modem.
    ///
    /// # Errors
    /// The modem refused.
    pub fn take(&mut self, packet: &[u8]) -> Result<ConfigStep, ConfigError> {
        const LTE: u8 = 0xB;
        match parse_answer(packet).transpose()? {
            Some(LogConfigResponse::Ranges(ranges)) if !self.asked => {
                self.asked = true;
                Ok(ConfigStep::Send(set_mask(LTE, ranges[usize::from(LTE)], WANTED)))
            }
            Some(LogConfigResponse::Mask { equipment: LTE, codes }) if self.asked => {
                let wanted: BTreeSet<u16> = WANTED.iter().copied().collect();
                let on = wanted.intersection(&codes).copied().collect();
                let off = wanted.difference(&codes).copied().collect();
                Ok(ConfigStep::Done { on, off })
            }
            _ => Ok(ConfigStep::Wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_a_bit_an_item_the_lowest_first() {
        let packet = set_mask(0xB, 0x180, &[0xB063, 0xB173, 0x1375]);
        assert_eq!(&packet[..8], [0x73, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(&packet[8..16], [0xB, 0, 0, 0, 0x80, 1, 0, 0]);
        assert_eq!(packet.len(), 16 + 0x180 / 8);
        assert_eq!((packet[16 + 0x63 / 8], packet[16 + 0x173 / 8]), (1 << 3, 1 << 3));
        assert_eq!(packet[16..].iter().map(|b| b.count_ones()).sum::<u32>(), 2);
    }

    /// The answer of a modem with this many items.
    fn answer(request: &[u8]) -> Vec<u8> {
        let mut out = request[..8].to_vec();
        out.extend([0; 4]);
        if request[4] == 1 {
            (0..16_u32).for_each(|i| out.extend(if i == 11 { 0x190_u32 } else { 0 }.to_le_bytes()));
        } else {
            out.extend(&request[8..]);
        }
        out
    }

    #[test]
    fn logs_are_on_once_the_modem_says_so() {
        let mut setup = LogSetup::default();
        let request = setup.begin();
        assert_eq!(setup.take(&[0x10, 0]), Ok(ConfigStep::Wait));
        let Ok(ConfigStep::Send(request)) = setup.take(&answer(&request)) else { panic!() };
        let Ok(ConfigStep::Done { on, off }) = setup.take(&answer(&request)) else { panic!() };
        assert!(on.contains(&0xB173) && !on.contains(&0xB193));
        // This modem has no items from 0x190 on.
        assert!(off.contains(&0xB193) && off.contains(&0xB888));
        assert_eq!(on.len() + off.len(), WANTED.len());
    }

    #[test]
    fn refusals_and_cuts_are_told() {
        let check = |packet: &[u8], expected: &str| {
            let error = parse_answer(packet).unwrap().unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check(&[0x13, 0x73, 0, 0], "the modem refuses LOG_CONFIG (unknown command)");
        check(
            &[0x18, 0x73, 0, 0],
            "the modem refuses LOG_CONFIG (locked: diagnostics need a security code)",
        );
        check(
            &[0x73, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0],
            "LOG_CONFIG operation 3 failed with status 1",
        );
        check(
            &[0x73, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1],
            "LOG_CONFIG answer of 13 bytes ends inside its ranges",
        );
        assert_eq!(parse_answer(&[0x10, 0x73]), None);
    }
}
