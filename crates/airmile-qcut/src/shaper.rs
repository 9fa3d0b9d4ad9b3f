//! The kernel's own queueing with a rate that follows the modem's: only headers and the
//! modem's reports are read here, no whole packets.

use std::io;
use std::thread;
use std::time::Duration;

use airmile_control::qcut::{ClassConfig, Qcut, Tier};
use airmile_host::Attempt;
use airmile_host::clock::monotonic_ns;
use nix::errno::Errno;

use crate::control::{Control, GateSnapshot};
use crate::error::{Error, Result};
use crate::firewall;
use crate::header;
use crate::instance::{StateFile, SystemChange};
use crate::netlink::Netlink;
use crate::netlink::traffic::{self, Leaf};
use crate::options::{Deploy, Options};
use crate::status::{ClassStatus, name_of};
use crate::tap::{Tap, apply_answer};
use crate::tun;

/// Ethernet's header with a VLAN tag; some interfaces have a shorter one.
const LINK_HEADER_BYTES: u32 = 18;

/// How often the rate is checked (chosen here: a few of a log's batches; fifty changes a
/// second cost the kernel little).
const TICK: Duration = Duration::from_millis(20);

/// Inverse of the minimum share of the rate by which a change is applied (chosen here).
const WORTH_A_CHANGE: u64 = 50;

/// The discipline at the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An HTB with these leaves.
    Htb(Leaf),
    /// A CAKE.
    Cake,
}

/// The shaper of an interface.
pub(crate) struct Shaper {
    pub(crate) netlink: Netlink,
    pub(crate) index: u32,
    pub(crate) shape: Shape,
    bytes_per_s: u64,
    changes: u64,
}

impl Shaper {
    /// Initial rate before the first measurement (chosen here: 2 Mbit/s).
    pub(crate) const START_BYTES_PER_S: u64 = 250_000;

    pub(crate) const fn new(netlink: Netlink, index: u32, shape: Shape) -> Self {
        Self { netlink, index, shape, bytes_per_s: Self::START_BYTES_PER_S, changes: 0 }
    }

    /// Sets the rate if it differs enough. Skipped while the interface is absent.
    fn set(&mut self, bytes_per_s: u64) -> io::Result<()> {
        if bytes_per_s.abs_diff(self.bytes_per_s) < self.bytes_per_s / WORTH_A_CHANGE {
            return Ok(());
        }
        self.bytes_per_s = bytes_per_s;
        self.changes += 1;
        self.apply()
    }

    /// Sets the rate in the kernel, even if unchanged: the guard opens it while this
    /// process hangs.
    fn apply(&mut self) -> io::Result<()> {
        let bytes_per_s = self.bytes_per_s;
        let changed = match self.shape {
            Shape::Htb(leaf) => traffic::set_rate(&mut self.netlink, self.index, bytes_per_s, leaf),
            Shape::Cake => traffic::set_cake(&mut self.netlink, self.index, bytes_per_s),
        };
        match changed {
            Err(e) if e.raw_os_error() == Some(Errno::ENODEV as i32) => Ok(()),
            result => result,
        }
    }

    fn snapshot(&mut self, qcut: &Qcut<()>) -> GateSnapshot {
        let counts = traffic::counts(&mut self.netlink, self.index).unwrap_or_default();
        // The kernel does not count CoDel's drops separately.
        let has_codel = matches!(self.shape, Shape::Cake | Shape::Htb(Leaf::FqCodel));
        let classes = Tier::ALL.iter().zip(counts).map(|(tier, counts)| ClassStatus {
            class: name_of(*tier).to_owned(),
            arrived_packets: counts.sent_packets + counts.waiting_packets + counts.dropped,
            sent_packets: counts.sent_packets,
            sent_bytes: counts.sent_bytes,
            held_packets: counts.waiting_packets,
            held_bytes: counts.waiting_bytes,
            dropped_aqm: if has_codel { counts.dropped } else { 0 },
            dropped_full: if has_codel { 0 } else { counts.dropped },
        });
        GateSnapshot {
            classes: classes.collect(),
            set_rate: Some((self.bytes_per_s, self.changes)),
            ..GateSnapshot::of(qcut)
        }
    }
}

