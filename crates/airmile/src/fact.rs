//! The facts of a diagnosis, as numbers; [`crate::wording`] makes the sentences.

use std::collections::BTreeMap;

use airmile_blind::{Suspect, Suspicion};
use airmile_model::{Cause, Direction, EcnSource, Phases, TtiIndex, Verdict};
use airmile_wire::attribute::{CaptureSite, Reason};
use airmile_wire::compare::RestartsSeen;
use schemars::JsonSchema;
use serde::Serialize;

/// A fact about a transfer, and its place on the time axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fact {
    pub(crate) kind: FactKind,
    /// First TTI.
    pub(crate) from_tti: TtiIndex,
    /// End TTI (exclusive).
    pub(crate) to_tti: TtiIndex,
}

impl Fact {
    pub(crate) const fn new(kind: FactKind, (from_tti, to_tti): (TtiIndex, TtiIndex)) -> Self {
        Self { kind, from_tti, to_tti }
    }
}

/// A kind of fact. Shares are 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FactKind {
    /// Throughput time of the transfer (BurstTracker, section 3).
    QueueTime { dir: Direction, queued_ms: f64, duration_ms: f64, demand: f64 },
    /// The time in which data waited for the radio's capacity, at least and at most, is so close to a limit
    /// that either verdict may be right.
    NearLimit { dir: Direction, share: (f64, f64), limit: f64, under: Verdict, over: Verdict },
    /// Bursts that overlap the transfer: their number, the longest, and what closed them.
    Bursts { count: u64, longest_ms: f64, closed_by: Vec<(&'static str, u64)> },
    /// The longest time without a burst.
    LongestEmpty { ms: f64 },
    /// Bytes over the duration.
    Throughput { got_bps: f64 },
    /// The link's rate, from which durations without a cause are computed.
    Link(LinkRate),
    /// Share of the time in which the phone was scheduled, and its share of the PRBs of its cells
    /// then and overall.
    Scheduled { share: f64, prb_share_when: Option<f64>, prb_share: Option<f64>, cells: usize },
    /// Signal and HARQ; at least one is known.
    Signal {
        rsrp_dbm: Option<f64>,
        snr_db: Option<f64>,
        mcs_mean: Option<f64>,
        retx_share: Option<f64>,
    },
    /// Other users' share of the cell, from its load.
    OthersShare { share: f64, confidence: f64, rough: bool },
    /// A note of the radio's estimator.
    Note(String),
    /// Time that a cause took. `bounds` are those of the leading cause's share.
    CauseTime {
        dir: Direction,
        cause: Cause,
        ms: f64,
        share: f64,
        bounds: Option<(f64, f64)>,
        detail: Option<CauseDetail>,
    },
    /// Probabilities by packets alone, the most probable first.
    Suspects(Vec<Suspicion>),
    /// The round trip is shorter than a cellular link allows.
    NoCellularLink { rtt_ms: f64 },
    /// The median queueing delay in the round trip, and the minimum round trip.
    QueueDelay { queue_ms: f64, base_rtt_ms: f64 },
    /// Share of the time in which packets were queued between captures at both ends.
    PathQueue { share: f64 },
    /// How much the rate varied while data was queued.
    RateVariation { spread: f64 },
    /// A capture at the server: whether a line's queue or the cell's stands is not visible.
    LinkHidden,
    /// How much of the backlog arrived after pauses of 6 ms and more.
    CaughtUp { share: f64 },
    /// Share of the time in pauses of 200 ms and more.
    Paused { share: f64 },
    /// Data arrived in datagrams, whose sender cannot be followed.
    Datagrams,
    /// Time by what the sender waited for.
    ReasonTime { reason: Reason, ms: f64, share: f64 },
    /// It is unknown where the capture was taken.
    CaptureSiteUnknown,
    /// The phases in the application's log.
    Phases { phases: Phases, uploads: bool },
    /// The bytes are those after decompression.
    BytesDecoded,
    /// A player's stalls inside the transfer.
    Stalls { count: u64, stalled_ms: f64 },
    /// A player's changes of bitrate, and the last one.
    BitrateSwitches { count: u64, bps: f64 },
    /// Minimum of a player's buffer.
    LeastBuffer { ms: f64 },
    /// Rates of intervals, losses and round trips in the application's log.
    IntervalRates {
        bps: Option<(f64, f64)>,
        retransmits: Option<u64>,
        rtt_us: Option<(f64, f64)>,
        least_bps: Option<f64>,
    },
}

/// The link's rate in bits per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinkRate {
    pub(crate) bps: f64,
    pub(crate) from: LinkRateSource,
}

