//! A deployment from its beginning to its end.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airmile_control::qcut::{
    ClassConfig, Evidence, GateState, Limit, ModemReport, ProbeId, Qcut, QcutConfig, QueueConfig,
    ReportCounts, Tier,
};
use airmile_live::source::{Source, SourceState};
use nix::net::if_::{if_nameindex, if_nametoindex};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::clock;
use crate::error::{Attempt, Error, NEEDS_ROOT, Result};
use crate::firewall::{self, MARK};
use crate::gate;
use crate::guard::Guard;
use crate::instance::{StateFile, Step};
use crate::modem::Modem;
use crate::netlink::Netlink;
use crate::netlink::queue::Queue;
use crate::netlink::traffic::{self, Leaf};
use crate::probe::Prober;
use crate::serve::{Published, serve};
use crate::shaper::{self, Shape, Shaper};
use crate::status::{ClassStatus, ModemStatus, Status};
use crate::tap::Tap;
use crate::tun::{self, Tunnel};

/// How often it is told how things are.
const TOLD_EVERY_NS: i64 = 200_000_000;

/// Behind the last packet there is nothing to be asked about any more, in ns (chosen
/// here: as long as nobody's answer is waited for).
const PROBED_FOR_NS: i64 = 2_000_000_000;

/// Ethernet's header with a tag; interfaces without have less.
const LINK_HEADER_BYTES: u32 = 18;

/// Packets that the kernel's queue may hold beyond those of ours, until they are
/// read (chosen here).
const UNREAD_PACKETS: usize = 4_096;

/// The way packets are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deploy {
    /// The kernel's queue for user space: an exact gate.
    Nfqueue,
    /// The kernel's own HTB, whose rate follows the estimate.
    Htb,
    /// The kernel's own CAKE, the same way.
    Cake,
    /// A TUN device that routes lead into.
    Tun,
}

impl Deploy {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nfqueue => "nfqueue",
            Self::Htb => "htb",
            Self::Cake => "cake",
            Self::Tun => "tun",
        }
    }
}

/// Whom to ask for a round trip where no acknowledgement tells one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProbeTo {
    /// Whom the last packet was for.
    #[default]
    LastFar,
    /// This host.
    Host(Ipv4Addr),
    /// Nobody.
    Nobody,
}

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The interface of the uplink.
    pub interface: String,
    /// The modem's log; absent: round trips tell.
    pub modem: Option<Source>,
    /// How much the modem may hold.
    pub limit: Limit,
    /// The way packets are held.
    pub deploy: Deploy,
    /// By what packets are told apart.
    pub classes: ClassConfig,
    /// Where to serve metrics.
    pub metrics: SocketAddr,
    /// The token that metrics ask for.
    pub token: Option<String>,
    /// For how long; absent: until it is ended.
    pub duration: Option<Duration>,
    /// Whom to ask for round trips.
    pub probe: ProbeTo,
    /// Program and first arguments that lead to [`guard`](crate::guard()).
    pub launcher: Vec<OsString>,
}

/// How it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How things were at the end.
    pub status: Status,
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
        return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied))
            .refused(|| format!("{name}: cannot be kept short"), NEEDS_ROOT);
    }
    check_modem(options)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone())
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
    let Control { guard, published, is_gone, .. } = control;
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
    Ok(Summary { status: Status::clone(&published.now()) })
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
    let (Some(Source::Follow(path)) | Some(Source::Port(path))) = &options.modem else {
        return Ok(());
    };
    // Not opened: a port or a pipe might wait for its other end.
    let readable = match path.is_dir() {
        true => Err(Errno::ISDIR),
        false => access(path.as_path(), Access::READ_OK),
    };
    match readable {
        Err(e) if e != Errno::NOENT => Err(e).refused(
            || format!("cannot read the modem's log {}", path.display()),
            "Give a log that grows, a DIAG port (/dev/ttyUSB0) that no other program has, or - \
             for standard input; without --modem round trips tell how much it holds.",
        ),
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
            let mut shaper = shape(options, index, state, tell)?;
            shaper::keep(&mut shaper, &mut tap, control)
        }
    }
}

