//! A transfer's time, split among causes, and its duration without one.

use std::collections::BTreeMap;

use airmile_model::{Burst, Cause, Direction, TransferFinding, TtiIndex, Verdict};
use airmile_radio::usage::Usage;
use airmile_wire::attribute::{
    RELEASE_NS, RadioEvidence, RadioSpan, Reason, ReceiveWindow, SendWindow, Shares,
    min_duration_ns,
};

use super::super::diagnose::join::SharesMs;
use super::super::radio::{RadioAnalysis, TransferTrace};
use super::super::wire::Wire;
use super::link::{efficiency, fastest_bps, link_rate, others};
use super::timeline::{TransferTimeline, burst_error_ns, without_spans};
use super::{Context, Relief, Window, explained};
use crate::fact::Without;

/// Uncertainty of an edge between two causes: half of the minimum duration of a queue
/// ([`airmile_wire::attribute`], chosen there).
const EDGE_NS: f64 = 10e6;
/// A transfer's time by cause, in nanoseconds.
pub(in super::super) struct Split {
    by_cause: BTreeMap<Cause, i64>,
    /// By how much each may be lower, and higher.
    errors: BTreeMap<Cause, (f64, f64)>,
    pub(super) shares: Shares,
    total_ns: i64,
    /// Share of the cell's PRBs that other users held while data waited.
    others: Option<f64>,
    /// Bits carried by this phone's PRBs, relative to the best MCS.
    efficiency: Option<f64>,
    start_ns: i64,
    /// The link's rate in bits per second.
    link_bps: Option<f64>,
    bytes: Option<u64>,
    /// Its maximum: with the phone alone in the cell.
    fastest_bps: Option<f64>,
    /// Windows of its connection's receiver, if the connection started during it.
    windows: Vec<ReceiveWindow>,
    round_trip_ns: i64,
    /// The same over an empty path.
    empty_round_trip_ns: i64,
}

/// Above this part of a transfer, time in which it is not known what data waited for leaves its causes
/// unknown (chosen here), unless there is no report at all and it is not the radio either way.
pub(super) const MOST_UNGAUGED: f64 = 0.1;

