//! Reads packet captures in order: several files as one sequence, or a stream.

mod order;
mod source;
mod ticks;
mod times;
mod views;

use std::io::Read;
use std::path::Path;

use airmile_capture::packet::{
    CaptureReader, Captured, Dissector, FragmentCounts, Frame, Unread, VpnSign, vpn_sign,
};
use airmile_model::packet::Packet;
use airmile_model::{Problem, Severity};

use crate::error::{Error, Result};
use crate::file_report::{CUT_HEADER, FileReport, plural};
use crate::input::{Input, Progress, comes_once};
use crate::limits::LimitFilter;
use crate::recognise::Kind;

use order::InOrder;
pub use source::{CaptureReading, CaptureStream, Captures};
pub use ticks::SLOT_NS;
use times::FrameTimes;
pub use views::Views;

/// Bytes read at a time: fits into a core's second-level cache together with the flows.
const CHUNK_BYTES: usize = 256 * 1024;

/// Bytes at the begin of a file in which packets out of order are searched (chosen here: where a network
/// card has several queues, some are among any few thousand packets).
const ORDER_BYTES: usize = 8 << 20;

/// Key in a report for a capture made without root.
pub const WITHOUT_ROOT: &str = "captured_without_root";

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
    match reading.captures {
        Captures::Files([path]) => {
            reports.push(read_file(path, progress, &mut limits, &mut dissector, sink)?);
        }
        Captures::Files(files) => {
            for path in files {
                views.next_file();
                let mut each = |packet: &Packet<'_>| {
                    views.push(packet);
                    sink(packet);
                };
                reports.push(read_file(path, progress, &mut limits, &mut dissector, &mut each)?);
                if let Some(what) = views.same_traffic() {
                    return Err(Error::Unusable { path: path.clone(), what });
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
    note_order(&mut reports);
    dissector.finish(&mut |packet| packet.map_or((), &mut *sink));
    let fragments = dissector.counts();
    Ok((reports, ReadCounts { fragments, repeated_connections: views.repeated }))
}

/// Reads a file's packets in its order, or in order of time if its first ones are not in it.
fn read_file(
    path: &Path,
    progress: &Progress,
    limits: &mut LimitFilter,
    dissector: &mut Dissector,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<FileReport> {
    if comes_once(path) {
        return read_once(Input::open(path, progress)?, limits, dissector, sink);
    }
    let begin = Beginning::of(path)?;
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

/// Warns of the first file that begins before the one given before it.
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
    for (offset, unread) in times.first_unread.drain(..) {
        let n = file.records.get(name(unread)).copied().unwrap_or_default();
        if let Some(what) = describe(unread, n) {
            file.problem(Problem::at(offset, Severity::Warning, what));
        }
    }
    if file.items == 0 && file.problems.is_empty() {
        file.warn("no packet is in it, or none between --from and --to".into());
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
            warn(format!("{n} {what}"));
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
        return;
    }
    file.items += 1;
    note_vpn(file, frame);
    times.push(frame.at_ns);
    dissector.push(frame, &mut |read| match read {
        Ok(packet) => sink(packet),
        Err(unread) => note_unread(file, times, frame, unread),
    });
}

/// Counts a frame without a packet.
#[cold]
fn note_unread(file: &mut FileReport, times: &mut FrameTimes, frame: &Frame<'_>, unread: Unread) {
    let name = name(unread);
    file.bad_items += u64::from(!matches!(unread, Unread::NotIp(_)));
    if !file.records.contains_key(name) {
        times.first_unread.push((frame.offset, unread));
    }
    *file.records.entry(name.into()).or_default() += 1;
}

/// The key of a kind of unread frames.
const fn name(unread: Unread) -> &'static str {
    match unread {
        Unread::NotIp(_) => "not_ip",
        Unread::Link(_) => "unknown_link_type",
        Unread::Cut(_) => CUT_HEADER,
        Unread::Bad(_) => "bad_header",
    }
}

/// Number of frames examined for signs of a capture without root (chosen here: the first
/// may be of another kind).
const VPN_FRAMES: u64 = 64;

/// Adds a note, once, that the phone's own VPN made the capture, and its limitations.
fn note_vpn(file: &mut FileReport, frame: &Frame<'_>) {
    if file.items > VPN_FRAMES || file.records.contains_key(WITHOUT_ROOT) {
        return;
    }
    let Some(sign) = vpn_sign(frame) else { return };
    let by = match sign {
        VpnSign::Trailer => "PCAPdroid's trailer",
        VpnSign::Address => "PCAPdroid's address, 10.215.173.1",
        VpnSign::Hardware => "hardware addresses that no adapter has",
    };
    let what = format!(
        "a VPN on the phone captured this without root (by {by}): its connections end on the phone, \
         so that round trips, losses and windows are not those of the network; requests, their \
         times and the rate of bytes are (docs/phones.md)"
    );
    file.records.insert(WITHOUT_ROOT.into(), 1);
    file.problem(Problem::at(frame.offset, Severity::Warning, what));
}

/// What frames of a link type that is not read are (the registry of LINKTYPE values).
const fn kind(link: u32) -> &'static str {
    match link {
        // Plain, with Prism, radiotap, AVS or PPI headers.
        105 | 119 | 127 | 163 | 192 => {
            " (802.11 frames as they are on the air, encrypted: capture on the interface of the \
             phone, computer or router instead)"
        }
        187 | 201 | 251 | 254 => " (Bluetooth)",
        189 | 220 | 249 => " (USB)",
        _ => "",
    }
}

/// A description of `n` frames by the first one.
fn describe(unread: Unread, n: u64) -> Option<String> {
    match unread {
        Unread::NotIp(_) => None,
        Unread::Link(link) => {
            Some(format!("{n} frame{} of link type {link}{} not read", plural(n), kind(link)))
        }
        Unread::Cut(header) => Some(format!("frame cut within its {header} header")),
        Unread::Bad(field) => Some(format!("frame with a bad {field}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A capture of raw IP (UDP without data) at these times in ms.
    fn capture(times_ms: &[u32]) -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
        let mut out = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101]);
        let udp = [
            0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0, 53, 0, 53, 0,
            8, 0, 0,
        ];
        for ms in times_ms {
            out.extend(words(&[1_000 + ms / 1_000, ms % 1_000 * 1_000, 28, 28]));
            out.extend(udp);
        }
        out
    }

    /// A study and a diagnosis put packets in order, and agree on which come too late.
    #[test]
    fn packets_that_are_too_late_are_damage_whoever_reads() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let files = [file.path().to_owned()];
        for (times_ms, order_ms, expected) in [
            (&[0, 10, 20, 30][..], &[0, 10, 20, 30][..], false),
            (&[0, 400, 100, 500], &[0, 100, 400, 500], false),
            (&[0, 400, 1_000, 300, 1_100], &[0, 400, 300, 1_000, 1_100], true),
        ] {
            std::fs::write(file.path(), capture(times_ms)).unwrap();
            let progress = Progress::default();
            let captures = CaptureReading { captures: (&files).into(), limits: Default::default() };
            let mut order = Vec::new();
            let mut note = |packet: &Packet<'_>| order.push(packet.at_ns / 1_000_000 - 1_000_000);
            let (reports, _) = read_captures(captures, &progress, &mut note).unwrap();
            assert_eq!(order, order_ms);
            let sorted = read_capture(file.path(), &progress, &mut |_| {}).unwrap();
            assert_eq!((reports[0].damaged, sorted.damaged), (expected, expected), "{times_ms:?}");
            assert_eq!(reports[0].problems, sorted.problems);
            assert_eq!(reports[0].items, times_ms.len() as u64);
        }
    }

    /// Behind the first bytes, and from a stream, packets stay in the order of the file.
    #[test]
    fn packets_out_of_order_that_are_not_put_in_order_are_reported() {
        let stream = CaptureStream {
            name: "-".into(),
            read: Box::new(std::io::Cursor::new(capture(&[0, 400, 100, 500]))),
        };
        let captures =
            CaptureReading { captures: Captures::Stream(stream), limits: Default::default() };
        let (reports, _) = read_captures(captures, &Progress::default(), &mut |_| {}).unwrap();
        let what = "1 packet not in order of time";
        assert!(reports[0].problems[0].what.starts_with(what), "{reports:?}");
    }

    /// The packets of a stream are seen once: it is warned of its clock as a file is.
    #[test]
    fn a_coarse_clock_of_a_stream_is_reported() {
        let times_ms: Vec<u32> = (0..60).map(|i| i * i / 3 * 10).collect();
        let read = |captures: Captures<'_>| {
            let reading = CaptureReading { captures, limits: Default::default() };
            let (reports, _) = read_captures(reading, &Progress::default(), &mut |_| {}).unwrap();
            reports[0].problems.clone()
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), capture(&times_ms)).unwrap();
        let of_file = read((&[file.path().to_owned()]).into());
        assert!(of_file[0].what.starts_with("its clock has ticks of 10 ms"), "{of_file:?}");
        let bytes = std::io::Cursor::new(capture(&times_ms));
        let stream = CaptureStream { name: "-".into(), read: Box::new(bytes) };
        assert_eq!(read(Captures::Stream(stream)), of_file);
    }
}
