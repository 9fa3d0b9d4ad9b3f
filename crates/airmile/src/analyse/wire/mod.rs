//! Captures in addition to a modem log: what the senders of the phone's transfers waited for.

mod restarts;
mod seen;
mod sites;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::PathBuf;

use airmile_model::{Cause, Direction, Transfer, TransferFinding};
use airmile_packets::phone::{ONE_HOST_SHARE, Opening, Paths, Phone, PhoneReader, ServerView};
use airmile_radio::detect::DetectOptions;
use airmile_wire::attribute::{
    ArrivedEcn, Attribution, ByteBins, CaptureSite, EcnPath, Exchange, HiddenQueue, PathQueue,
    RadioEvidence, ReceiveWindow, Shares, ecn_paths, exchanged,
};
use airmile_wire::clocks::{Arrivals, ClockLine};
use airmile_wire::tcp::{PacketStudy, StudyOptions, Traced};

use self::seen::SeenAt;
use self::sites::Sites;
use super::clocks::ClockReport;
use crate::fact::Restarter;
use crate::session::{Inputs, Sorted};
use airmile_io::FileReport;
use airmile_io::capture::{WITHOUT_ROOT, read_capture};
use airmile_io::error::Result;
use airmile_io::input::Progress;

/// The phone as captures show it.
#[derive(Debug)]
pub(crate) struct Wire {
    attribution: Attribution,
    /// Of what the phone sends over TCP, and that payload; `None` unless captured at the phone.
    uploads: Option<(Attribution, ByteBins)>,
    /// Its transfers without time stamps, and losses of those with them, by the server's packets.
    server_views: Vec<ServerView>,
    /// IP bytes other than TCP (such as QUIC), whose senders are not followed; `None` if other addresses have
    /// data, too.
    others: Option<ByteBins>,
    /// Parts of the capture in which they have.
    others_unknown: Vec<(i64, i64)>,
    /// Payload over TCP towards the phone.
    followed: ByteBins,
    /// The same, for each server.
    hosts: Vec<ByteBins>,
    arrivals: Arrivals,
    exchanges: Vec<Exchange>,
    /// All that came to the phone, if that was acknowledgements of an upload for the most part.
    answers: Option<Arrivals>,
    /// The name of the capture nearest to the phone.
    name: String,
    /// Offsets of other captures' clocks from that one's.
    clocks: Vec<ClockReport>,
    /// Maximum offset of its clock from the radio's, in nanoseconds.
    clock_error_ns: i64,
    /// Its traffic is the radio's, by the alignment of the clocks.
    is_aligned: bool,
    /// 0 if none was measured, as in a capture of one direction.
    pub(crate) round_trip_ns: i64,
    empty_round_trip_ns: i64,
    openings: [Vec<Opening>; 2],
    pub(crate) place: CaptureSite,
    pub(crate) restarter: Restarter,
    /// There is also a capture at the server.
    pub(crate) has_server: bool,
    /// The name of that with the most of the phone's data.
    pub(crate) server: Option<String>,
    /// A proxy between the two ends each connection.
    pub(crate) is_split: bool,
    /// Its connections have no time stamps, and the server's packets are not used: round trips of
    /// data are not visible at the phone.
    hides_queues: bool,
    /// A window of its uploads was full because the reader was slow.
    reader_is_slow: bool,
    /// Segments were lost, and its packets are the phone's.
    loses: bool,
    /// The queue that arrivals indicate then, with its probability.
    hidden_queue: Option<(HiddenQueue, f64)>,
    /// Congestion marks, by direction; of none if nothing was ECN-capable.
    pub(crate) ecn: Vec<EcnPath>,
}

/// Error of a clock that cannot be aligned (chosen here: the error of the alignment
/// on runs of the lab, `airmile-accuracy --clocks`).
const UNKNOWN_CLOCK_NS: i64 = 5_000_000;

/// Packets by a clock with longer ticks are not used (chosen here: half of the delay that is a queue, and a
/// frame, of which a TDD cell may have one slot for the uplink).
const MAX_TICKS_NS: i64 = 10_000_000;

