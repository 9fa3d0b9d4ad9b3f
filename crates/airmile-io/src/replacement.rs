//! Writes a file under a temporary name, and renames it when it is complete.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use airmile_model::printable_path;

use crate::error::{Error, Result};
use crate::input::{Input, Progress};
use crate::recognise::Kind;

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
        // The target of a link is replaced, not the link, but for one of another user.
        let path = match is_untrusted_link(path) {
            true => path.to_owned(),
            false => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        };
        let part = replaces.then(|| part_of(&path));
        let file = match &part {
            Some(part) => new_file(part, false).and_then(|file| keep_mode(&path, file)),
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

/// Whether a path is a link that another user made in a directory that everybody may write
/// to, like `/tmp`. Linux does not follow those, either (`fs.protected_symlinks`).
#[cfg(unix)]
fn is_untrusted_link(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const STICKY_AND_WRITABLE: u32 = 0o1002;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Ok(link), Ok(dir)) = (std::fs::symlink_metadata(path), std::fs::metadata(dir)) else {
        return false;
    };
    let own = std::fs::metadata("/proc/self").map_or(0, |process| process.uid());
    let open = dir.mode() & STICKY_AND_WRITABLE == STICKY_AND_WRITABLE;
    link.is_symlink() && open && ![own, dir.uid()].contains(&link.uid())
}

#[cfg(not(unix))]
const fn is_untrusted_link(_: &Path) -> bool {
    false
}

/// The new file has the mode of the one that it replaces.
fn keep_mode(path: &Path, file: File) -> io::Result<File> {
    match std::fs::symlink_metadata(path) {
        Ok(old) if old.is_file() => file.set_permissions(old.permissions()).map(|()| file),
        _ => Ok(file),
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

/// Whether a name is the temporary one of a file, in any process.
#[must_use]
pub fn is_part_of(name: &str, file: &str) -> bool {
    let rest = name.strip_prefix('.').and_then(|rest| rest.strip_prefix(file));
    let process = rest.and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".part"));
    process.is_some_and(|process| process.parse::<u32>().is_ok())
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

/// Checks files to write, each given with the bytes that begin every file of its kind. An output
/// may replace an earlier output of its kind, and an empty file.
///
/// # Errors
/// One is among the inputs; or it exists and begins otherwise, so that airmile did not write it.
pub fn check_outputs<'a>(
    outputs: impl IntoIterator<Item = (PathBuf, &'a [u8])>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    let mut outputs = outputs.into_iter().peekable();
    if outputs.peek().is_none() {
        return Ok(());
    }
    let read = read_files(inputs);
    outputs.try_for_each(|(path, begins)| {
        let why = if read.contains(&whole(&path)) {
            "is one of the files to read; name another"
        } else if is_of_others(&path, begins).map_err(|e| Error::read(&path, e))? {
            "exists, and is no earlier output of this option: name another file, or delete this one"
        } else {
            return Ok(());
        };
        Err(Error::Option(format!("{}: {why}", printable_path(&path))))
    })
}

/// Whether there is a file, which is not empty and begins otherwise.
fn is_of_others(path: &Path, begins: &[u8]) -> io::Result<bool> {
    if !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(false);
    }
    let mut head = Vec::new();
    File::open(path)?.take(begins.len() as u64).read_to_end(&mut head)?;
    Ok(!head.is_empty() && head != begins)
}

/// The inputs without links and `..`; for a directory also the files in it that can be read
/// as inputs; for standard input the file that it is redirected from, where the system names it.
pub fn read_files<'a>(inputs: impl IntoIterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut read = Vec::new();
    for input in inputs {
        let input = if input.as_os_str() == "-" { Path::new("/dev/stdin") } else { input };
        read.push(whole(input));
        // An error is reported where the directory is read.
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
    fn only_an_earlier_output_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let allowed = || check_outputs([(path.clone(), &b"<!doc"[..])], []).is_ok();
        assert!(allowed(), "a new file");
        for (content, expected) in
            [("", true), ("<!doctype html>", true), ("<!do", false), ("{}", false)]
        {
            std::fs::write(&path, content).unwrap();
            assert_eq!(allowed(), expected, "{content}");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(allowed(), "a directory fails where it is written");
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

    #[cfg(unix)]
    #[test]
    fn the_mode_of_what_was_there_stays() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report");
        std::fs::write(&path, "private").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    /// A link that another user made in a directory like `/tmp` is replaced, not followed.
    #[cfg(unix)]
    #[allow(clippy::print_stdout, reason = "a test that is skipped says so")]
    #[test]
    fn outputs_a_strangers_link_is_not_followed() {
        use std::os::unix::fs::{PermissionsExt, lchown, symlink};
        const NOBODY: u32 = 65_534;
        let dir = tempfile::tempdir().unwrap();
        let [open, precious] = ["open", "precious"].map(|name| dir.path().join(name));
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o1777)).unwrap();
        for (stranger, expected) in [(false, "new"), (true, "old")] {
            std::fs::write(&precious, "old").unwrap();
            let link = open.join(if stranger { "strange" } else { "own" });
            symlink(&precious, &link).unwrap();
            if stranger && lchown(&link, Some(NOBODY), None).is_err() {
                return airmile_testing::skipped("needs root to make another user's link");
            }
            write_whole(&link, b"new").unwrap();
            assert_eq!(std::fs::read_to_string(&precious).unwrap(), expected);
            assert_eq!(std::fs::read_to_string(&link).unwrap(), "new");
        }
    }
}
