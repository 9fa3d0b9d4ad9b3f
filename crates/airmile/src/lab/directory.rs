//! The directory of a run: its files, and what a former run left there.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LabFile {
    /// Its name in the run's directory.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What it holds.
    pub what: &'static str,
}

/// What the directory says of itself.
pub(super) const MANIFEST: &str = "run.json";

/// The scenario, which is written first: from then on the directory is known to
/// be a run's.
pub(super) const SCENARIO: &str = "scenario.toml";

/// The links' traces, downlink and uplink.
pub(super) const LINK_TRACES: [&str; 2] = ["link-down.trace", "link-up.trace"];

/// Every file that a run may leave (docs/lab.md).
const KNOWN: [(&str, &str); 22] = [
    (MANIFEST, "what this directory is: scenario, seed, files"),
    (SCENARIO, "the scenario, to run again"),
    (LINK_TRACES[0], "the downlink's trace that was replayed"),
    (LINK_TRACES[1], "the uplink's trace that was replayed"),
    ("modem.mi2log", "the phone's modem log"),
    ("grants.csv", "blocks that the phone received and sent"),
    ("rlc.csv", "RLC PDUs that the phone received and sent"),
    ("transfers.csv", "the application's transfers"),
    ("app.jsonl", "the application's log"),
    ("phone.pcapng", "packets at the phone"),
    ("proxy.pcapng", "packets at the proxy, both sides"),
    ("server.pcapng", "packets at the server"),
    ("transfer_truth.csv", "truth: throughput time of each transfer"),
    ("truth.csv", "truth: the phone's queue at the base station"),
    ("ul_truth.csv", "truth: the phone's own queue"),
    ("cell_use.csv", "truth: PRB pairs of all users"),
    ("rrc.csv", "truth: the phone's RRC states"),
    ("drops.csv", "truth: packets lost"),
    ("senders.csv", "truth: what TCP senders knew"),
    ("sender_events.jsonl", "truth: what happened to TCP senders"),
    ("causes.csv", "injected causes"),
    ("counterfactuals.csv", "each transfer with and without each cause"),
];

/// Whether a directory is a run's that has been or was being written.
fn is_run(dir: &Path) -> bool {
    dir.join(MANIFEST).is_file() || dir.join(SCENARIO).is_file()
}

/// Makes a directory ready for a run. One that holds anything is refused, but a
/// former run's with `force`: then that run's files go.
///
/// # Errors
/// It holds something else, or cannot be written.
pub(super) fn prepare(dir: &Path, force: bool) -> Result<()> {
    let refuse = |what: &str| Err(Error::Unusable { path: dir.to_owned(), what: what.to_owned() });
    match std::fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(Error::write(dir, e)),
        Ok(true) => {}
        Ok(false) if !is_run(dir) => {
            return refuse("is not empty and no former run's: give another");
        }
        Ok(false) if !force => {
            return refuse("holds a former run: give another, or --force to replace that run");
        }
        Ok(false) => remove_former(dir)?,
    }
    std::fs::create_dir_all(dir).map_err(|e| Error::write(dir, e))
}

/// Takes away what a former run wrote, by its manifest, and where that is not
/// there, by the names that runs use. What else lies there stays.
fn remove_former(dir: &Path) -> Result<()> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    #[derive(Deserialize)]
    struct Former {
        files: Vec<Named>,
    }
    let manifest = std::fs::read(dir.join(MANIFEST)).ok();
    let former: Option<Former> = manifest.and_then(|text| serde_json::from_slice(&text).ok());
    let is_known = |name: &str| KNOWN.iter().any(|(known, _)| *known == name);
    let names: Vec<String> = match former {
        // A manifest that somebody has changed removes nothing but a run's files.
        Some(former) => former.files.into_iter().map(|f| f.name).filter(|n| is_known(n)).collect(),
        None => KNOWN.iter().map(|(name, _)| (*name).to_owned()).collect(),
    };
    for name in names.iter().map(String::as_str).chain([MANIFEST]) {
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

/// Files of a directory, as they are written.
pub(super) struct Files<'a> {
    pub(super) dir: &'a Path,
    names: Vec<String>,
}

impl<'a> Files<'a> {
    pub(super) const fn new(dir: &'a Path) -> Self {
        Self { dir, names: Vec::new() }
    }

    pub(super) fn write(
        &mut self,
        name: &str,
        write: &dyn Fn(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<()> {
        let path = self.dir.join(name);
        let created = File::create(&path).map_err(|e| Error::write(&path, e))?;
        let mut out = BufWriter::new(created);
        write(&mut out).and_then(|()| out.flush()).map_err(|e| Error::write(&path, e))?;
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Notes files down that were written by others.
    pub(super) fn add(&mut self, names: Vec<String>) {
        self.names.extend(names);
    }

    /// The files so far, with their sizes, in the order of the list of all.
    ///
    /// # Errors
    /// A file that is gone.
    pub(super) fn list(&self) -> Result<Vec<LabFile>> {
        let mut out = Vec::new();
        for (name, what) in KNOWN {
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
