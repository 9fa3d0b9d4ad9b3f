//! The sources of captures, and the limits on their time.

use std::io::Read;
use std::path::{Path, PathBuf};

use airmile_model::printable_path;

use crate::limits::Limits;

/// Captures, read in sequence as one.
pub enum Captures<'a> {
    /// Files, read in order of their first packets; `-` is standard input, with which they are
    /// read in the order given.
    Files(&'a [PathBuf]),
    /// A capture in progress.
    Stream(CaptureStream),
}

/// A capture that is not a file: an interface, a socket.
pub struct CaptureStream {
    /// Its name in reports.
    pub name: String,
    /// Its bytes, pcap or pcapng.
    pub read: Box<dyn Read + Send>,
}

impl<'a> From<&'a [PathBuf]> for Captures<'a> {
    fn from(files: &'a [PathBuf]) -> Self {
        Self::Files(files)
    }
}

impl<'a> From<&'a Vec<PathBuf>> for Captures<'a> {
    fn from(files: &'a Vec<PathBuf>) -> Self {
        Self::Files(files)
    }
}

impl<'a, const N: usize> From<&'a [PathBuf; N]> for Captures<'a> {
    fn from(files: &'a [PathBuf; N]) -> Self {
        Self::Files(files)
    }
}

impl Captures<'_> {
    /// The files; empty for a stream.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Files(files) => files.to_vec(),
            Self::Stream(_) => Vec::new(),
        }
    }

    /// Their names.
    #[must_use]
    pub fn names(&self) -> String {
        match self {
            Self::Files(files) => {
                let names: Vec<String> = files.iter().map(|f| printable_path(f)).collect();
                names.join(", ")
            }
            Self::Stream(stream) => stream.name.clone(),
        }
    }

    /// The first that can be read only once.
    #[must_use]
    pub fn read_once(&self) -> Option<String> {
        match self {
            Self::Files(files) => {
                let once = files.iter().find(|path| !can_be_read_again(path))?;
                let is_stdin = once.as_path() == Path::new("-");
                Some(if is_stdin { "standard input".into() } else { printable_path(once) })
            }
            Self::Stream(stream) => Some(stream.name.clone()),
        }
    }
}

fn can_be_read_again(path: &Path) -> bool {
    path != Path::new("-") && path.metadata().is_ok_and(|meta| meta.is_file())
}

/// Captures and the limits on their time.
pub struct CaptureReading<'a> {
    /// The captures.
    pub captures: Captures<'a>,
    /// Limits on the time of packets.
    pub limits: Limits,
}
