//! The command, for `airmile qcut` and for the program `airmile-qcut`.

use std::ffi::OsString;
#[cfg(feature = "view")]
use std::io::IsTerminal;
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airmile_control::qcut::ClassConfig;
use airmile_host::SystemError;
use airmile_host::command::{Global, print, token};
use airmile_host::format::{columns, size};
use airmile_host::http::HttpError;
use airmile_host::privilege::{self, Kept};
use airmile_host::source::LogSource;
use rustix::thread::CapabilitySet;

use crate::args::{ClassifyArg, QcutCheckArgs, QcutCommand, QcutRunArgs, QcutWatchArgs};
use crate::status::GateStatus;
use crate::{
    CheckReport, Deploy, Instance, Options, PublishTo, Restored, check, choose_deploy, guard,
    instances, restore, watch,
};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Arguments that do not go together.
    #[error("{0}")]
    Option(String),
    /// Standard output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The rest.
    #[error("{0}")]
    Failed(String),
}

impl From<crate::Error> for CommandError {
    fn from(error: crate::Error) -> Self {
        let text = error.to_string();
        match error {
            crate::Error::Server(HttpError::NoToken(_) | HttpError::WeakToken) => {
                Self::Option(text)
            }
            _ => Self::Failed(text),
        }
    }
}

impl From<SystemError> for CommandError {
    fn from(error: SystemError) -> Self {
        Self::Failed(error.to_string())
    }
}

type Result<T> = std::result::Result<T, CommandError>;

/// Runs a command; gives the exit status. The guard is started as this program with the
/// arguments `launcher`, then `guard`.
///
/// # Errors
/// Arguments do not go together; the system refuses something; there is no such instance.
pub fn run(global: &Global, command: &QcutCommand, launcher: &[&str]) -> Result<u8> {
    match command {
        QcutCommand::Run(args) => keep(global, args, launcher)?,
        QcutCommand::Watch(args) => look(global, args)?,
        QcutCommand::Restore(args) => put_back(global, &args.up)?,
        QcutCommand::Check(args) => return look_at(global, args),
        QcutCommand::Guard(args) => return Ok(guard(&args.up)?),
    }
    Ok(0)
}

fn keep(global: &Global, args: &QcutRunArgs, launcher: &[&str]) -> Result<()> {
    let mut words = vec![std::env::current_exe()?.into_os_string()];
    words.extend(launcher.iter().chain(&["guard"]).map(OsString::from));
    let deploy = match args.deploy {
        // The kernel is asked what a process without rights could not ask.
        Deploy::Auto => {
            let deploy = choose_deploy(&args.up)?;
            global.warn(&format!("{}: --deploy auto takes {}", args.up, deploy.name()));
            deploy
        }
        deploy => deploy,
    };
    let options = Options {
        interface: args.up.clone(),
        modem: args.modem.as_deref().map(source),
        limit: args.limit,
        deploy,
        classes: classes(args)?,
        metrics: args.metrics,
        token: token(args.token_file.as_deref())?,
        duration: args.duration,
        probe: args.probe,
        publish: args.publish.clone(),
        launcher: words,
    };
    // Its changes are recorded below /run; a modem's port and TUN are devices.
    let mut writable: Vec<PathBuf> = ["/run", "/proc/sys/net", "/dev"].map(PathBuf::from).into();
    // OpenWrt has no /run; a service names its own directory.
    writable.extend(std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from));
    writable.extend(args.publish.iter().filter_map(|target| match target {
        PublishTo::File(path) => path.parent().map(Path::to_owned),
        _ => None,
    }));
    let writable: Vec<&Path> = writable.iter().map(PathBuf::as_path).collect();
    privilege::keep(Kept {
        capabilities: CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW,
        writable: &writable,
        // Its guard, nft and iptables.
        starts_programs: true,
    })?;
    let notify: Arc<dyn Fn(&str) + Send + Sync> = {
        let global = global.clone();
        Arc::new(move |words| global.warn(words))
    };
    let summary = crate::run(&options, &notify)?;
    if global.json {
        print_json(&summary.status)?;
    } else if !global.quiet {
        print(&text(&summary.status))?;
    }
    Ok(())
}

