//! The transfers of a run, from any files in its directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airmile_capture::application::ApplicationFormat;
use airmile_model::{Direction, Record, printable_path};
use airmile_packets::connections::Connection;
use airmile_radio::detect::DetectOptions;
use airmile_wire::compare::{Sample, TimedRequest, growth};

use super::flows::{self, Captured};
use crate::analyse::aligned::AlignedInputs;
use crate::analyse::causes::long_bursts_bps;
use crate::analyse::clocks::block;
use crate::analyse::diagnose::{Diagnosis, TransferDiagnosis, conclude_with_pages};
use crate::analyse::page::Page;
use crate::analyse::radio::{RadioAnalysis, RadioOptions, radio_with};
use crate::analyse::subscription::Keep;
use crate::analyse::wire::Wire;
use crate::fact::Restarter;
use crate::session::Inputs;
use airmile_io::FileReport;
use airmile_io::directory::{directories_in, files_in, open_archive_to_sort};
use airmile_io::error::{Error, Result};
use airmile_io::input::{Progress, comes_once};
use airmile_io::limits::{LimitFilter, Limits};
use airmile_io::probe_log::{ProbeLog, ProbeTransfer};
use airmile_io::recognise::Kind;

/// Minimum bytes of a transfer, as of detected ones.
pub(super) const LEAST_BYTES: u64 = DetectOptions::MIN_BYTES;
/// An application reads a byte later than the capture shows it: tolerance on both sides (chosen
/// here).
const SLACK_NS: i64 = 50_000_000;

/// A transfer, and the properties that determine its group.
#[derive(Debug, Clone)]
pub(super) struct GroupedTransfer {
    pub(super) sample: Sample,
    /// The server's port.
    pub(super) port: Option<u16>,
    /// The server's address.
    pub(super) server: Option<String>,
    /// Time in ms by cause.
    pub(super) shares: BTreeMap<&'static str, f64>,
    /// The connection, by an application's own log.
    pub(super) connection: Option<String>,
}

/// A run.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) transfers: Vec<GroupedTransfer>,
    pub(super) pages: Vec<Page>,
    pub(super) files: Vec<FileReport>,
    /// The kinds of evidence, in words.
    pub(super) seen_by: Vec<&'static str>,
    /// Whether its server reports that it restarts slow start itself.
    pub(super) server_restarts: bool,
    /// The host that restarts slow start, by its captures.
    pub(super) restarter: Restarter,
    /// Whether its captures are nearer to the server than to the phone; `None` if unknown.
    pub(super) nearer_server: Option<bool>,
}

impl Run {
    /// Keeps the transfers that begin within limits on the time, of a run that begins at `start_us`.
    fn limit(&mut self, limits: Limits, start_us: Option<i64>) {
        let mut filter = LimitFilter::new(limits);
        if let Some(us) = start_us {
            filter.keeps_ns(us.saturating_mul(1_000));
        }
        self.transfers.retain(|one| filter.keeps_ns(one.sample.start_ns));
    }
}

/// The files of a run by kind.
#[derive(Debug, Default)]
struct RunInputs {
    captures: Vec<PathBuf>,
    probe: Option<ProbeLog>,
    /// Whether there are records of the radio, or an application's transfers.
    radio: bool,
    application: bool,
    /// The logs of a browser: each is of a run of its own.
    hars: Vec<PathBuf>,
    /// A report of each file that is empty, or damaged from its first byte.
    unread: Vec<FileReport>,
}

impl RunInputs {
    fn look(path: &Path, progress: &Progress) -> Result<Self> {
        let mut files = Self::default();
        let within = if path.is_dir() { files_in(path)? } else { vec![path.to_owned()] };
        for path in within {
            let (input, kind) = match open_archive_to_sort(&path)? {
                Ok(opened) => opened,
                Err(report) => {
                    files.unread.push(report);
                    continue;
                }
            };
            match kind {
                kind if kind.is_capture() => files.captures.push(path),
                Kind::ModemLog(_) | Kind::LogText | Kind::Sniffer(_) => files.radio = true,
                Kind::Table(airmile_decode::table::TableKind::Grants) => files.radio = true,
                Kind::Application(format) => {
                    files.application = true;
                    files.hars.extend((format == ApplicationFormat::Har).then_some(path));
                }
                _ if ProbeLog::recognise(input.head()) => {
                    files.probe = Some(ProbeLog::read(&path, progress)?);
                }
                _ => {}
            }
        }
        Ok(files)
    }
}

