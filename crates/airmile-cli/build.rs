//! Passes the version to the programs (`airmile`, `airmile-qcut`): the crate's and, from a
//! checkout, the commit; for `--version` also the features and the target.

#![allow(clippy::print_stdout, reason = "a build script prints its instructions to cargo")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // Also where another crate runs this file.
    println!("cargo:rerun-if-changed={}/../airmile-cli/build.rs", env!("CARGO_MANIFEST_DIR"));
    println!("cargo:rerun-if-env-changed=AIRMILE_COMMIT");
    let number = env!("CARGO_PKG_VERSION");
    let commit = commit();
    let version = match &commit {
        Some(commit) => format!("{number} ({})", commit.get(..10).unwrap_or(commit)),
        None => number.to_owned(),
    };
    println!("cargo:rustc-env=AIRMILE_VERSION={version}");
    println!("cargo:rustc-env=AIRMILE_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo:rustc-env=AIRMILE_FEATURES={}", features());
    println!("cargo:rustc-env=AIRMILE_TARGET={}", std::env::var("TARGET").unwrap_or_default());
}

/// The crate's features that are on, in the order of the alphabet.
fn features() -> String {
    let name = |key: &str| key.strip_prefix("CARGO_FEATURE_").map(str::to_lowercase);
    let mut on: Vec<String> = std::env::vars_os()
        .filter_map(|(key, _)| key.to_str().and_then(name))
        .filter(|feature| feature != "default")
        .collect();
    on.sort();
    if on.is_empty() { "none".into() } else { on.join(" ").replace('_', "-") }
}

/// The commit: `AIRMILE_COMMIT` where it is set (a container is built without `.git`), or the one
/// checked out. `None` without git, or if the source is not a checkout of its own (an archive, or
/// inside another project's).
fn commit() -> Option<String> {
    if let Ok(commit) = std::env::var("AIRMILE_COMMIT") {
        let commit = commit.trim().to_lowercase();
        let is_hash = commit.len() >= 10 && commit.bytes().all(|b| b.is_ascii_hexdigit());
        return is_hash.then_some(commit);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    // `HEAD` changes when another branch is checked out, the branch's file with each commit on it.
    // A file that is absent would run this script at every build: a packed ref has none until the
    // next commit, which also writes the log of HEAD.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for file in [Some("HEAD"), branch.as_deref(), Some("logs/HEAD")].into_iter().flatten() {
        let path = root.join(git(&["rev-parse", "--git-path", file])?);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = Command::new("git").arg("-C").arg(here).args(args).output().ok()?;
    let text = String::from_utf8(out.stdout).ok().filter(|_| out.status.success())?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
