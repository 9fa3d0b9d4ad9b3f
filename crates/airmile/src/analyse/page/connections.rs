//! What packets show of a page: the connection of each request, and what its sender waited for.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use airmile_blind::NAMED_FROM;
use airmile_model::{AppTransfer, ApplicationLog, Cause, Direction, PageCause};
use airmile_wire::attribute::{
    Connection, ConnectionCollector, RadioEvidence, RadioSpan, Reason, Shares,
};
use airmile_wire::clocks::ClockLine;
use airmile_wire::tcp::{PacketStudy, StudyOptions, Traced};

use super::super::aligned::TRANSFERS;
use super::super::clocks::ClockReport;
use super::super::diagnose::Diagnosis;
use super::super::radio::RadioAnalysis;
use super::select::PageLoad;
use super::unlogged::{self, Logged, MergedSpans};
use crate::session::Application;
use airmile_io::capture::read_capture;
use airmile_io::error::Result;
use airmile_io::input::Progress;
use airmile_model::spans::merged;

/// Maximum difference between the browser's times and the packets of a request and of its last byte
/// (chosen here: delays of events in a busy browser).
pub(super) const NEAR_NS: i64 = 60_000_000;
/// A link counts as the slow one from this probability on (chosen here: only the two links are
/// compared). From [`NAMED_FROM`] on the page does not say that packets alone leave it open.
const LIKELY: f64 = 0.2;

/// A shorter delay of an upload is that of waiting for grants (chosen here).
const MIN_UPLINK_DELAY_NS: i64 = 30_000_000;
/// A shorter delay of a download is that of scheduling (chosen here, as for verdicts).
const MIN_QUEUE_NS: i64 = 20_000_000;

/// A capture's connections, on the clock of the browser's log.
#[derive(Debug, Default)]
pub(super) struct Packets {
    connections: Vec<Connection>,
    radio: Option<RadioSpans>,
    /// The cause that a queue on the path counts as.
    queue: Option<PageCause>,
    /// Probabilities that the slow link is the radio, or before it; by packets alone.
    slow_link: Option<[f64; 2]>,
    /// When data was queued on the path to the phone.
    link_busy: MergedSpans,
}

/// A first byte that waited in a queue on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueuedFirstByte {
    /// From the request to the first byte.
    pub(super) wait_ns: i64,
    pub(super) queued_ns: i64,
    /// Minimum of its connection.
    pub(super) round_trip_ns: i64,
    /// Whether data of other connections arrived during the wait.
    pub(super) others: bool,
}

/// When data was queued at the radio, on the clock of the browser's log.
#[derive(Debug, Default)]
struct RadioSpans {
    downlink: Vec<RadioSpan>,
    uplink: Vec<RadioSpan>,
}