/// What shows a link's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkRateSource {
    /// Data that waited.
    Bursts,
    /// Of an upload, data that waited for capacity.
    Limited,
    /// The cell's load: own and free PRBs.
    Capacity,
    /// This phone's bits per PRB, and all PRBs.
    Prbs,
}

/// The estimated duration of a transfer without a cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Without {
    pub(crate) ms: f64,
    pub(crate) low_ms: f64,
    pub(crate) high_ms: f64,
}

impl Without {
    /// Factor by which the link's rate may differ at another time (chosen here).
    pub(crate) const OTHER_RATE: f64 = 1.25;
    /// In 95 % of the runs that thresholds were chosen on (`airmile-accuracy --causes tuned`), an
    /// estimated duration without a cause is off by at most this share of the duration: simultaneous
    /// causes cannot be separated by time alone.
    const MODEL_ERROR: f64 = 0.07;

    /// With bounds that include the model's error, for a transfer of this duration.
    pub(crate) fn with_model_error(self, duration_ms: f64) -> Self {
        let error_ms = Self::MODEL_ERROR * duration_ms;
        let low_ms = (self.low_ms - error_ms).max(0.0);
        Self { low_ms, high_ms: (self.high_ms + error_ms).min(duration_ms), ..self }
    }
}

impl FactKind {
    /// The number of the fact, and its unit; the unit of a ratio is empty.
    pub(crate) fn value(&self) -> (Option<f64>, &'static str) {
        match self {
            Self::QueueTime { demand, .. } | Self::NearLimit { share: (demand, _), .. } => {
                (Some(*demand), "")
            }
            Self::Bursts { count, .. } => (Some(*count as f64), "bursts"),
            Self::LongestEmpty { ms }
            | Self::CauseTime { ms, .. }
            | Self::ReasonTime { ms, .. }
            | Self::LeastBuffer { ms }
            | Self::NoCellularLink { rtt_ms: ms }
            | Self::QueueDelay { queue_ms: ms, .. }
            | Self::Stalls { stalled_ms: ms, .. } => (Some(*ms), "ms"),
            Self::Throughput { got_bps: bps }
            | Self::Link(LinkRate { bps, .. })
            | Self::BitrateSwitches { bps, .. } => (Some(*bps), "bit/s"),
            Self::Scheduled { share, .. }
            | Self::OthersShare { share, .. }
            | Self::RateVariation { spread: share }
            | Self::CaughtUp { share }
            | Self::PathQueue { share }
            | Self::Paused { share } => (Some(*share), ""),
            Self::Signal { rsrp_dbm, .. } => (*rsrp_dbm, "dBm"),
            Self::Suspects(suspects) => (suspects.first().map(|first| first.probability), ""),
            Self::Phases { phases, .. } => {
                (phases.before_first_byte_ns().map(|ns| ns as f64 / 1e6), "ms")
            }
            Self::IntervalRates { least_bps, .. } => (*least_bps, "bit/s"),
            Self::Note(_)
            | Self::LinkHidden
            | Self::Datagrams
            | Self::CaptureSiteUnknown
            | Self::BytesDecoded => (None, ""),
        }
    }
}

