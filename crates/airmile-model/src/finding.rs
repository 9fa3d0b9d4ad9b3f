//! Findings: the results of estimators.

use schemars::JsonSchema;
use serde::Serialize;

use crate::radio::Direction;
use crate::tti::{TtiIndex, TtiSpan};
use crate::vocabulary::vocabulary;

/// A confidence of 0 to 1 in whole percent, as all texts state it: 100 is certainty only.
///
/// ```
/// # use airmile_model::confidence_percent;
/// assert_eq!([0.57, 0.976, 0.996, 1.0].map(confidence_percent), [57.0, 98.0, 99.0, 100.0]);
/// ```
#[must_use]
pub fn confidence_percent(confidence: f64) -> f64 {
    let percent = (confidence * 100.0).round();
    if confidence < 1.0 { percent.min(99.0) } else { percent }
}

vocabulary! {
    /// The evidence of a statement.
    Evidence {
        /// RLC poll bits (TS 36.322, 5.2.2.1).
        Poll = "poll",
        /// MAC padding (TS 36.321, 5.4.3.1 and 6.1.2).
        Padding = "padding",
        /// Allocations alone, thresholds fitted to the log.
        Grants = "grants",
        /// Allocations by BurstTracker's literal rule.
        Paper = "paper",
        /// All evidence in the log, combined.
        Fused = "fused",
        /// The phone's own buffer (uplink).
        BufferStatus = "buffer_status",
        /// Packets.
        Packets = "packets",
    }
}

vocabulary! {
    /// The event that opened or closed a burst.
    Bound {
        /// The first data block after an empty queue.
        FirstData = "first_data",
        /// An RLC poll bit that no counter explains.
        Poll = "poll",
        /// MAC padding.
        Padding = "padding",
        /// A fraction of the cell's PRBs over or under a threshold.
        Fraction = "fraction",
        /// A pause longer than this cell makes while data waits; on the uplink, the
        /// phone's own buffer was sampled or reported as empty.
        Gap = "gap",
        /// The serving cell changed; the end of the queue was not observed.
        Handover = "handover",
        /// The log has a hole here.
        LogHole = "log_hole",
        /// The log ends.
        End = "end",
    }
}

vocabulary! {
    /// The cause of a millisecond of a transfer, in order of precedence.
    Cause {
        /// The downlink queue was not empty, and other users held the cell.
        RadioContention = "radio_contention",
        /// The downlink queue was not empty, and this phone held the cell.
        RadioSignal = "radio_signal",
        /// A window reset after idle time grows again (RFC 5681, 4.1).
        SlowStartRestart = "slow_start_restart",
        /// A timeout after duplicate ACKs, and the slow start after it.
        UndesiredSlowStart = "undesired_slow_start",
        /// The connection's own start.
        FirstSlowStart = "first_slow_start",
        /// The receiver's window was full.
        ReceiveWindow = "receive_window",
        /// Server or application: no data to send, think time, pacing.
        SenderLimited = "sender_limited",
        /// A slower link before the radio.
        Wireline = "wireline",
        /// Retransmission of data lost by the radio.
        LossRecoveryRadio = "loss_recovery_radio",
        /// Retransmission of other lost data. Without records of the radio, where it was lost is unknown.
        LossRecoveryCongestion = "loss_recovery_congestion",
        /// Before the first byte: promotion, DNS, handshake, request.
        Setup = "setup",
        /// Requests and ACKs waited for the phone's own upload.
        UplinkQueue = "uplink_queue",
        /// The evidence is insufficient.
        Unknown = "unknown",
    }
}

vocabulary! {
    /// The bottleneck. The names of causes are those of [`Cause`].
    Verdict {
        /// The downlink.
        Radio = "radio",
        /// Not the downlink.
        NotRadio = "not_radio",
        /// The downlink for part of the time.
        Mixed = "mixed",
        /// [`Cause::RadioContention`].
        RadioContention = "radio_contention",
        /// [`Cause::RadioSignal`].
        RadioSignal = "radio_signal",
        /// [`Cause::SlowStartRestart`].
        SlowStartRestart = "slow_start_restart",
        /// [`Cause::UndesiredSlowStart`].
        UndesiredSlowStart = "undesired_slow_start",
        /// [`Cause::FirstSlowStart`].
        FirstSlowStart = "first_slow_start",
        /// [`Cause::ReceiveWindow`].
        ReceiveWindow = "receive_window",
        /// [`Cause::SenderLimited`].
        SenderLimited = "sender_limited",
        /// [`Cause::Wireline`].
        Wireline = "wireline",
        /// [`Cause::LossRecoveryRadio`].
        LossRecoveryRadio = "loss_recovery_radio",
        /// [`Cause::LossRecoveryCongestion`].
        LossRecoveryCongestion = "loss_recovery_congestion",
        /// [`Cause::Setup`].
        Setup = "setup",
        /// [`Cause::UplinkQueue`].
        UplinkQueue = "uplink_queue",
        /// The evidence is insufficient.
        Unknown = "unknown",
    }
}

