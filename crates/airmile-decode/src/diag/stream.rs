//! Splits a byte stream in pieces into DIAG packets.
//!
//! Call order: [`Deframer::push`] some bytes, [`Deframer::poll`] until it returns `None`,
//! and so on; at the end of the input [`Deframer::finish`], then poll until `None` once
//! more. The events do not depend on how the input is split.
//!
//! The container is recognised by its content, whatever the file's name:
//!
//! - HDLC (`.mi2log`, `.qmdl`): two frames with a good CRC;
//! - HDLC after a leading section (`.qmdl2`): the first four bytes are the
//!   section's length, and two good frames follow it;
//! - DLF: three plausible record heads, each where the one before it ends;
//! - HDF: unencoded log packets in between other bytes, taken only where
//!   nothing of the above was found.
//!
//! The container whose evidence is complete earliest in the input wins.
//!
//! Damage never ends the reading. HDLC resumes at the next terminator. DLF, which has no
//! marks, resumes at the next place with two chained plausible heads. An invalid piece at
//! the beginning or end of a stream is [`Severity::Normal`]: logs are rotated in the
//! middle of a frame. At the end of the last part it is damage: its contents are lost.

mod detect;
mod hdf;

use std::collections::VecDeque;

use airmile_model::{Problem, Severity};

pub use detect::Container;
use detect::{DamagedPlace, Detect, HdlcEvidence, any_dlf, dlf_evidence, leading_len, place};

use super::dlf::{self, RecordHeader};
use super::frame::{LogPacket, OtherPacket, Packet};
use super::{hdlc, time};

/// The result of [`Deframer::poll`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A log packet.
    Log(LogPacket<'a>),
    /// A packet that is not a log packet.
    Other(OtherPacket),
    /// Bytes that are no packet, or an anomalous packet.
    Problem(Problem),
}

/// The contents of a stream so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Bytes pushed.
    pub bytes: u64,
    /// Frames with a good CRC, or DLF records.
    pub good_frames: u64,
    /// Frames with a bad CRC, or spans without a DLF record.
    pub bad_frames: u64,
}

/// Maximum bytes between two terminators for a frame: a wrapped log packet of the largest
/// size with every byte escaped.
const MAX_PIECE: usize = 2 * (65_535 + 8 + 4 + 2);
/// Bytes after which a stream without two good frames is assumed to be HDLC.
const DETECT_LIMIT: usize = 1 << 20;
/// Maximum leading section of a `.qmdl2` (chosen here).
const MAX_LEADING: usize = 1 << 18;

/// Number of bad frames from which two good ones may be chance (chosen here: no sample
/// log has more than two).
const MANY_BAD: u32 = 64;

/// Finds packets in a stream of bytes.
#[derive(Debug, Clone, Default)]
pub struct Deframer {
    /// Bytes not yet consumed, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// Offset of `buffer[0]` in the input.
    base: u64,
    /// Bytes after `start` that need no further search: they hold no terminator (HDLC),
    /// no chained head (DLF).
    scanned: usize,
    /// Where the sequence of DLF records broke.
    lost: Option<u64>,
    /// Offset after the last unencoded packet, and its time stamp.
    behind: (u64, Option<u64>),
    /// The last frame, unescaped.
    frame: Vec<u8>,
    container: Option<Container>,
    finished: bool,
    /// Whether no other part of the log follows this stream.
    last: bool,
    /// Whether a frame has been found, good or bad.
    begun: bool,
    /// An invalid piece: normal if no frame follows it.
    held: Option<Problem>,
    /// Inside a piece too long for a frame.
    skipping: bool,
    problems: VecDeque<Problem>,
    counts: Counts,
    detect: Detect,
}

/// A frame in the buffer, as ranges, so that it can be borrowed after the search.
enum FoundFrame {
    Frame { offset: u64, range: Option<(usize, usize)> },
    Record { offset: u64, head: RecordHeader, end: usize },
    Unencoded { offset: u64, from: usize, to: usize, subscription: u8 },
    Problem(Problem),
}

impl Deframer {
    /// At the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The container, once recognised.
    #[must_use]
    pub const fn container(&self) -> Option<Container> {
        self.container
    }

