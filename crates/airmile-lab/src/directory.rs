//! The directory of a run: its files, and those of an earlier run.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use airmile::run_files::{MANIFEST, RUN_FILES, SCENARIO, is_run_file};
use airmile::{Error, Replacement, Result, is_part_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LabFile {
    /// Its name in the run's directory.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its contents.
    pub what: &'static str,
}

/// Fields of an earlier run's manifest.
#[derive(Deserialize)]
struct Former {
    /// Only a run's manifest has both.
    #[serde(rename = "airmile")]
    _airmile: String,
    #[serde(rename = "scenario")]
    _scenario: String,
    files: Vec<FormerFile>,
}

#[derive(Deserialize)]
struct FormerFile {
    name: String,
}

impl Former {
    fn read(dir: &Path) -> Option<Self> {
        let text = std::fs::read(dir.join(MANIFEST)).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Whether a directory belongs to a complete or incomplete run. Other programs write a
/// `manifest.json`, too.
fn is_run(dir: &Path) -> bool {
    dir.join(SCENARIO).is_file() || Former::read(dir).is_some()
}

/// Prepares a directory for a run. A non-empty one is rejected, except for an earlier run
/// with `force`, whose files are removed.
///
/// # Errors
/// The directory has other contents, or cannot be written.
pub(crate) fn prepare(dir: &Path, force: bool) -> Result<()> {
    let refuse = |what: &str| Err(Error::Unusable { path: dir.to_owned(), what: what.to_owned() });
    match std::fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(Error::write(dir, e)),
        Ok(true) => {}
        Ok(false) if !is_run(dir) => {
            return refuse("is not empty and does not contain an earlier run: use another");
        }
        Ok(false) if !force => {
            return refuse("contains an earlier run: use another, or --force to replace that run");
        }
        Ok(false) => remove_former(dir)?,
    }
    std::fs::create_dir_all(dir).map_err(|e| Error::write(dir, e))
}

/// Removes the files of an earlier run by its manifest, or without one by the names that
/// runs use, and what an interrupted run left of them. Other files stay.
fn remove_former(dir: &Path) -> Result<()> {
    let names: Vec<String> = match Former::read(dir) {
        // A modified manifest can only remove files of a run.
        Some(former) => {
            former.files.into_iter().map(|f| f.name).filter(|n| is_run_file(n)).collect()
        }
        None => RUN_FILES.iter().map(|(name, _)| (*name).to_owned()).collect(),
    };
    let parts = std::fs::read_dir(dir).map_err(|e| Error::write(dir, e))?.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        RUN_FILES.iter().any(|(file, _)| is_part_of(&name, file)).then_some(name)
    });
    let parts: Vec<String> = parts.collect();
    for name in names.iter().chain(&parts).map(String::as_str).chain([MANIFEST]) {
        let path = dir.join(name);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::write(path, e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes files to a directory.
pub(crate) struct DirectoryWriter {
    pub(crate) dir: PathBuf,
    names: Vec<String>,
}

impl DirectoryWriter {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), names: Vec::new() }
    }

    /// A file that grows under its final name, for readers that follow it.
    ///
    /// # Errors
    /// It cannot be created.
    pub(crate) fn create(&mut self, name: &str) -> Result<File> {
        let path = self.dir.join(name);
        let created = File::create(&path).map_err(|e| Error::write(&path, e))?;
        self.names.push(name.to_owned());
        Ok(created)
    }

    /// Writes a file, which gets its name when it is complete.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(
        &mut self,
        name: &str,
        write: &dyn Fn(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<()> {
        let (out, file) = Replacement::begin(&self.dir.join(name))?;
        let mut file = BufWriter::new(file);
        write(&mut file).and_then(|()| file.flush()).map_err(|e| out.failed(e))?;
        out.done()?;
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Removes a file that was never written to.
    ///
    /// # Errors
    /// It cannot be removed.
    pub(crate) fn remove_if_empty(&mut self, name: &str) -> Result<()> {
        let path = self.dir.join(name);
        if std::fs::metadata(&path).is_ok_and(|there| there.len() == 0) {
            std::fs::remove_file(&path).map_err(|e| Error::write(&path, e))?;
        }
        if !path.exists() {
            self.names.retain(|written| written != name);
        }
        Ok(())
    }

    /// Adds files written elsewhere to the list.
    pub(crate) fn add(&mut self, names: Vec<String>) {
        self.names.extend(names);
    }

    /// The files so far, with their sizes, in listing order.
    ///
    /// # Errors
    /// A file is missing.
    pub(crate) fn list(&self) -> Result<Vec<LabFile>> {
        let mut out = Vec::new();
        for (name, what) in RUN_FILES {
            if !self.names.iter().any(|written| written == name) {
                continue;
            }
            let path: PathBuf = self.dir.join(name);
            let bytes = std::fs::metadata(&path).map_err(|e| Error::read(&path, e))?.len();
            out.push(LabFile { name: name.to_owned(), bytes, what });
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_section() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        for (name, _) in RUN_FILES {
            let mut titles = docs.lines().filter(|line| line.starts_with("### "));
            assert!(titles.any(|line| line.contains(&format!("`{name}`"))), "{name}");
        }
    }

    #[test]
    fn another_programs_manifest_is_left_alone() {
        let check = |text: &str, is_a_run: bool| {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(MANIFEST), text).unwrap();
            assert_eq!(prepare(dir.path(), true).is_ok(), is_a_run, "{text}");
            assert_eq!(dir.path().join(MANIFEST).exists(), !is_a_run, "{text}");
        };
        check(r#"{"airmile": "0.1.0", "scenario": "busy-video", "files": []}"#, true);
        check(r#"{"airmile": "0.1.0", "files": []}"#, false);
        check(r#"{"name": "a web page", "icons": []}"#, false);
        check("", false);
    }
}
