//! The gate: passes a packet to the modem only while the modem holds less than a limit.

use serde::{Deserialize, Serialize};

use super::queue::MTU_BYTES;
use super::rate::bytes_in;

/// How much the modem may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Limit {
    /// This many bytes (QCut-B).
    Bytes(u64),
    /// The data that leaves in this many ms at the present rate (QCut-D), beyond what keeps
    /// grants filled. While sparse flows wait for bulk packets, these are admitted only below
    /// [`Limit::short_bytes`].
    DelayMs(u32),
}

/// Time from data to the block that carries it, in ns: up to 5 ms until a block carries the
/// periodic report (sf5, TS 36.331; the shortest), 4 TTIs to the grant and 4 from there (TS
/// 36.213, 8). Data that was reported and not granted yet waits for no other data.
const GRANT_NS: i64 = 13_000_000;

/// A time limit while sparse flows have packets waiting, in ns, and its minimum in bytes (both
/// chosen here, on other seeds than the experiments': less delays a call no less, and costs the
/// upload more; a request is shorter).
const SHORT_NS: i64 = 6_000_000;
const MIN_SHORT_BYTES: u64 = 200;

/// A block that carries the report is retransmitted 8 TTIs later (TS 36.213, 8): a limit
/// below this and the grant's time leaves grants unfilled.
const AGAIN_NS: i64 = 8_000_000;

/// Maximum held for a link that has faded, in bytes (chosen here: a second packet keeps the
/// modem supplied while the report of the better link is on its way; more are too many if the
/// rate has dropped for good).
const FADED_BYTES: u64 = 2 * MTU_BYTES as u64;

impl Default for Limit {
    fn default() -> Self {
        Self::DelayMs(20)
    }
}

impl Limit {
    /// The limit in bytes at a rate. `largest_block_bytes`: the largest recent grant. A
    /// time limit leaves room for the next grant, the one after it and a large packet
    /// (chosen here): a buffer that cannot fill its grants would be granted less, and the
    /// rate would fall with it. `short_bytes_per_s` bounds the limit if the rate has just
    /// dropped. At `mean_bytes_per_s`, the rate over some fades, up to two large packets may
    /// be held: a slow link that has faded is often back before the next report.
    #[must_use]
    pub fn bytes(
        self,
        bytes_per_s: u64,
        largest_block_bytes: u64,
        short_bytes_per_s: Option<u64>,
        mean_bytes_per_s: u64,
    ) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::DelayMs(ms) => {
                let grant_ns = i64::from(ms) * 1_000_000 + GRANT_NS;
                let bytes = in_time(grant_ns + AGAIN_NS, bytes_per_s, short_bytes_per_s);
                let faded_bytes = bytes_in(grant_ns, mean_bytes_per_s).min(FADED_BYTES);
                before_packet(bytes, largest_block_bytes).max(faded_bytes)
            }
        }
    }

    /// The limit if round trips are the evidence: their minimum includes the time to a
    /// grant, so data that waits for its grant counts as in flight.
    #[must_use]
    pub fn bytes_by_round_trips(self, bytes_per_s: u64, largest_block_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::DelayMs(ms) => {
                let time_ns = i64::from(ms) * 1_000_000;
                with_room(in_time(time_ns, bytes_per_s, None), largest_block_bytes)
            }
        }
    }

    /// The limit for bulk packets while sparse flows have packets waiting. A byte limit is
    /// unchanged. A time limit is at most half of the time to a grant: with the large packet that
    /// passes below it, a new packet waits little longer than for its own grant on an idle path.
    /// This loses rate whenever the modem cannot fill a grant.
    #[must_use]
    pub fn short_bytes(self, bytes_per_s: u64, short_bytes_per_s: Option<u64>) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::DelayMs(ms) => {
                let time_ns = SHORT_NS.min(i64::from(ms) * 1_000_000);
                in_time(time_ns, bytes_per_s, short_bytes_per_s).max(MIN_SHORT_BYTES)
            }
        }
    }
}

/// With evidence from round trips, which delayed acknowledgements blur: adds room for two
/// large packets, the next grant and the one after it.
fn with_room(bytes: u64, largest_block_bytes: u64) -> u64 {
    bytes.max(2 * u64::from(MTU_BYTES)).max(largest_block_bytes.saturating_mul(2))
}

