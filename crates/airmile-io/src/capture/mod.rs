//! Reads packet captures in order of time: several files as one sequence, or a stream.

mod frames;
mod order;
mod source;
mod ticks;
mod times;
mod unread;
mod views;

use std::io::Read;
use std::path::{Path, PathBuf};

use airmile_capture::packet::{CaptureReader, Captured, Dissector, FragmentCounts};
use airmile_model::packet::Packet;
use airmile_model::{Problem, Severity};

use crate::error::{Error, Result};
use crate::file_report::{FileReport, plural};
use crate::input::{Input, Progress, comes_once};
use crate::limits::{LimitFilter, format_utc};
use crate::recognise::Kind;

pub use frames::frame_numbers;
use order::InOrder;
pub use source::{CaptureReading, CaptureStream, Captures};
pub use ticks::SLOT_NS;
use times::FrameTimes;
pub use unread::WITHOUT_ROOT;
use unread::{note_first, note_unread, note_vpn};
pub use views::Views;

/// Bytes read at a time: fits into a core's second-level cache together with the flows.
const CHUNK_BYTES: usize = 256 * 1024;

/// Bytes at the begin of a file in which packets out of order are searched (chosen here: where a network
/// card has several queues, some are among any few thousand packets).
const ORDER_BYTES: usize = 8 << 20;

/// Counts from reading captures.
pub struct ReadCounts {
    /// Of IP fragments.
    pub fragments: FragmentCounts,
    /// Connections that begin in two files.
    pub repeated_connections: u64,
}

/// Reads the packets of captures as one sequence: a datagram's fragments may be in two files.
///
/// # Errors
/// A file cannot be opened or is no capture, or two hold the same traffic.
pub fn read_captures(
    reading: CaptureReading<'_>,
    progress: &Progress,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<(Vec<FileReport>, ReadCounts)> {
    let mut dissector = Dissector::new();
    let mut reports = Vec::new();
    let mut limits = LimitFilter::new(reading.limits);
    let mut views = Views::default();
    let is_as_given = matches!(&reading.captures, Captures::Files(files) if is_as_given(files));
    match reading.captures {
        Captures::Files([path]) => {
            let begin = Beginning::of(path)?;
            reports.push(read_file(path, begin, progress, &mut limits, &mut dissector, sink)?);
        }
        Captures::Files(files) => {
            for (path, begin) in by_time(files)? {
                views.next_file();
                let mut each = |packet: &Packet<'_>| {
                    views.push(packet);
                    sink(packet);
                };
                let limits = &mut limits;
                reports.push(read_file(path, begin, progress, limits, &mut dissector, &mut each)?);
                if let Some(what) = views.same_traffic() {
                    return Err(Error::Unusable { path: path.to_owned(), what });
                }
            }
        }
        Captures::Stream(CaptureStream { name, read: stream }) => {
            let path = Path::new(&name);
            let input = Input::from_reader(path, None, stream, progress);
            let input = input.map_err(|e| Error::read(path, e))?;
            reports.push(read_once(input, &mut limits, &mut dissector, sink)?);
        }
    }
    if is_as_given {
        note_order(&mut reports);
    }
    dissector.finish(&mut |packet| packet.map_or((), &mut *sink));
    let fragments = dissector.counts();
    Ok((reports, ReadCounts { fragments, repeated_connections: views.repeated }))
}

/// Whether files are read in the order given, as one comes only once.
fn is_as_given(files: &[PathBuf]) -> bool {
    files.iter().any(|path| comes_once(path))
}

/// Files in order of their first packets' times; as given where one comes only once.
fn by_time(files: &[PathBuf]) -> Result<Vec<(&Path, Beginning)>> {
    let begin = |path: &PathBuf| Beginning::of(path);
    let mut begins: Vec<(&Path, Beginning)> =
        files.iter().map(|path| Ok((path.as_path(), begin(path)?))).collect::<Result<_>>()?;
    if !is_as_given(files) {
        begins.sort_by_key(|(_, begin)| begin.0.earliest_ns);
    }
    Ok(begins)
}

