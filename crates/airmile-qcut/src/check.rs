//! What this machine has for each deployment, found out without changing anything: rules and
//! disciplines are tried in a network namespace that ends with the trial. Who may not have one
//! gets what the kernel says of rules that are not to be added, and its list of modules.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use airmile_host::Attempt;
use airmile_host::source::{LogSource, SourceState};
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::firewall::{self, RuleTrial};
use crate::kernel::{
    Host, NF_TABLES, NFNETLINK_QUEUE, NFT, NFT_QUEUE, Need, OPTION, SCH_CAKE, SCH_FQ_CODEL,
    SCH_HTB, TUN, XT_NFQUEUE, find_program,
};
use crate::modem::{Modem, check_modem};
use crate::netlink::Netlink;
use crate::netlink::queue::Queue;
use crate::netlink::traffic;
use crate::options::Deploy;
use crate::tun::mtu_of;

/// For how long a modem's log is read (chosen here: the buffer is reported each 40 ms, batches
/// of transmissions as often while something is sent).
const MODEM_TIME: Duration = Duration::from_secs(3);

/// What this machine has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The interface.
    pub interface: String,
    /// Its driver, where it is a device's.
    pub driver: Option<String>,
    /// The discipline at the root of its queueing.
    pub queueing: Option<String>,
    /// Whether this process may shape.
    pub is_privileged: bool,
    /// Each deployment.
    pub deploys: Vec<DeployCheck>,
    /// The one that `--deploy auto` takes.
    pub auto: Option<String>,
    /// The modem's log, where one was given.
    pub modem: Option<ModemCheck>,
    /// What else matters.
    pub notes: Vec<String>,
}

/// A deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployCheck {
    /// Its name.
    pub deploy: String,
    /// What is missing, with the package or command that brings it; empty: it works.
    pub missing: Vec<String>,
    /// What works, but not as well as it could.
    pub lacking: Vec<String>,
    /// What it cost in the lab, not on this machine.
    pub cost: &'static str,
}

/// A modem's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModemCheck {
    /// Where it comes from.
    pub source: String,
    /// How the source is.
    pub state: String,
    /// Reports that came while it was read.
    pub reports: usize,
}

impl CheckReport {
    /// What a deployment lacks; `auto` that of the one that comes closest.
    #[must_use]
    pub fn missing(&self, deploy: Deploy) -> &[String] {
        let named = match deploy {
            Deploy::Auto => self.auto.as_deref().unwrap_or(Deploy::Nfqueue.name()),
            other => other.name(),
        };
        let found = self.deploys.iter().find(|each| each.deploy == named);
        found.map_or(&[], |each| &each.missing)
    }
}

/// Costs as measured (docs/papers/qcut.md): a page beside an upload of 7.5 Mbit/s in real time, and
/// processor time at 50 Mbit/s.
const fn cost(deploy: Deploy) -> &'static str {
    match deploy {
        Deploy::Auto => "",
        Deploy::Nfqueue => "page +5 %, upload 32 % less; 3.1 % of a core at 50 Mbit/s",
        Deploy::Htb => "page +28 %, upload 28 % less; 2.5 % of a core at 50 Mbit/s",
        Deploy::Cake => "not measured: as htb, without the table of classes",
        Deploy::Tun => {
            "page +8 %, upload 13 % less; 4.2 % of a core at 50 Mbit/s; a host's own traffic, no NAT"
        }
        Deploy::None => "nothing is held back: the queue in the modem stays as long as it is",
    }
}

