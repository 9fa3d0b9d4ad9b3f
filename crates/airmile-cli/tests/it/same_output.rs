//! Documents and tables are byte for byte what they were: over the shared logs and captures, and over
//! runs of the lab. A change for speed must not change any.
//!
//! Digests are in `tests/data/outputs/`. After a change that is meant to change outputs,
//! `AIRMILE_ACCEPT=1 make test ONLY="--test it same_output"` writes them anew: the commit
//! then shows which outputs it changed. So does a new version of airmile or of Parquet's library, whose
//! names are in the outputs. A shared file without digests is SKIPPED, and so are digests without
//! their file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use airmile_testing::{shared, shared_files, skipped};
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

/// The digest of each command over each file: a study has the same with any number of threads.
fn digests(dir: &Path, files: &[String], commands: &[&str]) -> BTreeMap<String, String> {
    let each = files.iter().flat_map(|file| commands.iter().map(move |command| (file, command)));
    each.map(|(file, command)| {
        let threads = if command.starts_with("packets") { &THREADS[..] } else { &[None] };
        let mut digests: Vec<String> =
            threads.iter().map(|n| digest(dir, command, file, *n)).collect();
        let is_same = digests.iter().all(|digest| *digest == digests[0]);
        assert!(is_same, "{command} {file} by threads: {digests:?}");
        let shown = command.replace("-o {out} ", "").replace("{file}", file);
        (shown, digests.swap_remove(0))
    })
    .collect()
}

/// Compares with the digests of a file, or writes them. Returns what only one of both has.
fn check(name: &str, digests: &BTreeMap<String, String>) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/outputs").join(name);
    if std::env::var_os("AIRMILE_ACCEPT").is_some() {
        let lines = digests.iter().map(|(command, digest)| format!("{digest} {command}\n"));
        fs::write(&path, lines.collect::<String>()).unwrap();
        return Vec::new();
    }
    let text = fs::read_to_string(&path).unwrap();
    let before: BTreeMap<&str, &str> =
        text.lines().map(|line| line.split_once(' ').map(|(a, b)| (b, a)).unwrap()).collect();
    let is_new = |command: &&str| !before.contains_key(*command);
    let is_gone = |command: &&str| !digests.contains_key(*command);
    let new = digests.keys().map(String::as_str).filter(is_new).map(|c| format!("no digest: {c}"));
    let gone = before.keys().copied().filter(is_gone).map(|c| format!("no longer made: {c}"));
    let unmatched = new.chain(gone).collect();
    let is_changed = |(command, digest): &(&String, &String)| {
        before.get(command.as_str()).is_some_and(|was| was != digest)
    };
    let changed: Vec<_> = digests.iter().filter(is_changed).map(|(c, _)| c.as_str()).collect();
    assert!(changed.is_empty(), "changed (how to accept: {}):\n{}", file!(), changed.join("\n"));
    unmatched
}

/// Compares what commands over the shared files give with the digests of a file.
fn check_shared(name: &str, directories: &[&str], endings: &[&str], commands: &[&str]) {
    let data = shared().join("data");
    let files = directories.iter().flat_map(|directory| shared_files(directory, endings));
    let names: Vec<String> =
        files.map(|path| path.strip_prefix(&data).unwrap().to_str().unwrap().to_owned()).collect();
    if !names.is_empty() {
        check(name, &digests(&data, &names, commands)).iter().for_each(skipped);
    }
}

#[test]
fn of_shared_logs() {
    check_shared("logs.txt", &["diag", "modern"], &[".mi2log", ".qmdl"], &OF_LOGS);
}

#[test]
fn of_shared_captures() {
    check_shared("captures.txt", &["pcap"], &[".pcap", ".pcapng", ".pcap.gz"], &OF_CAPTURES);
}

#[test]
fn of_runs_of_the_lab() {
    let dir = tempfile::tempdir().unwrap();
    let runs = RUNS.map(str::to_owned);
    let mut all = digests(dir.path(), &runs, &OF_RUNS);
    let captures: Vec<String> = runs.iter().map(|run| format!("{run}/phone.pcapng")).collect();
    let captured: Vec<String> =
        captures.into_iter().filter(|capture| dir.path().join(capture).exists()).collect();
    assert!(captured.len() >= 5, "{captured:?}");
    all.extend(digests(dir.path(), &captured, &OF_CAPTURES));
    assert_eq!(check("runs.txt", &all), [""; 0]);
}
