//! The version of the programs (`airmile`, `airmile-qcut`): the crate's and, from a checkout,
//! the commit. A package's build that has an archive alone names it in `AIRMILE_COMMIT`.

#![allow(clippy::print_stdout, reason = "a build script prints its instructions to cargo")]

use std::path::Path;
use std::process::Command;

fn main() {
    // Also where another crate runs this file.
    println!("cargo:rerun-if-changed={}/../airmile-cli/build.rs", env!("CARGO_MANIFEST_DIR"));
    println!("cargo:rerun-if-env-changed=AIRMILE_COMMIT");
    let version = env!("CARGO_PKG_VERSION");
    let named = std::env::var("AIRMILE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let version = match named.or_else(commit) {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    };
    println!("cargo:rustc-env=AIRMILE_VERSION={version}");
}

/// The checked-out commit; `None` without git, or if the source is not a checkout of its own (an
/// archive, or inside another project's).
fn commit() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    // The first changes when another branch is checked out, the second with each commit.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        println!("cargo:rerun-if-changed={path}");
    }
    git(&["rev-parse", "--short=10", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let here = env!("CARGO_MANIFEST_DIR");
    let out = Command::new("git").arg("-C").arg(here).args(args).output().ok()?;
    let text = String::from_utf8(out.stdout).ok().filter(|_| out.status.success())?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