/// Checks an interface and all deployments.
///
/// # Errors
/// The interface does not exist; the modem's log cannot be opened.
pub fn check(interface: &str, modem: Option<&LogSource>) -> Result<CheckReport> {
    let index = if_nametoindex(interface).map_err(|_| Error::unknown_interface(interface))?;
    let host = Host::here();
    let root = Netlink::route().and_then(|mut netlink| traffic::root_of(&mut netlink, index));
    let queueing = root.ok().flatten().map(|root| root.kind);
    let driver = driver_of(interface);
    let needed = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    let is_privileged = capabilities(None).is_ok_and(|sets| sets.effective.contains(needed));
    let deploys = [Deploy::Nfqueue, Deploy::Htb, Deploy::Cake, Deploy::Tun, Deploy::None];
    let deploys: Vec<DeployCheck> = Trial::run(|trial| {
        deploys.map(|deploy| check_deploy(&host, trial, deploy, interface)).into()
    });
    let auto = choose(&deploys, is_router());
    let modem = modem.map(check_log).transpose()?;
    let mut notes = Vec::new();
    if is_loopback(interface) {
        notes.push(format!(
            "{interface} is the loopback interface: no modem is behind it, and nothing is gained"
        ));
    }
    if !is_privileged {
        notes.push(
            "without root (CAP_NET_ADMIN, CAP_NET_RAW) `run` is refused, and less can be \
                    found out here"
                .to_owned(),
        );
    }
    notes.extend(note_on_ports(&host, driver.as_deref(), modem.is_some()));
    if mtu_of(interface) < 1_280 {
        notes
            .push(format!("its packets have at most {} bytes: IPv6 needs 1280", mtu_of(interface)));
    }
    let interface = interface.to_owned();
    Ok(CheckReport { interface, driver, queueing, is_privileged, deploys, auto, modem, notes })
}

/// Whether it leads to this machine itself (ARPHRD_LOOPBACK, linux/if_arp.h).
fn is_loopback(interface: &str) -> bool {
    let kind = fs::read_to_string(format!("/sys/class/net/{interface}/type"));
    kind.is_ok_and(|kind| kind.trim() == "772")
}

/// The deployment that `--deploy auto` stands for. To be asked before rights are given up.
///
/// # Errors
/// None works: what the first one lacks.
pub fn choose_deploy(interface: &str) -> Result<Deploy> {
    let host = Host::here();
    let order = preferred(is_router());
    let found = Trial::run(|trial| {
        order.map(|deploy| (deploy, check_deploy(&host, trial, deploy, interface).missing))
    });
    if let Some((deploy, _)) = found.iter().find(|(_, missing)| missing.is_empty()) {
        return Ok(*deploy);
    }
    let all = found.iter().map(|(deploy, missing)| {
        format!("--deploy {} needs {}", deploy.name(), missing.join(", "))
    });
    Err(Error::Unfit(format!("{interface}: {}", all.collect::<Vec<_>>().join("; "))))
}

/// The error of a deployment that could not be set up, with what it lacks here.
pub(crate) fn unfit(deploy: Deploy, interface: &str, why: &str) -> Error {
    let host = Host::here();
    let missing = Trial::run(|trial| check_deploy(&host, trial, deploy, interface).missing);
    let needs = match missing.is_empty() {
        true => String::new(),
        false => format!("\nIt needs {}.", missing.join(", ")),
    };
    Error::Unfit(format!(
        "{interface}: {why}{needs}\n`airmile qcut check --up {interface}` shows what each deployment \
         needs; --deploy auto takes one that works."
    ))
}

/// Where things are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    /// In a network namespace of its own.
    Apart,
    /// In that of the host, where nothing may be added.
    InPlace,
}