/// The repetitions in a directory that is no run itself: the logs of browsers in it, else the
/// directories in it.
fn repetitions(dir: &Path, files: &RunInputs) -> Result<Vec<PathBuf>> {
    let has_others = files.radio || files.probe.is_some() || !files.captures.is_empty();
    if has_others || !dir.is_dir() || files.application && files.hars.len() < 2 {
        return Ok(Vec::new());
    }
    if files.hars.is_empty() { directories_in(dir) } else { Ok(files.hars.clone()) }
}

/// Reads a run, or the repetitions of one, which count as one.
///
/// # Errors
/// It cannot be read, or holds nothing to compare.
pub(super) fn gather(path: &Path, options: &RadioOptions, progress: &Progress) -> Result<Run> {
    if comes_once(path) && (path.as_os_str() == "-" || path.exists()) {
        return Err(Error::Unusable {
            path: path.to_owned(),
            what:
                "can be read only once, and a run is read several times: write it to a file, and \
                   give its name"
                    .into(),
        });
    }
    let files = RunInputs::look(path, progress)?;
    let parts = repetitions(path, &files)?;
    let read = |part: &PathBuf| one_run(part, RunInputs::look(part, progress)?, options, progress);
    let mut parts = parts.iter().map(read);
    let Some(first) = parts.next() else { return one_run(path, files, options, progress) };
    let mut run = Run { name: printable_path(path), ..first? };
    run.files.extend(files.unread);
    for part in parts {
        let part = part?;
        run.transfers.extend(part.transfers);
        run.pages.extend(part.pages);
        run.files.extend(part.files);
        run.seen_by.extend(part.seen_by);
        run.server_restarts |= part.server_restarts;
        run.nearer_server = run.nearer_server.or(part.nearer_server);
        run.restarter = run.restarter.agreed(part.restarter);
    }
    run.seen_by.sort_unstable();
    run.seen_by.dedup();
    run.transfers.sort_by_key(|grouped| grouped.sample.start_ns);
    Ok(run)
}

fn one_run(
    path: &Path,
    files: RunInputs,
    options: &RadioOptions,
    progress: &Progress,
) -> Result<Run> {
    let name = printable_path(path);
    let (captured, reports) = flows::read(&files.captures, progress)?;
    let server_restarts =
        files.probe.as_ref().is_some_and(|log| log.server_restarts_after_idle == Some(true));
    let mut run = Run {
        name,
        server_restarts,
        nearer_server: captured.iter().find_map(Captured::is_nearer_server),
        ..Run::default()
    };
    if files.radio || files.application {
        let inputs = Inputs { files: vec![path.to_owned()], ..Inputs::default() };
        let seen = diagnosed(&inputs, options, progress)?;
        run.restarter = seen.restarter;
        run.transfers = seen.transfers(&captured, files.probe.as_ref());
        run.pages = seen.diagnosis.pages;
        run.files = seen.diagnosis.files;
    } else if !captured.is_empty() {
        let wire = Wire::read(&files.captures, None, progress)?.0;
        run.restarter = wire.map_or(run.restarter, |wire| wire.restarter);
        run.transfers = captured.iter().flat_map(of_capture).collect();
        let start_us = reports.iter().filter_map(|report| report.start_us).min();
        run.limit(options.limits, start_us);
        run.files = reports.into_iter().chain(files.unread).collect();
    } else if let Some(probe) = &files.probe {
        run.transfers = probe.transfers.iter().filter_map(|one| of_probe(probe, one)).collect();
        run.limit(options.limits, probe.transfers.iter().map(|one| one.start_us).min());
        run.files = reports.into_iter().chain(files.unread).collect();
    } else {
        let problems = files.unread.iter().flat_map(|file| &file.problems);
        let damaged: String = problems.map(|problem| format!(" ({})", problem.what)).collect();
        let what = format!(
            "holds no run{damaged}: give a directory with a modem log, captures, an application's log \
             or the output of `airmile probe run`"
        );
        return Err(Error::Unusable { path: path.to_owned(), what });
    }
    let by = [
        ("modem log", files.radio),
        ("captures", !captured.is_empty()),
        ("probe", files.probe.is_some()),
        ("application's log", files.application),
    ];
    run.seen_by = by.into_iter().filter(|(_, there)| *there).map(|(what, _)| what).collect();
    run.transfers.sort_by_key(|grouped| grouped.sample.start_ns);
    Ok(run)
}