/// `qrtr`, `auto` and a character device are modems; everything else is a growing log.
fn source(path: &Path) -> LogSource {
    match path.to_str() {
        Some("-") => return LogSource::Stdin,
        Some("qrtr" | "auto") => return LogSource::modem(path.to_owned()),
        _ => {}
    }
    let is_device = path.metadata().is_ok_and(|there| there.file_type().is_char_device());
    // A port that is absent now is recognised by its path.
    match is_device || path.starts_with("/dev") {
        true => LogSource::modem(path.to_owned()),
        false => LogSource::Follow(path.to_owned()),
    }
}

fn classes(args: &QcutRunArgs) -> Result<ClassConfig> {
    let has = |what| args.classify.contains(&what);
    if has(ClassifyArg::None) && args.classify.len() > 1 {
        return Err(CommandError::Option("--classify: none goes with nothing else".to_owned()));
    }
    Ok(ClassConfig {
        dns: has(ClassifyArg::Dns),
        pure_acks: has(ClassifyArg::Acks),
        dscp: has(ClassifyArg::Dscp),
        urgent_ports: args.urgent_port.clone(),
        background_ports: args.background_port.clone(),
    })
}

/// The summary of a run.
fn text(status: &GateStatus) -> String {
    let header = ["class", "came", "sent", "", "dropped by CoDel", "dropped for lack of room"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(status.classes.iter().map(|class| {
        vec![
            class.class.clone(),
            class.arrived_packets.to_string(),
            class.sent_packets.to_string(),
            size(class.sent_bytes),
            class.dropped_aqm.to_string(),
            class.dropped_full.to_string(),
        ]
    }));
    format!(
        "{}\n{:.1} s, CPU {:.1} s ({:.1} % of a core)\n",
        columns(&rows),
        status.uptime_s,
        status.cpu_s,
        100.0 * status.cpu_s / status.uptime_s.max(1e-3)
    )
}

/// Checks what the machine has; the exit status says whether the deployment works.
fn look_at(global: &Global, args: &QcutCheckArgs) -> Result<u8> {
    let report = check(&args.up, args.modem.as_deref().map(source).as_ref())?;
    if global.json {
        print_json(&report)?;
    } else {
        print(&check_text(&report))?;
    }
    let works = match args.deploy {
        Deploy::Auto => report.auto.is_some(),
        deploy => report.missing(deploy).is_empty(),
    };
    Ok(if works { 0 } else { 3 })
}

/// Of whom the costs are that follow.
const COSTS: &str = "Costs are those measured in the lab (docs/papers/qcut.md), not on this\n\
                     machine: the load time of a page during an upload of 7.5 Mbit/s, against the\n\
                     page alone; the upload's rate meanwhile; CPU time.\n\n";

fn check_text(report: &CheckReport) -> String {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mut out = format!(
        "{}: driver {}, queueing {}\n\n",
        report.interface,
        or_none(&report.driver),
        or_none(&report.queueing)
    );
    out.push_str(COSTS);
    for each in &report.deploys {
        let (name, cost) = (&each.deploy, each.cost);
        match each.missing.as_slice() {
            [] => out.push_str(&format!("{name:8}  works: {cost}\n")),
            missing => out.push_str(&format!("{name:8}  needs {}\n", missing.join(", "))),
        }
        for lacking in each.lacking.iter().filter(|_| each.missing.is_empty()) {
            out.push_str(&format!("{:8}  {lacking}\n", ""));
        }
    }
    out.push_str(&match &report.auto {
        Some(deploy) => format!("\n--deploy auto takes {deploy}\n"),
        None => "\n--deploy auto finds none that works\n".to_owned(),
    });
    if let Some(modem) = &report.modem {
        out.push_str(&format!(
            "modem's log {}: {}, {} reports in 3 s\n",
            modem.source, modem.state, modem.reports
        ));
    }
    report.notes.iter().for_each(|note| out.push_str(&format!("{note}\n")));
    out
}

fn look(global: &Global, args: &QcutWatchArgs) -> Result<()> {
    let token = token(args.token_file.as_deref())?;
    let address = match args.metrics {
        Some(address) => address,
        None => address_of(args.up.as_deref())?,
    };
    let token = token.as_deref();
    #[cfg(feature = "view")]
    let ended = match !global.json && !args.lines && io::stdout().is_terminal() {
        true => crate::view::run(address, token),
        false => lines(global, address, token),
    };
    #[cfg(not(feature = "view"))]
    let ended = lines(global, address, token);
    match ended {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(error.into()),
        Err(error) => Err(CommandError::Failed(format!("the instance at {address}: {error}"))),
    }
}

/// A document in one line.
fn print_json(document: &impl serde::Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, document)?;
    writeln!(out)
}

