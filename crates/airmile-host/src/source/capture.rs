//! The thread that forwards an interface's packets, and waits while the interface is down
//! or missing.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::feed::{Feed, RETRY, ReaderGone, SourceItem, SourceState};
use crate::interface::{InterfaceCapture, InterfaceError};

/// Bytes forwarded at a time (chosen here: 40 full packets).
const BATCH_BYTES: usize = 64 * 1024;
/// Maximum delay of a batch: far below the second within which events are reported.
const BATCH_FOR: Duration = Duration::from_millis(50);

/// Starts a capture.
///
/// # Errors
/// There is no such interface now, or the kernel denies it.
pub fn start_capture(name: &str, feed: Feed) -> Result<(), InterfaceError> {
    let first = InterfaceCapture::open_until(name, None, feed.stop())?;
    let thread = thread::Builder::new().name("interface".into());
    let (of, what) = (name.to_owned(), "starting a thread");
    let spawned = thread.spawn(move || {
        // It ends when the reader is gone.
        let _stopped = run(&of, first, &feed);
    });
    spawned.map(drop).map_err(|source| InterfaceError::System {
        name: name.to_owned(),
        what,
        source,
    })
}

fn run(name: &str, first: InterfaceCapture, feed: &Feed) -> Result<(), ReaderGone> {
    let mut capture = Some(first);
    // The kernel restarts its count for each capture.
    let mut dropped = 0;
    let mut reported = String::new();
    loop {
        let opened = match capture.take() {
            Some(capture) => Ok(capture),
            None => InterfaceCapture::open_until(name, None, feed.stop()),
        };
        let why = match opened {
            Ok(capture) => pass_on(capture, feed, &mut reported, &mut dropped)?.to_string(),
            Err(error) => error.to_string(),
        };
        // Each reason once: it may stay away for hours.
        if why != reported {
            feed.give(SourceItem::Interface(SourceState::Waiting(why.clone())))?;
            reported = why;
        }
        feed.pause(RETRY)?;
    }
}

/// Forwards packets until an error, which occurs at once if the interface is down.
fn pass_on(
    mut capture: InterfaceCapture,
    feed: &Feed,
    why: &mut String,
    dropped: &mut u64,
) -> Result<io::Error, ReaderGone> {
    let dropped_here = capture.dropped();
    let mut reported = 0;
    let mut is_up = false;
    loop {
        let mut bytes = Vec::with_capacity(BATCH_BYTES + BATCH_BYTES / 16);
        let read = capture.read_for(&mut bytes, BATCH_BYTES, BATCH_FOR);
        if !is_up && read.is_ok() {
            is_up = true;
            why.clear();
            feed.give(SourceItem::Interface(SourceState::Connected(String::new())))?;
        }
        if !bytes.is_empty() {
            feed.give(SourceItem::Packets(bytes))?;
        } else if feed.is_stopped() {
            return Err(ReaderGone);
        }
        let now = dropped_here.load(Ordering::Relaxed);
        if now != reported {
            *dropped += u64::from(now.wrapping_sub(reported));
            feed.give(SourceItem::Dropped(*dropped))?;
            reported = now;
        }
        if let Err(error) = read {
            return Ok(error);
        }
    }
}