impl Packets {
    /// Reads the capture again, connection by connection; none if its headers are cut.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(
        capture: &str,
        log: &Application,
        diagnosis: &Diagnosis,
        answer: &RadioAnalysis,
        progress: &Progress,
    ) -> Result<Self> {
        let options = StudyOptions { traced: Traced::All, ..StudyOptions::default() };
        let mut study = PacketStudy::new(options);
        let mut collector = ConnectionCollector::new();
        read_capture(Path::new(capture), progress, &mut |packet| {
            study.push(packet);
            collector.note(packet);
            while let Some(traced) = study.poll_trace() {
                collector.push(&traced);
            }
        })?;
        if study.quality().lacks_options() {
            return Ok(Self::of_radio(answer));
        }
        let radio = radio_spans(answer);
        let line = to_log(capture, log, diagnosis, radio.is_some());
        let slow_link = radio.is_none().then(|| slow_link(diagnosis));
        let queue = slow_link.map_or(Some(PageCause::Wireline), likely_link);
        let connections = collector.finish(line.as_ref());
        let link_busy = link_busy(&connections);
        Ok(Self { connections, radio, queue, slow_link, link_busy })
    }

    /// Without packets: when data was queued at the radio.
    pub(super) fn of_radio(answer: &RadioAnalysis) -> Self {
        Self { radio: radio_spans(answer), ..Self::default() }
    }

    /// When data was queued for the phone at the radio, in order and without overlaps.
    pub(super) fn queued_at_radio(&self) -> Vec<(i64, i64)> {
        let spans = self.radio.iter().flat_map(|radio| &radio.downlink);
        merged(spans.map(|span| (span.from_ns, span.to_ns)).collect())
    }

    /// The cause of the queue on the path.
    fn link(&self) -> PageCause {
        self.queue.unwrap_or(PageCause::Transfer)
    }

    /// Probabilities that the slow link is the radio, or before it, if packets alone do not decide.
    pub(super) fn undecided_link(&self) -> Option<[f64; 2]> {
        self.slow_link.filter(|both| both.iter().all(|one| *one < NAMED_FROM))
    }

    /// Whether the radio was logged, too.
    pub(super) const fn has_radio(&self) -> bool {
        self.radio.is_some()
    }

    /// Requests of a page's load that its log lacks, by the ends of their responses.
    pub(super) fn unlogged(
        &self,
        load: &PageLoad<'_>,
        log: &ApplicationLog,
        found: &[Option<usize>],
    ) -> Vec<(i64, i64)> {
        let own = load.requests.iter().copied().zip(found.iter().copied());
        // Other pages' requests may be on any connection.
        let ids: HashSet<&str> = load.requests.iter().map(|one| one.id.as_str()).collect();
        let others = log.transfers.iter().filter(|one| !ids.contains(one.id.as_str()));
        let logged = Logged::new(own.chain(others.map(|one| (one, None))));
        let load_ns = load.page.and_then(|page| page.loaded_ms).map_or(0, |ms| (ms * 1e6) as i64);
        let until_ns = load.start_ns.saturating_add(load_ns.max(load.last_ns()));
        // A capture has other applications' connections, too: the page's are with its servers.
        let peer = |one: &Connection| (one.client.map(|(address, _)| address), one.server);
        let matched = found.iter().flatten().filter_map(|at| self.connections.get(*at));
        let peers: HashSet<_> = matched.map(peer).collect();
        let is_own = |one: &Connection| peers.contains(&peer(one));
        unlogged::exchanges(&self.connections, is_own, &logged, (load.start_ns, until_ns))
    }

    /// When data was queued on the path to the phone, in order and without overlaps.
    pub(super) fn link_busy(&self) -> impl Iterator<Item = (i64, i64)> {
        self.link_busy.iter()
    }

    /// The connection of each request, if packets show it: by the client's port if the log has it,
    /// else by the times of requests and responses.
    pub(super) fn matched(&self, requests: &[&AppTransfer]) -> Vec<Option<usize>> {
        let mut votes: HashMap<&str, HashMap<usize, u32>> = HashMap::new();
        let own: Vec<Option<usize>> = requests
            .iter()
            .map(|request| {
                let found = self.by_port(request).or_else(|| self.by_time(request));
                if let (Some(name), Some(at)) = (request.connection.as_deref(), found) {
                    *votes.entry(name).or_default().entry(at).or_default() += 1;
                }
                found
            })
            .collect();
        // Each connection of the log matches one of the capture.
        let elected: HashMap<&str, usize> = votes
            .into_iter()
            .filter_map(|(name, votes)| {
                let most = votes.into_iter().max_by_key(|(at, n)| (*n, std::cmp::Reverse(*at)))?;
                Some((name, most.0))
            })
            .collect();
        let each = requests.iter().zip(own).map(|(request, own)| {
            let of_name = request.connection.as_deref().and_then(|name| elected.get(name).copied());
            of_name.or(own).filter(|at| self.spans(*at, request))
        });
        each.collect()
    }

    /// Whether a connection has data during a request.
    fn spans(&self, at: usize, request: &AppTransfer) -> bool {
        let Some(one) = self.connections.get(at) else { return false };
        let first = one.arrivals_ns.partition_point(|ns| *ns < request.start_ns - NEAR_NS);
        one.arrivals_ns.get(first).is_some_and(|ns| *ns <= request.end_ns + NEAR_NS)
    }

    fn by_port(&self, request: &AppTransfer) -> Option<usize> {
        let port: u16 = request.connection.as_deref()?.parse().ok()?;
        let mut of_port = self.connections.iter().enumerate().filter(|(at, one)| {
            one.client.is_some_and(|(_, own)| own == port) && self.spans(*at, request)
        });
        of_port.next().map(|(at, _)| at)
    }

    fn by_time(&self, request: &AppTransfer) -> Option<usize> {
        let sent_ns = request.sent_ns();
        let near = |list: &[i64], at_ns: i64| {
            let next = list.partition_point(|ns| *ns < at_ns);
            let around = [next.checked_sub(1), Some(next)].into_iter().flatten();
            around.filter_map(|at| Some((list.get(at)? - at_ns).abs())).min()
        };
        let each = self.connections.iter().enumerate().filter_map(|(at, one)| {
            let sent = near(&one.requests_ns, sent_ns).filter(|ns| *ns <= NEAR_NS)?;
            let ended = near(&one.arrivals_ns, request.end_ns).filter(|ns| *ns <= NEAR_NS)?;
            Some((sent + ended, at))
        });
        each.min().map(|(_, at)| at)
    }

    /// The causes of a span of a connection, in order of their longest spans.
    fn split(&self, at: usize, from_ns: i64, to_ns: i64) -> Option<(Shares, &Connection)> {
        let one = self.connections.get(at)?;
        let radio = self.radio.as_ref().map(|radio| RadioEvidence {
            data_queue: &radio.downlink,
            ack_queue: Some(&*radio.uplink).filter(|spans| !spans.is_empty()),
            ..RadioEvidence::default()
        });
        Some((one.attribution.split(from_ns, to_ns, radio), one))
    }

    fn causes(
        &self,
        at: usize,
        (from_ns, to_ns): (i64, i64),
        of: &dyn Fn(Reason) -> PageCause,
    ) -> Vec<(PageCause, i64)> {
        let Some((shares, one)) = self.split(at, from_ns, to_ns) else { return Vec::new() };
        // A delay by an upload or before the radio counts as that, whatever the sender's reason.
        let by_cause = |cause: Cause| shares.by_cause.get(&cause).copied().unwrap_or(0);
        let mut upload = by_cause(Cause::UplinkQueue);
        let mut parts: Vec<(PageCause, i64)> = Vec::new();
        let mut add = |cause: PageCause, ns: i64| match parts.iter_mut().find(|one| one.0 == cause)
        {
            _ if ns <= 0 => {}
            Some((_, sum)) => *sum += ns,
            None => parts.push((cause, ns)),
        };
        let queued = uplink_share(one, from_ns, to_ns);
        let (queues, others): (Vec<_>, Vec<_>) =
            shares.by_reason.iter().partition(|(reason, _)| {
                matches!(reason, Reason::Queue | Reason::QueueUp | Reason::ServerThinkTime)
            });
        for (reason, ns) in queues.into_iter().chain(others) {
            let behind = match reason {
                Reason::Queue | Reason::QueueUp | Reason::ServerThinkTime => upload.min(*ns),
                // Each of these waits for round trips, which the upload lengthened.
                Reason::Handshake
                | Reason::Request
                | Reason::FirstSlowStart
                | Reason::SlowStartRestart
                | Reason::UndesiredSlowStart
                | Reason::LossRecovery => upload.min(*ns).max((*ns as f64 * queued) as i64),
                _ => 0,
            };
            upload = (upload - behind).max(0);
            add(PageCause::UplinkQueue, behind);
            add(of(*reason), *ns - behind);
        }
        add(PageCause::Radio, shares.radio_ns);
        parts
    }

    /// A wait for a first byte.
    pub(super) fn waited(&self, at: usize, from_ns: i64, to_ns: i64) -> Vec<(PageCause, i64)> {
        self.causes(at, (from_ns, to_ns), &|reason| match reason {
            Reason::Handshake | Reason::Promotion => PageCause::Setup,
            Reason::ServerThinkTime | Reason::AppLimited => PageCause::Server,
            Reason::LossRecovery => PageCause::Loss,
            Reason::Queue | Reason::QueueOrSender | Reason::PathPace => self.link(),
            Reason::QueueUp => PageCause::UplinkQueue,
            Reason::ReceiveWindow | Reason::QueueOrWindow => PageCause::ReceiveWindow,
            Reason::UndesiredSlowStart => PageCause::Loss,
            Reason::Request
            | Reason::NoRequest
            | Reason::FirstSlowStart
            | Reason::SlowStartRestart
            | Reason::Pacing
            | Reason::AfterLast => PageCause::RoundTrip,
            Reason::Unknown => PageCause::Unknown,
        })
    }

    /// The queue of a first byte whose wait has these causes.
    pub(super) fn queued_first_byte(
        &self,
        at: usize,
        (from_ns, to_ns): (i64, i64),
        causes: impl Iterator<Item = (PageCause, i64)>,
    ) -> Option<QueuedFirstByte> {
        let queue = causes.filter(|(cause, _)| *cause == self.link());
        let queued_ns: i64 = queue.map(|(_, ns)| ns).sum();
        let others = self.connections.iter().enumerate().any(|(other, one)| {
            let first = one.arrivals_ns.partition_point(|ns| *ns <= from_ns);
            other != at && one.arrivals_ns.get(first).is_some_and(|ns| *ns < to_ns)
        });
        let round_trip_ns = self.connections.get(at)?.round_trip_ns;
        let wait_ns = to_ns - from_ns;
        let found = QueuedFirstByte { wait_ns, queued_ns, round_trip_ns, others };
        (queued_ns > 0).then_some(found)
    }

    /// The time from the first byte to the last.
    pub(super) fn received(&self, at: usize, from_ns: i64, to_ns: i64) -> Vec<(PageCause, i64)> {
        let mut parts = self.causes(at, (from_ns, to_ns), &|reason| match reason {
            Reason::Handshake | Reason::Promotion => PageCause::Setup,
            Reason::ServerThinkTime | Reason::AppLimited => PageCause::Server,
            // The radio's queue was logged and empty.
            Reason::Pacing if self.radio.is_some() => PageCause::Server,
            Reason::LossRecovery | Reason::UndesiredSlowStart => PageCause::Loss,
            Reason::FirstSlowStart | Reason::SlowStartRestart => PageCause::SlowStart,
            Reason::ReceiveWindow | Reason::QueueOrWindow => PageCause::ReceiveWindow,
            Reason::Queue | Reason::QueueOrSender | Reason::PathPace => self.link(),
            Reason::QueueUp => PageCause::UplinkQueue,
            Reason::Request => PageCause::RoundTrip,
            Reason::NoRequest | Reason::Pacing | Reason::AfterLast => PageCause::Transfer,
            Reason::Unknown => PageCause::Unknown,
        });
        // The radio's own log shows its queue.
        if self.radio.is_none() {
            let busy_ns = self.link_busy.within_ns(from_ns, to_ns);
            move_to_link(&mut parts, self.link(), busy_ns.cast_signed());
        }
        parts
    }

    /// A handshake: a retransmitted SYN had been lost; the rest is set-up, except for the queues of
    /// the radio and of an upload.
    pub(super) fn set_up(&self, at: usize, from_ns: i64, to_ns: i64) -> Vec<(PageCause, i64)> {
        let Some((shares, one)) = self.split(at, from_ns, to_ns) else { return Vec::new() };
        let near = |ns: &&i64| **ns >= from_ns - NEAR_NS && **ns <= to_ns;
        let syns: Vec<i64> = one.syns_ns.iter().filter(near).copied().collect();
        let lost = syns.last().zip(syns.first()).map_or(0, |(last, first)| last - first);
        let lost = lost.clamp(0, to_ns - from_ns);
        let radio = shares.radio_ns.clamp(0, to_ns - from_ns - lost);
        let rest = to_ns - from_ns - lost - radio;
        let upload = (rest as f64 * uplink_share(one, from_ns, to_ns)) as i64;
        let parts = [
            (PageCause::Loss, lost),
            (PageCause::Setup, rest - upload),
            (PageCause::UplinkQueue, upload),
            (PageCause::Radio, radio),
        ];
        parts.into_iter().filter(|(_, ns)| *ns > 0).collect()
    }
}

