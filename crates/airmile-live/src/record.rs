//! A recording: a modem's log in rotated and compressed files, with packets of an interface.
//!
//! Logs are `modem-NNNN.qmdl.zst`, split between two frames; a modem that reconnects
//! starts a new one. Packets are `packets-NNNN.pcap.zst`. A directory of them is an input
//! of all commands. Data written more than a second ago is readable while the recording
//! runs, or after it was killed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use airmile::codec::diag::hdlc::TERMINATOR;
use airmile_host::source::{LogSource, SourceItem, SourceState, queue};
use airmile_host::thread::StopFlag;
use thiserror::Error;

/// Maximum delay before written data is flushed.
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// Maximum length of a frame; beyond it the file is split without a frame's end.
const MAX_FRAME: usize = 1 << 18;
/// Length of a pcap's file header, which precedes its packets.
const PCAP_HEAD_BYTES: u64 = 24;
/// zstd's level: fast enough for a small router (chosen here).
const LEVEL: i32 = 3;

/// Options of a recording.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// The output directory, which is created if missing.
    pub dir: PathBuf,
    /// A log is closed after this many bytes, before compression.
    pub rotate_bytes: u64,
    /// Or after this time.
    pub rotate_after: Duration,
    /// Number of logs kept; the oldest is removed before another begins. `None`: all.
    pub keep: Option<usize>,
}

/// Why a recording ended.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A file error.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The directory already has a recording.
    #[error("{} holds a recording: give another directory", .0.display())]
    Taken(PathBuf),
    /// The source or interface.
    #[error("{0}")]
    Source(String),
}

/// The result of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Existing logs, in order.
    pub logs: Vec<PathBuf>,
    /// Files of packets.
    pub captures: Vec<PathBuf>,
    /// Bytes of logs, before compression, including logs that were removed.
    pub log_bytes: u64,
    /// Bytes of packets, before compression, without the captures' heads.
    pub packet_bytes: u64,
}

struct RecordingPart {
    path: PathBuf,
    out: zstd::Encoder<'static, File>,
    bytes: u64,
    begun: Instant,
}

impl RecordingPart {
    fn create(path: PathBuf) -> Result<Self, RecordError> {
        let made = File::create_new(&path).and_then(|file| zstd::Encoder::new(file, LEVEL));
        match made {
            Ok(out) => Ok(Self { path, out, bytes: 0, begun: Instant::now() }),
            Err(source) => Err(RecordError::File { path, source }),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(|source| self.failed(source))
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        self.out.flush().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> RecordError {
        RecordError::File { path: self.path.clone(), source }
    }

    fn close(self) -> Result<(), RecordError> {
        let Self { path, out, .. } = self;
        let done = out.finish().and_then(|file| file.sync_all());
        done.map_err(|source| RecordError::File { path, source })
    }
}

/// Writes a source's items into files.
pub struct Recorder {
    options: RecordOptions,
    log: Option<RecordingPart>,
    /// Bytes after the last frame's end.
    rest: Vec<u8>,
    logs: VecDeque<PathBuf>,
    next_log: u32,
    capture: Option<RecordingPart>,
    captures: Vec<PathBuf>,
    log_bytes: u64,
    packet_bytes: u64,
    flushed: Instant,
}

impl Recorder {
    /// Starts in a directory without a recording.
    ///
    /// # Errors
    /// There is one, or the directory cannot be created.
    pub fn create(options: RecordOptions) -> Result<Self, RecordError> {
        let failed = |source| RecordError::File { path: options.dir.clone(), source };
        std::fs::create_dir_all(&options.dir).map_err(failed)?;
        for entry in std::fs::read_dir(&options.dir).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("modem-") || name.starts_with("packets-") {
                return Err(RecordError::Taken(options.dir));
            }
        }
        Ok(Self {
            options,
            log: None,
            rest: Vec::new(),
            logs: VecDeque::new(),
            next_log: 0,
            capture: None,
            captures: Vec::new(),
            log_bytes: 0,
            packet_bytes: 0,
            flushed: Instant::now(),
        })
    }

    /// Takes an item of a source.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn take(&mut self, item: &SourceItem) -> Result<(), RecordError> {
        match item {
            SourceItem::Bytes(bytes) => self.take_log(bytes),
            SourceItem::Gap => self.close_log(),
            SourceItem::Packets(bytes) => self.take_packets(bytes),
            // A restarted capture has its own head.
            SourceItem::Interface(SourceState::Waiting(_)) => self.close_capture(),
            _ => Ok(()),
        }
    }

