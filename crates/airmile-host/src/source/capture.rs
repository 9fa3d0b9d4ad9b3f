//! The thread that hands over what passes an interface; one that goes down or away is
//! waited for.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::feed::{Feed, RETRY, ReaderGone, SourceItem, SourceState};
use crate::interface::{InterfaceCapture, InterfaceError};

/// Bytes that are handed over at a time (chosen here: 40 full packets).
const BATCH_BYTES: usize = 64 * 1024;
/// And after so long in any case: far below the second in which things are told.
const BATCH_FOR: Duration = Duration::from_millis(50);

/// Starts to capture.
///
/// # Errors
/// There is no such interface now, or the kernel does not let us.
pub fn start_capture(name: &str, feed: Feed) -> Result<(), InterfaceError> {
    let first = InterfaceCapture::open_until(name, None, feed.stop())?;
    let thread = thread::Builder::new().name("interface".into());
    let (of, what) = (name.to_owned(), "starting a thread");
    let spawned = thread.spawn(move || {
        // It ends when nobody listens.
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
    // The kernel counts anew for each capture.
    let mut dropped = 0;
    let mut told = String::new();
    loop {
        let opened = match capture.take() {
            Some(capture) => Ok(capture),
            None => InterfaceCapture::open_until(name, None, feed.stop()),
        };
        let why = match opened {
            Ok(capture) => pass_on(capture, feed, &mut told, &mut dropped)?.to_string(),
            Err(error) => error.to_string(),
        };
        // Once each: it may stay away for hours.
        if why != told {
            feed.give(SourceItem::Interface(SourceState::Waiting(why.clone())))?;
            told = why;
        }
        feed.pause(RETRY)?;
    }
}

/// Hands over until it fails, which it does at once where the interface is down.
fn pass_on(
    mut capture: InterfaceCapture,
    feed: &Feed,
    why: &mut String,
    dropped: &mut u64,
) -> Result<io::Error, ReaderGone> {
    let dropped_here = capture.dropped();
    let mut told = 0;
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
        if now != told {
            *dropped += now.saturating_sub(told);
            feed.give(SourceItem::Dropped(*dropped))?;
            told = now;
        }
        if let Err(error) = read {
            return Ok(error);
        }
    }
}
