//! `airmile packets --engine`: runs Python, since the engines are Python libraries, with the
//! package `airmile` on top of the same library.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::Outcome;
use crate::args::{Global, PacketsArgs};

/// Environment variable with the Python to run; the package's own command sets it.
const PYTHON: &str = "AIRMILE_PYTHON";

/// Runs the study on `engine`.
pub fn run(global: &Global, args: &PacketsArgs, engine: &str) -> Result<Outcome> {
    let python = std::env::var_os(PYTHON).unwrap_or_else(|| OsString::from("python3"));
    let shown = python.to_string_lossy().into_owned();
    let found = Command::new(&python).args(["-c", "import airmile.scale"]).output();
    let found = found.with_context(|| {
        format!("--engine needs Python, and {shown} cannot be run ({PYTHON} names another)")
    })?;
    if !found.status.success() {
        bail!(
            "--engine needs the Python package: pip install 'airmile[ray]' for {shown} \
             ({PYTHON} names another)"
        );
    }
    let asked = asked(global, args, engine)?;
    let status = Command::new(&python).args(["-m", "airmile.scale", &asked]).status();
    let status = status.with_context(|| format!("cannot run {shown}"))?;
    // Without a code, a signal ended it.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Outcome::Status(code.unwrap_or(3)))
}

/// The arguments of `airmile.scale`, as the Python functions pass them.
fn asked(global: &Global, args: &PacketsArgs, engine: &str) -> Result<String> {
    let text = |path: &std::path::Path| {
        path.to_str()
            .map(str::to_owned)
            .with_context(|| format!("{}: not valid UTF-8", path.display()))
    };
    let files = args.files.iter().map(|path| text(path)).collect::<Result<Vec<_>>>()?;
    let output = args.out.as_deref().map(text).transpose()?.unwrap_or_default();
    let client: Vec<String> = args.client.iter().map(|(a, bits)| format!("{a}/{bits}")).collect();
    let ask = json!({
        "files": files,
        "client": client,
        "proxy_ports": args.proxy_ports,
        "idle_s": args.idle_s,
        "promotion_idle_s": args.promotion_idle_s,
        "tail_s": args.tail_s,
        "min_rto_ms": args.min_rto_ms,
        "send_rate": args.send_rate.to_string(),
        "threads": 1,
        "from": null,
        "to": null,
    });
    let asked = json!({
        "ask": ask,
        "engine": engine,
        "output": output,
        "workers": args.engine.workers,
        "buckets": args.engine.buckets,
        "json": global.json,
        "quiet": global.quiet,
        "verbose": global.verbose > 0,
    });
    Ok(asked.to_string())
}