    fn take_log(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        self.rest.extend(bytes);
        let end = self.rest.iter().rposition(|byte| *byte == TERMINATOR).map(|at| at + 1);
        let end = match end {
            None if self.rest.len() > MAX_FRAME => self.rest.len(),
            end => end.unwrap_or(0),
        };
        if end == 0 {
            return Ok(());
        }
        let rest = self.rest.split_off(end);
        let whole = std::mem::replace(&mut self.rest, rest);
        let full = |part: &RecordingPart| {
            part.bytes >= self.options.rotate_bytes
                || part.begun.elapsed() >= self.options.rotate_after
        };
        if self.log.as_ref().is_some_and(full) {
            self.close_part()?;
        }
        self.write_log(&whole)
    }

    /// Writes into the open log, or begins one.
    fn write_log(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        let part = match &mut self.log {
            Some(part) => part,
            None => {
                let path = self.options.dir.join(format!("modem-{:04}.qmdl.zst", self.next_log));
                self.next_log += 1;
                self.logs.push_back(path.clone());
                while self.options.keep.is_some_and(|keep| self.logs.len() > keep.max(1)) {
                    let Some(old) = self.logs.pop_front() else { break };
                    let removed = std::fs::remove_file(&old);
                    removed.map_err(|source| RecordError::File { path: old, source })?;
                }
                self.log.insert(RecordingPart::create(path)?)
            }
        };
        self.log_bytes += bytes.len() as u64;
        part.write(bytes)
    }

    fn take_packets(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        let part = match &mut self.capture {
            Some(part) => part,
            None => {
                let name = format!("packets-{:04}.pcap.zst", self.captures.len());
                let path = self.options.dir.join(name);
                self.captures.push(path.clone());
                self.capture.insert(RecordingPart::create(path)?)
            }
        };
        self.packet_bytes += bytes.len() as u64;
        part.write(bytes)
    }

    /// Makes the written data readable, once a second.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        if self.flushed.elapsed() < FLUSH_AFTER {
            return Ok(());
        }
        self.flushed = Instant::now();
        for part in [&mut self.log, &mut self.capture].into_iter().flatten() {
            part.flush()?;
        }
        Ok(())
    }

    fn close_part(&mut self) -> Result<(), RecordError> {
        self.log.take().map_or(Ok(()), RecordingPart::close)
    }

    /// Ends a log, with all of its data.
    fn close_log(&mut self) -> Result<(), RecordError> {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.write_log(&rest)?;
        }
        self.close_part()
    }

    fn close_capture(&mut self) -> Result<(), RecordError> {
        self.capture.take().map_or(Ok(()), RecordingPart::close)
    }

    /// Closes all files.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn finish(mut self) -> Result<Recorded, RecordError> {
        self.close_log()?;
        self.close_capture()?;
        let heads = PCAP_HEAD_BYTES * self.captures.len() as u64;
        Ok(Recorded {
            logs: self.logs.into(),
            captures: self.captures,
            log_bytes: self.log_bytes,
            packet_bytes: self.packet_bytes.saturating_sub(heads),
        })
    }
}

/// Records until `stop` is set, or until the end of a source that has one. State changes
/// of the source and the interface are passed to `report`.
///
/// # Errors
/// A source cannot be started, or a file cannot be written.
pub fn record(
    source: &LogSource,
    interface: Option<&str>,
    options: RecordOptions,
    stop: &StopFlag,
    mut report: impl FnMut(&str, &SourceState),
) -> Result<Recorded, RecordError> {
    let mut recorder = Recorder::create(options)?;
    let (feed, items) = queue(stop);
    let failed = |error: &dyn std::fmt::Display| RecordError::Source(error.to_string());
    source.start(feed.clone()).map_err(|error| failed(&error))?;
    if let Some(name) = interface {
        start_interface(name, feed).map_err(RecordError::Source)?;
    }
    take_all(&mut recorder, &items, stop, |item| match item {
        SourceItem::State(SourceState::Ended) if interface.is_none() => false,
        SourceItem::State(state) => {
            report(&source.name(), state);
            true
        }
        SourceItem::Interface(state) => {
            report(interface.unwrap_or_default(), state);
            true
        }
        _ => true,
    })?;
    recorder.finish()
}

