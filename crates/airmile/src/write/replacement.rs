//! A file that takes another's place only once it is whole.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use airmile_io::error::{Error, Result};

/// A file under another name beside the one that it is to replace. Dropped
/// before [`done`](Self::done), it leaves nothing behind, and what was there
/// before as it was.
#[derive(Debug)]
pub(crate) struct Replacement {
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
    pub(crate) fn begin(path: &Path) -> Result<(Self, File)> {
        let replaces = std::fs::metadata(path).map_or(true, |found| found.is_file());
        // A link's target is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let beside = replaces.then(|| {
            let mut name = std::ffi::OsString::from(".");
            name.push(path.file_name().unwrap_or_default());
            name.push(format!(".{}.part", std::process::id()));
            path.with_file_name(name)
        });
        let file = File::create(beside.as_ref().unwrap_or(&path));
        let file = file.map_err(|e| Error::write(&path, e))?;
        Ok((Self { path, beside }, file))
    }

    /// The error of writing it.
    pub(crate) fn failed(&self, error: io::Error) -> Error {
        Error::write(&self.path, error)
    }

    /// The file is whole: it takes its place.
    ///
    /// # Errors
    /// It cannot be given its name.
    pub(crate) fn done(mut self) -> Result<()> {
        match &self.beside {
            Some(beside) => std::fs::rename(beside, &self.path).map_err(|e| self.failed(e))?,
            None => return Ok(()),
        }
        self.beside = None;
        Ok(())
    }
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
