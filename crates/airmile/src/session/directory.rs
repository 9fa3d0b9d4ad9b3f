//! Directories among the inputs: selects files that can be used together.

use std::path::{Path, PathBuf};

use airmile_decode::table::TableKind;

use airmile_io::error::{Error, Result};
use airmile_io::input::{Input, Progress};
use airmile_io::recognise::Kind;

/// The inputs with each directory replaced by its files to read.
///
/// # Errors
/// A directory cannot be read, or holds nothing usable.
pub(super) fn expand(files: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for path in files {
        if path.is_dir() {
            out.extend(choose(path)?);
        } else {
            out.push(path.clone());
        }
    }
    Ok(out)
}

/// The capture studied among a run's captures, which show the same packets: the server's, where its
/// own packets have full round trips.
const SERVER: &str = "server.pcapng";

/// Captures to study: each directory replaced by the capture in it.
///
/// # Errors
/// A directory cannot be read, holds no capture, or holds several without a `server.pcapng`.
pub fn captures(files: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let capture = |path: &PathBuf| if path.is_dir() { capture_in(path) } else { Ok(path.clone()) };
    files.iter().map(capture).collect()
}

/// The captures directly in a directory, by name.
pub(crate) fn captures_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in files_in(dir)? {
        if Kind::of(Input::open_as_stored(&path, &Progress::default())?.head()).is_capture() {
            found.push(path);
        }
    }
    Ok(found)
}

fn capture_in(dir: &Path) -> Result<PathBuf> {
    let found = captures_in(dir)?;
    if let Some(server) = found.iter().find(|path| path.ends_with(SERVER)) {
        return Ok(server.clone());
    }
    let refuse = |what: String| Err(Error::Unusable { path: dir.to_owned(), what });
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => refuse("is a directory without a packet capture in it".to_owned()),
        several => {
            let names = several.iter().filter_map(|path| path.file_name());
            let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
            refuse(format!("is a directory of several captures: give {}", names.join(" or ")))
        }
    }
}

/// Whether a file or directory holds more than captures, so that a session can be opened on it.
pub(crate) fn holds_logs(path: &Path) -> bool {
    !path.is_dir() || choose(path).is_ok()
}

/// The files directly in a directory, by name; hidden ones are of no complete run.
fn files_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir).map_err(|e| Error::read(dir, e))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| Error::read(dir, e))?.path();
        let is_hidden =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.is_file() && !is_hidden {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// A directory's files that can be read together: modem logs first, else text exports, else tables;
/// also the transfers. Truth tables, notes and other files are ignored.
fn choose(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut groups: [Vec<PathBuf>; 3] = Default::default();
    let mut transfers = Vec::new();
    let mut applications = Vec::new();
    for path in files_in(dir)? {
        let input = Input::open_as_stored(&path, &Progress::default())?;
        match Kind::of(input.head()) {
            Kind::ModemLog(_) => groups[0].push(path),
            Kind::LogText => groups[1].push(path),
            Kind::Table(TableKind::Grants | TableKind::Rlc) => groups[2].push(path),
            Kind::Table(TableKind::Transfers) => transfers.push(path),
            Kind::Application(_) => applications.push(path),
            _ => {}
        }
    }
    let Some(logs) = groups.into_iter().find(|group| !group.is_empty()) else {
        if !applications.is_empty() {
            return Ok(applications);
        }
        return Err(Error::Unusable {
            path: dir.to_owned(),
            what:
                "is a directory without a modem log, text export, grant table or application's log \
                   in it (`diagnose`, `inspect` and `packets` also read packet captures in one)"
                    .into(),
        });
    };
    Ok(logs.into_iter().chain(transfers).chain(applications).collect())
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
                Ok(paths) => paths[0].file_name().unwrap().to_string_lossy().into_owned(),
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
