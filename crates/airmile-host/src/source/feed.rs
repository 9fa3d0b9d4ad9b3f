//! The queue between a source's thread and its reader.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::thread::StopFlag;

/// Bytes read at a time.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;
/// Maximum number of waiting chunks; a faster source waits, too.
const WAITING_CHUNKS: usize = 64;
/// Pause before an empty source is polled again (chosen here: far below the second in
/// which a verdict is due).
const IDLE: Duration = Duration::from_millis(50);
/// Pause before a missing source is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(500);

/// The state of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", content = "why", rename_all = "snake_case")]
pub enum SourceState {
    /// Missing (not yet there, or gone): waited for.
    Waiting(String),
    /// Present.
    Connected(String),
    /// At its end.
    Ended,
}

/// An item from a source.
#[derive(Debug)]
pub enum SourceItem {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Data until the next bytes is lost.
    Gap,
    /// Its state changed.
    State(SourceState),
    /// Packets of an interface's capture.
    Packets(Vec<u8>),
    /// The state of the interface, which has no end.
    Interface(SourceState),
    /// Packets that the kernel has dropped so far because the reader was too slow.
    Dropped(u64),
}

/// The sending end for a source; stops when the other end is gone.
#[derive(Debug, Clone)]
pub struct Feed {
    sender: SyncSender<SourceItem>,
    stop: StopFlag,
    /// Pause at the end of a growing file.
    pub(super) idle: Duration,
    /// An existing file is read from its end on.
    pub(super) from_end: bool,
}

/// The reader is gone.
#[derive(Debug)]
pub struct ReaderGone;

impl Feed {
    pub(super) fn give(&self, item: SourceItem) -> Result<(), ReaderGone> {
        if self.stop.is_set() {
            return Err(ReaderGone);
        }
        self.sender.send(item).map_err(|_| ReaderGone)
    }

    /// Reads new data only, and polls growing sources after each pause of `idle`.
    pub(super) fn read_new_only(self, idle: Duration) -> Self {
        Self { idle, from_end: true, ..self }
    }

    pub(super) fn state(&self, state: SourceState) -> Result<(), ReaderGone> {
        self.give(SourceItem::State(state))
    }

    /// Sleeps, unless it must stop.
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
