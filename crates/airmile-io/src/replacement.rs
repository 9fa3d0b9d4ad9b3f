//! A file that takes another's place only once it is whole.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use airmile_model::printable_path;

use crate::error::{Error, Result};
use crate::input::{Input, Progress};
use crate::recognise::Kind;

/// A file under another name beside the one that it is to replace. Dropped
/// before [`done`](Self::done), it leaves nothing behind, and what was there
/// before as it was.
#[derive(Debug)]
pub struct Replacement {
    path: PathBuf,
    /// `None`: `path` is no ordinary file (`/dev/stdout`, a pipe), and is
    /// written to itself.
    beside: Option<PathBuf>,
}

impl Replacement {
    /// Begins the file.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn begin(path: &Path) -> Result<(Self, File)> {
        let replaces = std::fs::metadata(path).map_or(true, |found| found.is_file());
        // A link's target is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let beside = replaces.then(|| part_of(&path));
        let file = match &beside {
            Some(beside) => new_file(beside, false),
            None => File::create(&path),
        };
        let file = file.map_err(|e| Error::write(&path, e))?;
        Ok((Self { path, beside }, file))
    }

    /// The error of writing it.
    #[must_use]
    pub fn failed(&self, error: io::Error) -> Error {
        Error::write(&self.path, error)
    }

    /// The file is whole: it takes its place.
    ///
    /// # Errors
    /// It cannot be given its name.
    pub fn done(mut self) -> Result<()> {
        match &self.beside {
            Some(beside) => std::fs::rename(beside, &self.path).map_err(|e| self.failed(e))?,
            None => return Ok(()),
        }
        self.beside = None;
        Ok(())
    }
}

/// A file that is not there yet, in the place of what an ended process left: nothing is
/// written through a link. `private`: only its owner reads it.
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

/// The name of a file while it is written: hidden, and of this process.
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Writes a file at once: it is there whole, or as it was before.
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
    let read = read_files(inputs);
    match outputs.into_iter().find(|path| read.contains(&whole(path))) {
        Some(path) => Err(Error::Option(format!(
            "{}: is one of the files to read; name another",
            printable_path(&path)
        ))),
        None => Ok(()),
    }
}

/// The inputs without links and detours; of a directory also what lies right in it and
/// can be read as an input.
pub fn read_files<'a>(inputs: impl IntoIterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut read = Vec::new();
    for input in inputs {
        read.push(whole(input));
        // Whoever reads the directory says what is wrong with it.
        let entries = std::fs::read_dir(input).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path()).filter(|path| path.is_file());
        read.extend(files.filter(|path| is_input(path)).map(|path| whole(&path)));
    }
    read
}

fn is_input(path: &Path) -> bool {
    Input::open(path, &Progress::default()).is_ok_and(|input| {
        let kind = Kind::of(input.head());
        kind.is_capture() || !matches!(kind, Kind::Empty | Kind::Unknown | Kind::Foreign(_))
    })
}

/// The path without links and detours, also of a file that is not there yet.
pub fn whole(path: &Path) -> PathBuf {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let beside = || {
        let dir = dir.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(dir.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(beside).unwrap_or_else(|| path.to_owned())
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // That it cannot be taken away is not worth a word beside the error
        // that led here.
        if let Some(beside) = self.beside.take() {
            let _ = std::fs::remove_file(beside);
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