/// A line every half second, until the instance ends.
fn lines(global: &Global, address: SocketAddr, token: Option<&str>) -> io::Result<()> {
    let mut is_first = true;
    loop {
        let now = match watch::ask(address, token) {
            Ok(now) => now,
            // The instance has ended.
            Err(error) if !is_first && error.kind() == ErrorKind::ConnectionRefused => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        is_first = false;
        if global.json {
            print_json(&now)?;
        } else {
            print(&format!("{}\n", watch::line(&now)))?;
        }
        std::thread::sleep(watch::EVERY);
    }
}

/// The address of the selected instance.
fn address_of(up: Option<&str>) -> Result<SocketAddr> {
    let all = instances()?;
    let meant = |instance: &&Instance| up.is_none_or(|up| instance.interface == up);
    let found: Vec<&Instance> = all.iter().filter(meant).collect();
    Err(CommandError::Failed(match found.as_slice() {
        [one] => match one.metrics {
            Some(address) => return Ok(address),
            None => format!("{} is starting; try again", one.interface),
        },
        [] => format!(
            "no instance runs on this machine{}: start one with `airmile qcut run --up IFACE`",
            up.map_or_else(String::new, |up| format!(" on {up}"))
        ),
        several => {
            let names: Vec<&str> =
                several.iter().map(|instance| instance.interface.as_str()).collect();
            format!("several instances run ({}): name one with --up", names.join(", "))
        }
    }))
}

fn put_back(global: &Global, up: &str) -> Result<()> {
    let restored = match restore(up)? {
        Restored::Nothing => false,
        Restored::Done => true,
        Restored::Runs(pid) => {
            return Err(CommandError::Failed(format!(
                "an instance runs on {up} (process {pid}); it restores the interface when it ends"
            )));
        }
        Restored::Failed(what) => {
            let what = what.join("; ");
            return Err(CommandError::Failed(format!("{up}: cannot be restored: {what}")));
        }
    };
    let words = if restored { "restored" } else { "nothing to restore" };
    match global.json {
        true => print_json(&serde_json::json!({"interface": up, "restored": restored}))?,
        false => print(&format!("{up}: {words}\n"))?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use airmile_host::source::ModemLink;

    use super::*;

    #[test]
    fn sources_by_their_place() {
        for (path, expected) in [
            ("-", LogSource::Stdin),
            ("qrtr", LogSource::Modem(ModemLink::Qrtr)),
            ("auto", LogSource::Modem(ModemLink::Search("/".into()))),
            ("/dev/null", LogSource::modem(PathBuf::from("/dev/null"))),
            ("/dev/ttyUSB77", LogSource::modem(PathBuf::from("/dev/ttyUSB77"))),
            ("log.qmdl", LogSource::Follow(PathBuf::from("log.qmdl"))),
        ] {
            assert_eq!(source(Path::new(path)), expected);
        }
    }
}