/// A diagnosis, and the data received over the radio.
struct RunDiagnosis {
    diagnosis: Diagnosis,
    answer: RadioAnalysis,
    restarter: Restarter,
    /// Nanoseconds and bytes, in order.
    came: Vec<(i64, u64)>,
}

fn diagnosed(inputs: &Inputs, options: &RadioOptions, progress: &Progress) -> Result<RunDiagnosis> {
    let (session, aligned) = AlignedInputs::gather(inputs, options, progress)?;
    let mut came = Vec::new();
    let answer = radio_with(session, options, Keep::Lists, &mut |tagged| {
        if let Record::Grant(grant) = &tagged.record
            && let Some((at_ns, bytes)) = block(grant)
        {
            came.push((at_ns, u64::from(bytes)));
        }
    })?;
    came.sort_unstable();
    let restarter = aligned.restarter();
    let diagnosis = conclude_with_pages(&answer, aligned, &options.thresholds, progress)?;
    Ok(RunDiagnosis { diagnosis, answer, restarter, came })
}

impl RunDiagnosis {
    fn transfers(&self, captured: &[Captured], probe: Option<&ProbeLog>) -> Vec<GroupedTransfer> {
        let shifts: Vec<i64> = captured.iter().map(|one| self.shift_ns(&one.name)).collect();
        let all = self.diagnosis.transfers.iter().enumerate();
        let mut grouped: Vec<GroupedTransfer> = all
            .filter_map(|(at, transfer)| self.grouped(at, transfer, captured, &shifts, probe))
            .collect();
        fill_in(&mut grouped);
        grouped
    }

    /// The offset from a capture's times to the modem's clock.
    fn shift_ns(&self, name: &str) -> i64 {
        let clock = self.diagnosis.clocks.iter().find(|c| c.file == name && c.corrected);
        let offset_ms = clock.and_then(|clock| clock.offset_ms).unwrap_or(0.0);
        -(offset_ms * 1e6) as i64
    }