/// Puts the shaper in place of what is there, if that can be put back.
fn shape(
    options: &Options,
    index: u32,
    state: &mut StateFile,
    tell: &mut dyn FnMut(&str),
) -> Result<Shaper> {
    const WITH_CLASSES: [&str; 6] = ["htb", "hfsc", "prio", "drr", "qfq", "ets"];
    let name = options.interface.as_str();
    let mut netlink = Netlink::route().attempt(|| "cannot open a netlink socket".to_owned())?;
    let former = traffic::root_of(&mut netlink, index)
        .attempt(|| format!("cannot read the queueing of {name}"))?;
    if let Some(root) = &former {
        if root.handle != 0 && WITH_CLASSES.contains(&root.kind.as_str()) {
            return Err(Error::Unfit(format!(
                "{name} has queueing with classes of its own ({}), which could not be put back: \
                 remove it (`tc qdisc del dev {name} root`), or use --deploy nfqueue, which leaves it",
                root.kind
            )));
        }
        let child = traffic::child_of(&mut netlink, index)
            .attempt(|| format!("cannot read the queueing of {name}"))?;
        if let Some(kind) = child {
            return Err(Error::Unfit(format!(
                "{name} has queueing of its own below its root ({kind}), which could not be put \
                 back: remove it (`tc qdisc del dev {name} root`), or use --deploy nfqueue, which \
                 leaves it"
            )));
        }
        let traffic::Root { kind, handle, options } = root.clone();
        state.add(Step::Qdisc { index, kind, handle, options })?;
    }
    let rate = Shaper::START_BYTES_PER_S;
    if options.deploy == Deploy::Cake {
        traffic::install_cake(&mut netlink, index, rate).refused(
            || format!("cannot put a CAKE at {name}"),
            "It needs the module sch_cake (`modprobe sch_cake`); --deploy htb and --deploy nfqueue \
             do without.",
        )?;
        if options.classes != ClassConfig::default() {
            tell(&format!(
                "{name}: CAKE goes by DSCP and by flows: other classes count for nothing"
            ));
        }
        return Ok(Shaper::new(netlink, index, Shape::Cake));
    }
    let packet_bytes = tun::mtu_of(name) + LINK_HEADER_BYTES;
    let leaf = traffic::install(&mut netlink, index, rate, packet_bytes).refused(
        || format!("cannot put an HTB at {name}"),
        "It needs the module sch_htb (`modprobe sch_htb`); --deploy nfqueue and --deploy tun do without.",
    )?;
    if leaf != Leaf::FqCodel {
        tell(&format!(
            "{name}: this kernel has no fq_codel: flows of a class share one short queue; \
             --deploy nfqueue keeps them apart"
        ));
    }
    if leaf == Leaf::Fifo {
        tell(&format!(
            "{name}: this kernel has no TBF, which takes large packets (GSO) apart: they go in \
             one piece, and the modem holds up to 64 KB more; --deploy nfqueue does not need it"
        ));
    }
    if let Err(error) = firewall::classify(state, name, index, &options.classes) {
        tell(&format!("{name}: {error}; all traffic is of one class"));
    }
    Ok(Shaper::new(netlink, index, Shape::Htb(leaf)))
}

/// What a gate or a shaper shares with all around it.
pub(crate) struct Control {
    pub(crate) config: QcutConfig,
    stop: Arc<AtomicBool>,
    until_ns: Option<i64>,
    guard: Option<Guard>,
    modem: Option<Modem>,
    prober: Option<Prober>,
    to: ProbeTo,
    last_far: Option<Ipv4Addr>,
    /// When a packet came last.
    busy_ns: i64,
    probes: u64,
    published: Published,
    base: Status,
    index: u32,
    /// Whether the interface is there no more.
    is_gone: bool,
    began_ns: i64,
    due_ns: i64,
}

/// What is published of a gate.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keeper {
    pub(crate) held: GateState,
    pub(crate) classes: Vec<ClassStatus>,
    pub(crate) reports: ReportCounts,
    pub(crate) silences: u64,
    /// In bytes per second, and how often it was changed.
    pub(crate) set_rate: Option<(u64, u64)>,
}

impl Keeper {
    pub(crate) fn of<P>(qcut: &Qcut<P>) -> Self {
        let classes = Tier::ALL.iter().map(|tier| ClassStatus::of(*tier, &qcut.counts_of(*tier)));
        Self {
            held: qcut.held(clock::now_ns()),
            classes: classes.collect(),
            reports: qcut.reports(),
            silences: qcut.silences(),
            set_rate: None,
        }
    }
}

impl Control {
    fn new(
        options: &Options,
        index: u32,
        stop: Arc<AtomicBool>,
        guard: Guard,
        published: Published,
    ) -> Result<Self> {
        let modem = options.modem.as_ref().map(Modem::start).transpose();
        let modem = modem.attempt(|| "cannot start to read the modem's log".to_owned())?;
        let prober = match options.probe {
            ProbeTo::Nobody => None,
            _ => Some(
                Prober::open(&options.interface, MARK)
                    .refused(|| "cannot send echoes".to_owned(), NEEDS_ROOT)?,
            ),
        };
        let (evidence, by) = match modem {
            Some(_) => (Evidence::Modem, "modem"),
            None => (Evidence::RoundTrips, "round_trips"),
        };
        let queue = QueueConfig { classes: options.classes.clone(), ..QueueConfig::default() };
        let limit = options.limit;
        let began_ns = clock::now_ns();
        let nanoseconds = |of: Duration| i64::try_from(of.as_nanos()).unwrap_or(i64::MAX);
        let base = Status {
            interface: options.interface.clone(),
            deploy: options.deploy.name().to_owned(),
            evidence: by.to_owned(),
            limit: limit.to_string(),
            ..Status::default()
        };
        Ok(Self {
            config: QcutConfig { limit, evidence, queue, ..QcutConfig::default() },
            stop,
            until_ns: options.duration.map(|of| began_ns.saturating_add(nanoseconds(of))),
            guard: Some(guard),
            modem,
            prober,
            to: options.probe,
            last_far: None,
            busy_ns: began_ns,
            probes: 0,
            published,
            base,
            index,
            is_gone: false,
            began_ns,
            due_ns: began_ns,
        })
    }

