//! `airmile probe`.

use std::path::Path;

use airmile::model::printable_path;
use airmile::{ProbeLog, compare};
use airmile_probe::{Probe, ProbeServer, Target, run as run_probe, write};
use anyhow::{Context, Result};

use crate::Outcome;
use crate::args::{Global, ProbeCommand, ProbeRunArgs, ProbeServeArgs};
use crate::output;

pub fn run(global: &Global, command: &ProbeCommand) -> Result<Outcome> {
    match command {
        ProbeCommand::Serve(args) => serve(global, args),
        ProbeCommand::Run(args) => fetch(global, args),
    }
}

fn serve(global: &Global, args: &ProbeServeArgs) -> Result<Outcome> {
    let options = args.options()?;
    #[cfg(target_os = "linux")]
    airmile_host::privilege::keep(airmile_host::privilege::Kept {
        // Ports below 1024.
        capabilities: rustix::thread::CapabilitySet::NET_BIND_SERVICE,
        writable: &[],
        starts_programs: false,
    })?;
    let server = ProbeServer::start(&options)?;
    for (address, port) in server.addresses().iter().zip(&options.ports) {
        let scheme = if options.tls.contains(port) { "https" } else { "http" };
        output::print(&format!("{scheme}://{address}/segment?bytes=400000\n"))?;
    }
    if server.restarts_after_idle() == Some(true) {
        output::warn(
            global,
            "this machine itself restarts slow start after pauses, which hides what a middlebox \
             does: sysctl -w net.ipv4.tcp_slow_start_after_idle=0",
        );
    }
    server.wait();
    Ok(Outcome::Done)
}

fn fetch(global: &Global, args: &ProbeRunArgs) -> Result<Outcome> {
    let target = Target::parse(&args.target).map_err(|e| airmile::Error::Option(e.to_string()))?;
    let probe = args.probe(target)?;
    let dir = args.output.as_path();
    prepare(dir, args.force)?;
    if !global.quiet {
        output::notice(&plan(&probe, dir));
    }
    let log = run_probe(&probe, &mut |transfer, port| {
        if global.quiet {
            return;
        }
        let seconds = (transfer.end_us - transfer.start_us) as f64 / 1e6;
        let how = match &transfer.failed {
            Some(why) => format!("failed: {why}"),
            None => {
                let rate = transfer.bytes as f64 * 8e-6 / seconds.max(1e-6);
                format!("{seconds:.3} s, {rate:.2} Mbit/s")
            }
        };
        output::notice(&format!("port {port:5}  {:>13}  {how}", transfer.id));
    })?;
    write(&log, &probe.target, dir)?;
    let failed = log.transfers.iter().filter(|transfer| transfer.failed.is_some()).count();
    if failed > 0 {
        let all = log.transfers.len();
        output::warn(
            global,
            &format!("{failed} of {all} transfers failed; see {}", ProbeLog::FILE),
        );
    }
    let options = airmile::CompareOptions { seed: args.seed, ..airmile::CompareOptions::default() };
    let answer = compare(&[dir.to_owned()], &options, &airmile::Progress::default())?;
    if global.json {
        output::json("compare", &answer)?;
    } else {
        output::print_wrapped(&super::compare::text(&answer, global.verbose > 0))?;
        output::print(&format!(
            "\nIn {0}; again with: airmile compare {0}\n",
            printable_path(dir)
        ))?;
    }
    Ok(Outcome::of(answer.damaged()))
}

/// Creates the directory; existing captures and modem logs are kept.
fn prepare(dir: &Path, force: bool) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    let written = [ProbeLog::FILE, "app.jsonl"];
    if let Some(name) = written.into_iter().find(|name| dir.join(name).exists() && !force) {
        let what = format!("already holds {name}: give another directory, or --force");
        return Err(airmile::Error::Unusable { path: dir.to_owned(), what }.into());
    }
    Ok(())
}

/// What will be fetched, and what else could be recorded at the same time.
fn plan(probe: &Probe, dir: &Path) -> String {
    let n = probe.segments.saturating_mul(probe.rounds);
    let pauses = probe.pause.saturating_mul(n);
    let ports: Vec<String> = probe.ports.iter().map(u16::to_string).collect();
    format!(
        "{n} segment{} of {} over each of ports {}: {} s of pauses, and what the network takes.\n\
         For more evidence, record while it runs, into {dir}:\n  \
         packets: tcpdump -i any -s 128 -w {dir}/phone.pcap host {host}\n  \
         modem log, with your logger (MobileInsight, QCSuper, SCAT): {dir}/modem.mi2log\n",
        airmile::plural(n.into()),
        output::bytes(probe.segment_bytes),
        ports.join(", "),
        pauses.as_secs(),
        dir = dir.display(),
        host = probe.target.host,
    )
}