/// Reads a file's packets in its order, or in order of time if its first ones are not in it.
fn read_file(
    path: &Path,
    begin: Beginning,
    progress: &Progress,
    limits: &mut LimitFilter,
    dissector: &mut Dissector,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<FileReport> {
    if comes_once(path) {
        return read_once(Input::open(path, progress)?, limits, dissector, sink);
    }
    let read = if begin.is_out_of_order() { read_in_order } else { read_unsorted };
    let mut report = read(Input::open(path, progress)?, limits, dissector, sink)?;
    begin.note_clock(&mut report);
    Ok(report)
}

/// Reads packets in order of time; datagrams that wait for fragments stay in the dissector.
///
/// # Errors
/// As [`read_capture`].
pub fn read_in_order(
    input: Input,
    limits: &mut LimitFilter,
    dissector: &mut Dissector,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<FileReport> {
    in_order(sink, |put| read_timed(input, &mut FrameTimes::default(), limits, dissector, put))
}

/// Puts the packets that are read in order of time, and reports those that were not.
fn in_order(
    sink: &mut dyn FnMut(&Packet<'_>),
    read: impl FnOnce(&mut dyn FnMut(&Packet<'_>)) -> Result<FileReport>,
) -> Result<FileReport> {
    let mut order = InOrder::default();
    let mut report = read(&mut |packet| order.push(packet, sink))?;
    order.finish(sink);
    order.note(&mut report);
    Ok(report)
}

/// What the first packets of a file show; nothing of what comes only once.
pub struct Beginning(FrameTimes);

impl Beginning {
    /// Reads the first packets.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn of(path: &Path) -> Result<Self> {
        let mut times = FrameTimes::with_ticks();
        if comes_once(path) {
            return Ok(Self(times));
        }
        let mut input = Input::open(path, &Progress::default())?;
        let mut reader = CaptureReader::new();
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut left = ORDER_BYTES.div_ceil(CHUNK_BYTES);
        while left > 0 && times.late_ns == 0 {
            left -= 1;
            // An error is reported by who reads the packets.
            let Some(n) = input.read(&mut buffer).ok().filter(|n| *n > 0) else { break };
            reader.push(buffer.get(..n).unwrap_or_default(), &mut |captured| {
                if let Captured::Frame(frame) = captured {
                    times.push(frame.at_ns);
                }
            });
        }
        Ok(Self(times))
    }

    /// Whether packets are out of order of time.
    #[must_use]
    pub const fn is_out_of_order(&self) -> bool {
        self.0.late_ns > 0
    }

    /// Warns of a coarse clock: the same in the report of a file and in that of its first part.
    pub fn note_clock(&self, report: &mut FileReport) {
        report.clock_ticks_ns = self.0.coarse_ns();
        report.coarse_clock(SLOT_NS).into_iter().for_each(|what| report.warn(what));
    }
}

/// Reads packets in the order of the file; datagrams that wait for fragments stay in the dissector.
/// Packets that come late are reported: as damage if [`read_capture`] cannot put them in order either.
///
/// # Errors
/// As [`read_capture`].
pub fn read_unsorted(
    input: Input,
    limits: &mut LimitFilter,
    dissector: &mut Dissector,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<FileReport> {
    read_as_it_is(input, FrameTimes::default(), limits, dissector, sink)
}

/// As [`read_unsorted`], of what comes only once: all packets show its clock.
fn read_once(
    input: Input,
    limits: &mut LimitFilter,
    dissector: &mut Dissector,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<FileReport> {
    let times = FrameTimes::with_ticks();
    let mut report = read_as_it_is(input, times, limits, dissector, sink)?;
    report.coarse_clock(SLOT_NS).into_iter().for_each(|what| report.warn(what));
    Ok(report)
}

fn read_as_it_is(
    input: Input,
    mut times: FrameTimes,
    limits: &mut LimitFilter,
    dissector: &mut Dissector,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<FileReport> {
    let mut report = read_timed(input, &mut times, limits, dissector, sink)?;
    if times.moved > 0 {
        let (moved, by) = (times.moved, times.late_ns as f64 / 1e9);
        let what = format!(
            "{moved} packet{} not in order of time, by up to {by:.3} s: counted as late or \
             retransmitted; sort the capture with `reordercap`",
            plural(moved)
        );
        let severity =
            if times.late_ns > order::WINDOW_NS { Severity::Damage } else { Severity::Warning };
        report.problem(Problem::of_file(severity, what));
    }
    Ok(report)
}

/// Warns of the first file that begins before the one given before it, where files come only once.
fn note_order(reports: &mut [FileReport]) {
    let mut before: Option<(i64, String)> = None;
    for file in reports {
        let Some(start_us) = file.start_us else { continue };
        if let Some((last_us, name)) = before.filter(|(last_us, _)| start_us < *last_us) {
            let seconds = (last_us - start_us) as f64 / 1e6;
            let what = format!(
                "begins {seconds:.1} s before {name}, which was given before it: captures are read \
                 as one, in the order given; without order of time, packets count as late or \
                 retransmitted"
            );
            return file.warn(what);
        }
        before = Some((start_us, file.path.clone()));
    }
}

/// Reads a capture's packets in order of time, with datagrams reassembled from fragments. Packets
/// too late to be put in order are in the report's `late_records`.
///
/// # Errors
/// The file cannot be opened, or is no capture. Damage is in the report.
pub fn read_capture(
    path: &Path,
    progress: &Progress,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<FileReport> {
    let mut dissector = Dissector::new();
    let mut limits = LimitFilter::default();
    let (input, mut times) = (Input::open(path, progress)?, FrameTimes::with_ticks());
    in_order(sink, |put| {
        let report = read_timed(input, &mut times, &mut limits, &mut dissector, put)?;
        dissector.finish(&mut |packet| packet.map_or((), &mut *put));
        Ok(report)
    })
}

fn read_timed(
    mut input: Input,
    times: &mut FrameTimes,
    limits: &mut LimitFilter,
    dissector: &mut Dissector,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<FileReport> {
    let kind = Kind::of(input.head());
    if !kind.is_capture() {
        let what = match kind {
            Kind::Foreign(foreign) => format!("is {}", foreign.advice()),
            _ => "is no packet capture (pcap or pcapng)".to_owned(),
        };
        return Err(Error::Unusable { path: input.path().to_owned(), what });
    }
    let mut file = FileReport::new(&input, kind);
    let mut reader = CaptureReader::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) => {
                let what = format!("the rest cannot be read: {error}");
                let offset = reader.offset();
                file.problem(Problem::at(offset, Severity::Damage, what));
                break;
            }
        };
        file.bytes += n as u64;
        let piece = buffer.get(..n).unwrap_or_default();
        reader.push(piece, &mut |captured| {
            take(&mut file, times, &captured, limits, dissector, sink);
        });
    }
    reader.finish(&mut |captured| {
        take(&mut file, times, &captured, limits, dissector, sink);
    });
    note_losses(&mut file, &reader, input.path())?;
    note_first(&mut file, times);
    if file.items == 0 {
        if let Some((first, last)) = times.left_out {
            file.warn(format!(
                "its packets are of {} to {} UTC, outside of the limits",
                format_utc(first),
                format_utc(last)
            ));
        } else if file.problems.is_empty() {
            file.warn("no packet is in it".into());
        }
    }
    if file.items > 0 {
        file.start_us = Some(times.earliest_ns.div_euclid(1_000));
        file.end_us = Some(times.latest_ns.div_euclid(1_000));
    }
    file.clock_ticks_ns = times.coarse_ns();
    Ok(file)
}

/// Notes packets that the capture lost, and refuses one without times.
fn note_losses(file: &mut FileReport, reader: &CaptureReader, path: &Path) -> Result<()> {
    let items = file.items;
    let mut warn = |what: String| file.warn(what);
    match reader.lost_packets() {
        0 => {}
        1 => warn("the capture says that it lost 1 packet".to_owned()),
        n => warn(format!("the capture says that it lost {n} packets")),
    }
    if let n @ 1.. = reader.impossible_times() {
        let what = format!(
            "{n} packet{} a time that is not from 1970 to 2116: what follows from it is wrong; give \
             the others alone (`editcap`)",
            if n == 1 { " has" } else { "s have" }
        );
        file.problem(Problem::of_file(Severity::Damage, what));
    }
    match reader.timeless_packets() {
        0 => Ok(()),
        n if n >= items => Err(Error::Unusable {
            path: path.to_owned(),
            what: "its packets have no times (Simple Packet Blocks), from which all else follows: \
                   capture with `tcpdump -w` or `dumpcap`"
                .to_owned(),
        }),
        n => {
            let what =
                "packets have no time (Simple Packet Blocks): that of the one before is used";
            file.warn(format!("{n} {what}"));
            Ok(())
        }
    }
}

fn take(
    file: &mut FileReport,
    times: &mut FrameTimes,
    captured: &Captured<'_>,
    limits: &mut LimitFilter,
    dissector: &mut Dissector,
    sink: &mut dyn FnMut(&Packet<'_>),
) {
    let frame = match captured {
        Captured::Frame(frame) => frame,
        Captured::Problem(problem) => return file.problem(problem.clone()),
    };
    if !limits.keeps_ns(frame.at_ns) {
        return times.leave_out(frame.at_ns);
    }
    file.items += 1;
    note_vpn(file, frame);
    times.push(frame.at_ns);
    dissector.push(frame, &mut |read| match read {
        Ok(packet) => sink(packet),
        Err(unread) => note_unread(file, times, frame, unread),
    });
}

#[cfg(test)]
mod tests;