/// When data was queued on the path to the phone, without times in which an upload delayed the
/// acknowledgements that show it.
fn link_busy(connections: &[Connection]) -> MergedSpans {
    // The connections of a phone share its queues.
    let Some(one) = connections.first() else { return MergedSpans::default() };
    let queues = one.downlink_delay.queues(MIN_QUEUE_NS);
    let uploads = |(from, to): &(i64, i64)| one.uplink_delay.mean_ns(*from, *to);
    MergedSpans::new(queues.filter(|span| uploads(span) < MIN_UPLINK_DELAY_NS).collect())
}

/// Attributes the time for which the link was busy with data of any connection to the link: slow
/// start, pauses and losses of its queue are then the connection's wait for its turn.
pub(super) fn move_to_link(parts: &mut Vec<(PageCause, i64)>, link: PageCause, busy_ns: i64) {
    use PageCause::{Loss, Server, SlowStart, Unknown};
    let queued = parts.iter().filter(|(cause, _)| *cause == link);
    let free_ns = (busy_ns - queued.map(|(_, ns)| ns).sum::<i64>()).max(0);
    let mut rest_ns = free_ns;
    for (cause, ns) in parts.iter_mut() {
        if matches!(cause, Server | SlowStart | Loss | Unknown) {
            let moved_ns = rest_ns.min(*ns);
            *ns -= moved_ns;
            rest_ns -= moved_ns;
        }
    }
    let moved_ns = free_ns - rest_ns;
    match parts.iter_mut().find(|(cause, _)| *cause == link) {
        Some((_, ns)) => *ns += moved_ns,
        None => parts.push((link, moved_ns)),
    }
    parts.retain(|(_, ns)| *ns > 0);
}