/// How a cause was detected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CauseDetail {
    /// Other users' share of the PRBs.
    Contention {
        others: f64,
    },
    /// Bits carried by the phone's PRBs, relative to the best MCS.
    Signal {
        efficiency: Option<f64>,
    },
    SlowStartRestart(Restarter),
    UndesiredSlowStart,
    FirstSlowStart,
    ReceiveWindow,
    /// Times in ms; `may_be_a_line`: a slow link behind a proxy looks the same.
    SenderLimited {
        app_limited_ms: f64,
        think_ms: f64,
        no_request_ms: f64,
        pacing_ms: f64,
        may_be_a_line: bool,
    },
    /// `acks`: most of it is of what the phone sent.
    Wireline {
        acks: bool,
    },
    LossRecoveryRadio,
    LossRecoveryCongestion,
    /// Times in ms.
    Setup {
        promotion_ms: f64,
        handshake_ms: f64,
        request_ms: f64,
    },
    UplinkQueue,
}

/// The host that restarts slow start, by captures at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Restarter {
    /// Only one side was captured, or captures at both do not decide it.
    #[default]
    SenderOrMiddlebox,
    Sender,
    Middlebox,
}

impl Restarter {
    /// What two runs show, if it is the same.
    pub(crate) fn agreed(self, other: Self) -> Self {
        if self == other { self } else { Self::SenderOrMiddlebox }
    }
}

/// The next step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Advice {
    /// Nothing to add.
    None,
    /// The radio limits it. `weak`: and the signal is weak.
    Radio { dir: Direction, weak: bool },
    /// Something other than the radio does; `idle`: share of the time with an empty queue.
    NotRadio { dir: Direction, idle: f64 },
    /// Both do. `without`: the duration if its data had always been queued.
    Shared { dir: Direction, demand: f64, without: Option<Without>, duration_ms: f64 },
    /// Repeat it alone.
    RepeatAlone,
    /// Log the whole transfer.
    LogAgain,
    /// Capture what is missing.
    Capture { what: String, how: String },
    /// A version of a message is not supported yet.
    Unread(String),
    /// Other missing evidence, and how to get it.
    Gather { what: String, how: String },
    /// Remove a cause.
    Cause(Direction, CauseAdvice),
    /// Remove a cause, or another one that takes almost as long.
    Either(Direction, CauseAdvice, Cause, CauseAdvice),
    /// The radio and a cause share it; remove the cause.
    SharedWith(Direction, Cause, CauseAdvice),
    /// By packets alone.
    Suspect(Suspect, Restarter),
    /// By the application's log alone.
    Application(ApplicationAdvice),
}

/// How to remove a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CauseAdvice {
    Contention,
    Signal,
    SlowStartRestart(Restarter),
    UndesiredSlowStart,
    FirstSlowStart,
    ReceiveWindow,
    /// A capture at the server separates its pace from a slow link.
    ServerOrLine,
    ServerAnswersLate,
    ServerPaces,
    /// Most of its time passed without a request outstanding.
    ClientAsksLate,
    Wireline,
    LossRecoveryRadio,
    LossRecoveryCongestion,
    /// The cell had released the phone.
    Promotion,
    SetupRoundTrips,
    UplinkQueue,
}

/// The largest part of a transfer's time, by the application's own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApplicationAdvice {
    Failed,
    OwnQueue,
    Setup,
    Wait,
    /// Nothing stands out.
    Capture,
}