/// Of fewer lost segments it is not asked what dropped them (chosen here: it takes another reading of the
/// capture).
const FEW_LOST: usize = 5;

/// Bytes of the modem log that count an acknowledgement for each segment of the other direction, at most: 70 of
/// 1,400.
const ACKNOWLEDGED: u64 = 20;

/// A connection belongs to a transfer if it started at most this long before it (chosen here: a few
/// clock errors, and less than a round trip after the previous transfer).
const OPENS_BEFORE_NS: i64 = 50_000_000;

/// Separates captures from the other inputs, and from files that are not read, with a report of each.
///
/// # Errors
/// A file or directory cannot be read.
pub(crate) fn part(inputs: &Inputs) -> Result<(Inputs, Vec<PathBuf>, Vec<FileReport>)> {
    let Sorted { logs, captures, unread } = Sorted::of(&inputs.files)?;
    if captures.is_empty() && logs.is_empty() {
        return Ok((inputs.clone(), captures, Vec::new()));
    }
    Ok((Inputs { files: logs, ..inputs.clone() }, captures, unread))
}

/// The senders as captures show them, if there is TCP, and a report of each capture.
pub(crate) type Seen = (Option<Wire>, Vec<FileReport>);

impl Wire {
    /// Reads captures of one phone, taken at one or several places; also what its uploads waited for,
    /// if a pause that separates its exchanges is given.
    ///
    /// # Errors
    /// One cannot be read.
    pub(crate) fn read(
        captures: &[PathBuf],
        pause_ns: Option<i64>,
        progress: &Progress,
    ) -> Result<Seen> {
        // A phone's own capture is smaller than its server's; of the server's clients the known one
        // is kept.
        let bytes = |path: &PathBuf| path.metadata().map_or(0, |meta| meta.len());
        let mut order: Vec<usize> = (0..captures.len()).collect();
        order.sort_by_key(|at| captures.get(*at).map(bytes));
        let mut files = vec![None; captures.len()];
        let mut seen = Vec::new();
        let mut known = HashSet::new();
        for (at, path) in order.iter().filter_map(|at| Some((*at, captures.get(*at)?))) {
            let mut capture = PhoneReader::new(known, pause_ns);
            let mut study =
                PacketStudy::new(StudyOptions { traced: Traced::All, ..StudyOptions::default() });
            let mut report = read_capture(path, progress, &mut |packet| {
                study.push(packet);
                capture.note(packet);
                while let Some(traced) = study.poll_trace() {
                    capture.push(&traced);
                }
            })?;
            known = capture.isns();
            match report.coarse_clock(MAX_TICKS_NS) {
                Some(why) => report.leave_out(&why),
                None => {
                    let without_root = report.records.contains_key(WITHOUT_ROOT);
                    seen.push((report.path.clone(), capture.finish(without_root)));
                }
            }
            if let Some(file) = files.get_mut(at) {
                *file = Some(report);
            }
        }
        let mut seen = SeenAt::of(seen);
        if let Some(seen) = &mut seen {
            seen.leave_out_strangers()?;
            files.iter_mut().flatten().for_each(|file| seen.note(file));
        }
        let wire = seen.map(|seen| Self::of(seen.name, seen.first, &seen.rest));
        Ok((wire, files.into_iter().flatten().collect()))
    }

