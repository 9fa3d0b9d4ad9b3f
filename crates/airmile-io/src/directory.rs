//! The files of a directory, and what they are.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::file_report::FileReport;
use crate::input::{Input, Progress};
use crate::recognise::{Foreign, Kind};
use crate::run_files::{SCENARIO, is_run_file};

/// The files directly in a directory, by name. Hidden ones are of no complete run, and tables of a lab
/// run ([`is_of_run`]) may be empty.
///
/// # Errors
/// It cannot be read.
pub fn files_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = shown_in(dir)?;
    paths.retain(|path| {
        let is_log = path.extension().is_some_and(|own| own == "mi2log" || own == "pcapng");
        let may_be_empty = is_of_run(path) && !is_log;
        let is_empty = || path.metadata().is_ok_and(|meta| meta.len() == 0);
        path.is_file() && !(may_be_empty && is_empty())
    });
    Ok(paths)
}

/// The directories in a directory, by name; hidden ones are left out.
///
/// # Errors
/// It cannot be read.
pub fn directories_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = shown_in(dir)?;
    paths.retain(|path| path.is_dir());
    Ok(paths)
}

/// What is directly in a directory and not hidden, by name.
fn shown_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|e| Error::read(dir, e))? {
        let entry = entry.map_err(|e| Error::read(dir, e))?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// Whether a file is a lab run's: a run may write one of this name, and has written its scenario
/// there.
#[must_use]
pub fn is_of_run(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(is_run_file) && path.with_file_name(SCENARIO).is_file()
}

/// Opens a file, as stored, for its format. A file that is empty or damaged from its first byte stops no
/// other: its report.
///
/// # Errors
/// The system cannot read it.
pub fn open_to_sort(path: &Path) -> Result<std::result::Result<(Input, Kind), FileReport>> {
    match Input::open_as_stored(path, &Progress::default()) {
        Ok(input) => match Kind::of(input.head()) {
            Kind::Empty => Ok(Err(FileReport::empty(&input))),
            kind => Ok(Ok((input, kind))),
        },
        Err(error) => unreadable(path, error).map(Err),
    }
}

/// The report of a file that cannot be decompressed; an error of the system stays one.
fn unreadable(path: &Path, error: Error) -> Result<FileReport> {
    match error {
        Error::Read { source, .. } if source.raw_os_error().is_none() => {
            Ok(FileReport::damaged(path, &source))
        }
        error => Err(error),
    }
}

/// As [`open_to_sort`], but a tar archive is the modem log in it, as where it is named. It is read to its
/// end for that.
///
/// # Errors
/// As [`open_to_sort`].
pub fn open_archive_to_sort(path: &Path) -> Result<std::result::Result<(Input, Kind), FileReport>> {
    let (stored, kind) = match open_to_sort(path)? {
        Ok(archive @ (_, Kind::Foreign(Foreign::Tar))) => archive,
        other => return Ok(other),
    };
    match Input::open(path, &Progress::default()) {
        Ok(input) => {
            let kind = Kind::of(input.head());
            Ok(Ok((input, kind)))
        }
        Err(Error::Unusable { what, .. }) => {
            Ok(Err(FileReport::beside_others(&stored, kind, &what)))
        }
        Err(error) => unreadable(path, error).map(Err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_passed_over_in_a_lab_run_alone() {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("page.har", ""),
            ("modem.mi2log", ""),
            ("notes.txt", ""),
            (".hidden", "x"),
            ("a", "x"),
        ] {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        let names = || {
            let paths = files_in(dir.path()).unwrap();
            let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            paths.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(names(), ["a", "modem.mi2log", "notes.txt", "page.har"]);
        std::fs::write(dir.path().join(SCENARIO), "name = \"x\"").unwrap();
        assert_eq!(names(), ["a", "modem.mi2log", "notes.txt", "scenario.toml"]);
    }
}
