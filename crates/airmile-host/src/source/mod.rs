//! Sources of bytes: a growing file, standard input, a modem's port or socket. Each
//! source is a thread that forwards bytes and waits while the source is missing.

#[cfg(target_os = "linux")]
mod capture;
mod feed;
mod follow;
mod port;
#[cfg(target_os = "linux")]
mod qrtr;
mod search;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::thread::StopFlag;
#[cfg(target_os = "linux")]
pub use capture::start_capture;
pub use feed::{Feed, ReaderGone, SourceItem, SourceState, queue};

/// A source of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogSource {
    /// A log written by another program.
    Follow(PathBuf),
    /// Standard input.
    Stdin,
    /// A modem that speaks DIAG.
    Modem(ModemLink),
    /// No modem: packets alone.
    Nothing,
}

/// How to reach a modem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModemLink {
    /// A serial DIAG port, another character device, or a unix socket on which a DIAG
    /// router listens.
    Path(PathBuf),
    /// The DIAG service of the modem by QRTR (AF_QIPCRTR), on the phone or router itself.
    Qrtr,
    /// The first port of a modem under this root of a file system that answers.
    Search(PathBuf),
}

impl ModemLink {
    /// By its name as given by the user: `qrtr`, `auto`, or a path.
    #[must_use]
    pub fn from_name(path: PathBuf) -> Self {
        match path.to_str() {
            Some("qrtr") => Self::Qrtr,
            Some("auto") => Self::Search("/".into()),
            _ => Self::Path(path),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Qrtr => "QRTR".to_owned(),
            Self::Search(_) => "modem".to_owned(),
        }
    }
}

impl LogSource {
    /// A modem by its name as given by the user; see [`ModemLink::from_name`].
    #[must_use]
    pub fn modem(path: PathBuf) -> Self {
        Self::Modem(ModemLink::from_name(path))
    }

    /// Its name, as given by the user.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Follow(path) => path.display().to_string(),
            Self::Modem(link) => link.name(),
            Self::Stdin => "standard input".into(),
            Self::Nothing => "no modem".into(),
        }
    }

    /// Starts its thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(&self, feed: Feed) -> std::io::Result<()> {
        let source = self.clone();
        thread::Builder::new().name("source".into()).spawn(move || {
            // It ends when the reader is gone.
            let _stopped = match &source {
                Self::Follow(path) => follow::follow(path, &feed),
                Self::Stdin => follow::read_stdin(&feed),
                Self::Modem(link) => port::run(link, &feed),
                Self::Nothing => {
                    feed.state(SourceState::Waiting("no modem stream was requested".into()))
                }
            };
        })?;
        Ok(())
    }
}

/// An item read from a source.
#[derive(Debug)]
pub enum LogPiece {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Data until the next bytes is lost.
    Gap,
    /// Its state changed.
    State(SourceState),
}

impl LogPiece {
    /// `None` for items of an interface's capture.
    fn of(input: SourceItem) -> Option<Self> {
        match input {
            SourceItem::Bytes(bytes) => Some(Self::Bytes(bytes)),
            SourceItem::Gap => Some(Self::Gap),
            SourceItem::State(state) => Some(Self::State(state)),
            SourceItem::Packets(_) | SourceItem::Interface(_) | SourceItem::Dropped(_) => None,
        }
    }
}

/// Reads new data of a source, on its own threads, until `stop` is set: growing sources
/// are polled after each pause of `idle`.
///
/// # Errors
/// A thread cannot be started.
pub fn read_from_now(
    source: &LogSource,
    idle: Duration,
    stop: &StopFlag,
    mut take: impl FnMut(LogPiece) + Send + 'static,
) -> std::io::Result<()> {
    let (feed, inputs) = queue(stop);
    source.start(feed.read_new_only(idle))?;
    thread::Builder::new().name("reading".into()).spawn(move || {
        inputs.into_iter().filter_map(LogPiece::of).for_each(&mut take);
    })?;
    Ok(())
}

/// The items of a source; it ends when this is dropped.
#[derive(Debug)]
pub struct LogReader {
    inputs: Receiver<SourceItem>,
    stop: StopFlag,
}

impl LogReader {
    /// Starts a source.
    ///
    /// # Errors
    /// Its thread cannot be started.
    pub fn of(source: &LogSource) -> std::io::Result<Self> {
        let stop = StopFlag::new();
        let (feed, inputs) = queue(&stop);
        source.start(feed)?;
        Ok(Self { inputs, stop })
    }

    /// The next item, if one arrives in time.
    ///
    /// # Errors
    /// None arrived, or the source has ended.
    pub fn next_within(&self, wait: Duration) -> Result<LogPiece, RecvTimeoutError> {
        loop {
            if let Some(piece) = LogPiece::of(self.inputs.recv_timeout(wait)?) {
                return Ok(piece);
            }
        }
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        self.stop.set();
    }
}