    fn of(name: String, first: Phone, rest: &[(String, Phone)]) -> Self {
        let sites = Sites::of(&first, rest);
        let server = sites.at_server(&first);
        let behind = server.as_ref().filter(|server| first.is_split_from(server.phone));
        let behind = behind.map(|server| server.phone.waits_on(server.line()));
        let is_split = behind.is_some();
        let is_at_phone = first.place == CaptureSite::Phone;
        let at_both = server.as_ref().filter(|_| is_at_phone);
        let paths = match at_both {
            Some(server) => Paths::between(&first, server.phone, server.line()),
            None => Paths { up: first.upload_queue(), ..Paths::default() },
        };
        // Behind a proxy that splits, the server's connections are not the phone's.
        let whole = at_both.filter(|_| !is_split);
        let server_views = whole.map_or_else(Vec::new, |server| {
            ServerView::of(&first, server.phone, server.line(), paths.base_ns)
        });
        let arrived = whole.map(|server| ArrivedEcn {
            ecn: &server.phone.ecn,
            line: server.line(),
            base_ns: paths.base_ns,
            shared: first.shared_ecn(server.phone),
        });
        let has_server = server.is_some() || first.place == CaptureSite::Server;
        let restarter =
            Restarter::of(&first, server.as_ref().map(|server| server.phone), sites.servers());
        let delay_ns = delay_to_cell_ns(&first);
        let round_trip_ns = first.upstream_ns + first.downstream_ns;
        let empty_round_trip_ns = first.least_round_trip_ns().unwrap_or(round_trip_ns);
        let openings = [Direction::Dl, Direction::Ul].map(|dir| first.openings(dir));
        let [lost, lost_of_uploads] = [Direction::Dl, Direction::Ul].map(|dir| first.lost(dir));
        let (policed, begins_ns) = (first.policed(), first.quic_begins_ns());
        let exchanges = first.exchanges().copied().collect();
        let reader_is_slow = first.waits_for_readers();
        let has_only_uploads = first.has_only_uploads();
        let has_most = server_views.iter().any(|one| one.has_most(first.dl_bytes));
        let hides_queues = first.lacks_timestamps() && is_at_phone && !has_most;
        let Phone { waits, uplink, sends, sent, followed, place, .. } = first;
        let uploads = is_at_phone.then(|| {
            let attribution = Attribution::new(sends, followed.clone())
                .with_lost(lost_of_uploads)
                .with_passed(sent.clone())
                .with_answers(behind.clone().unwrap_or_default())
                .with_round_trip(round_trip_ns);
            (attribution, sent)
        });
        let loses = is_at_phone && lost.len() >= FEW_LOST;
        let attribution = Attribution::new(waits.later(delay_ns), uplink)
            .with_lost(lost)
            .with_unseen_lost(server_views.iter().flat_map(|one| &one.lost))
            .with_passed(followed.clone())
            .with_policed(policed)
            .with_begins(begins_ns)
            .with_behind(behind.unwrap_or_default())
            .with_path(paths.down)
            .with_uplink_path(paths.up)
            .with_round_trip(round_trip_ns);
        let at_server = place == CaptureSite::Server;
        Self {
            attribution: if at_server { attribution.at_server() } else { attribution },
            uploads,
            server_views,
            others: first.others,
            others_unknown: first.others_unknown,
            followed,
            hosts: first.hosts.into_values().collect(),
            answers: has_only_uploads.then_some(first.answers),
            exchanges,
            arrivals: first.arrivals,
            clocks: sites.clocks(&name),
            name,
            clock_error_ns: UNKNOWN_CLOCK_NS,
            is_aligned: false,
            round_trip_ns,
            empty_round_trip_ns,
            openings,
            place,
            restarter,
            has_server,
            server: server.as_ref().map(|server| server.name.to_owned()),
            is_split,
            hides_queues,
            reader_is_slow,
            loses,
            hidden_queue: None,
            ecn: ecn_paths(first.ecn, place, arrived),
        }
    }

    /// Whether it was captured at the phone: data arrives directly after the radio.
    pub(crate) const fn is_at_phone(&self) -> bool {
        matches!(self.place, CaptureSite::Phone | CaptureSite::Inside)
    }

    /// Whether a queue could not be seen: by the phone's packets alone, without time stamps.
    pub(crate) const fn hides_queues(&self) -> bool {
        self.hides_queues
    }

    /// Whether a slow line behind a proxy that ends the phone's connections would look like a slow
    /// server: none was captured whose connections are the phone's.
    pub(crate) const fn hides_server(&self) -> bool {
        !self.has_server || self.is_split
    }

    /// Whether the receiver of an upload reads slowly.
    pub(crate) const fn reader_is_slow(&self) -> bool {
        self.reader_is_slow
    }

    /// Whether arrivals show more than its round trips and losses: of a queue that these do not show, or
    /// of what dropped the segments.
    pub(crate) const fn asks_arrivals(&self) -> bool {
        self.hides_queues || self.loses
    }