    /// As [`Self::container`], after a search of the bytes so far.
    pub fn find_container(&mut self) -> Option<Container> {
        self.container.or_else(|| self.recognise())
    }

    /// The contents so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes the next bytes of the stream. After [`Self::finish`] they are ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.finished {
            return;
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.base += self.start as u64;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
        self.counts.bytes += bytes.len() as u64;
    }

    /// Ends the stream; another part of a rotated log may follow.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Ends the last part: truncated data at the end is lost.
    pub fn finish_last(&mut self) {
        self.last = true;
        self.finish();
    }

    /// The part after this one, of a stream that was interrupted: offsets and counts continue.
    pub(super) fn next_part(&self) -> Self {
        Self { base: self.counts.bytes, counts: self.counts, ..Self::default() }
    }

    const fn torn_end(&self) -> Severity {
        if self.last { Severity::Damage } else { Severity::Normal }
    }

    /// The next event; `None` until more bytes are pushed.
    pub fn poll(&mut self) -> Option<Event<'_>> {
        if let Some(problem) = self.problems.pop_front() {
            return Some(Event::Problem(problem));
        }
        let container = self.find_container()?;
        let found = match container {
            Container::Hdlc | Container::Qmdl2 => self.next_frame(),
            Container::Dlf => self.next_record(),
            Container::Hdf => self.next_unencoded(),
        };
        match found? {
            FoundFrame::Problem(problem) => Some(Event::Problem(problem)),
            FoundFrame::Record { offset, head, end } => {
                let RecordHeader { len, code, ts_raw } = head;
                let payload = &self.buffer[end - (len - dlf::HEADER_LEN)..end];
                let at = time::stamp(ts_raw);
                let log = LogPacket { offset, subscription: 0, code, ts_raw, at, payload };
                Some(Event::Log(log))
            }
            FoundFrame::Unencoded { offset, from, to, subscription } => {
                Some(match Packet::parse(offset, &self.buffer[from..to]) {
                    Ok((Packet::Log(log), _)) => Event::Log(LogPacket { subscription, ..log }),
                    Ok((Packet::Other(other), _)) => Event::Other(other),
                    Err(error) => {
                        let (severity, what) = (Severity::Damage, error.to_string());
                        Event::Problem(Problem::at(offset, severity, what))
                    }
                })
            }
            FoundFrame::Frame { offset, range } => {
                let frame = match range {
                    Some((from, to)) => &self.buffer[from..to],
                    None => &self.frame[..],
                };
                let problem = |error: super::frame::FrameError, severity| {
                    Problem::at(offset, severity, error.to_string())
                };
                Some(match Packet::parse(offset, frame) {
                    Ok((packet, odd)) => {
                        self.problems.extend(odd.map(|odd| problem(odd, Severity::Warning)));
                        match packet {
                            Packet::Log(log) => Event::Log(log),
                            Packet::Other(other) => Event::Other(other),
                        }
                    }
                    Err(error) => Event::Problem(problem(error, Severity::Damage)),
                })
            }
        }
    }

    /// Offset in the input of a position in the buffer.
    const fn offset(&self, at: usize) -> u64 {
        self.base + at as u64
    }

    /// Decides on the container as soon as the bytes allow it.
    fn recognise(&mut self) -> Option<Container> {
        let bytes = &self.buffer[..self.buffer.len().min(DETECT_LIMIT)];
        let last_look = self.finished || self.buffer.len() >= DETECT_LIMIT;
        if bytes.len() < self.detect.next && !last_look {
            return None;
        }
        let whole = self.finished && bytes.len() == self.buffer.len();
        let hdlc = self.detect.hdlc.look(bytes, &mut self.frame);
        let leading = leading_len(bytes);
        let qmdl2 = leading.and_then(|at| {
            let start = HdlcEvidence { at, ..HdlcEvidence::default() };
            let evidence = self.detect.qmdl2.get_or_insert(start);
            let end = evidence.look(bytes, &mut self.frame);
            end.filter(|_| evidence.bad == 0)
        });
        let dlf = dlf_evidence(bytes, whole);
        // The earliest evidence does not depend on how the input is split.
        let decided = [(qmdl2, Container::Qmdl2), (hdlc, Container::Hdlc), (dlf, Container::Dlf)];
        let earliest = decided.iter().filter_map(|&(at, container)| Some((at?, container)));
        let container = match earliest.min_by_key(|&(at, _)| at) {
            // A frame may pass its CRC by chance, one piece in 65536.
            Some((at, Container::Hdlc))
                if self.detect.hdlc.bad >= MANY_BAD && hdf::evidence(&bytes[..at]) =>
            {
                Container::Hdf
            }
            Some((_, container)) => container,
            None if !last_look => {
                self.detect.next = bytes.len() + bytes.len() / 16 + 1;
                return None;
            }
            None if self.detect.hdlc.good == 0 && hdf::evidence(bytes) => Container::Hdf,
            None if self.detect.hdlc.good == 0 && any_dlf(bytes, whole) => Container::Dlf,
            None => Container::Hdlc,
        };
        // Without any good frame the first piece is not just a truncated one.
        self.begun = self.detect.hdlc.good == 0;
        if container == Container::Qmdl2 {
            self.start = leading.unwrap_or(0);
            self.begun = true;
        }
        if self.buffer.is_empty() {
            return None;
        }
        self.container = Some(container);
        Some(container)
    }

    /// The next HDLC frame.
    fn next_frame(&mut self) -> Option<FoundFrame> {
        loop {
            let rest = &self.buffer[self.start..];
            let Some(len) = memchr::memchr(hdlc::TERMINATOR, &rest[self.scanned..])
                .map(|len| len + self.scanned)
            else {
                self.scanned = rest.len();
                return self.no_terminator();
            };
            let (from, to) = (self.start, self.start + len);
            let offset = self.offset(from);
            self.start = to + 1;
            self.scanned = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if len == 0 {
                continue;
            }
            if len > MAX_PIECE {
                return Some(self.too_long(offset));
            }
            let piece = &self.buffer[from..to];
            let escaped = memchr::memchr(hdlc::ESCAPE, piece).is_some();
            let result = if escaped {
                hdlc::unescape(piece, &mut self.frame)
                    .and_then(|()| hdlc::check(&self.frame).map(<[u8]>::len))
            } else {
                hdlc::check(piece).map(<[u8]>::len)
            };
            let first = !std::mem::replace(&mut self.begun, true);
            // Another piece follows the held one, so it was not the last.
            let held = self.held.take();
            match result {
                Ok(len) => {
                    self.counts.good_frames += 1;
                    if escaped {
                        self.frame.truncate(len);
                    }
                    if let Some(held) = held {
                        // Return to this frame.
                        self.counts.good_frames -= 1;
                        self.start = from;
                        return Some(FoundFrame::Problem(held));
                    }
                    let range = if escaped { None } else { Some((from, from + len)) };
                    return Some(FoundFrame::Frame { offset, range });
                }
                Err(error) => {
                    self.counts.bad_frames += 1;
                    let severity = if first { Severity::Normal } else { Severity::Damage };
                    let problem = Problem::at(offset, severity, error.to_string());
                    if first {
                        return Some(FoundFrame::Problem(problem));
                    }
                    self.held = Some(problem);
                    if let Some(held) = held {
                        return Some(FoundFrame::Problem(held));
                    }
                }
            }
        }
    }

    /// Handles bytes without a terminator yet.
    fn no_terminator(&mut self) -> Option<FoundFrame> {
        let left = self.buffer.len() - self.start;
        let offset = self.offset(self.start);
        if self.skipping {
            self.start = self.buffer.len();
            self.scanned = 0;
            return None;
        }
        if left > MAX_PIECE {
            self.start = self.buffer.len();
            self.scanned = 0;
            self.skipping = true;
            return Some(self.too_long(offset));
        }
        if !self.finished {
            return None;
        }
        if let Some(mut held) = self.held.take() {
            // Only a truncated piece may follow it.
            if left == 0 && self.counts.good_frames > 0 {
                held.severity = self.torn_end();
            }
            return Some(FoundFrame::Problem(held));
        }
        if left == 0 {
            return None;
        }
        self.start = self.buffer.len();
        self.scanned = 0;
        let (severity, what) = if self.counts.good_frames == 0 {
            (Severity::Damage, format!("no DIAG frame or record in {left} bytes"))
        } else {
            let what = format!("last HDLC frame is torn: {left} bytes without terminator");
            (self.torn_end(), what)
        };
        Some(FoundFrame::Problem(Problem::at(offset, severity, what)))
    }

    fn too_long(&mut self, offset: u64) -> FoundFrame {
        self.begun = true;
        self.counts.bad_frames += 1;
        let what = format!("no HDLC terminator in more than {MAX_PIECE} bytes");
        let problem = Problem::at(offset, Severity::Damage, what);
        match self.held.take() {
            Some(held) => {
                self.problems.push_back(problem);
                FoundFrame::Problem(held)
            }
            None => FoundFrame::Problem(problem),
        }
    }

    /// The next DLF record.
    fn next_record(&mut self) -> Option<FoundFrame> {
        if self.lost.is_some() {
            return self.resync();
        }
        let rest = &self.buffer[self.start..];
        let offset = self.offset(self.start);
        let Some(head) = RecordHeader::read(rest) else {
            if !self.finished || rest.is_empty() {
                return None;
            }
            let len = rest.len();
            return Some(self.torn_record(len));
        };
        if !head.sound() {
            self.lost = Some(offset);
            self.start += 1;
            return self.resync();
        }
        let chained = match rest.get(head.len..) {
            Some([]) if self.finished => true,
            Some(behind) if behind.len() >= dlf::HEADER_LEN => {
                RecordHeader::read(behind).is_some_and(|next| head.chains_to(&next))
            }
            _ if self.finished => false,
            _ => return None,
        };
        if !chained && !head.plausible() {
            // An anomalous code is accepted only in a record that is in sequence.
            self.lost = Some(offset);
            self.start += 1;
            return self.resync();
        }
        if !chained {
            // This record's length may be wrong: then a chain begins within it.
            let mut at = self.scanned.max(1);
            while at < head.len.min(rest.len()) {
                match place(rest, at, self.finished) {
                    DamagedPlace::No => at += 1,
                    DamagedPlace::Chained => {
                        self.start += at;
                        self.scanned = 0;
                        return Some(self.lost_bytes(offset));
                    }
                    DamagedPlace::Unclear => {
                        self.scanned = at;
                        return None;
                    }
                }
            }
            self.scanned = 0;
            if head.len > rest.len() {
                return Some(self.torn_record(head.len));
            }
        }
        let end = self.start + head.len;
        self.start = end;
        self.counts.good_frames += 1;
        Some(FoundFrame::Record { offset, head, end })
    }

    /// Searches for a place where DLF records resume.
    fn resync(&mut self) -> Option<FoundFrame> {
        let lost = self.lost?;
        loop {
            let rest = &self.buffer[self.start..];
            if rest.len() < dlf::HEADER_LEN && self.finished {
                self.start = self.buffer.len();
                break;
            }
            match place(rest, 0, self.finished) {
                DamagedPlace::Chained => break,
                DamagedPlace::No => self.start += 1,
                DamagedPlace::Unclear => return None,
            }
        }
        self.lost = None;
        Some(self.lost_bytes(lost))
    }

    /// Reports bytes from `offset` to here without a record.
    fn lost_bytes(&mut self, offset: u64) -> FoundFrame {
        self.counts.bad_frames += 1;
        let bytes = self.offset(self.start) - offset;
        let what = format!("{bytes} bytes hold no DLF record");
        FoundFrame::Problem(Problem::at(offset, Severity::Damage, what))
    }

    fn torn_record(&mut self, len: usize) -> FoundFrame {
        let left = self.buffer.len() - self.start;
        let offset = self.offset(self.start);
        self.start = self.buffer.len();
        self.counts.bad_frames += 1;
        let len = len.max(dlf::HEADER_LEN);
        let what = format!("last DLF record is torn: {left} bytes of at least {len}");
        FoundFrame::Problem(Problem::at(offset, self.torn_end(), what))
    }
}
