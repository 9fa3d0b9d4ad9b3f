//! A file written by another program, and standard input.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
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

/// Reads a file to its end, and continues as it grows. A truncated or replaced file is a
/// new part of the log; an unreadable one is tried again.
pub(super) fn follow(path: &Path, feed: &Feed) -> Result<(), ReaderGone> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut was_read = false;
    let mut reason = String::new();
    loop {
        let opened = File::open(path).and_then(|mut file| {
            let mut read_bytes = 0;
            if feed.from_end && !was_read {
                // An input that cannot seek (a pipe) has no old data.
                read_bytes = file.seek(SeekFrom::End(0)).unwrap_or(0);
            }
            // Opening it does not prove that it can be read.
            let bytes = read(&mut file, &mut buffer)?;
            Ok((file, read_bytes, bytes))
        });
        let error = match opened {
            Ok((file, read_bytes, bytes)) => {
                reason.clear();
                if was_read {
                    feed.give(SourceItem::Gap)?;
                }
                was_read = true;
                feed.state(SourceState::Connected(String::new()))?;
                let Some(error) = read_on(path, file, feed, &mut buffer, (read_bytes, bytes))?
                else {
                    continue;
                };
                error
            }
            Err(error) => error,
        };
        // Each reason once: it may stay away for hours.
        let why = error.to_string();
        if why != reason {
            feed.state(SourceState::Waiting(why.clone()))?;
            reason = why;
        }
        feed.pause(RETRY)?;
    }
}

/// Forwards data until another file is there, or until an error, which is returned. The
/// first bytes are in the buffer.
fn read_on(
    path: &Path,
    mut file: File,
    feed: &Feed,
    buffer: &mut [u8],
    (mut read_bytes, mut bytes): (u64, usize),
) -> Result<Option<io::Error>, ReaderGone> {
    loop {
        if bytes > 0 {
            read_bytes += bytes as u64;
            feed.give(SourceItem::Bytes(buffer.get(..bytes).unwrap_or_default().to_vec()))?;
        } else if is_replaced(path, &file, read_bytes) {
            return Ok(None);
        } else {
            feed.pause(feed.idle)?;
        }
        match read(&mut file, buffer) {
            Ok(n) => bytes = n,
            Err(error) => return Ok(Some(error)),
        }
    }
}

fn read(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Whether the file at the path is another one, or shorter than the part already read.
fn is_replaced(path: &Path, file: &File, read_bytes: u64) -> bool {
    let Ok(open) = file.metadata() else { return true };
    if open.len() < read_bytes {
        return true;
    }
    // A removed file may come back: it is read until another is there.
    path.metadata().is_ok_and(|there| (there.dev(), there.ino()) != (open.dev(), open.ino()))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::RecvTimeoutError;

    use super::super::{LogSource, queue};
    use super::*;
    use crate::thread::StopFlag;

    #[test]
    fn a_path_that_opens_and_cannot_be_read_is_tried_again_after_a_pause() {
        let dir = tempfile::tempdir().unwrap();
        let stop = StopFlag::new();
        let (feed, items) = queue(&stop);
        LogSource::Follow(dir.path().to_owned()).start(feed).unwrap();
        // A directory: the reason is reported once, and nothing else happens.
        let first = items.recv().unwrap();
        assert!(matches!(first, SourceItem::State(SourceState::Waiting(_))), "{first:?}");
        let second = items.recv_timeout(RETRY * 5 / 2);
        assert!(matches!(second, Err(RecvTimeoutError::Timeout)), "{second:?}");
        stop.set();
    }
}
