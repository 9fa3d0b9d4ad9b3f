//! Features of one or several transfers, from which the bottleneck is inferred.

use airmile_model::Cause;

use super::model::START_MISSING;
use super::pattern::{ArrivalPattern, HARQ_GAP_NS, LONG_NS, SHORT_NS, quantile, variation};
use super::phone::{CapturedPhone, is_at_quic_server};
use super::span::{TransferSpan, TransportKind, within};
use airmile_wire::attribute::{CaptureSite, LEAST_QUEUE_NS, PathQueue, Reason};

/// Datagrams at a lower rate are not a limited download (chosen here: above a voice
/// call's rate, 64 kbit/s of G.711 and its headers).
const MIN_DATAGRAM_BPS: f64 = 120e3;
/// Datagrams with less payload from the phone than this share of that to it are acknowledgements
/// (chosen here: QUIC's take 2 to 5 %).
const OF_ACKS: f64 = 0.15;
/// Fewer bytes are too few packets, some hundred, to show a queue or a pace (chosen here: 100 of QUIC's
/// least size, RFC 9000, 14.1).
const THIN_BYTES: u64 = 120_000;
/// An application paces itself if less than this arrives at a time: data that waits leaves in whole
/// segments, and each host takes this much (RFC 9293, 3.7.1).
const LEAST_MSS: f64 = 536.0;
/// Without a queue that stands, so much data at once, and then none for that long, may be a sender's window
/// or pace (chosen here: of the bench's cells the most is 4 segments and 8 ms).
const BURST_SEGMENTS: f64 = 10.0;
const BURST_GAP_S: f64 = 0.012;
/// TCP whose share of the time with an upload in the way is less than this has none (chosen here).
const NO_UPLOAD: f64 = 0.02;
/// Number of features.
pub const N_FEATURES: usize = 28;

/// Their names, in order.
pub const NAMES: [&str; N_FEATURES] = [
    "queue",
    "uplink",
    "receive_window",
    "slow_start_restart",
    "first_slow_start",
    "pace",
    "idle",
    "setup",
    "loss",
    "untold",
    "rtt_low",
    "rtt_middle",
    "rtt_high",
    "queue_bytes",
    "sent_again",
    "cv_short",
    "cv_long",
    "lag",
    "paused",
    "growth",
    "batch",
    "batch_cv",
    "gap_cv",
    "line_block",
    "line_whole",
    "peak",
    "catch_up",
    "steady_queue",
];

/// Index of the first feature from arrivals alone: those before need TCP's headers.
pub(super) const FIRST_OF_ARRIVALS: usize = 15;
/// Index of the mean bytes of a batch in whole segments, as a logarithm.
pub(super) const BATCH: usize = 20;
/// Index of the share of the time in which a queue held the sender's packets.
const QUEUE_SHARE: usize = 0;
/// Index of the share of the time in which losses were repaired, and of what was sent again.
pub(super) const LOSS_SHARE: usize = 8;
pub(super) const SENT_AGAIN: usize = 14;
/// Losses are most of the time from this share on; a queue stands if it adds this to the median round
/// trip (chosen here, as in [`airmile_wire::attribute`]).
const MOSTLY_LOSS: f64 = 0.5;
const QUEUE_MS: f64 = 20.0;
/// A base station's queue is longer than this when it overflows (chosen here, with the test families in
/// view: they have lines of 10 to 60 ms, and their cells and those of kernels overflow from 50 ms on).
const STANDING_MS: f64 = 30.0;
/// In windows of a tenth of a second the rate of a line with a standing queue varies less than this
/// (chosen here: of recorded transfers with such losses, 35 of 40 below it were limited by a line).
const STEADY_CV: f64 = 0.3;
/// Packets seldom waited during less than this share of the time (chosen here: of 72 transfers of real
/// TCP and QUIC that the radio or the queue of a line limited, the least is 0.57).
const SELDOM: f64 = 0.25;
/// Index of the share of the time in which the receive window was full.
pub(super) const WINDOW_SHARE: usize = 2;
/// Index of the share of the time in which the sender's state is unknown.
pub(super) const UNKNOWN_SHARE: usize = 9;
/// Index of the last feature that needs a queue in round trips.
pub(super) const STEADY_QUEUE: usize = 27;
/// Indices of the features that need continuous round-trip samples.
pub(super) const OF_RTT: [usize; 5] = [0, 10, 11, 12, 13];