impl Trial {
    /// Runs something in a thread whose namespace ends with it, where that is allowed.
    fn run<T: Send>(run: impl FnOnce(Self) -> T + Send) -> T {
        let outcome = thread::scope(|scope| {
            let trying = scope.spawn(|| {
                let trial = match unshare(CloneFlags::CLONE_NEWNET) {
                    Ok(()) => Self::Apart,
                    Err(_) => Self::InPlace,
                };
                run(trial)
            });
            trying.join()
        });
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// In the order of exactness. A TUN device is for a host's own traffic.
const fn preferred(is_router: bool) -> [Deploy; 3] {
    match is_router {
        true => [Deploy::Nfqueue, Deploy::Htb, Deploy::Cake],
        false => [Deploy::Nfqueue, Deploy::Tun, Deploy::Htb],
    }
}

fn choose(deploys: &[DeployCheck], is_router: bool) -> Option<String> {
    let works = |deploy: &Deploy| {
        deploys.iter().any(|each| each.deploy == deploy.name() && each.missing.is_empty())
    };
    preferred(is_router).into_iter().find(works).map(|deploy| deploy.name().to_owned())
}

/// Whether packets of others are forwarded.
fn is_router() -> bool {
    fs::read_to_string("/proc/sys/net/ipv4/ip_forward").is_ok_and(|text| text.trim() == "1")
}

fn check_deploy(host: &Host, trial: Trial, deploy: Deploy, interface: &str) -> DeployCheck {
    let mut lacking = Vec::new();
    let missing = match deploy {
        Deploy::Auto | Deploy::None => Vec::new(),
        Deploy::Nfqueue => check_nfqueue(host, trial, interface),
        Deploy::Htb => {
            if !has_discipline(host, "fq_codel", SCH_FQ_CODEL) {
                lacking.push(format!(
                    "flows of a class share a queue without {}",
                    host.remedy(SCH_FQ_CODEL)
                ));
            }
            if find_program("nft").is_none() {
                lacking.push(format!("all traffic is of one class without {}", host.remedy(NFT)));
            }
            if_absent(host, SCH_HTB, has_discipline(host, "htb", SCH_HTB))
        }
        Deploy::Cake => if_absent(host, SCH_CAKE, has_discipline(host, "cake", SCH_CAKE)),
        Deploy::Tun => if_absent(host, TUN, has_tun()),
    };
    DeployCheck { deploy: deploy.name().to_owned(), missing, lacking, cost: cost(deploy) }
}

fn if_absent(host: &Host, need: Need, is_there: bool) -> Vec<String> {
    if is_there { Vec::new() } else { vec![host.remedy(need)] }
}

fn is_refused(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied
}

fn check_nfqueue(host: &Host, trial: Trial, interface: &str) -> Vec<String> {
    let mut needs = Vec::new();
    match Queue::open(16) {
        // No nfnetlink, or none of its subsystems for queues.
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::PROTONOSUPPORT | Errno::INVAL)
            ) =>
        {
            needs.push(NFNETLINK_QUEUE);
        }
        // Others' queues, or rights: the kernel has it.
        _ => {}
    }
    match firewall::try_rule(interface) {
        RuleTrial::Works => {}
        // By iptables it does without nft.
        _ if by_iptables(host, trial, interface) => {}
        RuleTrial::NoProgram => {
            needs.push(NFT);
            if !host.has_module(NFT_QUEUE.name) {
                needs.push(NFT_QUEUE);
            }
        }
        RuleTrial::NoTables => needs.extend([NF_TABLES, NFT_QUEUE]),
        RuleTrial::NoQueue => needs.push(NFT_QUEUE),
        RuleTrial::Unknown if host.has_module(NFT_QUEUE.name) => {}
        RuleTrial::Unknown => needs.push(NFT_QUEUE),
    }
    needs.into_iter().map(|need| host.remedy(need)).collect()
}

fn by_iptables(host: &Host, trial: Trial, interface: &str) -> bool {
    match trial {
        Trial::Apart => firewall::try_iptables(interface),
        Trial::InPlace => find_program("iptables").is_some() && host.has_module(XT_NFQUEUE.name),
    }
}

/// Whether the kernel has a queueing discipline: asked for one with parameters that it refuses,
/// so that none is made. Who may not ask gets what the list of modules shows.
fn has_discipline(host: &Host, kind: &str, need: Need) -> bool {
    let answer = Netlink::route().and_then(|mut netlink| traffic::is_known(&mut netlink, kind));
    answer.unwrap_or_else(|_| host.has_module(need.name))
}

/// The device is opened, which makes no interface.
fn has_tun() -> bool {
    match open("/dev/net/tun", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(_) => true,
        Err(error) => is_refused(&error.into()),
    }
}

