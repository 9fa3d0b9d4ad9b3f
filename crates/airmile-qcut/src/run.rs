//! A deployment from start to end.

use std::sync::Arc;

use airmile_host::Attempt;
use airmile_host::thread::StopFlag;
use nix::net::if_::if_nametoindex;
use rustix::thread::{CapabilitySet, capabilities};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::check;
use crate::control::Control;
use crate::error::{Error, NEEDS_ROOT, Result};
use crate::firewall;
use crate::gate;
use crate::guard::Guard;
use crate::instance::StateFile;
use crate::modem::{check_modem, is_missing};
use crate::netlink::queue::Queue;
use crate::options::{Deploy, Options};
use crate::publish::Publisher;
use crate::serve::{Published, serve};
use crate::shaper;
use crate::status::GateStatus;
use crate::tap::Tap;
use crate::tun::Tunnel;

/// Packets that the kernel queue may hold in addition to the gate's own until they are read
/// (chosen here).
const UNREAD_PACKETS: usize = 4_096;

/// Result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Status at the end.
    pub status: GateStatus,
}

/// Keeps an interface's uplink queue short until SIGINT, SIGTERM or SIGHUP, or until its
/// time is over; then restores the system. A second SIGINT or SIGTERM ends the process while its
/// guard restores the system. `notify` receives messages for the user.
///
/// # Errors
/// The interface does not exist, the system refuses, another instance runs on it, or a
/// change could not be undone.
pub fn run(options: &Options, notify: &Arc<dyn Fn(&str) + Send + Sync>) -> Result<Summary> {
    let name = &options.interface;
    let index = if_nametoindex(name.as_str()).map_err(|_| Error::unknown_interface(name))?;
    let needed = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    if !capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) {
        Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied))
            .refused(|| format!("cannot shape {name}: its guard does not start"), NEEDS_ROOT)?;
    }
    check_modem(options.modem.as_ref())?;
    let stop = StopFlag::new();
    // A second signal ends this process at once; the guard restores the system all the same.
    stop.set_by(&[SIGTERM, SIGINT, SIGHUP]).attempt(|| "cannot watch for signals".to_owned())?;
    let published = Published::default();
    // Bound before any change is made, as this may fail.
    let server = serve(options.metrics, options.token.as_deref(), &published)?;
    let guard = Guard::start(&options.launcher, name)?;
    let mut state = StateFile::create(name, options.deploy.name())?;
    state.set_metrics(server.address())?;
    let publisher = Publisher::start(&options.publish, &published, &mut state, notify)?;
    let mut control = Control::new(options, index, stop, guard, published)?;
    let url = format!("http://{}", server.address());
    notify(&format!("{name}: {}; {url}/metrics, {url}/v1/status", words(options)));
    let outcome = deploy(options, index, &mut state, &mut control, &mut |words| notify(words));
    let (guard, status, is_gone) = control.end();
    // Also if the setup failed half way.
    let restored = guard.map_or(Ok(()), Guard::end);
    drop((server, publisher));
    outcome.map_err(|error| match error {
        Error::Deployment { deploy, interface, why } => check::unfit(deploy, &interface, &why),
        other => other,
    })?;
    restored?;
    if is_gone {
        return Err(Error::Unfit(format!(
            "{name} was removed or recreated: start again when it is available"
        )));
    }
    notify(&format!("{name}: restored"));
    Ok(Summary { status: GateStatus::clone(&status) })
}

fn words(options: &Options) -> String {
    let by = match &options.modem {
        Some(source) if is_missing(source) => {
            format!("the modem's log ({}, which does not exist yet)", source.name())
        }
        Some(source) => format!("the modem's log ({})", source.name()),
        None => "round trips".to_owned(),
    };
    match options.deploy {
        Deploy::None => format!("nothing is held back; rate and queue by {by}"),
        deploy => format!("{} at most, by {by}, {}", options.limit, deploy.name()),
    }
}

/// Limits without a modem's log.
const NO_MODEM: &str = "\
without --modem the modem's buffer is estimated from round trips: their jitter counts as its \
queue, so that it holds some 15 ms more, and a drop of the rate is detected a round trip later; \
without TCP traffic, echoes are sent (--probe)";

fn deploy(
    options: &Options,
    index: u32,
    state: &mut StateFile,
    control: &mut Control,
    notify: &mut dyn FnMut(&str),
) -> Result<()> {
    let name = options.interface.as_str();
    if options.modem.is_none() {
        notify(&format!("{name}: {NO_MODEM}"));
    }
    let watches_all = matches!(options.deploy, Deploy::Htb | Deploy::Cake | Deploy::None);
    let tap = Tap::open(name, index, watches_all);
    let mut tap = tap.refused(|| format!("cannot listen at {name}"), NEEDS_ROOT)?;
    match options.deploy {
        Deploy::Nfqueue | Deploy::Auto => {
            let most = control.config.queue.max_packets + UNREAD_PACKETS;
            let queue = Queue::open(u32::try_from(most).unwrap_or(u32::MAX));
            let mut queue = queue.map_err(|error| {
                let why = format!("cannot open a kernel queue (NFQUEUE): {error}");
                Error::deployment(Deploy::Nfqueue, name, &why)
            })?;
            let filter = firewall::queue(state, name, index, queue.number())?;
            notify(&format!("{name}: queue {}, rules by {}", queue.number(), filter.name()));
            gate::keep(&mut queue, &mut tap, control)
        }
        Deploy::Tun => {
            let mut tunnel = Tunnel::open(state, name, index)?;
            tunnel.notes.iter().for_each(|note| notify(&format!("{name}: {note}")));
            gate::keep(&mut tunnel, &mut tap, control)
        }
        Deploy::Htb | Deploy::Cake => {
            let mut shaper = shaper::install(options, index, state, notify)?;
            shaper::keep(&mut shaper, &mut tap, control)
        }
        Deploy::None => shaper::observe(&mut tap, control),
    }
}