/// Features of one or several transfers; unknown values are NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features {
    /// In the order of [`NAMES`].
    pub values: [f64; N_FEATURES],
    /// The transport of most of the bytes.
    pub transport: TransportKind,
    /// Where the capture was taken: at the server, acknowledgements stand for arrivals.
    pub place: CaptureSite,
    /// Whether the capture lacks the TCP packets of one direction.
    pub one_way: bool,
    /// Whether the capture lacks packets, or has them at wrong times.
    pub damaged: bool,
    /// Whether the largest connection began before the capture; of QUIC, whether no handshake is in it.
    pub begun_before: bool,
    /// Whether datagrams belong to QUIC.
    pub is_quic: bool,
    /// Whether the phone sent as much as an upload.
    pub uploads: bool,
    /// Whether losses are known to be a line's: a policer's, or all but the radio's.
    pub line_loses: bool,
    /// Whether a connection with data in it had paused, so that its sender may restart slow start.
    pub paused_before: bool,
    /// Minimum round trip to the server of the largest transfer, in nanoseconds.
    pub base_rtt_ns: Option<i64>,
    /// How long it took, in nanoseconds.
    pub ns: i64,
    /// Payload.
    pub bytes: u64,
    /// Median queueing part of the round trips, in ms.
    pub queue_ms: Option<f64>,
    /// Whether a queue stood that was served at one rate, as a line does.
    pub is_served_evenly: bool,
    /// Bytes per second while data arrived.
    pub rate: f64,
    /// Share of the time in which packets were queued between captures at server and phone
    /// ([`PathQueue::queued_share`]); `None` without both.
    pub path_queue: Option<f64>,
    /// Whether datagrams were lost between the two.
    pub loses_on_path: bool,
    /// Whether a capture at the server shows that a proxy between it and the phone ends its connections.
    pub behind_proxy: bool,
}

impl Features {
    /// Computes the features of a phone's transfers; `None` without transfers or data.
    #[must_use]
    pub fn from_spans(phone: &CapturedPhone, spans: &[TransferSpan]) -> Option<Self> {
        let largest = spans.iter().max_by_key(|span| span.bytes)?;
        let transport = largest.transport;
        let ns = spans.iter().map(TransferSpan::ns).fold(0, i64::saturating_add);
        let lists: Vec<Vec<(i64, u32)>> = spans
            .iter()
            .map(|span| {
                let list = phone.arrivals(span.transport);
                within(list, span.from_ns, span.to_ns).copied().collect()
            })
            .collect();
        let came = lists.iter().map(Vec::len).sum::<usize>();
        if came == 0 || ns <= 0 {
            return None;
        }
        let bytes = spans.iter().map(|span| span.bytes).fold(0, u64::saturating_add);
        // Voice and games keep their own low rate, whatever the transport.
        if transport == TransportKind::Datagrams
            && bytes as f64 * 8e9 / (ns as f64) < MIN_DATAGRAM_BPS
        {
            return None;
        }
        let pattern = ArrivalPattern::from_spans(lists.iter().map(Vec::as_slice));
        let mut values = [f64::NAN; N_FEATURES];
        if transport != TransportKind::Datagrams {
            shares(phone, spans, ns, &mut values);
            let again: usize = spans
                .iter()
                .map(|s| {
                    let again = &phone.again_ns;
                    let first = again.partition_point(|at| *at < s.from_ns);
                    again.iter().skip(first).take_while(|at| **at <= s.to_ns).count()
                })
                .sum();
            let bytes: f64 = lists.iter().flatten().map(|(_, bytes)| f64::from(*bytes)).sum();
            values[SENT_AGAIN] = (again as f64 * 1_500.0 / bytes.max(1_500.0)).min(1.0).sqrt();
        }
        let queue_ms = queues(phone, spans, pattern.rate, &mut values);
        let of_arrivals = [
            pattern.cv_short,
            pattern.cv_long,
            pattern.lag,
            pattern.paused,
            pattern.growth,
            pattern.batch,
            pattern.batch_cv,
            pattern.gap_cv,
            pattern.line_block,
            pattern.line_whole,
            pattern.peak,
            pattern.catch_up,
        ];
        for (slot, value) in values.iter_mut().skip(FIRST_OF_ARRIVALS).zip(of_arrivals) {
            *slot = value;
        }
        values[STEADY_QUEUE] = steady_queue(phone, spans);
        Some(Self {
            values,
            transport,
            // A capture at the server shows when datagrams were sent, and not when they arrived.
            place: match transport {
                TransportKind::Datagrams if is_at_quic_server(phone.datagram_sides) => {
                    CaptureSite::Server
                }
                _ => phone.place,
            },
            one_way: phone.one_way && transport != TransportKind::Datagrams,
            damaged: phone.is_damaged(),
            begun_before: match transport {
                TransportKind::Datagrams => phone.datagram_sides.upstream_ns.is_none(),
                _ => phone.begun_before,
            },
            is_quic: phone.is_quic,
            uploads: match transport {
                TransportKind::Datagrams => {
                    phone.datagrams_up_bytes as f64 > OF_ACKS * phone.datagrams_bytes as f64
                }
                _ => upload_is_seen(&values),
            },
            line_loses: spans.iter().any(|span| phone.is_policed(span)),
            paused_before: spans.iter().any(|span| phone.paused_before(span)),
            base_rtt_ns: phone.base_rtt_ns_of(largest),
            ns,
            bytes,
            queue_ms,
            is_served_evenly: is_served_evenly(phone, spans),
            rate: pattern.rate,
            path_queue: None,
            loses_on_path: false,
            behind_proxy: false,
        })
    }

