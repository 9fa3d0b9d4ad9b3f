//! Where bytes come from: a growing file, standard input, a modem's port. Each
//! source is a thread that hands over bytes and waits for what is away.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::port;

/// Bytes read at a time.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that may wait for the engine; a source that is faster waits, too.
const WAITING_CHUNKS: usize = 64;
/// Pause before a source that had nothing is asked again (chosen here: far
/// below the second in which a verdict is due).
const IDLE: Duration = Duration::from_millis(50);
/// Pause before a source that is away is tried again.
pub(crate) const RETRY: Duration = Duration::from_millis(500);

/// Where bytes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A log that another program writes.
    Follow(PathBuf),
    /// Standard input.
    Stdin,
    /// A modem's serial DIAG port.
    Port(PathBuf),
    /// No modem: packets alone.
    Nothing,
}

/// How a source is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", content = "why", rename_all = "snake_case")]
pub enum SourceState {
    /// Not there (yet, or any more): waited for.
    Waiting(String),
    /// There.
    Connected(String),
    /// At its end.
    Ended,
}

/// What a source hands over.
#[derive(Debug)]
pub(crate) enum Input {
    Bytes(Vec<u8>),
    /// What came until the next bytes is lost.
    Gap,
    State(SourceState),
    /// Of an interface's capture.
    Packets(Vec<u8>),
    /// How the interface is, which has no end.
    Interface(SourceState),
    /// Packets that the kernel dropped so far, as we were too slow.
    Dropped(u64),
}

/// The end that a source sends to; stops when the other end is gone.
#[derive(Clone)]
pub(crate) struct Feed {
    sender: SyncSender<Input>,
    stop: Arc<AtomicBool>,
    /// Pause at the end of a file that grows.
    idle: Duration,
    /// A file that is there is read from its end on.
    from_end: bool,
}

/// What is read of a source.
#[derive(Debug)]
pub enum Piece {
    /// Bytes.
    Bytes(Vec<u8>),
    /// What came until the next bytes is lost.
    Gap,
    /// It came or went.
    State(SourceState),
}

impl Piece {
    /// `None`: of an interface's capture, which is no source.
    fn of(input: Input) -> Option<Self> {
        match input {
            Input::Bytes(bytes) => Some(Self::Bytes(bytes)),
            Input::Gap => Some(Self::Gap),
            Input::State(state) => Some(Self::State(state)),
            Input::Packets(_) | Input::Interface(_) | Input::Dropped(_) => None,
        }
    }
}

/// Reads a source from now on, on threads of its own, until `stop` is set: what
/// grows is looked at after each pause of `idle`.
///
/// # Errors
/// A thread cannot be started.
pub fn read_from_now(
    source: &Source,
    idle: Duration,
    stop: &Arc<AtomicBool>,
    mut take: impl FnMut(Piece) + Send + 'static,
) -> std::io::Result<()> {
    let (feed, inputs) = queue(stop);
    source.start(Feed { idle, from_end: true, ..feed })?;
    thread::Builder::new().name("reading".into()).spawn(move || {
        inputs.into_iter().filter_map(Piece::of).for_each(&mut take);
    })?;
    Ok(())
}

/// The engine does not listen any more.
pub(crate) struct Stopped;

impl Feed {
    pub(crate) fn give(&self, input: Input) -> Result<(), Stopped> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        self.sender.send(input).map_err(|_| Stopped)
    }

    pub(crate) fn state(&self, state: SourceState) -> Result<(), Stopped> {
        self.give(Input::State(state))
    }

    /// Sleeps, unless it is to stop.
    pub(crate) fn pause(&self, pause: Duration) -> Result<(), Stopped> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        thread::sleep(pause);
        Ok(())
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Source {
    /// Its name, as the user gave it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Follow(path) | Self::Port(path) => path.display().to_string(),
            Self::Stdin => "standard input".into(),
            Self::Nothing => "no modem".into(),
        }
    }

    /// Starts its thread.
    pub(crate) fn start(&self, feed: Feed) -> std::io::Result<()> {
        let source = self.clone();
        thread::Builder::new().name("source".into()).spawn(move || {
            // It ends when nobody listens.
            let _stopped = match &source {
                Self::Follow(path) => follow(path, &feed),
                Self::Stdin => read_stdin(&feed),
                Self::Port(path) => port::run(path, &feed),
                Self::Nothing => {
                    feed.state(SourceState::Waiting("no modem stream was asked for".into()))
                }
            };
        })?;
        Ok(())
    }
}