    /// Whether it goes on.
    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
            && self.until_ns.is_none_or(|until| clock::now_ns() < until)
    }

    /// Whether a status is due.
    pub(crate) const fn is_due(&self, now_ns: i64) -> bool {
        now_ns >= self.due_ns
    }

    /// When the next one is.
    pub(crate) fn due_ns(&self) -> i64 {
        self.until_ns.map_or(self.due_ns, |until| until.min(self.due_ns))
    }

    pub(crate) const fn has_modem(&self) -> bool {
        self.modem.is_some()
    }

    pub(crate) fn modem_fd(&self) -> Option<BorrowedFd<'_>> {
        self.modem.as_ref().map(Modem::fd)
    }

    /// Reports that came.
    pub(crate) fn reports(&self) -> Vec<ModemReport> {
        self.modem.as_ref().map_or_else(Vec::new, |modem| modem.receive().collect())
    }

    /// The identifier of our echoes.
    pub(crate) fn identifier(&self) -> Option<u16> {
        self.prober.as_ref().map(Prober::identifier)
    }

    /// A packet is for this host.
    pub(crate) fn to(&mut self, far: Option<IpAddr>) {
        self.busy_ns = clock::now_ns();
        if let Some(IpAddr::V4(far)) = far {
            self.last_far = Some(far);
        }
    }

    /// Whether a probe would be sent: the gate counts what it asks for.
    pub(crate) fn may_probe(&self) -> bool {
        self.prober.is_some()
            && self.probed().is_some()
            && clock::now_ns() - self.busy_ns <= PROBED_FOR_NS
    }

    fn probed(&self) -> Option<Ipv4Addr> {
        match self.to {
            ProbeTo::Host(host) => Some(host),
            ProbeTo::LastFar => self.last_far,
            ProbeTo::Nobody => None,
        }
    }

    /// Sends a probe. One that cannot be sent is one that is not answered.
    pub(crate) fn probe(&mut self, ProbeId(number): ProbeId) {
        if let (Some(prober), Some(to)) = (&self.prober, self.probed()) {
            // The field has sixteen bits; older ones are long forgotten.
            self.probes += u64::from(prober.send(to, (number & 0xffff) as u16).is_ok());
        }
    }

    /// Tells how things are.
    pub(crate) fn publish(&mut self, kept: &Keeper, failed_packets: u64) {
        let now_ns = clock::now_ns();
        self.due_ns = now_ns + TOLD_EVERY_NS;
        let modem = self.modem.as_ref().map(|modem| ModemStatus {
            source: modem.name().to_owned(),
            state: match modem.state() {
                SourceState::Waiting(why) => format!("waiting: {why}"),
                SourceState::Connected(what) if what.is_empty() => "connected".to_owned(),
                SourceState::Connected(what) => format!("connected: {what}"),
                SourceState::Ended => "ended".to_owned(),
            },
            reports: kept.reports.used,
            unused_reports: kept.reports.late + kept.reports.bad + kept.reports.disagreed,
        });
        let mut status = Status {
            uptime_s: (now_ns - self.began_ns) as f64 / 1e9,
            cpu_s: clock::cpu_ns() as f64 / 1e9,
            modem,
            classes: kept.classes.clone(),
            silences: kept.silences,
            probes: self.probes,
            set_rate_bps: kept.set_rate.map(|(bytes_per_s, _)| bytes_per_s * 8),
            rate_changes: kept.set_rate.map_or(0, |(_, changes)| changes),
            failed_packets,
            warnings: warnings(&kept.held),
            ..self.base.clone()
        };
        status.hold(&kept.held);
        self.published.set(status);
        // Away, or back as another: what was set up for it is no use.
        let is_there = if_nametoindex(self.base.interface.as_str()) == Ok(self.index);
        if !is_there && !self.is_gone {
            self.is_gone = true;
            self.stop.store(true, Ordering::Relaxed);
        }
        // Ended by somebody: nothing would put things back after us.
        if self.guard.as_mut().is_some_and(|guard| !guard.is_there()) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

fn warnings(held: &GateState) -> Vec<String> {
    let mut all = Vec::new();
    if held.silent && !held.blind {
        all.push("the modem's log is silent: round trips tell how much it holds".to_owned());
    }
    if held.blind {
        all.push(
            "nobody answers: nothing tells how much the modem holds, and nothing is held back; \
             --probe HOST names a host that answers pings"
                .to_owned(),
        );
    }
    all
}
