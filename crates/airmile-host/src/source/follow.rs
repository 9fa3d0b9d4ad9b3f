//! A file that another program writes, and standard input.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::feed::{CHUNK_BYTES, Feed, RETRY, ReaderGone, SourceItem, SourceState};

pub(super) fn read_stdin(feed: &Feed) -> Result<(), ReaderGone> {
    feed.state(SourceState::Connected(String::new()))?;
    let mut stdin = std::io::stdin().lock();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match stdin.read(&mut buffer) {
            Ok(0) => return feed.state(SourceState::Ended),
            Ok(n) => feed.give(SourceItem::Bytes(buffer.get(..n).unwrap_or_default().to_vec()))?,
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
pub(super) fn follow(path: &Path, feed: &Feed) -> Result<(), ReaderGone> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut was_open = false;
    loop {
        let mut file = wait_for(path, feed)?;
        let mut read_bytes = 0_u64;
        if was_open {
            feed.give(SourceItem::Gap)?;
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
                    feed.give(SourceItem::Bytes(buffer.get(..n).unwrap_or_default().to_vec()))?;
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

fn wait_for(path: &Path, feed: &Feed) -> Result<File, ReaderGone> {
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
