//! Directories among the inputs: the files in them that are of use together.

use std::path::{Path, PathBuf};

use airmile_decode::table::TableKind;

use crate::error::{Error, Result};
use crate::input::{Input, Progress};
use crate::recognise::Kind;

/// The inputs with each directory replaced by the files in it to read.
///
/// # Errors
/// A directory that cannot be read, or holds nothing of use.
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

/// A directory's files by how they can be read together: modem logs first,
/// else text exports, else tables; with them the transfers. Truth tables,
/// notes and whatever else lies there are left alone.
fn choose(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir).map_err(|e| Error::read(dir, e))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| Error::read(dir, e))?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut groups: [Vec<PathBuf>; 3] = Default::default();
    let mut transfers = Vec::new();
    for path in paths {
        let input = Input::open(&path, &Progress::default())?;
        match Kind::of(input.head()) {
            Kind::ModemLog(_) => groups[0].push(path),
            Kind::LogText => groups[1].push(path),
            Kind::Table(TableKind::Grants | TableKind::Rlc) => groups[2].push(path),
            Kind::Table(TableKind::Transfers) => transfers.push(path),
            _ => {}
        }
    }
    let Some(logs) = groups.into_iter().find(|group| !group.is_empty()) else {
        return Err(Error::Unusable {
            path: dir.to_owned(),
            what: "is a directory without a modem log, text export or grant table in it".into(),
        });
    };
    Ok(logs.into_iter().chain(transfers).collect())
}
