//! Compiles the BPF programs if the feature `bpf` is enabled.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    if let Err(why) = compile(&out.join("claw.bpf.o")) {
        println!(
            "cargo:error=the feature `bpf` needs clang 14 or later and libbpf's headers \
             (Debian: clang libbpf-dev libelf-dev zlib1g-dev pkg-config): {why}"
        );
    }
}

fn compile(object: &Path) -> Result<(), String> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let machine = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    // Architecture name as in libbpf's headers.
    let target = match machine.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => other,
    };
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-O2", "-g", "-Wall", "-Werror"])
        .arg(format!("-D__TARGET_ARCH_{target}"))
        .arg("-idirafter")
        .arg(format!("/usr/include/{machine}-linux-gnu"))
        .args(["-c", "bpf/claw.bpf.c", "-o"])
        .arg(object)
        .status()
        .map_err(|error| format!("{clang}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{clang}: {status}")) }
}