impl Cause {
    /// Whether it belongs to the time in which the downlink queue was not empty.
    #[must_use]
    pub const fn is_radio(self) -> bool {
        matches!(self, Self::RadioContention | Self::RadioSignal)
    }
}

impl From<Cause> for Verdict {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::RadioContention => Self::RadioContention,
            Cause::RadioSignal => Self::RadioSignal,
            Cause::SlowStartRestart => Self::SlowStartRestart,
            Cause::UndesiredSlowStart => Self::UndesiredSlowStart,
            Cause::FirstSlowStart => Self::FirstSlowStart,
            Cause::ReceiveWindow => Self::ReceiveWindow,
            Cause::SenderLimited => Self::SenderLimited,
            Cause::Wireline => Self::Wireline,
            Cause::LossRecoveryRadio => Self::LossRecoveryRadio,
            Cause::LossRecoveryCongestion => Self::LossRecoveryCongestion,
            Cause::Setup => Self::Setup,
            Cause::UplinkQueue => Self::UplinkQueue,
            Cause::Unknown => Self::Unknown,
        }
    }
}

/// Link demand thresholds of a verdict (chosen here, as in BurstTracker's table 1 a
/// quarter of file downloads are under 83 %).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct VerdictThresholds {
    /// At or above: `radio`.
    pub radio_at_least: f64,
    /// Below: `not_radio`.
    pub not_radio_below: f64,
}

impl Default for VerdictThresholds {
    fn default() -> Self {
        Self { radio_at_least: 0.90, not_radio_below: 0.75 }
    }
}

impl VerdictThresholds {
    /// The verdict on a link demand.
    #[must_use]
    pub fn judge(&self, link_demand: f64) -> Verdict {
        if link_demand >= self.radio_at_least {
            Verdict::Radio
        } else if link_demand < self.not_radio_below {
            Verdict::NotRadio
        } else if link_demand.is_nan() {
            Verdict::Unknown
        } else {
            Verdict::Mixed
        }
    }
}

/// A time during which a user's queue was not empty: from the first TTI in
/// which data leaves, to the TTI in which it runs empty (exclusive).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Burst {
    /// `dl` or `ul`.
    pub dir: Direction,
    /// Timing segment of its TTIs.
    pub timing_segment: u32,
    /// First TTI in which data leaves the queue.
    pub start_tti: TtiIndex,
    /// The LAST_ACTIVE TTI: not part of the throughput time.
    pub end_tti: TtiIndex,
    /// Bytes sent, those of the LAST_ACTIVE block included.
    pub bytes: u64,
    /// The bytes of the LAST_ACTIVE TTI among them; 0 where the end of the queue was not observed.
    pub last_bytes: u64,
    /// TTIs of the burst in which something was scheduled for this user.
    pub scheduled_ttis: u32,
    /// TTIs of the burst in which data may not have waited: all of a burst between whose blocks
    /// allocations alone do not show it, and of a possible wait before a burst of a starved leg, else
    /// none.
    pub unknown_ttis: u32,
    /// The event that opened it.
    pub opened_by: Bound,
    /// The event that closed it.
    pub closed_by: Bound,
    /// Confidence in its end, 0 to 1.
    pub confidence: f64,
}

impl Burst {
    /// Whether data waited in it, as far as its evidence shows anything.
    #[must_use]
    pub const fn is_clear(&self) -> bool {
        self.unknown_ttis == 0
    }

    /// TTIs that count as throughput time.
    #[must_use]
    pub const fn n_tti(&self) -> i64 {
        self.end_tti.since(self.start_tti)
    }

    /// Its throughput time in ms, of TTIs of this numerology.
    #[must_use]
    pub fn duration_ms(&self, numerology: u8) -> f64 {
        TtiSpan(self.n_tti()).ms(numerology)
    }

    /// Bytes sent while data waited: without those that emptied the queue, as what was left did not fill
    /// the last TTI.
    #[must_use]
    pub const fn waited_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.last_bytes)
    }

    /// The rate in bit/s while data waited, for TTIs of this numerology: bytes and time without those of
    /// the last TTI (scheduled IP throughput: TS 36.314, 4.1.6.1).
    #[must_use]
    pub fn rate_bps(&self, numerology: u8) -> f64 {
        self.waited_bytes() as f64 * 8_000.0 / self.duration_ms(numerology)
    }
}

