//! `airmile qcut`: the uplink's queue kept short on this host.

use anyhow::Result;

use crate::Outcome;
use crate::args::{Global, QcutCommand};

#[cfg(target_os = "linux")]
pub use on_linux::run;

/// Elsewhere there are other queues.
#[cfg(not(target_os = "linux"))]
pub fn run(_: &Global, _: &QcutCommand) -> Result<Outcome> {
    anyhow::bail!("keeping an uplink short needs Linux: NFQUEUE, HTB or TUN devices are its own")
}

#[cfg(target_os = "linux")]
mod on_linux {
    use std::ffi::OsString;
    use std::io::{ErrorKind, IsTerminal, Write};
    use std::net::SocketAddr;
    use std::os::unix::fs::FileTypeExt;
    use std::path::Path;

    use airmile::Error;
    use airmile_control::qcut::{ClassConfig, Limit, LimitError};
    use airmile_host::source::LogSource;
    use airmile_qcut::status::GateStatus;
    use airmile_qcut::{
        Deploy, Instance, Options, ProbeTo, Restored, guard, instances, restore, watch,
    };
    use rustix::thread::CapabilitySet;

    use super::*;
    use crate::args::{ClassifyArg, DeployArg, ProbeArg, QcutRunArgs, QcutWatchArgs};
    use crate::commands::live;
    use crate::{output, privilege};

    pub fn run(global: &Global, command: &QcutCommand) -> Result<Outcome> {
        match command {
            QcutCommand::Run(args) => keep(global, args),
            QcutCommand::Watch(args) => look(global, args),
            QcutCommand::Restore(args) => put_back(&args.up),
            QcutCommand::Guard(args) => Ok(Outcome::Status(told(guard(&args.up))?)),
        }
    }

    /// An error's causes are in its words.
    fn told<T>(result: airmile_qcut::Result<T>) -> Result<T> {
        result.map_err(|error| anyhow::Error::msg(error.to_string()))
    }