    /// Sets what arrivals indicate, with its probability.
    pub(crate) fn set_hidden_queue(&mut self, found: Option<(HiddenQueue, f64)>) {
        if self.hides_queues {
            self.hidden_queue = found;
            self.attribution.set_hidden_queue(found.map(|(queue, _)| queue));
        } else if let Some((HiddenQueue::Downlink, _)) = found {
            self.hidden_queue = found;
            self.attribution.set_line_drops();
        }
    }

    /// The probability of a queue that arrivals alone indicate; 1 if it was measured.
    pub(crate) fn hidden_queue(&self, queue: HiddenQueue) -> f64 {
        self.hidden_queue.filter(|(of, _)| *of == queue).map_or(1.0, |(_, probability)| probability)
    }

    /// The name of the capture with the reference clock.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The transfers that it shows, if its clock is aligned to the radio's, and the payload of all exchanges.
    pub(crate) fn exchanged(&self, detect: DetectOptions) -> Option<(Vec<Transfer>, u64)> {
        let known = self.is_aligned.then(|| self.exchanges.clone())?;
        let bytes = known.iter().flat_map(|one| one.bytes).sum();
        Some((exchanged(known, (detect.min_bytes, i64::from(detect.pause_ms) * 1_000_000)), bytes))
    }

    /// The data that arrived at the phone.
    pub(crate) const fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    /// The data that arrived at the phone; the acknowledgements too, of an upload.
    pub(crate) fn shown(&self) -> &Arrivals {
        self.answers.as_ref().unwrap_or(&self.arrivals)
    }

    /// The queueing between the server and the phone, if captures at both show it.
    pub(crate) const fn path(&self) -> &PathQueue {
        self.attribution.path()
    }

    /// Offsets of other captures' clocks from its own.
    pub(crate) fn clocks(&self) -> &[ClockReport] {
        &self.clocks
    }

    /// Maximum offset of its clock from the radio's, in nanoseconds.
    pub(crate) const fn clock_error_ns(&self) -> i64 {
        self.clock_error_ns
    }

    /// Sets the error of its clock, which is aligned to the radio's.
    pub(crate) const fn set_clock_error(&mut self, error_ns: i64) {
        (self.clock_error_ns, self.is_aligned) = (error_ns, true);
    }

    /// Whether its traffic is the radio's, by the alignment of the clocks.
    pub(crate) const fn is_aligned(&self) -> bool {
        self.is_aligned
    }

    /// The minimum round trip of its connections, in nanoseconds.
    pub(crate) const fn round_trip_ns(&self) -> i64 {
        self.round_trip_ns
    }

    /// The minimum over all connections: a longer one includes a queue.
    pub(crate) const fn empty_round_trip_ns(&self) -> i64 {
        self.empty_round_trip_ns
    }

    /// The receiver's window in the first connection that started in a span.
    pub(crate) fn windows(&self, dir: Direction, from_ns: i64, to_ns: i64) -> &[ReceiveWindow] {
        let openings = &self.openings[usize::from(dir == Direction::Ul)];
        let from_ns = from_ns.saturating_sub(OPENS_BEFORE_NS);
        let first = openings.partition_point(|one| one.begun_ns < from_ns);
        let first = openings.get(first).filter(|one| one.begun_ns < to_ns);
        first.map_or(&[], |one| &one.windows)
    }

    /// Moves it to the reference clock of the line.
    pub(crate) fn set_clock(&mut self, line: &ClockLine) {
        for opening in self.openings.iter_mut().flatten() {
            opening.begun_ns = line.to_reference(opening.begun_ns);
        }
        self.attribution.set_clock(line);
        if let Some((attribution, sent)) = &mut self.uploads {
            attribution.set_clock(line);
            sent.set_clock(line);
        }
        self.exchanges.iter_mut().for_each(|one| one.set_clock(line));
        self.ecn.iter_mut().for_each(|path| path.counts.set_clock(line));
        self.server_views.iter_mut().for_each(|view| view.set_clock(line));
        self.others.iter_mut().for_each(|others| others.set_clock(line));
        for (from_ns, to_ns) in &mut self.others_unknown {
            (*from_ns, *to_ns) = (line.to_reference(*from_ns), line.to_reference(*to_ns));
        }
        self.followed.set_clock(line);
        self.hosts.iter_mut().for_each(|host| host.set_clock(line));
    }