/// The share of a connection's round trips in a span for which what the phone sent was queued
/// after its own upload.
fn uplink_share(one: &Connection, from_ns: i64, to_ns: i64) -> f64 {
    let delay_ns = one.uplink_delay.mean_ns(from_ns, to_ns);
    if delay_ns < MIN_UPLINK_DELAY_NS {
        return 0.0;
    }
    delay_ns as f64 / delay_ns.saturating_add(one.round_trip_ns.max(0)) as f64
}

/// The offset of a capture's clock from that of the browser's log, from the known offsets of both.
/// With a modem log both are aligned to its clock.
fn to_log(
    capture: &str,
    log: &Application,
    diagnosis: &Diagnosis,
    radio: bool,
) -> Option<ClockLine> {
    let of =
        |file: &str| diagnosis.clocks.iter().find(|clock| clock.file == file && clock.corrected);
    if radio {
        return of(capture).map(line);
    }
    // There the log's clock was compared with the capture's: the offset is inverted.
    let own = if log.gave_transfers { TRANSFERS } else { &log.path };
    of(own).map(line).map(|line| ClockLine {
        offset_ns: -line.offset_ns,
        drift_ppm: -line.drift_ppm,
        at_ns: line.at_ns.saturating_add(line.offset_ns),
        ..line
    })
}

