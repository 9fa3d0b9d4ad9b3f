//! Documents and tables are byte for byte what they were: over the shared logs and captures, and over
//! runs of the lab. A change for speed must not change any.
//!
//! Digests are in `tests/data/outputs/`. After a change that is meant to change outputs,
//! `AIRMILE_ACCEPT=1 cargo test -p airmile-cli --test it same_output` writes them anew: the commit
//! then shows which outputs it changed. So does a new version of airmile or of Parquet's library, whose
//! names are in the outputs, and a new file in the shared directories.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// Commands over a modem log; `{out}` is a directory for tables.
const OF_LOGS: [&str; 4] = [
    "inspect --json {file}",
    "radio --json {file}",
    "diagnose --json {file}",
    "decode --experimental -o {out} {file}",
];
/// Commands over a capture.
const OF_CAPTURES: [&str; 2] = ["diagnose --json {file}", "packets --json -o {out} {file}"];
/// Commands over a run of the lab; the first one makes it.
const OF_RUNS: [&str; 2] = ["lab run {file} -o {file}", "diagnose --json {file}"];
/// Numbers of threads of `packets`.
const THREADS: [Option<&str>; 3] = [Some("1"), Some("2"), Some("3")];
/// Runs of the lab: LTE and NR, TCP and QUIC, each direction, a page.
const RUNS: [&str; 8] = [
    "sample-download",
    "sample-upload",
    "sample-video",
    "nr-tdd-video",
    "page",
    "quic-file",
    "two-carriers",
    "upload-beside-download",
];

/// The first bytes of the digest of a command's status, document and tables.
fn digest(dir: &Path, command: &str, file: &str, threads: Option<&str>) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let args = command.split(' ').map(|arg| match arg {
        "{file}" => file,
        "{out}" => out.to_str().unwrap(),
        arg => arg,
    });
    let threads = threads.into_iter().flat_map(|n| ["--threads", n]);
    let mut airmile = Command::new(env!("CARGO_BIN_EXE_airmile"));
    let done = airmile.args(args).args(threads).current_dir(dir).output().unwrap();
    let mut hash = Sha256::new();
    hash.update(done.status.code().unwrap().to_le_bytes());
    hash.update(&done.stdout);
    let written = if command.starts_with("lab run") { dir.join(file) } else { out };
    let files = fs::read_dir(written).into_iter().flatten().map(|entry| entry.unwrap().path());
    for path in files.collect::<BTreeSet<_>>() {
        hash.update(path.file_name().unwrap().as_encoded_bytes());
        hash.update(fs::read(path).unwrap());
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A line for each command over each file: a study has the same with any number of threads.
fn lines(dir: &Path, files: &[String], commands: &[&str]) -> Vec<String> {
    let each = files.iter().flat_map(|file| commands.iter().map(move |command| (file, command)));
    each.map(|(file, command)| {
        let threads = if command.starts_with("packets") { &THREADS[..] } else { &[None] };
        let digests: Vec<String> = threads.iter().map(|n| digest(dir, command, file, *n)).collect();
        let is_same = digests.iter().all(|digest| *digest == digests[0]);
        assert!(is_same, "{command} {file} by threads: {digests:?}");
        let shown = command.replace("-o {out} ", "").replace("{file}", file);
        format!("{} {shown}", digests[0])
    })
    .collect()
}

/// Compares with the lines of a file, or writes them.
fn check(name: &str, lines: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/outputs").join(name);
    if std::env::var_os("AIRMILE_ACCEPT").is_some() {
        return fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let before = fs::read_to_string(&path).unwrap();
    let before: Vec<&str> = before.lines().collect();
    let changed: Vec<&str> =
        lines.iter().map(String::as_str).filter(|line| !before.contains(line)).collect();
    assert!(changed.is_empty(), "changed (how to accept: {}):\n{}", file!(), changed.join("\n"));
    assert_eq!(lines.len(), before.len(), "{} has outputs that are no longer made", path.display());
}

/// The shared logs and captures, if they are there.
pub(crate) fn shared_data() -> Option<PathBuf> {
    let shared = std::env::var_os("AIRMILE_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let data = shared.join("data");
    data.is_dir().then_some(data)
}

/// The files of a kind in the shared data; `None`: it is not there.
fn shared(directories: &[&str], kinds: &[&str]) -> Option<(PathBuf, Vec<String>)> {
    let Some(data) = shared_data() else {
        let _ = writeln!(stderr(), "SKIPPED: no shared data (set AIRMILE_SHARED)");
        return None;
    };
    let mut files = Vec::new();
    for directory in directories {
        for entry in fs::read_dir(data.join(directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if kinds.iter().any(|kind| name.ends_with(kind)) {
                files.push(format!("{directory}/{name}"));
            }
        }
    }
    files.sort();
    Some((data, files))
}

#[test]
fn of_shared_logs() {
    let Some((data, files)) = shared(&["diag", "modern"], &[".mi2log", ".qmdl"]) else { return };
    check("logs.txt", &lines(&data, &files, &OF_LOGS));
}

#[test]
fn of_shared_captures() {
    let Some((data, files)) = shared(&["pcap"], &[".pcap", ".pcapng", ".pcap.gz"]) else { return };
    check("captures.txt", &lines(&data, &files, &OF_CAPTURES));
}

#[test]
fn of_runs_of_the_lab() {
    let dir = tempfile::tempdir().unwrap();
    let runs = RUNS.map(str::to_owned);
    let mut all = lines(dir.path(), &runs, &OF_RUNS);
    let captures: Vec<String> = runs.iter().map(|run| format!("{run}/phone.pcapng")).collect();
    let captured: Vec<String> =
        captures.into_iter().filter(|capture| dir.path().join(capture).exists()).collect();
    assert!(captured.len() >= 5, "{captured:?}");
    all.extend(lines(dir.path(), &captured, &OF_CAPTURES));
    check("runs.txt", &all);
}