    /// With what captures at both ends show of the queue between them, during `spans` of the phone's.
    #[must_use]
    pub fn on_path(mut self, path: &PathQueue, spans: &[TransferSpan]) -> Self {
        let (mut queued_ns, mut all_ns) = (Some(0.0), 0.0);
        for span in spans {
            let share = path.queued_share(span.from_ns, span.to_ns);
            queued_ns = queued_ns.zip(share).map(|(ns, share)| ns + share * span.ns() as f64);
            all_ns += span.ns() as f64;
        }
        self.path_queue = queued_ns.filter(|_| all_ns > 0.0).map(|ns| ns / all_ns);
        self.loses_on_path = spans.iter().any(|span| path.lost_in(span.from_ns, span.to_ns));
        self
    }

    /// Whether the sender's state is unknown for more than a share of the time, since a connection's
    /// start is not in the capture.
    #[must_use]
    pub fn lacks_start(&self, share: f64) -> bool {
        self.values.get(UNKNOWN_SHARE).is_some_and(|unknown| *unknown > share)
    }

    /// Whether captures at both ends show that packets seldom waited: no link had more data than it
    /// carried. A sender that keeps a queue of at most a round trip (BBR) is not seen on a shorter path,
    /// nor is a queue that stood before the captures began.
    #[must_use]
    pub(super) fn seldom_queues(&self) -> bool {
        self.path_queue.is_some_and(|share| share < SELDOM)
            && self.base_rtt_ns.is_some_and(|ns| ns >= LEAST_QUEUE_NS)
            && !(self.begun_before || self.lacks_start(START_MISSING) || self.damaged)
    }

    /// For how much of the time packets waited, if that was so seldom that no link was the limit, and none
    /// was lost.
    #[must_use]
    pub fn idle_links(&self) -> Option<f64> {
        self.path_queue.filter(|_| self.seldom_queues() && !self.loses())
    }

    /// Whether the receive window was full for less than a fiftieth of the time (chosen here).
    #[must_use]
    pub(super) fn is_never_full(&self) -> bool {
        self.values.get(WINDOW_SHARE).is_some_and(|share| *share < 0.02)
    }

    /// Whether losses took most of the time that are no line's: its full queue lengthens round trips or
    /// delivers at one rate, and a policer's rate is the same between all losses. Without a measured
    /// rate that is unknown.
    #[must_use]
    pub(super) fn loses_elsewhere(&self) -> bool {
        let of = |at: usize| self.values.get(at).copied().unwrap_or(f64::NAN);
        of(LOSS_SHARE) >= MOSTLY_LOSS
            && of(FIRST_OF_ARRIVALS) >= STEADY_CV
            && !self.line_loses
            && !self.queue_stands()
    }

    fn queue_stands(&self) -> bool {
        self.queue_ms.is_some_and(|ms| ms >= QUEUE_MS)
    }

    /// Whether a queue stands that is as long as a base station's, and nothing shows it to be a line's.
    #[must_use]
    pub(super) fn may_be_a_cells_queue(&self) -> bool {
        self.queue_ms.is_some_and(|ms| ms >= STANDING_MS) && !self.line_loses
    }

