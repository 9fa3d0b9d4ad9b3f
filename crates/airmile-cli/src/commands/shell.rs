//! `airmile lab shell`: runs a command as the phone of a scenario, in real time.

use anyhow::Result;

use crate::Outcome;
use crate::args::{Global, LabInsideArgs, LabShellArgs};

#[cfg(target_os = "linux")]
pub use on_linux::{hosts, inside, run};

/// Other systems have no network namespaces.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::*;

    const WHY: &str = "a run in real time needs Linux; `airmile lab run` runs in virtual time";

    pub fn run(_: &Global, _: &LabShellArgs) -> Result<Outcome> {
        anyhow::bail!(WHY)
    }

    pub fn hosts() -> Result<Option<Box<dyn airmile_lab::reproduce::Hosts>>> {
        Ok(None)
    }

    pub fn inside(_: &LabInsideArgs) -> Result<Outcome> {
        anyhow::bail!(WHY)
    }
}
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{hosts, inside, run};

#[cfg(target_os = "linux")]
mod on_linux {
    use std::ffi::OsString;
    use std::time::Duration;

    use airmile_lab::RealTime;
    use airmile_lab_realtime::{Error, RealHosts, Shell, shell};

    use super::*;
    use crate::output;

    /// The exit status if TTIs were late and the command itself succeeded.
    const LATE: u8 = 5;

    pub fn run(global: &Global, args: &LabShellArgs) -> Result<Outcome> {
        let options = Shell {
            scenario: args.scenario.clone(),
            seed: args.seed,
            command: args.command.clone(),
            server: args.server.clone(),
            serve: args.serve.clone(),
            serve_ports: args.serve_port.clone(),
            dies_with_parent: args.dies_with_parent,
            output: args.output.clone(),
            force: args.force,
            mark_uplink_above: args
                .mark_uplink_above_ms
                .map(|ms| Duration::from_secs_f64(ms / 1e3)),
            late_limit: Duration::from_secs_f64(args.late_limit_ms / 1e3),
            launcher: launcher("inside")?,
            about: about(args),
        };
        let ended = shell(options).map_err(|error| match error {
            // The library's own errors decide the exit status.
            Error::Lab(error) => anyhow::Error::from(error),
            // Its text includes its causes.
            other => anyhow::Error::msg(other.to_string()),
        })?;
        let real_time = &ended.real_time;
        if global.json {
            // Standard output belongs to the command.
            let text = serde_json::to_string(real_time)?;
            output::notice(&text);
        } else if !global.quiet {
            output::notice(&summary(real_time));
        }
        let warnings = real_time.warnings();
        warnings.iter().for_each(|warning| output::warn(global, warning));
        if !real_time.valid {
            let late = real_time.lateness;
            let (p99, limit) = (ms(late.p99_us), ms(late.limit_us));
            // Shown even with --quiet.
            output::notice(&format!(
                "airmile: INVALID: TTIs were late: 99th percentile {p99} ms, limit {limit} ms; \
                 an idle machine, root or `ulimit -r 1` help"
            ));
        }
        Ok(Outcome::Status(match ended.exit_status {
            0 if !real_time.valid => LATE,
            status => status,
        }))
    }

    pub fn inside(args: &LabInsideArgs) -> Result<Outcome> {
        Ok(Outcome::Status(airmile_lab_realtime::inside(
            &args.command,
            args.linger,
            args.parent.as_deref(),
        )))
    }

    fn ms(us: u64) -> String {
        format!("{:.3}", us as f64 / 1e3)
    }

    fn summary(real_time: &RealTime) -> String {
        let late = &real_time.lateness;
        let load = real_time
            .load_average
            .map_or_else(String::new, |[one, ..]| format!("; load average {one:.2}"));
        format!(
            "airmile: {} TTIs, late by {} ms (median), {} (99 %), {} (maximum){load}",
            late.n_tti,
            ms(late.p50_us),
            ms(late.p99_us),
            ms(late.max_us),
        )
    }

    /// The runner of experiments between real hosts.
    pub fn hosts() -> Result<Option<Box<dyn airmile_lab::reproduce::Hosts>>> {
        Ok(Some(Box::new(RealHosts::new(launcher("shell")?))))
    }

    /// The command line that runs this program again, for a command of `lab`.
    fn launcher(command: &str) -> Result<Vec<OsString>> {
        let program = std::env::current_exe()?;
        let is_python =
            program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"python"));
        let mut words = vec![program.into_os_string()];
        // In the Python package the command is part of the interpreter's process.
        if is_python {
            words.extend(["-m", "airmile"].map(OsString::from));
        }
        words.extend(["lab", command].map(OsString::from));
        Ok(words)
    }

    /// The command, for the files of the run.
    fn about(args: &LabShellArgs) -> String {
        let words = args.command.iter().map(|word| word.display().to_string());
        let words: Vec<String> = words.collect();
        format!("airmile lab shell {} -- {}", args.scenario, words.join(" "))
    }
}