/// A sentence of a session's verdict, as numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
    /// Nothing between the limits on the time.
    EmptyWindow,
    /// Poll bits, but no allocations.
    PollsAlone,
    NoAllocations,
    /// Only exchanges too small for a transfer.
    OnlySmall {
        bytes: u64,
    },
    /// The log has no given transfer from its start to its end.
    NotWhole,
    NoEvidence,
    /// The verdict on the radio: link demand of `n` transfers, its part for which the verdict is, and
    /// the limits between verdicts.
    Demand {
        verdict: Verdict,
        dir: Direction,
        demand: f64,
        limited: f64,
        n: usize,
        limits: [f64; 2],
    },
    /// The transfers of the other direction are not judged.
    Unjudged {
        dir: Direction,
        n: usize,
    },
    /// Captures were not used, as their clock report says.
    Unjoined(String),
    /// Causes are not given for all: only `apart` of `n` transfers did not overlap another.
    FewApart {
        apart: usize,
        n: usize,
    },
    /// The server had sent what was requested.
    ServerHadSent,
    /// The leading cause, its share, and the bounds of the share.
    Leading {
        cause: Cause,
        restarter: Option<Restarter>,
        share: f64,
        bounds: (f64, f64),
        /// Another cause with almost the same share, and its share.
        near: Option<(Cause, f64)>,
        beside_radio: bool,
    },
    /// Captures without a download.
    NoDownload,
    /// Captures with an upload, and without a download.
    OnlyUpload {
        bytes: u64,
    },
    /// Uploads in captures that have downloads, too.
    AlsoUploaded {
        bytes: u64,
    },
    /// Most frames are cut within a header.
    HeadersCut {
        cut: u64,
        frames: u64,
    },
    /// The capture holds the packets of one direction alone.
    OneDirection,
    /// Captures only where they do not show how data arrived over the air.
    Captured(CaptureSite),
    /// Too few packets for a pattern.
    TooLittle,
    /// No suspect is probable enough for all transfers.
    NoSuspect {
        n: usize,
        suspects: Vec<Suspicion>,
        /// How many have each suspect by themselves.
        counts: Vec<(Suspect, usize)>,
        /// Share of the time with packets queued between captures at both ends, if too small for a link.
        queued: Option<f64>,
    },
    /// The suspect with the highest probability, and how many of the transfers have it.
    Suspected {
        n: usize,
        of: usize,
        first: Suspicion,
        restarter: Restarter,
    },
    /// Most of the time of the transfers was that of loss recovery, by packets alone.
    LossRecovery {
        share: f64,
    },
    /// Transfers after pauses began in slow start, which took much of the time, by packets alone.
    Restarts {
        seen: RestartsSeen,
        share: f64,
        restarter: Restarter,
    },
    /// The same of handshakes and requests before first bytes.
    Setup {
        share: f64,
    },
    /// An application's log without transfers.
    NoApplicationTransfer,
    /// An application's log alone: its sentence, and the share of time before first bytes.
    ApplicationAlone {
        log: String,
        before_first_byte: Option<f64>,
    },
}

/// The end of a page's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Milestone {
    /// The first paint.
    FirstPaint,
    /// The browser's load event.
    Load,
    /// The last byte of the last request.
    LastByte,
}

/// What the unknown time of a request may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WaitDoubt {
    /// It failed: no response shows what it waited for.
    pub(crate) failed: bool,
    /// The server or a queue on the path: other responses arrived.
    pub(crate) queue: bool,
    /// The server or round trips: neither a handshake nor a fast response bounds these.
    pub(crate) round_trip: bool,
}

/// A segment, and what its transfer waited for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SegmentWait {
    /// The transfer's name.
    pub id: String,
    /// The requested URL, without its query.
    pub name: Option<String>,
    /// Its duration in ms.
    pub duration_ms: f64,
    /// Its rate in bits per second.
    pub bps: Option<f64>,
    /// Its bitrate in bits per second.
    pub bitrate_bps: Option<f64>,
    /// Its bottleneck.
    pub verdict: Verdict,
    /// Its time by cause, in ms.
    pub shares: BTreeMap<&'static str, f64>,
}

/// Congestion marks on the packets of one direction (RFC 3168; RFC 9331). Packets are those of the
/// capture: where segments are sent or received in larger units, these are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EcnReport {
    /// Direction of the packets.
    pub dir: Direction,
    /// What shows which packets were marked.
    pub counted_by: EcnSource,
    /// ECN-capable packets.
    pub capable_packets: u64,
    /// Of them, with ECT(1), when they were captured: of L4S.
    pub ect1_packets: u64,
    /// Marked packets, at least; null if marks are not visible.
    pub marked_packets: Option<u64>,
    /// ECN-capable packets while the queue of the radio link stood: in the phone for the uplink, at the
    /// base station for the downlink.
    pub queued_packets: u64,
    /// Of them, marked ones, at least; null if marks are not visible.
    pub queued_marked_packets: Option<u64>,
    /// Whether the queue is marked; null if that cannot be told.
    pub queue_is_marked: Option<bool>,
    /// The same as a sentence.
    pub says: String,
}