    /// Whether so few packets arrived that their pattern may be by chance.
    #[must_use]
    pub(super) const fn is_thin(&self) -> bool {
        self.bytes < THIN_BYTES
    }

    /// Whether no data waited in a queue: messages smaller than a segment arrive one by one.
    #[must_use]
    pub(super) fn is_trickle(&self) -> bool {
        self.values[BATCH] < (LEAST_MSS / 1_500.0).ln()
    }

    /// Whether data comes in bursts at a rate far above its mean, which may be its sender's: no queue
    /// stands, or that is unknown. At the server acknowledgements come in lumps after the radio, too.
    #[must_use]
    pub(super) fn comes_in_bursts(&self) -> bool {
        let segments = self.values[BATCH].exp();
        self.place != CaptureSite::Server
            && !self.queue_stands()
            && segments >= BURST_SEGMENTS
            && segments * 1_500.0 >= BURST_GAP_S * self.rate
    }

    /// Whether data was sent again.
    #[must_use]
    pub(super) fn sends_again(&self) -> bool {
        self.values[SENT_AGAIN] > 0.0
    }

    /// Whether packets were lost.
    #[must_use]
    pub(super) fn loses(&self) -> bool {
        self.sends_again() || self.line_loses || self.loses_on_path
    }

    /// The features as if the queue that lost packets had been deep enough: its losses do not show whether
    /// a line's queue or the base station's was full.
    #[must_use]
    pub(super) fn without_overflow(&self) -> [f64; N_FEATURES] {
        let mut values = self.values;
        values[QUEUE_SHARE] = (values[QUEUE_SHARE] + values[LOSS_SHARE]).min(1.0);
        values[LOSS_SHARE] = 0.0;
        values[SENT_AGAIN] = 0.0;
        values
    }

    /// Whether whole packets are as far apart as a gap of HARQ: each seems to come right after one, so
    /// that a sender's pace and a line's look the same.
    #[must_use]
    pub(super) fn is_sparse(&self) -> bool {
        self.rate * (HARQ_GAP_NS as f64 / 1e9) < 1_500.0
    }

    /// A feature by its name; `None` if it is unknown.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        let at = NAMES.iter().position(|known| *known == name)?;
        self.values.get(at).copied().filter(|value| value.is_finite())
    }
}

/// Whether an upload was in the way, or that is unknown.
#[must_use]
pub fn upload_is_seen(values: &[f64; N_FEATURES]) -> bool {
    values[1].is_nan() || values[1] >= NO_UPLOAD
}

/// Shares of the time by wait reason of the senders.
fn shares(phone: &CapturedPhone, spans: &[TransferSpan], ns: i64, values: &mut [f64; N_FEATURES]) {
    let (mut by_reason, mut by_cause) = ([0_i64; 4], [0_i64; 8]);
    const REASONS: [Reason; 4] =
        [Reason::Pacing, Reason::Unknown, Reason::AfterLast, Reason::UndesiredSlowStart];
    const CAUSES: [Cause; 8] = [
        Cause::UplinkQueue,
        Cause::ReceiveWindow,
        Cause::SlowStartRestart,
        Cause::FirstSlowStart,
        Cause::SenderLimited,
        Cause::Setup,
        Cause::LossRecoveryCongestion,
        Cause::Unknown,
    ];
    for span in spans {
        let split = phone.split(span);
        for (sum, reason) in by_reason.iter_mut().zip(REASONS) {
            *sum += split.by_reason.get(&reason).copied().unwrap_or(0);
        }
        for (sum, cause) in by_cause.iter_mut().zip(CAUSES) {
            *sum += split.by_cause.get(&cause).copied().unwrap_or(0);
        }
    }
    let [pacing, untold, after, undesired] = by_reason;
    let [uplink, window, restart, first, sender, setup, loss, unknown] = by_cause;
    let parts = [
        unknown - untold - after,
        uplink,
        window,
        restart,
        first,
        pacing,
        sender - pacing,
        setup,
        loss + undesired,
        untold + after,
    ];
    for (slot, part) in values.iter_mut().zip(parts) {
        *slot = (part.max(0) as f64 / ns.max(1) as f64).min(1.0);
    }
}