    fn grouped(
        &self,
        at: usize,
        transfer: &TransferDiagnosis,
        captured: &[Captured],
        shifts: &[i64],
        probe: Option<&ProbeLog>,
    ) -> Option<GroupedTransfer> {
        let measures = &transfer.finding;
        let bytes = measures.bytes.filter(|bytes| *bytes >= LEAST_BYTES)?;
        let failed = transfer.application.as_ref().is_some_and(|side| side.failed);
        if measures.dir != Direction::Dl || failed {
            return None;
        }
        let by_clock = measures.start_us.zip(measures.end_us);
        let by_clock =
            by_clock.and_then(|(from, to)| from.checked_mul(1_000).zip(to.checked_mul(1_000)));
        // For a log without a time of day, in ms from its start.
        let by_log = || {
            let from_ns = measures.start_tti.0.saturating_mul(1_000_000);
            (from_ns, from_ns.saturating_add((measures.duration_ms * 1e6) as i64))
        };
        let (start_ns, end_ns) = by_clock.unwrap_or_else(by_log);
        let report = &self.answer.report;
        let usage = report.usage.get(at);
        let seen = self.answer.seen.get(at);
        let link = report.transfers.get(at).zip(seen);
        let ns = |ms: f64| (ms * 1e6) as i64;
        let mut grouped = GroupedTransfer {
            sample: Sample {
                start_ns,
                duration_ns: ns(measures.duration_ms),
                bytes,
                wait_ns: transfer.application.as_ref().and_then(|side| side.wait_ms).map(ns),
                queued_ns: measures.throughput_time_ms.map(ns),
                link_bps: link
                    .and_then(|(finding, seen)| long_bursts_bps(finding, seen, report.tti_ms)),
                others_load: seen.and_then(|seen| seen.others.mean()).map(|(share, _)| share),
                rsrp_dbm: usage.and_then(|usage| usage.rsrp_dbm),
                is_timeless: by_clock.is_none(),
                ..Sample::default()
            },
            port: transfer.name.as_deref().and_then(port_of),
            server: None,
            shares: transfer.shares.clone(),
            connection: transfer.application.as_ref().and_then(|side| side.connection.clone()),
        };
        if let Some(probe) = probe
            && let Some(own) = probe.transfers.iter().find(|one| one.id == transfer.id)
            && let Some(other) = of_probe(probe, own)
        {
            (grouped.port, grouped.server) = (other.port, other.server);
            grouped.sample.turn = other.sample.turn;
            grouped.sample.rtt_ns = other.sample.rtt_ns;
            grouped.sample.pause_ns = other.sample.pause_ns;
            grouped.sample.growth = other.sample.growth;
            grouped.sample.wait_ns = other.sample.wait_ns;
        }
        let span = (start_ns, end_ns);
        let flow = captured
            .iter()
            .zip(shifts)
            .flat_map(|(one, shift)| one.flows.iter().map(move |flow| (flow, *shift)))
            .filter(|(flow, _)| grouped.port.is_none_or(|port| flow.port == port))
            .max_by_key(|(flow, shift)| arrived(flow, *shift, span).1);
        match flow.map(|(flow, shift)| (flow, arrived(flow, shift, span))) {
            Some((flow, (arrivals, sum))) if sum > bytes / 2 => {
                grouped.port = Some(flow.port);
                grouped.server = Some(flow.server.to_string());
                grouped.sample.rtt_ns = flow.rtt_ns.or(grouped.sample.rtt_ns);
                if !measures.overlapped {
                    grouped.sample.growth = growth(&arrivals, grouped.sample.rtt_ns);
                    grouped.sample.pause_ns = pause_of(flow, &arrivals).or(grouped.sample.pause_ns);
                }
            }
            _ if grouped.sample.growth.is_none() && !measures.overlapped => {
                // From the data received over the radio, which is all of the phone's traffic.
                let from = self.came.partition_point(|(at, _)| *at < start_ns);
                let to = self.came.partition_point(|(at, _)| *at < end_ns);
                let came = self.came.get(from..to).unwrap_or_default();
                grouped.sample.growth = growth(came, grouped.sample.wait_ns);
            }
            _ => {}
        }
        Some(grouped)
    }
}

/// The arrivals on a connection during a span, and their bytes.
fn arrived(
    flow: &Connection,
    shift_ns: i64,
    (from_ns, to_ns): (i64, i64),
) -> (Vec<(i64, u64)>, u64) {
    let exchanges = flow.exchanges.iter().filter(|exchange| {
        exchange.end_ns + shift_ns >= from_ns - SLACK_NS
            && exchange.start_ns + shift_ns <= to_ns + SLACK_NS
    });
    let arrivals: Vec<(i64, u64)> = exchanges
        .flat_map(|exchange| &exchange.arrivals)
        .filter(|(at, _)| (from_ns - SLACK_NS..=to_ns + SLACK_NS).contains(&(at + shift_ns)))
        .copied()
        .collect();
    let sum = arrivals.iter().map(|(_, bytes)| bytes).sum();
    (arrivals, sum)
}