/// A source's pieces; it ends when this goes.
#[derive(Debug)]
pub struct Pieces {
    inputs: Receiver<Input>,
    stop: Arc<AtomicBool>,
}

impl Pieces {
    /// Starts a source.
    ///
    /// # Errors
    /// Its thread cannot be started.
    pub fn of(source: &Source) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (feed, inputs) = queue(&stop);
        source.start(feed)?;
        Ok(Self { inputs, stop })
    }

    /// The next piece, if one comes in time.
    ///
    /// # Errors
    /// It did not, or the source has ended.
    pub fn next_within(&self, wait: Duration) -> Result<Piece, RecvTimeoutError> {
        loop {
            if let Some(piece) = Piece::of(self.inputs.recv_timeout(wait)?) {
                return Ok(piece);
            }
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Ends of a queue to the engine: the first for sources, which may be cloned.
pub(crate) fn queue(stop: &Arc<AtomicBool>) -> (Feed, Receiver<Input>) {
    let (sender, receiver) = sync_channel(WAITING_CHUNKS);
    (Feed { sender, stop: Arc::clone(stop), idle: IDLE, from_end: false }, receiver)
}

fn read_stdin(feed: &Feed) -> Result<(), Stopped> {
    feed.state(SourceState::Connected(String::new()))?;
    let mut stdin = std::io::stdin().lock();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match stdin.read(&mut buffer) {
            Ok(0) => return feed.state(SourceState::Ended),
            Ok(n) => feed.give(Input::Bytes(buffer.get(..n).unwrap_or_default().to_vec()))?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                feed.state(SourceState::Waiting(error.to_string()))?;
                return feed.state(SourceState::Ended);
            }
        }
    }
}

/// Reads a file to its end, and on as it grows. One that was cut short or
/// replaced is a new part of the log.
fn follow(path: &Path, feed: &Feed) -> Result<(), Stopped> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut was_open = false;
    loop {
        let mut file = wait_for(path, feed)?;
        let mut read_bytes = 0_u64;
        if was_open {
            feed.give(Input::Gap)?;
        } else if feed.from_end {
            // What cannot seek (a pipe) has nothing old in it.
            read_bytes = file.seek(SeekFrom::End(0)).unwrap_or(0);
        }
        was_open = true;
        feed.state(SourceState::Connected(String::new()))?;
        loop {
            match file.read(&mut buffer) {
                Ok(0) if is_replaced(path, &file, read_bytes) => break,
                Ok(0) => feed.pause(feed.idle)?,
                Ok(n) => {
                    read_bytes += n as u64;
                    feed.give(Input::Bytes(buffer.get(..n).unwrap_or_default().to_vec()))?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    feed.state(SourceState::Waiting(error.to_string()))?;
                    break;
                }
            }
        }
    }
}

fn wait_for(path: &Path, feed: &Feed) -> Result<File, Stopped> {
    let mut told = String::new();
    loop {
        match File::open(path) {
            Ok(file) => return Ok(file),
            Err(error) => {
                let why = error.to_string();
                if why != told {
                    feed.state(SourceState::Waiting(why.clone()))?;
                    told = why;
                }
                feed.pause(RETRY)?;
            }
        }
    }
}

/// Whether the file at the path is another one, or shorter than what was read.
fn is_replaced(path: &Path, file: &File, read_bytes: u64) -> bool {
    let Ok(open) = file.metadata() else { return true };
    if open.len() < read_bytes {
        return true;
    }
    // One that is gone may come back: it is read until another is there.
    path.metadata().is_ok_and(|there| (there.dev(), there.ino()) != (open.dev(), open.ino()))
}
