//! A deployment from its beginning to its end.

use airmile_host::Attempt;
use airmile_host::source::{LogSource, ModemLink};
use airmile_host::thread::StopFlag;
use nix::net::if_::{if_nameindex, if_nametoindex};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::control::Control;
use crate::error::{Error, NEEDS_ROOT, Result};
use crate::firewall;
use crate::gate;
use crate::guard::Guard;
use crate::instance::StateFile;
use crate::netlink::queue::Queue;
use crate::options::{Deploy, Options};
use crate::serve::{Published, serve};
use crate::shaper;
use crate::status::GateStatus;
use crate::tap::Tap;
use crate::tun::Tunnel;

/// Packets that the kernel's queue may hold beyond those of ours, until they are
/// read (chosen here).
const UNREAD_PACKETS: usize = 4_096;

/// How it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How things were at the end.
    pub status: GateStatus,
}

/// Keeps an interface's uplink short until it is told to end by SIGINT, SIGTERM or
/// SIGHUP, or its time is over; then puts things back. `tell` is told what a person
/// may want to know.
///
/// # Errors
/// The interface is not there, the system does not let us, another instance runs
/// there; or what was changed could not be put back.
pub fn run(options: &Options, tell: &mut dyn FnMut(&str)) -> Result<Summary> {
    let name = &options.interface;
    let index = if_nametoindex(name.as_str()).map_err(|_| unknown(name))?;
    let needed = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    if !capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) {
        Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied))
            .refused(|| format!("{name}: cannot be kept short"), NEEDS_ROOT)?;
    }
    check_modem(options)?;
    let stop = StopFlag::new();
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, stop.shared())
            .attempt(|| "cannot watch for signals".to_owned())?;
    }
    let published = Published::default();
    // Bound before anything is changed: it may be refused.
    let server = serve(options.metrics, options.token.as_deref(), &published)?;
    let guard = Guard::start(&options.launcher, name)?;
    let mut state = StateFile::create(name, options.deploy.name())?;
    state.set_metrics(server.address())?;
    let mut control = Control::new(options, index, stop, guard, published)?;
    let url = format!("http://{}", server.address());
    tell(&format!("{name}: {}; {url}/metrics, {url}/v1/status", words(options)));
    let outcome = deploy(options, index, &mut state, &mut control, tell);
    let (guard, status, is_gone) = control.end();
    // Also where setting up failed half way.
    let restored = guard.map_or(Ok(()), Guard::end);
    drop(server);
    outcome?;
    restored?;
    if is_gone {
        return Err(Error::Unfit(format!(
            "{name} has gone, or is back as another device: start again when it is there"
        )));
    }
    tell(&format!("{name}: as it was before"));
    Ok(Summary { status: GateStatus::clone(&status) })
}

fn unknown(name: &str) -> Error {
    let listed = if_nameindex().ok();
    let names = listed.iter().flatten().map(|each| each.name().to_string_lossy().into_owned());
    let names: Vec<String> = names.collect();
    Error::Unfit(format!("{name}: there is no such interface; there are {}", names.join(", ")))
}

/// A modem that cannot be read now is told of at once; one that is not there yet
/// may come.
fn check_modem(options: &Options) -> Result<()> {
    let (Some(LogSource::Follow(path)) | Some(LogSource::Modem(ModemLink::Path(path)))) =
        &options.modem
    else {
        return Ok(());
    };
    // Not opened: a port or a pipe might wait for its other end.
    let readable = match path.is_dir() {
        true => Err(Errno::ISDIR),
        false => access(path.as_path(), Access::READ_OK),
    };
    match readable {
        Err(e) if e != Errno::NOENT => Ok(Err(e).refused(
            || format!("cannot read the modem's log {}", path.display()),
            "Give a log that grows, a DIAG port (/dev/ttyUSB0) that no other program has, or - \
             for standard input; without --modem round trips tell how much it holds.",
        )?),
        _ => Ok(()),
    }
}

fn words(options: &Options) -> String {
    let by = match &options.modem {
        Some(source) => format!("the modem's log ({})", source.name()),
        None => "round trips".to_owned(),
    };
    format!("{} at most, by {by}, {}", options.limit, options.deploy.name())
}

/// What is lost without a modem's log.
const NO_MODEM: &str = "\
without --modem round trips tell how much the modem holds: their jitter counts as its queue, \
so that it holds some 15 ms more, and a rate that drops is seen a round trip later; where no \
TCP passes, echoes are sent (--probe)";

fn deploy(
    options: &Options,
    index: u32,
    state: &mut StateFile,
    control: &mut Control,
    tell: &mut dyn FnMut(&str),
) -> Result<()> {
    let name = options.interface.as_str();
    if options.modem.is_none() {
        tell(&format!("{name}: {NO_MODEM}"));
    }
    let watches_all = matches!(options.deploy, Deploy::Htb | Deploy::Cake);
    let tap = Tap::open(name, index, watches_all);
    let mut tap = tap.refused(|| format!("cannot listen at {name}"), NEEDS_ROOT)?;
    match options.deploy {
        Deploy::Nfqueue => {
            let most = control.config.queue.max_packets + UNREAD_PACKETS;
            let queue = Queue::open(u32::try_from(most).unwrap_or(u32::MAX));
            let mut queue = queue.refused(
                || "cannot open a queue of the kernel (NFQUEUE)".to_owned(),
                "It needs CAP_NET_ADMIN and the module nfnetlink_queue (`modprobe nfnetlink_queue`); \
                 --deploy tun and --deploy htb do without.",
            )?;
            let filter = firewall::queue(state, name, index, queue.number())?;
            tell(&format!("{name}: queue {}, rules by {}", queue.number(), filter.name()));
            gate::keep(&mut queue, &mut tap, control)
        }
        Deploy::Tun => {
            let mut tunnel = Tunnel::open(state, name, index)?;
            tunnel.notes.iter().for_each(|note| tell(&format!("{name}: {note}")));
            gate::keep(&mut tunnel, &mut tap, control)
        }
        Deploy::Htb | Deploy::Cake => {
            let mut shaper = shaper::install(options, index, state, tell)?;
            shaper::keep(&mut shaper, &mut tap, control)
        }
    }
}