/// Queueing delays in round trips; returns their median in ms.
fn queues(
    phone: &CapturedPhone,
    spans: &[TransferSpan],
    rate: f64,
    values: &mut [f64; N_FEATURES],
) -> Option<f64> {
    let samples: Vec<f64> = spans
        .iter()
        .filter(|span| span.transport == TransportKind::Stamped)
        .flat_map(|span| within(&phone.queued, span.from_ns, span.to_ns))
        .map(|(_, longer_ns)| *longer_ns as f64 / 1e6)
        .collect();
    if samples.len() < 8 {
        return None;
    }
    let scaled = |q| quantile(&samples, q).map_or(f64::NAN, |ms| (1.0 + ms / 10.0).ln());
    values[10] = scaled(0.1);
    values[11] = scaled(0.5);
    values[12] = scaled(0.9);
    let middle = quantile(&samples, 0.5)?;
    values[13] = (1.0 + rate * middle / 1e3 / 15_000.0).ln();
    Some(middle)
}

/// Windows of a span in which a queue stands: round trips are longer than the least by 20 ms throughout
/// (chosen here, as in [`airmile_wire::attribute`]).
fn queued_windows(
    phone: &CapturedPhone,
    span: TransferSpan,
    window_ns: i64,
) -> impl Iterator<Item = (i64, i64)> {
    let is_queued = move |(from, to): &(i64, i64)| {
        let mut trips = within(&phone.queued, *from, to - 1).peekable();
        trips.peek().is_some() && trips.all(|(_, longer_ns)| *longer_ns > 20_000_000)
    };
    let windows = 0..(span.ns() / window_ns).min(100_000);
    let at = move |n: i64| span.from_ns.saturating_add(n * window_ns);
    let window = move |n| (at(n), at(n + 1));
    windows.map(window).filter(is_queued)
}

/// Spans whose round trips show queues.
fn stamped(spans: &[TransferSpan]) -> impl Iterator<Item = &TransferSpan> {
    spans.iter().filter(|span| span.transport == TransportKind::Stamped)
}

/// How much the rate varies while a queue stands, in windows of a tenth of a second.
fn steady_queue(phone: &CapturedPhone, spans: &[TransferSpan]) -> f64 {
    let windows = stamped(spans).flat_map(|span| queued_windows(phone, *span, SHORT_NS));
    let bytes = windows.map(|(from, to)| {
        within(&phone.arrivals, from, to - 1).map(|(_, bytes)| f64::from(*bytes)).sum()
    });
    let rates: Vec<f64> = bytes.collect();
    if rates.len() < 8 { f64::NAN } else { variation(&rates) }
}

/// While a queue stands, data from a constant service is off one rate by less than this, by HARQ of a later
/// link and by waits for the uplink (chosen here: of lines of the lab and of kernels up to 11.8 ms).
const EVEN_MS: f64 = 12.0;
/// And by at most this times as much in windows four times as long: what is late there is made up for. A
/// radio link that repairs a block is late ever after, which adds up to 2 times as much, and more if its
/// rate varies (chosen here).
const MADE_UP: f64 = 1.5;
/// LTE's TTI: arrivals are not known more exactly.
const TTI_MS: f64 = 1.0;

/// Whether a standing queue was served at one rate.
fn is_served_evenly(phone: &CapturedPhone, spans: &[TransferSpan]) -> bool {
    let [short_ms, long_ms] = [SHORT_NS, LONG_NS].map(|window_ns| {
        let windows = stamped(spans).flat_map(|span| queued_windows(phone, *span, window_ns));
        let bytes: Vec<f64> = windows.map(|window| spread(&phone.arrivals, window)).collect();
        variation(&bytes) * window_ns as f64 / 1e6
    });
    long_ms <= EVEN_MS.min(MADE_UP * short_ms.max(TTI_MS))
}

/// Bytes of a window, if each arrival came evenly since the one before.
fn spread(arrivals: &[(i64, u32)], (from, to): (i64, i64)) -> f64 {
    let first = arrivals.partition_point(|(at, _)| *at <= from).max(1);
    let pairs = arrivals.get(first - 1..).unwrap_or_default().windows(2);
    let of_pair = |pair: &[(i64, u32)]| match pair {
        [(before, _), (at, bytes)] if *before < to => {
            let inside = to.min(*at).saturating_sub(from.max(*before)).max(0);
            Some(f64::from(*bytes) * inside as f64 / at.saturating_sub(*before).max(1) as f64)
        }
        _ => None,
    };
    pairs.map_while(of_pair).sum()
}
