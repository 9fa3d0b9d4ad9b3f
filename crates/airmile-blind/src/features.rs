//! Features of one or several transfers, from which the bottleneck is inferred.

use airmile_model::Cause;

use super::feature::{Feature, FeatureValues};
use super::model::START_MISSING;
use super::pattern::{
    ArrivalPattern, HARQ_GAP_NS, LONG_NS, SEGMENT_BYTES, SHORT_NS, quantile, variation,
};
use super::phone::{CapturedPhone, is_at_quic_server};
use super::span::{TransferSpan, TransportKind, within};
use airmile_wire::attribute::{CaptureSite, LEAST_QUEUE_NS, PathQueue, Reason, Shares};

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
/// Minimum number of round trips, or of windows with a standing queue, for a feature (chosen here).
const MIN_SAMPLES: usize = 8;
/// Queueing delays are compared on a logarithmic scale from here on (chosen here: half of [`QUEUE_MS`]).
const DELAY_SCALE_MS: f64 = 10.0;
/// And bytes in the queue from an initial window on (RFC 6928: ten segments).
const QUEUE_SCALE_BYTES: f64 = 10.0 * SEGMENT_BYTES;

/// Features of one or several transfers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features {
    /// Their values.
    pub values: FeatureValues,
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
        let mut values = FeatureValues::UNKNOWN;
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
            let share = again as f64 * SEGMENT_BYTES / bytes.max(SEGMENT_BYTES);
            values[Feature::SentAgain] = share.min(1.0).sqrt();
        }
        let queue_ms = queues(phone, spans, pattern.rate, &mut values);
        for (feature, value) in [
            (Feature::CvShort, pattern.cv_short),
            (Feature::CvLong, pattern.cv_long),
            (Feature::Lag, pattern.lag),
            (Feature::Paused, pattern.paused),
            (Feature::Growth, pattern.growth),
            (Feature::Batch, pattern.batch),
            (Feature::BatchCv, pattern.batch_cv),
            (Feature::GapCv, pattern.gap_cv),
            (Feature::LineBlock, pattern.line_block),
            (Feature::LineWhole, pattern.line_whole),
            (Feature::Peak, pattern.peak),
            (Feature::CatchUp, pattern.catch_up),
            (Feature::SteadyQueue, steady_queue(phone, spans)),
        ] {
            values[feature] = value;
        }
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
                _ => values.show_upload(),
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
        self.values[Feature::Unknown] > share
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
        self.values[Feature::ReceiveWindow] < 0.02
    }

    /// Whether losses took most of the time that are no line's: its full queue lengthens round trips or
    /// delivers at one rate, and a policer's rate is the same between all losses. Without a measured
    /// rate that is unknown.
    #[must_use]
    pub(super) fn loses_elsewhere(&self) -> bool {
        self.values[Feature::Loss] >= MOSTLY_LOSS
            && self.values[Feature::CvShort] >= STEADY_CV
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
        self.values[Feature::Batch] < (LEAST_MSS / SEGMENT_BYTES).ln()
    }

    /// Whether data comes in bursts at a rate far above its mean, which may be its sender's: no queue
    /// stands, or that is unknown. At the server acknowledgements come in lumps after the radio, too.
    #[must_use]
    pub(super) fn comes_in_bursts(&self) -> bool {
        let segments = self.values[Feature::Batch].exp();
        self.place != CaptureSite::Server
            && !self.queue_stands()
            && segments >= BURST_SEGMENTS
            && segments * SEGMENT_BYTES >= BURST_GAP_S * self.rate
    }

    /// Whether data was sent again.
    #[must_use]
    pub(super) fn sends_again(&self) -> bool {
        self.values[Feature::SentAgain] > 0.0
    }

    /// Whether packets were lost.
    #[must_use]
    pub(super) fn loses(&self) -> bool {
        self.sends_again() || self.line_loses || self.loses_on_path
    }

    /// The features as if the queue that lost packets had been deep enough: its losses do not show whether
    /// a line's queue or the base station's was full.
    #[must_use]
    pub(super) fn without_overflow(&self) -> FeatureValues {
        let mut values = self.values;
        values[Feature::Queue] = (values[Feature::Queue] + values[Feature::Loss]).min(1.0);
        values[Feature::Loss] = 0.0;
        values[Feature::SentAgain] = 0.0;
        values
    }

    /// Whether whole packets are as far apart as a gap of HARQ: each seems to come right after one, so
    /// that a sender's pace and a line's look the same.
    #[must_use]
    pub(super) fn is_sparse(&self) -> bool {
        self.rate * (HARQ_GAP_NS as f64 / 1e9) < SEGMENT_BYTES
    }

    /// The value of a feature; `None` if it is unknown.
    #[must_use]
    pub fn get(&self, feature: Feature) -> Option<f64> {
        Some(self.values[feature]).filter(|value| value.is_finite())
    }
}