/// Installs the shaper in place of the present discipline, if that can be restored.
pub(crate) fn install(
    options: &Options,
    index: u32,
    state: &mut StateFile,
    notify: &mut dyn FnMut(&str),
) -> Result<Shaper> {
    const WITH_CLASSES: [&str; 6] = ["htb", "hfsc", "prio", "drr", "qfq", "ets"];
    let name = options.interface.as_str();
    let mut netlink = Netlink::route().attempt(|| "cannot open a netlink socket".to_owned())?;
    let former = traffic::root_of(&mut netlink, index)
        .attempt(|| format!("cannot read the queueing of {name}"))?;
    if let Some(root) = &former {
        if root.handle != 0 && WITH_CLASSES.contains(&root.kind.as_str()) {
            return Err(Error::Unfit(format!(
                "{name} has queueing with classes of its own ({}), which could not be restored: \
                 remove it (`tc qdisc del dev {name} root`), or use --deploy nfqueue, which leaves it",
                root.kind
            )));
        }
        let child = traffic::child_of(&mut netlink, index)
            .attempt(|| format!("cannot read the queueing of {name}"))?;
        if let Some(kind) = child {
            return Err(Error::Unfit(format!(
                "{name} has queueing of its own below its root ({kind}), which could not be \
                 restored: remove it (`tc qdisc del dev {name} root`), or use --deploy nfqueue, which \
                 leaves it"
            )));
        }
        let traffic::Root { kind, handle, options } = root.clone();
        state.add(SystemChange::Qdisc { index, kind, handle, options })?;
    }
    let rate = Shaper::START_BYTES_PER_S;
    if options.deploy == Deploy::Cake {
        traffic::install_cake(&mut netlink, index, rate).map_err(|error| {
            Error::deployment(Deploy::Cake, name, &format!("cannot install a CAKE: {error}"))
        })?;
        if options.classes != ClassConfig::default() {
            notify(&format!("{name}: CAKE uses DSCP and flows: other classes have no effect"));
        }
        return Ok(Shaper::new(netlink, index, Shape::Cake));
    }
    let packet_bytes = tun::mtu_of(name) + LINK_HEADER_BYTES;
    let leaf = traffic::install(&mut netlink, index, rate, packet_bytes).map_err(|error| {
        Error::deployment(Deploy::Htb, name, &format!("cannot install an HTB: {error}"))
    })?;
    if leaf != Leaf::FqCodel {
        notify(&format!(
            "{name}: this kernel has no fq_codel: flows of a class share one short queue; \
             --deploy nfqueue keeps them apart"
        ));
    }
    if leaf == Leaf::Fifo {
        notify(&format!(
            "{name}: this kernel has no TBF, which segments large packets (GSO): they go in \
             one piece, and the modem holds up to 64 KB more; --deploy nfqueue does not need it"
        ));
    }
    if let Err(error) = firewall::classify(state, name, index, &options.classes) {
        notify(&format!("{name}: {error}; all traffic is in one class"));
    }
    Ok(Shaper::new(netlink, index, Shape::Htb(leaf)))
}

/// Measures until the run ends, and holds nothing back.
pub(crate) fn observe(tap: &mut Tap, control: &mut Control) -> Result<()> {
    let mut qcut: Qcut<()> = Qcut::new(control.config.clone());
    while control.goes_on() {
        let now_ns = take_in(tap, control, &mut qcut)?;
        if control.is_due(now_ns) {
            control.publish(&GateSnapshot::of(&qcut), 0);
        }
        thread::sleep(TICK);
    }
    control.publish(&GateSnapshot::of(&qcut), 0);
    Ok(())
}

/// Takes in what passed and what the modem reported, and sends probes; gives the time.
fn take_in(tap: &mut Tap, control: &mut Control, qcut: &mut Qcut<()>) -> Result<i64> {
    let identifier = control.identifier();
    tap.receive(|passed| {
        // Our own echoes were counted when they were requested.
        if passed.is_outgoing && identifier.is_some_and(|of| header::is_echo(passed.head, of)) {
            return;
        }
        if passed.is_outgoing {
            let (info, far) = header::outgoing(passed.head, passed.bytes);
            control.to(far);
            qcut.passed(passed.at_ns, &info);
        } else {
            apply_answer(qcut, identifier, &passed);
        }
    })
    .attempt(|| "cannot read passing packets".to_owned())?;
    let now_ns = monotonic_ns();
    for report in control.reports() {
        qcut.report(now_ns, report);
    }
    while control.may_probe()
        && let Some(probe) = qcut.poll_probe(now_ns)
    {
        control.probe(probe);
    }
    Ok(now_ns)
}

/// Adjusts the rate until the run ends.
pub(crate) fn keep(shaper: &mut Shaper, tap: &mut Tap, control: &mut Control) -> Result<()> {
    let mut qcut: Qcut<()> = Qcut::new(control.config.clone());
    while control.goes_on() {
        let now_ns = take_in(tap, control, &mut qcut)?;
        let held = qcut.held(now_ns);
        let rate = held.shaper_bytes_per_s(control.has_modem(), shaper.bytes_per_s);
        shaper.set(rate).attempt(|| "cannot change the rate".to_owned())?;
        if control.is_due(now_ns) {
            shaper.apply().attempt(|| "cannot change the rate".to_owned())?;
            let snapshot = shaper.snapshot(&qcut);
            control.publish(&snapshot, 0);
        }
        thread::sleep(TICK);
    }
    let snapshot = shaper.snapshot(&qcut);
    control.publish(&snapshot, 0);
    Ok(())
}