/// Records items until `goes_on` refuses one, until `stop` is set or there are no more. What
/// waits then is recorded, too.
fn take_all(
    recorder: &mut Recorder,
    items: &Receiver<SourceItem>,
    stop: &StopFlag,
    mut goes_on: impl FnMut(&SourceItem) -> bool,
) -> Result<(), RecordError> {
    while !stop.is_set() {
        match items.recv_timeout(FLUSH_AFTER) {
            Ok(item) => {
                recorder.take(&item)?;
                if !goes_on(&item) {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        recorder.flush()?;
    }
    // First the sources stop, so that the queue ends.
    stop.set();
    items.try_iter().try_for_each(|item| recorder.take(&item))
}

#[cfg(target_os = "linux")]
fn start_interface(name: &str, feed: airmile_host::source::Feed) -> Result<(), String> {
    airmile_host::source::start_capture(name, feed).map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
fn start_interface(_: &str, _: airmile_host::source::Feed) -> Result<(), String> {
    Err("--interface needs Linux".to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn options(dir: &Path, rotate_bytes: u64, keep: Option<usize>) -> RecordOptions {
        let rotate_after = Duration::from_secs(3_600);
        RecordOptions { dir: dir.to_owned(), rotate_bytes, rotate_after, keep }
    }

    fn read(path: &Path) -> Vec<u8> {
        zstd::decode_all(File::open(path).unwrap()).unwrap()
    }

    #[test]
    fn logs_are_cut_between_frames_and_old_ones_go() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(options(dir.path(), 8, Some(2))).unwrap();
        // Frames of 4 bytes, in pieces of 3.
        let stream: Vec<u8> = (0..12_u8).flat_map(|n| [n, n, n, TERMINATOR]).collect();
        for piece in stream.chunks(3) {
            recorder.take(&SourceItem::Bytes(piece.to_vec())).unwrap();
        }
        recorder.take(&SourceItem::Bytes(vec![99])).unwrap();
        let done = recorder.finish().unwrap();
        assert_eq!((done.logs.len(), done.log_bytes), (2, 49));
        let names = done.logs.iter().map(|p| p.file_name().unwrap().to_str().unwrap().to_owned());
        assert_eq!(names.collect::<Vec<_>>(), ["modem-0004.qmdl.zst", "modem-0005.qmdl.zst"]);
        let last: Vec<u8> = done.logs.iter().flat_map(|path| read(path)).collect();
        assert_eq!(last, [&stream[32..], &[99]].concat());
        assert!(matches!(
            Recorder::create(options(dir.path(), 8, None)),
            Err(RecordError::Taken(_))
        ));
    }

    #[test]
    fn what_waits_when_a_recording_stops_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(options(dir.path(), 1 << 20, None)).unwrap();
        let (sender, items) = std::sync::mpsc::channel();
        for item in [
            SourceItem::Bytes(vec![1, TERMINATOR]),
            SourceItem::Packets(vec![7; 29]),
            SourceItem::Bytes(vec![2, TERMINATOR, 3]),
        ] {
            sender.send(item).unwrap();
        }
        let stop = StopFlag::new();
        stop.set();
        take_all(&mut recorder, &items, &stop, |_| true).unwrap();
        let done = recorder.finish().unwrap();
        assert_eq!((done.log_bytes, done.packet_bytes), (5, 5));
        assert_eq!(read(&done.logs[0]), [1, TERMINATOR, 2, TERMINATOR, 3]);
    }

    #[test]
    fn the_head_of_a_capture_is_no_packet() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(options(dir.path(), 1 << 20, None)).unwrap();
        recorder.take(&SourceItem::Packets(vec![7; 24])).unwrap();
        let done = recorder.finish().unwrap();
        assert_eq!((done.captures.len(), done.packet_bytes), (1, 0));
    }

    #[test]
    fn a_short_stream_without_frames_is_a_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(options(dir.path(), 1 << 20, None)).unwrap();
        recorder.take(&SourceItem::Bytes(vec![1, 2])).unwrap();
        recorder.take(&SourceItem::Gap).unwrap();
        recorder.take(&SourceItem::Bytes(vec![3])).unwrap();
        let done = recorder.finish().unwrap();
        let logs: Vec<_> = done.logs.iter().map(|path| read(path)).collect();
        assert_eq!((logs, done.log_bytes), (vec![vec![1, 2], vec![3]], 3));
    }

    #[test]
    fn a_modem_that_comes_back_begins_a_new_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(options(dir.path(), 1 << 20, None)).unwrap();
        for item in [
            SourceItem::Bytes(vec![1, TERMINATOR, 2]),
            SourceItem::Gap,
            SourceItem::Bytes(vec![3, TERMINATOR]),
            SourceItem::Packets(vec![7; 29]),
        ] {
            recorder.take(&item).unwrap();
        }
        let done = recorder.finish().unwrap();
        let logs: Vec<_> = done.logs.iter().map(|path| read(path)).collect();
        assert_eq!(logs, [vec![1, TERMINATOR, 2], vec![3, TERMINATOR]]);
        assert_eq!((done.captures.len(), done.packet_bytes), (1, 5));
        assert_eq!(read(&done.captures[0]), [7; 29]);
    }
}