fn driver_of(interface: &str) -> Option<String> {
    let link = fs::read_link(format!("/sys/class/net/{interface}/device/driver")).ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

/// Serial ports of modems: the first is often DIAG's, which only reading it shows.
fn note_on_ports(host: &Host, driver: Option<&str>, is_given: bool) -> Option<String> {
    const OF_MODEMS: [&str; 4] = ["qmi_wwan", "cdc_mbim", "cdc_ncm", "cdc_ether"];
    if is_given {
        return None;
    }
    let ports = ports_of("/sys/class/tty".as_ref());
    if let [first, ..] = ports.as_slice() {
        return Some(format!(
            "serial ports of a modem: {}; the first is often its DIAG port: --modem /dev/{first} tries it",
            ports.join(", ")
        ));
    }
    driver.filter(|driver| OF_MODEMS.contains(driver)).map(|_| {
        format!("no serial port of the modem: its DIAG port needs {}", host.remedy(OPTION))
    })
}

/// Ports that the driver `option` (or `qcserial`) has, by their names.
fn ports_of(class: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(class) else { return Vec::new() };
    let mut found: Vec<String> = entries
        .flatten()
        .filter(|entry| {
            let driver = fs::read_link(entry.path().join("device/driver")).unwrap_or_default();
            driver.file_name().is_some_and(|name| name == "option1" || name == "qcserial")
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

fn check_log(source: &LogSource) -> Result<ModemCheck> {
    check_modem(Some(source))?;
    let modem = Modem::start(source).attempt(|| "cannot read the modem's log".to_owned())?;
    let until = Instant::now() + MODEM_TIME;
    let mut reports = 0;
    while Instant::now() < until {
        thread::sleep(Duration::from_millis(50));
        reports += modem.receive().count();
    }
    let state = match modem.state() {
        SourceState::Waiting(why) => format!("waiting: {why}"),
        SourceState::Connected(_) => "connected".to_owned(),
        SourceState::Ended => "ended".to_owned(),
    };
    Ok(ModemCheck { source: modem.name().to_owned(), state, reports })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deploys(missing: &[&str]) -> Vec<DeployCheck> {
        let one = |deploy: Deploy| DeployCheck {
            deploy: deploy.name().to_owned(),
            missing: match missing.contains(&deploy.name()) {
                true => vec!["x".to_owned()],
                false => Vec::new(),
            },
            lacking: Vec::new(),
            cost: cost(deploy),
        };
        [Deploy::Nfqueue, Deploy::Htb, Deploy::Cake, Deploy::Tun].map(one).into()
    }

    #[test]
    fn auto_takes_the_most_exact_that_works() {
        let chosen = |missing: &[&str], router| choose(&deploys(missing), router);
        assert_eq!(chosen(&[], true).as_deref(), Some("nfqueue"));
        assert_eq!(chosen(&["nfqueue"], true).as_deref(), Some("htb"));
        assert_eq!(chosen(&["nfqueue", "htb"], true).as_deref(), Some("cake"));
        assert_eq!(chosen(&["nfqueue"], false).as_deref(), Some("tun"));
        // A TUN device carries nothing of a router's clients.
        assert_eq!(chosen(&["nfqueue", "htb", "cake"], true), None);
    }

    #[test]
    fn loopback_is_checked_and_stays_as_it_is() {
        let queueing = || fs::read_to_string("/proc/net/dev").map(|text| text.lines().count());
        let before = queueing().unwrap();
        let report = check("lo", None).unwrap();
        assert_eq!(report.deploys.len(), 5);
        assert!(report.notes[0].starts_with("lo is the loopback interface"), "{:?}", report.notes);
        assert!(report.missing(Deploy::None).is_empty());
        assert_eq!(queueing().unwrap(), before);
        let root = |mut netlink: Netlink| traffic::root_of(&mut netlink, 1).unwrap();
        let root = root(Netlink::route().unwrap());
        assert!(root.is_none_or(|root| root.handle == 0), "a discipline was made");
        let error = check("none77", None).unwrap_err().to_string();
        assert!(error.contains("there is no such interface"), "{error}");
    }

    #[test]
    fn ports_of_modems_are_found_by_their_driver() {
        let dir = tempfile::tempdir().unwrap();
        for (port, driver) in
            [("ttyUSB1", "option1"), ("ttyUSB0", "option1"), ("ttyUSB9", "ftdi_sio")]
        {
            let device = dir.path().join(port).join("device");
            fs::create_dir_all(&device).unwrap();
            std::os::unix::fs::symlink(format!("/sys/bus/x/{driver}"), device.join("driver"))
                .unwrap();
        }
        assert_eq!(ports_of(dir.path()), ["ttyUSB0", "ttyUSB1"]);
    }
}
