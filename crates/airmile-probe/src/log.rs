//! A probe's files: its own log, and one that `airmile diagnose` reads as an application log.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use airmile::ProbeLog;
use serde_json::json;

use crate::{Error, Result, Target};

/// The application log, next to the probe's own.
const APPLICATION_LOG: &str = "app.jsonl";

/// Set in `airmile lab shell`: a file for the command's own log (docs/lab.md).
const LAB_LOG: &str = "AIRMILE_APP_LOG";

/// Writes `probe.json` and `app.jsonl` into a directory; the latter's events also into
/// the lab's log, if the lab requests one.
///
/// # Errors
/// A file cannot be written.
pub fn write(log: &ProbeLog, target: &Target, dir: &Path) -> Result<()> {
    let to = |name: &str, text: &dyn Fn(&mut dyn Write) -> std::io::Result<()>| {
        let path = dir.join(name);
        let mut bytes = Vec::new();
        text(&mut bytes).map_err(|source| Error::Write { path: path.clone(), source })?;
        airmile::write_whole(&path, &bytes).map_err(Error::Output)
    };
    to(ProbeLog::FILE, &|out| {
        serde_json::to_writer_pretty(&mut *out, log)?;
        writeln!(out)
    })?;
    to(APPLICATION_LOG, &|out| events(log, target, out))?;
    let Some(path) = std::env::var_os(LAB_LOG).map(PathBuf::from) else { return Ok(()) };
    let failed = |source| Error::Write { path: path.clone(), source };
    let file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
    let mut out = BufWriter::new(file);
    events(log, target, &mut out).and_then(|()| out.flush()).map_err(failed)
}

/// The lab's events (docs/application-logs.md), one per line.
fn events(log: &ProbeLog, target: &Target, out: &mut dyn Write) -> std::io::Result<()> {
    for transfer in &log.transfers {
        let Some(connection) = log.connections.get(transfer.connection) else { continue };
        let scheme = if connection.tls { "https" } else { "http" };
        let path = target.path_of(u64::from(transfer.turn), log.segment_bytes);
        let url = format!("{scheme}://{}:{}{path}", target.authority(), connection.port);
        let at = |us: i64| us.saturating_mul(1_000);
        let line = |value: serde_json::Value, out: &mut dyn Write| writeln!(out, "{value}");
        let id = &transfer.id;
        let event = |at_ns: i64, event: &str| json!({ "at_ns": at_ns, "app": "probe", "event": event, "id": id });
        let mut request = event(at(transfer.start_us), "request");
        request["what"] = json!(url);
        line(request, out)?;
        if let Some(first_byte_us) = transfer.first_byte_us {
            line(event(at(first_byte_us), "first_byte"), out)?;
        }
        let ended = if transfer.failed.is_some() { "failed" } else { "end" };
        let mut end = event(at(transfer.end_us), ended);
        end["bytes"] = json!(transfer.bytes);
        line(end, out)?;
    }
    Ok(())
}