/// The threshold below which the gate opens, so that at most `bytes` are held after one
/// more large packet: on a slow link a packet exceeds the time limit. At least four ninths,
/// the grant's part of the limit, and room for one packet and two grants remain, or grants
/// would stay unfilled.
fn before_packet(bytes: u64, largest_block_bytes: u64) -> u64 {
    let mtu_bytes = u64::from(MTU_BYTES);
    let grant_bytes = bytes / 9 * 4;
    let least_bytes = mtu_bytes.max(largest_block_bytes.saturating_mul(2));
    bytes.saturating_sub(mtu_bytes).max(grant_bytes).max(least_bytes)
}

fn in_time(time_ns: i64, bytes_per_s: u64, short_bytes_per_s: Option<u64>) -> u64 {
    bytes_in(time_ns, bytes_per_s.min(short_bytes_per_s.unwrap_or(u64::MAX)))
}

/// A limit that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitError(String);

impl std::fmt::Display for LimitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is not a limit: use a time such as 20ms or bytes such as 5KB", self.0)
    }
}

impl std::error::Error for LimitError {}

impl std::str::FromStr for Limit {
    type Err = LimitError;

    /// Parses `20ms`, `5KB` (5,000 bytes) or `5000B`.
    fn from_str(text: &str) -> Result<Self, LimitError> {
        let fail = || LimitError(text.to_owned());
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u32 = number.parse().map_err(|_| fail())?;
        let limit = match unit.trim().to_ascii_lowercase().as_str() {
            "ms" => Self::DelayMs(number),
            "kb" => Self::Bytes(u64::from(number) * 1_000),
            "b" => Self::Bytes(number.into()),
            _ => return Err(fail()),
        };
        if number == 0 { Err(fail()) } else { Ok(limit) }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::DelayMs(ms) => write!(f, "{ms}ms"),
            Self::Bytes(bytes) if bytes % 1_000 == 0 => write!(f, "{}KB", bytes / 1_000),
            Self::Bytes(bytes) => write!(f, "{bytes}B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_in_bytes() {
        for (limit, bytes_per_s, largest, short, mean, expected) in [
            (Limit::Bytes(5_000), 1_000_000, 9_000, Some(1), 1_000_000, 5_000),
            // 20 ms of 8 Mbit/s, 13 ms for the grant, 8 for a retransmitted block; less the
            // packet that passes then.
            (Limit::DelayMs(20), 1_000_000, 1_000, None, 1_000_000, 39_500),
            (Limit::DelayMs(20), 1_000_000, 1_000, Some(200_000), 1_000_000, 6_700),
            // Slow: one packet. Rare and large grants: two of them.
            (Limit::DelayMs(20), 10_000, 100, None, 10_000, 1_500),
            (Limit::DelayMs(20), 100_000, 2_000, Some(0), 100_000, 4_000),
            // Faded: 20 and 13 ms of the mean, up to two packets.
            (Limit::DelayMs(20), 20_000, 100, Some(10_000), 80_000, 2_640),
            (Limit::DelayMs(20), 20_000, 100, Some(10_000), 1_000_000, 3_000),
        ] {
            assert_eq!(limit.bytes(bytes_per_s, largest, short, mean), expected, "{limit}");
        }
    }

    #[test]
    fn limits_by_round_trips() {
        for (limit, bytes_per_s, largest, expected) in [
            (Limit::Bytes(5_000), 1_000_000, 9_000, 5_000),
            (Limit::DelayMs(20), 1_000_000, 1_000, 20_000),
            (Limit::DelayMs(20), 10_000, 100, 3_000),
            (Limit::DelayMs(20), 100_000, 2_000, 4_000),
        ] {
            assert_eq!(limit.bytes_by_round_trips(bytes_per_s, largest), expected, "{limit}");
        }
    }

    #[test]
    fn limits_while_somebody_waits() {
        for (limit, bytes_per_s, short, expected) in [
            (Limit::Bytes(5_000), 1_000_000, Some(1), 5_000),
            (Limit::DelayMs(20), 1_000_000, None, 6_000),
            (Limit::DelayMs(5), 1_000_000, None, 5_000),
            (Limit::DelayMs(20), 1_000_000, Some(500_000), 3_000),
            (Limit::DelayMs(20), 10_000, None, 200),
        ] {
            assert_eq!(limit.short_bytes(bytes_per_s, short), expected, "{limit}");
        }
    }

    #[test]
    fn limits_as_text() {
        for (text, limit) in [
            ("20ms", Limit::DelayMs(20)),
            ("5KB", Limit::Bytes(5_000)),
            ("5 kb", Limit::Bytes(5_000)),
            ("1500B", Limit::Bytes(1_500)),
        ] {
            assert_eq!(text.parse(), Ok(limit));
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
        for text in ["", "20", "ms", "0ms", "-5KB", "5MBps", "99999999999ms"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }
}
