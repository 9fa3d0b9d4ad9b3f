//! Writes a file under a temporary name, and renames it when it is complete.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use airmile_model::printable_path;

use crate::error::{Error, Result};

/// A file under a temporary name in the directory of the file that it will replace. If it
/// is dropped before [`done`](Self::done), it is removed, and the previous file is unchanged.
#[derive(Debug)]
pub struct Replacement {
    path: PathBuf,
    /// `None`: `path` is no regular file (`/dev/stdout`, a pipe), and is written directly.
    part: Option<PathBuf>,
}

impl Replacement {
    /// Creates the file.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn begin(path: &Path) -> Result<(Self, File)> {
        let replaces = std::fs::metadata(path).map_or(true, |found| found.is_file());
        // The target of a link is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let part = replaces.then(|| part_of(&path));
        let file = match &part {
            Some(part) => new_file(part, false),
            None => File::create(&path),
        };
        let file = file.map_err(|e| Error::write(&path, e))?;
        Ok((Self { path, part }, file))
    }

    /// The error of writing it.
    #[must_use]
    pub fn failed(&self, error: io::Error) -> Error {
        Error::write(&self.path, error)
    }

    /// Completes the file: renames it into place.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn done(mut self) -> Result<()> {
        match &self.part {
            Some(part) => std::fs::rename(part, &self.path).map_err(|e| self.failed(e))?,
            None => return Ok(()),
        }
        self.part = None;
        Ok(())
    }
}

/// Creates a new file, replacing the leftover of an ended process; links are not
/// followed. `private`: only its owner can read it.
pub fn new_file(path: &Path, private: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            options.open(path)
        }
        opened => opened,
    }
}

/// The temporary name of a file while it is written: hidden, with the process id.
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Writes a file atomically: it is complete, or as it was before.
///
/// # Errors
/// It cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let (out, mut file) = Replacement::begin(path)?;
    file.write_all(bytes).map_err(|e| out.failed(e))?;
    out.done()
}

/// Refuses outputs that are among the inputs.
///
/// # Errors
/// One of them is.
pub fn refuse_inputs<'a>(
    outputs: impl IntoIterator<Item = PathBuf>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    let read: Vec<PathBuf> = inputs.into_iter().map(whole).collect();
    match outputs.into_iter().find(|path| read.contains(&whole(path))) {
        Some(path) => Err(Error::Option(format!(
            "{}: is one of the files to read; name another",
            printable_path(&path)
        ))),
        None => Ok(()),
    }
}

/// The path without links and `..`, also for a file that does not exist yet.
pub fn whole(path: &Path) -> PathBuf {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let of_new = || {
        let dir = dir.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(dir.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(of_new).unwrap_or_else(|| path.to_owned())
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // A failure to remove it is less important than the error that led here.
        if let Some(part) = self.part.take() {
            let _ = std::fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_was_there_stays_until_the_new_one_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        std::fs::write(&path, "precious").unwrap();
        let (out, mut file) = Replacement::begin(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(out);
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        let (out, mut file) = Replacement::begin(&path).unwrap();
        file.write_all(b"whole").unwrap();
        out.done().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_hard_link_keeps_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let [log, linked] = ["log", "linked"].map(|name| dir.path().join(name));
        std::fs::write(&log, "precious").unwrap();
        std::fs::hard_link(&log, &linked).unwrap();
        Replacement::begin(&linked).unwrap().0.done().unwrap();
        assert_eq!(std::fs::read(&log).unwrap(), b"precious");
    }
}