    /// The share of a transfer's bytes that it holds, at most; without a clock, in all of its time. All of them, if
    /// another address may have the rest.
    pub(crate) fn holds(&self, finding: &TransferFinding) -> f64 {
        let Some(others) = &self.others else { return 1.0 };
        let span = finding.start_us.zip(finding.end_us).filter(|_| self.is_aligned);
        let span = span.map(|(from_us, to_us)| (from_us * 1_000, to_us * 1_000));
        let touches =
            |part: &(i64, i64)| span.is_none_or(|span| part.0 < span.1 && span.0 < part.1);
        if self.others_unknown.iter().any(touches) {
            return 1.0;
        }
        let of = |bytes: &ByteBins| match span {
            Some((from_ns, to_ns)) => bytes.within(from_ns, to_ns),
            None => bytes.total(),
        };
        let mut ways = [&self.followed, self.attribution.ack_payload()].map(of);
        ways.rotate_left(usize::from(finding.dir == Direction::Ul));
        let held = ways[0].saturating_add(ways[1] / ACKNOWLEDGED).saturating_add(of(others));
        finding.bytes.filter(|bytes| *bytes > 0).map_or(1.0, |bytes| held as f64 / bytes as f64)
    }

    /// Whether it follows uploads: over TCP, at the phone.
    pub(crate) fn follows_uploads(&self) -> bool {
        self.uploads.as_ref().is_some_and(|(_, sent)| sent.total() > 0)
    }

    /// Whether the data that arrived during a transfer is almost all from one server.
    pub(crate) fn is_of_one_host(&self, finding: &TransferFinding) -> bool {
        let Some((from_us, to_us)) = finding.start_us.zip(finding.end_us) else { return false };
        let within = |bytes: &ByteBins| bytes.within(from_us * 1_000, to_us * 1_000);
        let largest = self.hosts.iter().map(within).max().unwrap_or(0);
        largest as f64 >= ONE_HOST_SHARE * within(&self.followed) as f64
    }

    /// Splits an upload of `bytes`, given the radio's spans;
    /// `None` without its packets over TCP, or if nothing shows that they are the radio's.
    pub(crate) fn split_upload(
        &self,
        (from_ns, to_ns): (i64, i64),
        bytes: Option<u64>,
        radio: RadioEvidence<'_>,
    ) -> Option<Shares> {
        let (attribution, sent) = self.uploads.as_ref().filter(|_| self.is_aligned)?;
        let is_most = sent.within(from_ns, to_ns) as f64 >= ONE_HOST_SHARE * bytes? as f64;
        // An acknowledgement may wait behind a download of the phone: that queue is none of the upload's.
        let split = || attribution.split(from_ns, to_ns, Some(radio)).without(Cause::UplinkQueue);
        is_most.then(split)
    }

    /// Splits a transfer, given the radio's spans; `None` if most of the traffic during it was not
    /// TCP.
    pub(crate) fn split(
        &self,
        from_ns: i64,
        to_ns: i64,
        radio: RadioEvidence<'_>,
    ) -> Option<Shares> {
        let followed = self.followed.within(from_ns, to_ns);
        let others = self.others.as_ref().map_or(0, |others| others.within(from_ns, to_ns));
        let follows = followed > 0 && followed >= others;
        let waits = self.server_views.iter().find_map(|view| view.waits(from_ns, to_ns, followed));
        follows.then(|| match waits {
            Some(waits) => self.attribution.split_with_waits(waits, from_ns, to_ns, Some(radio)),
            None => self.attribution.split(from_ns, to_ns, Some(radio)),
        })
    }
}

/// How much later packets of a capture arrive at the cell: those that leave the server half a round trip.
const fn delay_to_cell_ns(first: &Phone) -> i64 {
    match first.place {
        CaptureSite::Server | CaptureSite::Between | CaptureSite::Unknown => {
            first.downstream_ns / 2
        }
        CaptureSite::Phone | CaptureSite::Inside => 0,
    }
}
