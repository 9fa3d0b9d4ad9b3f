//! `airmile claw attach` and `detach`, and options on a phone's ACKs.

use anyhow::Result;

use crate::Outcome;
use crate::args::{ClawAgentArgs, ClawAttachArgs, Global};
use airmile_claw::agent::Reports;

#[cfg(not(target_os = "linux"))]
const WHY: &str = "CLAW for the kernel's TCP needs Linux";

#[cfg(not(target_os = "linux"))]
pub fn attach(_: &Global, _: &ClawAttachArgs) -> Result<Outcome> {
    anyhow::bail!(WHY)
}

#[cfg(not(target_os = "linux"))]
pub fn detach(_: &Global) -> Result<Outcome> {
    anyhow::bail!(WHY)
}

#[cfg(not(target_os = "linux"))]
pub fn write_options(_: &Global, _: &ClawAgentArgs, _: &dyn Reports) -> Result<Outcome> {
    anyhow::bail!(WHY)
}

#[cfg(target_os = "linux")]
pub use on_linux::{attach, detach, write_options};

#[cfg(target_os = "linux")]
mod on_linux {
    use std::fs;
    use std::io::Write;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use airmile_claw::kernel::{
        AttachOptions, Attached, ClientNetwork, ControlGroup, Figures, OptionWriter,
    };
    use airmile_claw::keys::read_key;
    use anyhow::Context;
    use rustix::process::{Pid, Signal, kill_process, test_kill_process};
    use rustix::thread::CapabilitySet;
    use serde_json::json;

    use super::*;
    use crate::output;

    /// The process id of `claw attach`.
    const PID_FILE: &str = "/run/airmile-claw.pid";

    /// The round trip that options are computed for, although each server has its own (chosen here:
    /// to a near server over LTE).
    const USUAL_RTT_NS: i64 = 50_000_000;

    pub fn attach(global: &Global, args: &ClawAttachArgs) -> Result<Outcome> {
        let options = AttachOptions {
            // Before privileges are dropped: it may have to be mounted.
            cgroup: ControlGroup::open(args.cgroup.as_deref())?,
            clients: args.dest.as_deref().map(ClientNetwork::parse).transpose()?,
            reports: args.reports,
            shared_key: args.key_file.as_deref().map(read_key).transpose()?,
            limits: args.cap.into(),
            measure: args.measure,
        };
        let mut kept = CapabilitySet::BPF | CapabilitySet::NET_ADMIN | CapabilitySet::PERFMON;
        if args.measure {
            // kernel.bpf_stats_enabled requires it (kernel/bpf/syscall.c).
            kept |= CapabilitySet::SYS_ADMIN;
        }
        let writable = ["/run", "/sys/fs", "/proc/sys", "/dev"].map(Path::new);
        airmile_host::privilege::keep(airmile_host::privilege::Kept {
            capabilities: kept,
            writable: &writable,
            starts_programs: false,
        })?;
        let attached = Attached::new(&options)?;
        let _file = PidFile::new()?;
        let mut signals = airmile_claw::Signals::new()?;
        if global.json {
            let at = attached.reports().map(|at| at.to_string());
            output::print(&format!("{}\n", json!({ "attached": true, "reports": at })))?;
        } else if !global.quiet {
            let at = attached.reports().map_or_else(String::new, |at| format!("; reports at {at}"));
            output::print(&format!("attached{at}; Ctrl-C or `airmile claw detach` ends it\n"))?;
        }
        std::io::stdout().flush()?;
        signals.wait();
        print_figures(global, &attached.figures())?;
        Ok(Outcome::Done)
    }

    fn print_figures(global: &Global, figures: &Figures) -> Result<()> {
        if global.json {
            return output::print(&format!("{}\n", serde_json::to_string(figures)?));
        }
        if !global.quiet {
            let of_acks = match (figures.ack_p50_ns, figures.ack_p99_ns) {
                (Some(p50), Some(p99)) => format!("; an ACK {p50} ns (median), {p99} (99 %)"),
                _ => String::new(),
            };
            output::notice(&format!(
                "{} connections, {} ACKs, {} with a client's window; reports {} over UDP \
                 ({} forged, {} repeated), {} in options{of_acks}",
                figures.connections,
                figures.acks,
                figures.acks_with_client_window,
                figures.reports,
                figures.forged,
                figures.replayed,
                figures.options_read,
            ));
        }
        Ok(())
    }

    pub fn detach(global: &Global) -> Result<Outcome> {
        let none = || anyhow::anyhow!("no `airmile claw attach` runs on this machine");
        let text = fs::read_to_string(PID_FILE).map_err(|_| none())?;
        let pid = text.trim().parse().ok().and_then(Pid::from_raw).ok_or_else(none)?;
        // Another program may have this process id by now; it must not be ended.
        let words = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        if ![b"claw".as_slice(), b"attach"].iter().all(|word| words.contains(word)) {
            let _ = fs::remove_file(PID_FILE);
            return Err(none());
        }
        kill_process(pid, Signal::TERM).context("cannot end it")?;
        let until = Instant::now() + Duration::from_secs(5);
        while test_kill_process(pid).is_ok() && Path::new(PID_FILE).exists() {
            if Instant::now() > until {
                anyhow::bail!("it did not end: kill -9 {}", pid.as_raw_nonzero());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if !global.quiet {
            output::notice("detached: connections continue with Cubic");
        }
        Ok(Outcome::Done)
    }

    /// The file with the process id of `claw attach`.
    struct PidFile;

    impl PidFile {
        fn new() -> Result<Self> {
            fs::write(PID_FILE, format!("{}\n", std::process::id())).context(PID_FILE)?;
            Ok(Self)
        }
    }

    impl Drop for PidFile {
        fn drop(&mut self) {
            // Without it, detach reports that none runs.
            let _ = fs::remove_file(PID_FILE);
        }
    }

    pub fn write_options(
        global: &Global,
        args: &ClawAgentArgs,
        reports: &dyn Reports,
    ) -> Result<Outcome> {
        let writer = OptionWriter::new(&ControlGroup::open(args.cgroup.as_deref())?)?;
        let mut signals = airmile_claw::Signals::new()?;
        let rtt_ns = args.rtt.and_then(|rtt| i64::try_from(rtt.as_nanos()).ok());
        while !reports.has_ended() {
            if let Some(report) = reports.report(rtt_ns.unwrap_or(USUAL_RTT_NS), true) {
                writer.set(&report)?;
            }
            if signals.wait_for(Duration::from_millis(args.every)) {
                break;
            }
        }
        print_figures(global, &writer.figures())?;
        Ok(Outcome::Done)
    }
}