impl Split {
    /// `None` if the senders of a transfer are unknown, or what waited for the radio.
    pub(super) fn new(
        finding: &TransferFinding,
        (usage, seen_by_radio): (&Usage, Option<&TransferTrace>),
        answer: &RadioAnalysis,
        wire: &Wire,
    ) -> Option<Self> {
        let dir = finding.dir;
        let report = &answer.report;
        // What waited for capacity must be known. Without any report it is not, but may not be the radio.
        let [_, granted_ms, ungauged_ms] = finding.counted_ms()?;
        let bounds_radio =
            report.evidence_counts.bsr_reports == 0 && finding.verdict == Verdict::NotRadio;
        if ungauged_ms > MOST_UNGAUGED * finding.duration_ms && !bounds_radio {
            return None;
        }
        let place = TransferTimeline::of(finding, report)?;
        let TransferTimeline { start_ns, end_ns, .. } = place;
        let spans = |dir| place.bursts(finding, dir, report);
        let is_download = dir == Direction::Dl;
        let back = if is_download { Direction::Ul } else { Direction::Dl };
        let (mut data_queue, ack_queue) = (spans(dir), spans(back));
        let at = |(from, to): &(TtiIndex, TtiIndex)| (place.at(*from), place.at(*to));
        let granted =
            |known: usize| answer.silent.granted[known].iter().map(at).collect::<Vec<_>>();
        if granted_ms > ungauged_ms {
            data_queue = without_spans(&data_queue, &granted(1));
        }
        if !is_download {
            let ungauged = granted(0);
            let unknown = |&(from_ns, to_ns)| RadioSpan { from_ns, to_ns, queued: false };
            data_queue = without_spans(&data_queue, &ungauged);
            data_queue.extend(ungauged.iter().map(unknown));
            data_queue.sort_by_key(|span| span.from_ns);
        }
        let is_unclear = |burst: &Burst| burst.dir == Direction::Ul && !burst.is_clear();
        let has_samples = report.evidence_counts.buffer_samples > 0;
        let is_logged = has_samples && !report.bursts.iter().any(is_unclear);
        let ack_queue =
            Some(ack_queue).filter(|clear| !clear.is_empty() || is_logged || !is_download);
        // A request may have been sent in one that ended before.
        let silences = answer.silent.silences.iter().map(at);
        let silences = silences.take_while(|(from_ns, _)| *from_ns < end_ns);
        let silences = silences.skip_while(|(_, to_ns)| *to_ns < start_ns - RELEASE_NS).collect();
        let sees_uplink = answer.silent.sees_uplink;
        let lost = answer.silent.lost_ttis.iter();
        let mut losses_ns: Vec<i64> = lost.map(|tti| place.at(*tti)).collect();
        losses_ns.retain(|_| is_download);
        let seen = RadioSeries {
            dir,
            data_queue,
            ack_queue,
            silences,
            sees_uplink,
            losses_ns,
            bytes: finding.bytes,
        };
        let shares = seen.split(wire, start_ns, end_ns, 0)?;
        let others = others(finding, usage, report).filter(|_| is_download);
        let divide = |shares: &Shares| {
            let mut by_cause = shares.by_cause.clone();
            set_holes_apart(&mut by_cause, (finding.unknown_ms * 1e6) as i64);
            if shares.radio_ns > 0 {
                let contention = (shares.radio_ns as f64 * others.unwrap_or(0.0)) as i64;
                by_cause.insert(Cause::RadioContention, contention);
                by_cause.insert(Cause::RadioSignal, shares.radio_ns - contention);
            }
            by_cause
        };
        let by_cause = divide(&shares);
        // The split with a different clock offset.
        let error_ns = wire.clock_error_ns();
        let shifted = [-error_ns, error_ns];
        let shifted: Vec<_> = shifted
            .into_iter()
            .filter_map(|by_ns| Some(divide(&seen.split(wire, start_ns, end_ns, by_ns)?)))
            .collect();
        let bursts = burst_error_ns(finding, report);
        let errors = by_cause
            .iter()
            .map(|(cause, ns)| {
                let moved = shifted.iter().map(|other| other.get(cause).copied().unwrap_or(0) - ns);
                let (less, more) = moved.fold((0, 0), |(a, b), by| (a.min(by), b.max(by)));
                let pieces = shares.pieces.get(cause).copied().unwrap_or(0);
                let edges = match cause.is_radio() {
                    true => bursts,
                    // Edges are independent of each other.
                    false => EDGE_NS * f64::from(pieces).sqrt() + bursts,
                };
                (*cause, (edges - less as f64, edges + more as f64))
            })
            .collect();
        let link_bps = link_rate(finding, (usage, seen_by_radio), report).map(|rate| rate.bps);
        let fastest_bps =
            fastest_bps(finding, (usage, seen_by_radio), report).filter(|_| is_download);
        Some(Self {
            by_cause,
            errors,
            shares,
            total_ns: (end_ns - start_ns).max(1),
            others,
            efficiency: efficiency(finding, usage, report),
            start_ns,
            link_bps,
            bytes: finding.bytes,
            fastest_bps,
            windows: wire.windows(dir, start_ns, end_ns).to_vec(),
            round_trip_ns: wire.round_trip_ns(),
            empty_round_trip_ns: wire.empty_round_trip_ns(),
        })
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = (Cause, i64)> {
        self.by_cause.iter().map(|(cause, ns)| (*cause, *ns))
    }

    /// Milliseconds by name; `radio` is the time of both radio causes if they are not separated.
    pub(super) fn shares_ms(&self) -> SharesMs {
        let mut shares = SharesMs::new();
        for (cause, ns) in self.parts() {
            let name = if self.knows(cause) { cause.as_str() } else { Verdict::Radio.as_str() };
            *shares.entry(name).or_default() += ns as f64 / 1e6;
        }
        shares
    }

    pub(super) fn ns(&self, cause: Cause) -> i64 {
        self.by_cause.get(&cause).copied().unwrap_or(0)
    }

    pub(super) const fn total_ns(&self) -> i64 {
        self.total_ns
    }

    pub(super) fn share(&self, cause: Cause) -> f64 {
        self.ns(cause) as f64 / self.total_ns as f64
    }

    /// Minimum and maximum of a cause's share; unknown time may belong to it.
    pub(super) fn share_bounds(&self, cause: Cause) -> (f64, f64) {
        let (low, high) = self.bounds_ns(cause);
        (low / self.total_ns as f64, high / self.total_ns as f64)
    }

    /// Minimum and maximum of a cause's time.
    pub(super) fn bounds_ns(&self, cause: Cause) -> (f64, f64) {
        let (less, more) = self.errors.get(&cause).copied().unwrap_or_default();
        let ns = self.ns(cause) as f64;
        let unknown = self.ns(Cause::Unknown) as f64;
        ((ns - less).max(0.0), (ns + more + unknown).min(self.total_ns as f64))
    }

    /// The cause with the largest share among those wanted; none if more time than any cause's is
    /// unknown.
    pub(super) fn leading(&self, wanted: impl Fn(Cause) -> bool) -> Option<Cause> {
        leading(self.parts(), wanted)
    }

    /// Share of the cell's PRBs that other users held while data waited.
    pub(super) const fn others(&self) -> Option<f64> {
        self.others
    }

    /// Whether a cause can be separated from the others: of the radio's two, only if the phone's
    /// share of the cell's PRBs is known.
    pub(super) const fn knows(&self, cause: Cause) -> bool {
        !cause.is_radio() || self.others.is_some()
    }

    /// Bits carried by its PRBs, relative to the best MCS.
    pub(super) const fn efficiency(&self) -> Option<f64> {
        self.efficiency
    }

    /// The longest span of a cause, in nanoseconds.
    pub(super) fn longest(&self, cause: Cause) -> Option<(i64, i64)> {
        self.shares.longest.get(&cause).copied()
    }

    /// A time as a fraction of the transfer.
    pub(super) fn place(&self, at_ns: i64) -> f64 {
        (at_ns - self.start_ns) as f64 / self.total_ns as f64
    }

    pub(super) fn ms(&self, reason: Reason) -> f64 {
        self.shares.by_reason.get(&reason).map_or(0.0, |ns| *ns as f64 / 1e6)
    }

    /// The time in ms that a cause had for a reason; all of them are at most the cause's time.
    pub(super) fn part_ms(&self, cause: Cause, reason: Reason) -> f64 {
        let parts = self.shares.parts.iter().filter(|((of, _), _)| *of == cause);
        let all: i64 = parts.map(|(_, ns)| ns).sum();
        let part = self.shares.parts.get(&(cause, reason)).copied().unwrap_or(0);
        // Holes of a log leave less of it.
        part as f64 / 1e6 * (self.ns(cause) as f64 / all.max(1) as f64).min(1.0)
    }

    /// The duration of the transfer without a cause: its bytes still take the time that the link
    /// needs for them.
    pub(super) fn without(&self, cause: Cause, seen: &Context) -> Without {
        let relief = explained(cause).map_or_else(Relief::default, |one| one.relief(seen));
        let bounds = |cause| (self.bounds_ns(cause), self.ns(cause) as f64);
        let ((low, high), ns) = bounds(cause);
        let also = relief.also.iter().map(|cause| bounds(*cause));
        let (low, high, ns) = also.fold((low, high, ns), |sum, ((low, high), ns)| {
            (sum.0 + low, sum.1 + high, sum.2 + ns)
        });
        let total_ms = self.total_ns as f64 / 1e6;
        let without_ms = |part_ns, rate| self.without_ms(cause, part_ns, rate, relief);
        let low_ms = match cause.is_radio() {
            true => without_ms(high, Without::OTHER_RATE),
            // Data that arrived little by little kept the cell's queue from emptying during time
            // that it may not need all at once.
            false => {
                let fastest = self.fastest_bps.zip(self.link_bps).map_or(1.0, |(a, b)| a / b);
                without_ms(high + self.radio_ns(), fastest.max(Without::OTHER_RATE))
            }
        };
        let high_ms = without_ms(low, 1.0 / Without::OTHER_RATE);
        Without { ms: without_ms(ns, 1.0), low_ms, high_ms }.with_model_error(total_ms)
    }

    /// Time in which the radio's queue was not empty.
    fn radio_ns(&self) -> f64 {
        (self.ns(Cause::RadioContention) + self.ns(Cause::RadioSignal)) as f64
    }

    fn without_ms(&self, cause: Cause, part_ns: f64, rate: f64, relief: Relief) -> f64 {
        let total = self.total_ns as f64;
        let rest = (total - part_ns * (1.0 - relief.stays)).max(0.0);
        let goes = |one| cause == one || relief.also.contains(&one);
        // A round trip of each set-up remains, over a path without the queue.
        let setup = match goes(Cause::Setup) {
            true if cause == Cause::Setup => 0.0,
            true => {
                let ms = |reason| f64::from(u8::from(self.ms(reason) > 0.0));
                (ms(Reason::Handshake) + ms(Reason::Request)) * self.empty_round_trip_ns as f64
            }
            false => self.ns(Cause::Setup) as f64,
        };
        let link = self.link_ns(rate * relief.faster, relief);
        (rest.max(setup + link)).min(total) / 1e6
    }

    /// From the first byte to the last over the link, which is faster by a factor.
    fn link_ns(&self, faster: f64, relief: Relief) -> f64 {
        let Some((bps, bytes)) = self.link_bps.zip(self.bytes) else { return 0.0 };
        // A window that restarted after idle time starts as a new connection's.
        let restarts = !relief.also.contains(&Cause::SlowStartRestart);
        let begun = self.ms(Reason::Handshake) > 0.0;
        let starts = begun || restarts && self.ms(Reason::SlowStartRestart) > 0.0;
        let window = match relief.window {
            Window::Small if starts => SendWindow::SlowStart(self.round_trip_ns),
            Window::SmallOverEmptyPath if begun => SendWindow::SlowStart(self.empty_round_trip_ns),
            Window::Receivers => SendWindow::Receivers(self.round_trip_ns, &self.windows),
            _ => SendWindow::Wide,
        };
        min_duration_ns(bytes, bps * faster, window) as f64
    }
}

/// The largest among those wanted; none if more time than any cause's is unknown.
pub(super) fn leading(
    parts: impl Iterator<Item = (Cause, i64)>,
    wanted: impl Fn(Cause) -> bool,
) -> Option<Cause> {
    let parts: Vec<(Cause, i64)> = parts.collect();
    let unknown = parts.iter().find(|(cause, _)| *cause == Cause::Unknown).map_or(0, |(_, ns)| *ns);
    parts
        .into_iter()
        .filter(|(cause, ns)| {
            *cause != Cause::Unknown && wanted(*cause) && *ns > 0 && *ns >= unknown
        })
        .max_by_key(|(cause, ns)| (*ns, std::cmp::Reverse(*cause)))
        .map(|(cause, _)| cause)
}

/// A transfer as the radio's records show it.
struct RadioSeries {
    dir: Direction,
    /// In the direction of the data, and of the acknowledgements.
    data_queue: Vec<RadioSpan>,
    ack_queue: Option<Vec<RadioSpan>>,
    silences: Vec<(i64, i64)>,
    sees_uplink: bool,
    losses_ns: Vec<i64>,
    bytes: Option<u64>,
}

impl RadioSeries {
    /// Splits a transfer as if the packets' clock were `by_ns` later.
    fn split(&self, wire: &Wire, start_ns: i64, end_ns: i64, by_ns: i64) -> Option<Shares> {
        let spans = |spans: &[RadioSpan]| -> Vec<RadioSpan> {
            let later = |span: &RadioSpan| RadioSpan {
                from_ns: span.from_ns + by_ns,
                to_ns: span.to_ns + by_ns,
                ..*span
            };
            spans.iter().map(later).collect()
        };
        let (data_queue, ack_queue) =
            (spans(&self.data_queue), self.ack_queue.as_deref().map(spans));
        let later = |ns: i64| ns.saturating_add(by_ns);
        let silences: Vec<_> =
            self.silences.iter().map(|(from, to)| (later(*from), later(*to))).collect();
        let losses_ns: Vec<i64> = self.losses_ns.iter().map(|at| later(*at)).collect();
        let radio = RadioEvidence {
            data_queue: &data_queue,
            ack_queue: ack_queue.as_deref(),
            silences: &silences,
            sees_uplink: self.sees_uplink,
            phone_sends: self.dir == Direction::Ul,
            losses_ns: &losses_ns,
        };
        let (from_ns, to_ns) = (start_ns + by_ns, end_ns + by_ns);
        let shares = match self.dir {
            Direction::Dl => wire.split(from_ns, to_ns, radio)?,
            Direction::Ul => wire.split_upload((from_ns, to_ns), self.bytes, radio)?,
        };
        Some(shares.of_bytes(self.bytes))
    }
}

/// Time in gaps of the log has no known cause.
fn set_holes_apart(by_cause: &mut BTreeMap<Cause, i64>, holes_ns: i64) {
    let rest: i64 = by_cause.values().sum();
    if holes_ns <= 0 || rest <= 0 {
        return;
    }
    let keep = 1.0 - (holes_ns as f64 / rest as f64).min(1.0);
    let mut kept = 0;
    for ns in by_cause.values_mut() {
        *ns = (*ns as f64 * keep) as i64;
        kept += *ns;
    }
    *by_cause.entry(Cause::Unknown).or_default() += rest - kept;
}

#[cfg(test)]
pub(in super::super) use tests::example_finding;

#[cfg(test)]
mod tests;