/// The pause before the exchange that the arrivals start with.
fn pause_of(flow: &Connection, arrivals: &[(i64, u64)]) -> Option<i64> {
    let first = arrivals.first()?.0;
    let begins = |exchange: &&TimedRequest| exchange.arrivals.first().is_some_and(|a| a.0 == first);
    flow.exchanges.iter().find(begins)?.pause_ns
}

/// Fills in pauses of transfers whose connections are known only from an application's log. For
/// others it is unknown whether the connection was already open.
fn fill_in(grouped: &mut [GroupedTransfer]) {
    let mut last: BTreeMap<String, i64> = BTreeMap::new();
    grouped.sort_by_key(|one| one.sample.start_ns);
    for one in grouped {
        let Some(connection) = one.connection.clone() else { continue };
        let end_ns = one.sample.start_ns.saturating_add(one.sample.duration_ns);
        let before = last.insert(connection, end_ns);
        if one.server.is_none() && one.sample.pause_ns.is_none() {
            one.sample.pause_ns = before.map(|before| (one.sample.start_ns - before).max(0));
        }
    }
}

/// Exchanges of a capture alone.
fn of_capture(captured: &Captured) -> Vec<GroupedTransfer> {
    let all = captured.flows.iter().flat_map(|flow| {
        flow.exchanges.iter().filter(|one| one.bytes >= LEAST_BYTES).map(move |one| {
            GroupedTransfer {
                sample: Sample {
                    start_ns: one.start_ns,
                    duration_ns: one.end_ns - one.start_ns,
                    bytes: one.bytes,
                    wait_ns: Some(one.first_byte_ns - one.start_ns).filter(|ns| *ns > 0),
                    pause_ns: one.pause_ns,
                    growth: growth(&one.arrivals, flow.rtt_ns),
                    rtt_ns: flow.rtt_ns,
                    ..Sample::default()
                },
                port: Some(flow.port),
                server: Some(flow.server.to_string()),
                shares: BTreeMap::new(),
                connection: None,
            }
        })
    });
    all.collect()
}

/// A transfer by a probe's own times; `None` if it failed.
fn of_probe(log: &ProbeLog, one: &ProbeTransfer) -> Option<GroupedTransfer> {
    let connection = log.connections.get(one.connection)?;
    if one.failed.is_some() || one.bytes < LEAST_BYTES {
        return None;
    }
    let ns = |us: i64| us.saturating_mul(1_000);
    let rtt_ns = log.round_trip_us(connection.port).map(ns);
    let arrivals: Vec<(i64, u64)> = one.arrivals.iter().map(|(us, n)| (ns(*us), *n)).collect();
    Some(GroupedTransfer {
        sample: Sample {
            start_ns: ns(one.start_us),
            duration_ns: ns(one.end_us.saturating_sub(one.start_us)),
            bytes: one.bytes,
            wait_ns: one.first_byte_us.map(|at| ns(at.saturating_sub(one.start_us))),
            pause_ns: one.pause_us.map(ns),
            growth: growth(&arrivals, rtt_ns),
            rtt_ns,
            turn: usize::try_from(one.turn).unwrap_or_default(),
            ..Sample::default()
        },
        port: Some(connection.port),
        server: Some(connection.server.clone()),
        shares: BTreeMap::new(),
        connection: None,
    })
}

/// The port in a URL, or its scheme's.
fn port_of(url: &str) -> Option<u16> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let behind = authority.rsplit_once(']').map_or(authority, |(_, behind)| behind);
    match behind.rsplit_once(':') {
        Some((_, port)) => port.parse().ok(),
        None => match scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_urls() {
        let check = |url: &str, expected: Option<u16>| assert_eq!(port_of(url), expected, "{url}");
        check("http://203.0.113.1/a", Some(80));
        check("https://example.org?…", Some(443));
        check("http://example.org:7777/segment?…", Some(7777));
        check("https://[2001:db8::1]/a", Some(443));
        check("https://[2001:db8::1]:8443/a", Some(8443));
        check("/periodic?bytes=4", None);
        check("ftp://a/b", None);
    }
}