/// Of granted time, what is above this part of the time in which it is known counts, all of it from
/// [`RAMP`] more on: as unknown, and from `GRANTED_PART + RAMP` on as not the radio's (chosen here: see
/// docs/causes.md, "Data that waits for a grant alone").
const GRANTED_PART: f64 = 0.1;
const RAMP: f64 = 0.1;

/// Throughput time in ms as the verdict counts it, by its measured parts: data waited for capacity, for grants
/// alone, and for either. A fast cell with a short queue has granted time, too, so its part counts by degrees.
/// It counts for less where the unknown time is above half of it, and for nothing where it is all of it.
#[must_use]
pub fn counted_ms(waited_ms: f64, limited_ms: f64, granted_ms: f64) -> [f64; 3] {
    let known_ms = limited_ms + granted_ms;
    let unknown_ms = (waited_ms - known_ms).max(0.0);
    let above = |part: f64| ((granted_ms / known_ms.max(1.0) - part) / RAMP).clamp(0.0, 1.0);
    let left_ms = granted_ms * above(GRANTED_PART);
    let sure_ms = (2.0 * (granted_ms - unknown_ms)).clamp(0.0, granted_ms);
    let alone_ms = sure_ms * above(GRANTED_PART + RAMP);
    [known_ms - left_ms, alone_ms, unknown_ms + left_ms - alone_ms]
}

/// The result for one transfer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TransferFinding {
    /// The transfer's name.
    pub id: String,
    /// `dl` or `ul`.
    pub dir: Direction,
    /// Start by the log's clock, in microseconds since the Unix epoch.
    pub start_us: Option<i64>,
    /// End (exclusive) by the log's clock, in microseconds since the Unix epoch.
    pub end_us: Option<i64>,
    /// First TTI.
    pub start_tti: TtiIndex,
    /// End TTI (exclusive).
    pub end_tti: TtiIndex,
    /// Duration in ms.
    pub duration_ms: f64,
    /// Application bytes if they were given, else bytes on the data bearers.
    pub bytes: Option<u64>,
    /// Throughput time in ms: bursts' overlap with the transfer.
    pub throughput_time_ms: Option<f64>,
    /// Time in ms that data waited before its first departure; null if the phone cannot observe it.
    pub sched_wait_ms: Option<f64>,
    /// Part of the throughput time in ms in which data waited for the radio's capacity, at least; on the
    /// downlink, all of it.
    pub limited_ms: Option<f64>,
    /// Part of the throughput time in ms in which the base station had granted all that the phone had
    /// reported: data waited for a report and a grant, and not for capacity. Null on the downlink, and
    /// if none is known and nothing shows it for some. What is in neither this nor `limited_ms` is unknown.
    pub granted_ms: Option<f64>,
    /// The baseline: scheduled TTIs, in ms.
    pub active_time_ms: Option<f64>,
    /// Time in ms in which the log has a hole, or does not show whether data waited.
    pub unknown_ms: f64,
    /// Throughput time / duration.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub link_demand: Option<f64>,
    /// Link throughput, in bits per second: bytes / throughput time. Bytes that emptied
    /// the queue at once are included, their TTIs are not; null where most bytes did.
    pub link_throughput_bps: Option<f64>,
    /// Rate inside bursts, in bits per second: bytes of the transfer's bursts over their TTIs, both
    /// without the last TTI of each, which the data left does not fill (TS 36.314, 4.1.6.1).
    pub burst_throughput_bps: Option<f64>,
    /// Its evidence; null if the log has none.
    pub evidence: Option<Evidence>,
    /// The bottleneck.
    pub verdict: Verdict,
    /// Confidence in the verdict, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// Whether another transfer of this user overlaps it: then only `not_radio` is conclusive.
    pub overlapped: bool,
    /// Reasons in words with numbers; and missing data.
    pub notes: Vec<String>,
}

impl TransferFinding {
    /// Its throughput time as [`counted_ms`] counts it.
    #[must_use]
    pub fn counted_ms(&self) -> Option<[f64; 3]> {
        let (waited_ms, limited_ms) = self.throughput_time_ms.zip(self.limited_ms)?;
        Some(counted_ms(waited_ms, limited_ms, self.granted_ms.unwrap_or(0.0)))
    }

    /// The part of its duration, 0 to 1, that counts as limited by the radio: what is certain, and granted time
    /// up to a tenth of what is known.
    #[must_use]
    pub fn radio_share(&self) -> Option<f64> {
        self.counted_ms().map(|[limited_ms, ..]| limited_ms / self.duration_ms)
    }
}
