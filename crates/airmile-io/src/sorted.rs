//! The inputs of a command by the way they are read; of a directory, the files that can be used
//! together.

use std::path::{Path, PathBuf};

use airmile_decode::table::TableKind;

use crate::FileReport;
use crate::directory::{files_in, is_of_run, open_archive_to_sort, open_to_sort};
use crate::error::{Error, Result};
use crate::input::comes_once;
use crate::recognise::Kind;

/// The inputs of a command by the way they are read.
#[derive(Debug, Default)]
pub struct Sorted {
    /// Logs, tables and application logs.
    pub logs: Vec<PathBuf>,
    /// Packet captures.
    pub captures: Vec<PathBuf>,
    /// A report of each file that is not read: an empty one, one that is damaged from its first byte,
    /// and in a directory one of another kind.
    pub unread: Vec<FileReport>,
}

impl Sorted {
    /// Sorts inputs; each directory is replaced by its files to read.
    ///
    /// # Errors
    /// A file or directory cannot be opened.
    pub fn of(files: &[PathBuf]) -> Result<Self> {
        let mut sorted = Self::default();
        for path in files {
            if path.is_dir() {
                sorted.add_directory(path)?;
            } else {
                sorted.add_file(path)?;
            }
        }
        Ok(sorted)
    }

    /// Adds a file; a stream, which cannot be opened twice, as a log.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn add_file(&mut self, path: &Path) -> Result<()> {
        let opened = if comes_once(path) { None } else { Some(open_to_sort(path)?) };
        match opened {
            Some(Err(report)) => self.unread.push(report),
            Some(Ok((_, kind))) if kind.is_capture() => self.captures.push(path.to_owned()),
            _ => self.logs.push(path.to_owned()),
        }
        Ok(())
    }

    /// Adds a directory's captures, and its logs that can be read together: modem logs first, else
    /// text exports, else tables; also transfers and application logs. Truth tables and other files of
    /// a lab run are no inputs.
    fn add_directory(&mut self, dir: &Path) -> Result<()> {
        let mut groups: [Vec<(PathBuf, FileReport)>; 3] = Default::default();
        let (mut transfers, mut applications) = (Vec::new(), Vec::new());
        for path in files_in(dir)? {
            let (input, kind) = match open_archive_to_sort(&path)? {
                Ok(opened) => opened,
                Err(report) => {
                    self.unread.push(report);
                    continue;
                }
            };
            let report = FileReport::not_of_directory(&input, kind);
            match kind {
                _ if kind.is_capture() => self.captures.push(path),
                Kind::ModemLog(_) => groups[0].push((path, report)),
                Kind::LogText => groups[1].push((path, report)),
                Kind::Table(TableKind::Grants | TableKind::Rlc) => groups[2].push((path, report)),
                Kind::Table(TableKind::Transfers) => transfers.push(path),
                Kind::Application(_) => applications.push(path),
                Kind::Table(TableKind::Truth | TableKind::TransferTruth) => {}
                _ if is_of_run(&path) => {}
                _ => self.unread.push(report),
            }
        }
        let mut groups = groups.into_iter().filter(|group| !group.is_empty());
        let logs = groups.next().unwrap_or_default().into_iter().map(|(path, _)| path);
        self.logs.extend(logs.chain(transfers).chain(applications));
        let others = groups.flatten().filter(|(path, _)| !is_of_run(path));
        self.unread.extend(others.map(|(_, report)| report));
        Ok(())
    }

    /// Why nothing is left to read: `what` a directory lacks, and what is wrong with files.
    pub fn nothing(files: &[PathBuf], unread: &[FileReport], what: &str) -> Error {
        let damaged = unread.iter().filter(|report| report.damaged);
        let problem = |report: &FileReport| {
            let what = report.problems.first().map_or("", |problem| &problem.what);
            format!("{}: {what}", report.path)
        };
        let mut reasons: Vec<String> = damaged.map(problem).collect();
        match files.iter().find(|path| path.is_dir()) {
            Some(dir) => {
                reasons.insert(0, what.to_owned());
                Error::Unusable { path: dir.clone(), what: reasons.join("; ") }
            }
            None => Error::NothingToAnalyse(reasons.join("; ")),
        }
    }
}

/// The capture studied among a run's captures, which show the same packets: the server's, where its
/// own packets have full round trips.
const SERVER: &str = "server.pcapng";

/// Captures to study, each directory replaced by the capture in it, and a report of each file that is
/// not read.
///
/// # Errors
/// A file or directory cannot be read, or a directory holds no capture, or several without a
/// `server.pcapng`.
pub fn captures(files: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<FileReport>)> {
    let (mut captures, mut unread) = (Vec::new(), Vec::new());
    for path in files {
        let mut sorted = Sorted::of(std::slice::from_ref(path))?;
        if path.is_dir() {
            captures.push(one_capture(path, sorted.captures, &sorted.unread)?);
        } else {
            captures.append(&mut sorted.captures);
            captures.append(&mut sorted.logs);
        }
        unread.append(&mut sorted.unread);
    }
    match captures.is_empty() && !files.is_empty() {
        true => Err(Sorted::nothing(files, &unread, "")),
        false => Ok((captures, unread)),
    }
}

fn one_capture(dir: &Path, found: Vec<PathBuf>, unread: &[FileReport]) -> Result<PathBuf> {
    if let Some(server) = found.iter().find(|path| path.ends_with(SERVER)) {
        return Ok(server.clone());
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let what = "is a directory without a packet capture in it";
            Err(Sorted::nothing(&[dir.to_owned()], unread, what))
        }
        several => {
            let names = several.iter().filter_map(|path| path.file_name());
            let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
            let what = format!("is a directory of several captures: give {}", names.join(" or "));
            Err(Error::Unusable { path: dir.to_owned(), what })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes of a pcapng file: its section header block.
    const PCAPNG: [u8; 12] = [0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a];

    #[test]
    fn a_directory_is_the_capture_in_it() {
        let check = |names: &[&str], expected: &str| {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("notes.txt"), "of the day").unwrap();
            std::fs::write(dir.path().join(".phone.pcapng.7.part"), PCAPNG).unwrap();
            for name in names {
                std::fs::write(dir.path().join(name), PCAPNG).unwrap();
            }
            let found = captures(&[dir.path().to_owned()]);
            let got = match found {
                Ok((paths, _)) => paths[0].file_name().unwrap().to_string_lossy().into_owned(),
                Err(error) => error.to_string(),
            };
            assert!(got.ends_with(expected), "{got}");
        };
        check(&["a.pcapng"], "a.pcapng");
        check(&["phone.pcapng", "proxy.pcapng", "server.pcapng"], "server.pcapng");
        check(
            &["a.pcapng", "b.pcapng"],
            "is a directory of several captures: give a.pcapng or b.pcapng",
        );
        check(&[], "is a directory without a packet capture in it");
    }
}