fn line(clock: &ClockReport) -> ClockLine {
    let ns = |ms: Option<f64>| (ms.unwrap_or(0.0) * 1e6) as i64;
    ClockLine {
        at_ns: clock.at_us.unwrap_or(0).saturating_mul(1_000),
        offset_ns: ns(clock.offset_ms),
        drift_ppm: clock.drift_ppm.unwrap_or(0.0),
        half_span_ns: 0,
        error_ns: ns(clock.error_ms),
        n: clock.evidence,
        rival_ns: None,
    }
}

/// Probabilities that the slow link is the radio, or before it.
fn slow_link(diagnosis: &Diagnosis) -> [f64; 2] {
    ["radio", "wireline"].map(|name| {
        let found = diagnosis.session.suspects.iter().find(|one| one.suspect == name);
        found.map_or(0.0, |one| one.probability)
    })
}

/// The link that a queue is attributed to, by packets alone.
fn likely_link([radio, wireline]: [f64; 2]) -> Option<PageCause> {
    match radio >= wireline {
        true if radio >= LIKELY => Some(PageCause::Radio),
        false if wireline >= LIKELY => Some(PageCause::Wireline),
        _ => None,
    }
}

/// Bursts in time, relative to the last transfer that started before each; `None` without a modem
/// log.
fn radio_spans(answer: &RadioAnalysis) -> Option<RadioSpans> {
    let report = &answer.report;
    let mut anchors: Vec<(i64, i64)> = report
        .transfers
        .iter()
        .filter_map(|one| Some((one.start_tti.0, one.start_us?.saturating_mul(1_000))))
        .collect();
    anchors.sort_unstable();
    if report.bursts.is_empty() || anchors.is_empty() {
        return None;
    }
    let at = |tti: i64| {
        let after = anchors.partition_point(|(start, _)| *start <= tti);
        let anchor = anchors.get(after.saturating_sub(1)).copied().unwrap_or_default();
        let ns = tti.saturating_sub(anchor.0) as f64 * report.tti_ms * 1e6;
        anchor.1.saturating_add(ns as i64)
    };
    let of = |dir: Direction| {
        let bursts = report.bursts.iter().filter(|burst| burst.dir == dir && burst.is_clear());
        let spans = bursts.map(|burst| RadioSpan {
            from_ns: at(burst.start_tti.0),
            to_ns: at(burst.end_tti.0),
            queued: true,
        });
        let mut spans: Vec<RadioSpan> = spans.filter(|span| span.to_ns > span.from_ns).collect();
        spans.sort_by_key(|span| span.from_ns);
        spans
    };
    Some(RadioSpans { downlink: of(Direction::Dl), uplink: of(Direction::Ul) })
}
