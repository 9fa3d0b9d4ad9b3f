//! What tests of several crates need.
//!
//! Logs, captures and simulator runs of others are not part of the repository. They are in
//! `$AIRMILE_SHARED/data`, by default in `../shared/data` beside the repository. A test that does
//! not find its own says so and passes.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Says that a test, or a part of it, was skipped, past the harness: that keeps what passing tests
/// print.
pub fn skipped(why: impl Display) {
    let _ = std::io::stderr().write_all(format!("SKIPPED: {why}\n").as_bytes());
}

/// The directory of the shared material, which may be missing.
#[must_use]
pub fn shared() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    std::env::var_os("AIRMILE_SHARED").map_or_else(beside, PathBuf::from)
}

/// A file or directory of the shared data. `None`, and said, if it is missing.
#[must_use]
pub fn shared_data(name: &str) -> Option<PathBuf> {
    let path = shared().join("data").join(name);
    if !path.exists() {
        skipped(format_args!("{} is missing (set AIRMILE_SHARED)", path.display()));
        return None;
    }
    Some(path)
}

/// The files of a directory of the shared data whose names end in one of these, in order. None, and said,
/// if it is missing.
#[must_use]
pub fn shared_files(directory: &str, endings: &[&str]) -> Vec<PathBuf> {
    let entries =
        shared_data(directory).into_iter().filter_map(|path| std::fs::read_dir(path).ok());
    let paths = entries.flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        endings.iter().any(|ending| name.ends_with(ending))
    };
    let mut files: Vec<PathBuf> = paths.filter(is_one).collect();
    files.sort();
    files
}