impl FeatureValues {
    /// Whether an upload was in the way, or that is unknown.
    #[must_use]
    pub fn show_upload(&self) -> bool {
        let share = self[Feature::Uplink];
        share.is_nan() || share >= NO_UPLOAD
    }
}

/// Shares of the time by wait reason of the senders.
fn shares(phone: &CapturedPhone, spans: &[TransferSpan], ns: i64, values: &mut FeatureValues) {
    let splits: Vec<Shares> = spans.iter().map(|span| phone.split(span)).collect();
    let of_reason = |one| splits.iter().filter_map(|split| split.by_reason.get(&one)).sum::<i64>();
    let of_cause = |one| splits.iter().filter_map(|split| split.by_cause.get(&one)).sum::<i64>();
    let pacing = of_reason(Reason::Pacing);
    let unknown = of_reason(Reason::Unknown) + of_reason(Reason::AfterLast);
    for (feature, part_ns) in [
        (Feature::Queue, of_cause(Cause::Unknown) - unknown),
        (Feature::Uplink, of_cause(Cause::UplinkQueue)),
        (Feature::ReceiveWindow, of_cause(Cause::ReceiveWindow)),
        (Feature::SlowStartRestart, of_cause(Cause::SlowStartRestart)),
        (Feature::FirstSlowStart, of_cause(Cause::FirstSlowStart)),
        (Feature::Pace, pacing),
        (Feature::Idle, of_cause(Cause::SenderLimited) - pacing),
        (Feature::Setup, of_cause(Cause::Setup)),
        (
            Feature::Loss,
            of_cause(Cause::LossRecoveryCongestion) + of_reason(Reason::UndesiredSlowStart),
        ),
        (Feature::Unknown, unknown),
    ] {
        values[feature] = (part_ns.max(0) as f64 / ns.max(1) as f64).min(1.0);
    }
}

/// Queueing delays in round trips; returns their median in ms.
fn queues(
    phone: &CapturedPhone,
    spans: &[TransferSpan],
    rate: f64,
    values: &mut FeatureValues,
) -> Option<f64> {
    let samples: Vec<f64> = spans
        .iter()
        .filter(|span| span.transport == TransportKind::Stamped)
        .flat_map(|span| within(&phone.queued, span.from_ns, span.to_ns))
        .map(|(_, longer_ns)| *longer_ns as f64 / 1e6)
        .collect();
    if samples.len() < MIN_SAMPLES {
        return None;
    }
    let scaled = |q| quantile(&samples, q).map_or(f64::NAN, |ms| (1.0 + ms / DELAY_SCALE_MS).ln());
    values[Feature::RttLow] = scaled(0.1);
    values[Feature::RttMiddle] = scaled(0.5);
    values[Feature::RttHigh] = scaled(0.9);
    let middle = quantile(&samples, 0.5)?;
    values[Feature::QueueBytes] = (1.0 + rate * middle / 1e3 / QUEUE_SCALE_BYTES).ln();
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
    if rates.len() < MIN_SAMPLES { f64::NAN } else { variation(&rates) }
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