    fn keep(global: &Global, args: &QcutRunArgs) -> Result<Outcome> {
        let limit: Limit = args
            .limit
            .parse()
            .map_err(|error: LimitError| Error::Option(format!("--limit: {error}")))?;
        let options = Options {
            interface: args.up.clone(),
            modem: args.modem.as_deref().map(source),
            limit,
            deploy: match args.deploy {
                DeployArg::Nfqueue => Deploy::Nfqueue,
                DeployArg::Htb => Deploy::Htb,
                DeployArg::Cake => Deploy::Cake,
                DeployArg::Tun => Deploy::Tun,
            },
            classes: classes(args)?,
            metrics: args.metrics,
            token: live::token(args.token_file.as_deref())?,
            duration: args.duration,
            probe: match args.probe {
                ProbeArg::Auto => ProbeTo::LastFar,
                ProbeArg::Off => ProbeTo::Nobody,
                ProbeArg::Host(host) => ProbeTo::Host(host),
            },
            launcher: launcher()?,
        };
        // What it changes is noted below /run; a modem's port and TUN are devices.
        let writable = ["/run", "/proc/sys/net", "/dev"].map(Path::new);
        privilege::keep(privilege::Kept {
            capabilities: CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW,
            writable: &writable,
            // Its guard, nft and iptables.
            starts_programs: true,
        })?;
        let summary = airmile_qcut::run(&options, &mut |words| output::warn(global, words));
        let summary = told(summary)?;
        if global.json {
            let mut out = std::io::stdout().lock();
            serde_json::to_writer(&mut out, &summary.status).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else if !global.quiet {
            output::print(&text(&summary.status))?;
        }
        Ok(Outcome::Done)
    }

    /// A port is a device of characters, all else a log that grows.
    fn source(path: &Path) -> LogSource {
        if path == Path::new("-") {
            return LogSource::Stdin;
        }
        let is_device = path.metadata().is_ok_and(|there| there.file_type().is_char_device());
        // One that is away now is told by its place.
        match is_device || path.starts_with("/dev") {
            true => LogSource::modem(path.to_owned()),
            false => LogSource::Follow(path.to_owned()),
        }
    }

    fn classes(args: &QcutRunArgs) -> Result<ClassConfig> {
        let has = |what| args.classify.contains(&what);
        if has(ClassifyArg::None) && args.classify.len() > 1 {
            let why = "--classify: none goes with nothing else".to_owned();
            return Err(Error::Option(why).into());
        }
        Ok(ClassConfig {
            dns: has(ClassifyArg::Dns),
            pure_acks: has(ClassifyArg::Acks),
            dscp: has(ClassifyArg::Dscp),
            urgent_ports: args.urgent_port.clone(),
            background_ports: args.background_port.clone(),
        })
    }

    /// How to run this program again, as the guard.
    fn launcher() -> Result<Vec<OsString>> {
        let program = std::env::current_exe()?;
        let is_python =
            program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"python"));
        let mut words = vec![program.into_os_string()];
        // The Python package has the command in it.
        if is_python {
            words.extend(["-m", "airmile"].map(OsString::from));
        }
        words.extend(["qcut", "guard"].map(OsString::from));
        Ok(words)
    }

    /// How it went.
    fn text(status: &GateStatus) -> String {
        let rows = status.classes.iter().map(|class| {
            vec![
                class.class.clone(),
                class.arrived_packets.to_string(),
                class.sent_packets.to_string(),
                output::bytes(class.sent_bytes),
                class.dropped_aqm.to_string(),
                class.dropped_full.to_string(),
            ]
        });
        let header = ["class", "came", "sent", "", "dropped by CoDel", "for want of room"];
        let mut out = output::table(&header, &[0], rows.collect());
        out.push_str(&format!(
            "\n{:.1} s, CPU {:.1} s ({:.1} % of a core)\n",
            status.uptime_s,
            status.cpu_s,
            100.0 * status.cpu_s / status.uptime_s.max(1e-3)
        ));
        out
    }

    fn look(global: &Global, args: &QcutWatchArgs) -> Result<Outcome> {
        let token = live::token(args.token_file.as_deref())?;
        let address = match args.metrics {
            Some(address) => address,
            None => address_of(args.up.as_deref())?,
        };
        let on_terminal = !global.json && !args.lines && std::io::stdout().is_terminal();
        let ended = match on_terminal {
            true => watch::run(address, token.as_deref()),
            false => lines(global, address, token.as_deref()),
        };
        match ended {
            Ok(()) => Ok(Outcome::Done),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(error.into()),
            Err(error) => Err(anyhow::anyhow!("the instance at {address}: {error}")),
        }
    }

    /// A line each half second, until it ends.
    fn lines(global: &Global, address: SocketAddr, token: Option<&str>) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        let mut is_first = true;
        loop {
            let now = match watch::ask(address, token) {
                Ok(now) => now,
                // It has ended, as instances do.
                Err(error) if !is_first && error.kind() == ErrorKind::ConnectionRefused => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            is_first = false;
            if global.json {
                serde_json::to_writer(&mut out, &now)?;
                writeln!(out)?;
            } else {
                writeln!(out, "{}", watch::line(&now))?;
            }
            out.flush()?;
            std::thread::sleep(watch::EVERY);
        }
    }

    /// Where the instance is that is meant.
    fn address_of(up: Option<&str>) -> Result<SocketAddr> {
        let all = told(instances())?;
        let meant = |instance: &&Instance| up.is_none_or(|up| instance.interface == up);
        let found: Vec<&Instance> = all.iter().filter(meant).collect();
        match found.as_slice() {
            [one] => one
                .metrics
                .ok_or_else(|| anyhow::anyhow!("{} is about to start; try again", one.interface)),
            [] => anyhow::bail!(
                "no instance runs here{}: start one with `airmile qcut run --up IFACE`",
                up.map_or_else(String::new, |up| format!(" on {up}"))
            ),
            several => {
                let names: Vec<&str> =
                    several.iter().map(|instance| instance.interface.as_str()).collect();
                anyhow::bail!("several run here ({}): name one with --up", names.join(", "))
            }
        }
    }

    fn put_back(up: &str) -> Result<Outcome> {
        match told(restore(up))? {
            Restored::Runs(pid) => anyhow::bail!(
                "an instance runs on {up} (process {pid}); it puts things back when it ends"
            ),
            Restored::Nothing => output::print(&format!("{up}: nothing to put back\n"))?,
            Restored::Done => output::print(&format!("{up}: as it was before\n"))?,
            Restored::Failed(what) => {
                anyhow::bail!("{up}: cannot be put back: {}", what.join("; "))
            }
        }
        Ok(Outcome::Done)
    }

    #[cfg(test)]
    mod tests {
        use std::path::PathBuf;

        use super::*;

        #[test]
        fn sources_by_their_place() {
            for (path, expected) in [
                ("-", LogSource::Stdin),
                ("/dev/null", LogSource::modem(PathBuf::from("/dev/null"))),
                ("/dev/ttyUSB77", LogSource::modem(PathBuf::from("/dev/ttyUSB77"))),
                ("log.qmdl", LogSource::Follow(PathBuf::from("log.qmdl"))),
            ] {
                assert_eq!(source(Path::new(path)), expected);
            }
        }
    }
}
