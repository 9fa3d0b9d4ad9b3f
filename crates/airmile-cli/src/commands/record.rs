//! `airmile record`.

use std::path::Path;
use std::thread;
use std::time::Duration;

use airmile::Error;
use airmile_host::format::size;
use airmile_host::source::{LogSource, SourceState};
use airmile_host::thread::StopFlag;
use airmile_live::record::{RecordOptions, Recorded, record};
use anyhow::{Context, Result};

use crate::Outcome;
use crate::args::{Global, RecordArgs};
use crate::output;

pub fn run(global: &Global, args: &RecordArgs) -> Result<Outcome> {
    let source = match &args.port {
        Some(port) => LogSource::modem(port.clone()),
        None if args.interface.is_some() => LogSource::Nothing,
        None => {
            let why = "record: give --port, --interface or both";
            return Err(Error::Option(why.to_owned()).into());
        }
    };
    if args.interface.is_some() && args.keep.is_some() {
        let why = "record: --keep removes modem logs alone, and --interface writes packets that grow \
                   without a limit: leave --keep out, or record the packets with another command";
        return Err(Error::Option(why.to_owned()).into());
    }
    let options = RecordOptions {
        dir: args.output.clone(),
        rotate_bytes: args.rotate_mb.saturating_mul(1_000_000),
        rotate_after: Duration::from_secs(args.rotate_minutes.saturating_mul(60)),
        keep: args.keep,
    };
    let stop = StopFlag::new();
    #[cfg(target_os = "linux")]
    prepare(args, &stop)?;
    if let Some(seconds) = args.seconds {
        let stop = stop.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(seconds));
            stop.set();
        });
    }
    let none = LogSource::Nothing.name();
    let report = |name: &str, state: &SourceState| match state {
        // No stream of a modem was asked for.
        SourceState::Waiting(_) if name == none => {}
        SourceState::Waiting(why) => output::warn(global, &format!("{name}: waiting: {why}")),
        SourceState::Connected(what) if what.is_empty() => {}
        SourceState::Connected(what) => output::warn(global, &format!("{name}: {what}")),
        SourceState::Ended => {}
    };
    let done = record(&source, args.interface.as_deref(), options, &stop, report)?;
    if !global.quiet {
        output::print(&text(&args.output, &done))?;
    }
    Ok(if done.log_bytes + done.packet_bytes > 0 { Outcome::Done } else { Outcome::NothingRead })
}

/// Signals end the recording and close its files; a second one ends the process at once, with what was
/// flushed in the files. The process, which parses packets from strangers,
/// keeps few privileges.
#[cfg(target_os = "linux")]
fn prepare(args: &RecordArgs, stop: &StopFlag) -> Result<()> {
    use rustix::thread::CapabilitySet;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    if args.interface.is_some() {
        std::fs::create_dir_all(&args.output).with_context(|| args.output.display().to_string())?;
        airmile_host::privilege::keep(airmile_host::privilege::Kept {
            capabilities: CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW,
            writable: &[Path::new("/dev"), &args.output],
            starts_programs: false,
        })?;
    }
    stop.set_by(&[SIGHUP, SIGINT, SIGTERM]).context("signals")
}

fn text(dir: &Path, done: &Recorded) -> String {
    let mut out = String::new();
    if !done.logs.is_empty() {
        let n = done.logs.len();
        out.push_str(&format!("{n} logs, {} before compression\n", size(done.log_bytes)));
    }
    if done.packet_bytes > 0 {
        let n = done.captures.len();
        out.push_str(&format!("{n} captures, {} before compression\n", size(done.packet_bytes)));
    }
    if out.is_empty() {
        out.push_str("nothing was received\n");
    } else {
        out.push_str(&format!("next: airmile diagnose {}\n", dir.display()));
    }
    out
}
