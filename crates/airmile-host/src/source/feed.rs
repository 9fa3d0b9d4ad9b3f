//! The queue between a source's thread and its reader.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::thread::StopFlag;

/// Bytes read at a time.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that may wait for the engine; a source that is faster waits, too.
const WAITING_CHUNKS: usize = 64;
/// Pause before a source that had nothing is asked again (chosen here: far
/// below the second in which a verdict is due).
const IDLE: Duration = Duration::from_millis(50);
/// Pause before a source that is away is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(500);

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
pub enum SourceItem {
    /// Bytes.
    Bytes(Vec<u8>),
    /// What came until the next bytes is lost.
    Gap,
    /// It came or went.
    State(SourceState),
    /// Of an interface's capture.
    Packets(Vec<u8>),
    /// How the interface is, which has no end.
    Interface(SourceState),
    /// Packets that the kernel dropped so far, as we were too slow.
    Dropped(u64),
}

/// The end that a source sends to; stops when the other end is gone.
#[derive(Debug, Clone)]
pub struct Feed {
    sender: SyncSender<SourceItem>,
    stop: StopFlag,
    /// Pause at the end of a file that grows.
    pub(super) idle: Duration,
    /// A file that is there is read from its end on.
    pub(super) from_end: bool,
}

/// Nobody reads any more.
#[derive(Debug)]
pub struct ReaderGone;

impl Feed {
    pub(super) fn give(&self, item: SourceItem) -> Result<(), ReaderGone> {
        if self.stop.is_set() {
            return Err(ReaderGone);
        }
        self.sender.send(item).map_err(|_| ReaderGone)
    }

    /// Reads what comes from now on, and looks at what grows after each pause of `idle`.
    pub(super) fn read_new_only(self, idle: Duration) -> Self {
        Self { idle, from_end: true, ..self }
    }

    pub(super) fn state(&self, state: SourceState) -> Result<(), ReaderGone> {
        self.give(SourceItem::State(state))
    }

    /// Sleeps, unless it is to stop.
    pub(super) fn pause(&self, pause: Duration) -> Result<(), ReaderGone> {
        if self.stop.is_set() {
            return Err(ReaderGone);
        }
        thread::sleep(pause);
        Ok(())
    }

    #[cfg(target_os = "linux")]
    pub(super) fn stop(&self) -> StopFlag {
        self.stop.clone()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }
}

/// Ends of a queue: the first for sources, which may be cloned, the second for the
/// reader.
#[must_use]
pub fn queue(stop: &StopFlag) -> (Feed, Receiver<SourceItem>) {
    let (sender, receiver) = sync_channel(WAITING_CHUNKS);
    (Feed { sender, stop: stop.clone(), idle: IDLE, from_end: false }, receiver)
}
