//! Loads the BPF programs, and removes them again.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

use airmile_control::claw::ClawOptions;
use airmile_control::claw::feedback::{AuthenticatedReport, FeedbackReport};
use airmile_host::Attempt;
use airmile_host::thread::lock;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder};

use super::control_group::ControlGroup;
use super::maps::{self, ClientFeedback, Config};
use super::stats::Stats;
use super::{AttachOptions, Figures};
use crate::error::{Connect, Error, Result};
use crate::keys;
use crate::listener::{Listener, ReportSink};

/// The object file built by build.rs.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/claw.bpf.o"));

/// The monotonic clock, as for `bpf_ktime_get_ns`.
fn monotonic_ns() -> u64 {
    airmile_host::clock::monotonic_ns().unsigned_abs()
}

/// A loaded object. Everything is removed with it, and with its process: sockets then use
/// plain Cubic, as no feedback arrives any more.
struct LoadedProgram {
    // Dropped first, in this order: no new connection, then no new name.
    links: Vec<Link>,
    object: Object,
    config: Config,
    /// The kernel's accounting of BPF run time, while it is enabled.
    stats: Option<Stats>,
}

impl fmt::Debug for LoadedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedProgram").field("config", &self.config).finish_non_exhaustive()
    }
}

impl LoadedProgram {
    fn new(mut config: Config, cgroup: &ControlGroup) -> Result<Self> {
        libbpf_rs::set_print(None);
        let needs = "root (CAP_BPF, CAP_NET_ADMIN), and Linux 6.4 with BTF and Cubic";
        let object = ObjectBuilder::default()
            .open_memory(OBJECT)
            .and_then(libbpf_rs::OpenObject::load)
            .connect(|| format!("cannot load the BPF programs, which need {needs}"))?;
        let stats = config.measures.then(Stats::start).transpose()?;
        let mut loaded = Self { links: Vec::new(), object, config, stats };
        if cgroup.is_root {
            // Until the own namespace is known, no connection is selected.
            loaded.config = Config { serves: false, reports: false, ..config };
        }
        loaded.configure()?;
        if config.serves {
            let mut maps = loaded.object.maps_mut();
            let mut claw = maps.find(|map| map.name() == "claw").ok_or_else(broken)?;
            let link = claw.attach_struct_ops().connect(|| {
                "cannot register `claw`; only one `airmile claw attach` can run on a machine"
                    .to_owned()
            })?;
            drop(maps);
            loaded.links.push(link);
        }
        let program = loaded.object.progs_mut().find(|program| program.name() == "claw_sockops");
        let link = program
            .ok_or_else(broken)?
            .attach_cgroup(cgroup.file.as_raw_fd())
            .connect(|| "cannot attach to the control group".to_owned())?;
        // Detach before the name is removed.
        loaded.links.insert(0, link);
        if cgroup.is_root {
            config.netns_cookie = loaded.find_namespace()?;
            loaded.config = config;
            loaded.configure()?;
        }
        Ok(loaded)
    }

    /// Finds the own namespace: the BPF program sees a connection made in it.
    fn find_namespace(&mut self) -> Result<u64> {
        let what = || "cannot connect within this namespace (ip link set lo up)".to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").attempt(what)?;
        let to = listener.local_addr().attempt(what)?;
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
            .attempt(what)?;
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        socket.bind(&any.into()).attempt(what)?;
        let from = socket.local_addr().attempt(what)?.as_socket().map_or(0, |from| from.port());
        self.config.probe = (to.port(), from);
        self.configure()?;
        socket.connect(&to.into()).attempt(what)?;
        let _accepted = listener.accept().attempt(what)?;
        let cookie = self.count(0);
        if cookie == 0 {
            return Err(Error::Option(
                "this process is in no control group of the root's: give --cgroup".to_owned(),
            ));
        }
        Ok(cookie)
    }

    fn configure(&mut self) -> Result<()> {
        self.map("settings")?
            .update(&0_u32.to_ne_bytes(), &self.config.bytes(), MapFlags::ANY)
            .connect(|| "cannot configure the BPF programs".to_owned())
    }

    fn map(&self, name: &str) -> Result<MapHandle> {
        let map = self.object.maps().find(|map| map.name() == name).ok_or_else(broken)?;
        MapHandle::try_from(&map).connect(|| format!("cannot share the map {name}"))
    }

    fn count(&self, which: u32) -> u64 {
        let value = self
            .map("counts")
            .ok()
            .and_then(|map| map.lookup(&which.to_ne_bytes(), MapFlags::ANY).ok().flatten());
        value.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
    }

    fn figures(&self) -> Figures {
        let mut times = vec![0; 256];
        if let Ok(map) = self.map("ack_ns") {
            for (step, count) in (0_u32..).zip(times.iter_mut()) {
                let values = map.lookup_percpu(&step.to_ne_bytes(), MapFlags::ANY).ok().flatten();
                let values = values.into_iter().flatten();
                let number = |bytes: Vec<u8>| bytes.try_into().map_or(0, u64::from_ne_bytes);
                *count = values.map(number).sum();
            }
        }
        Figures {
            connections: self.count(6),
            acks: self.count(5),
            acks_with_client_window: self.count(4),
            options_read: self.count(1),
            options_written: self.count(2),
            options_without_room: self.count(3),
            most_client_window_bytes: self.count(9),
            withdrawn: self.count(7),
            radio_losses_excused: self.count(8),
            programs: self.stats.as_ref().map(|_| Stats::of(&self.object)).unwrap_or_default(),
            ack_p50_ns: maps::quantile_ns(&times, 0.5),
            ack_p99_ns: maps::quantile_ns(&times, 0.99),
            ..Figures::default()
        }
    }
}

fn broken() -> Error {
    Error::Option(
        "the BPF programs were built incorrectly: cargo clean, and build again".to_owned(),
    )
}

/// `claw` on connections of a namespace or a control group, during the lifetime of this
/// value.
#[derive(Debug)]
pub struct Attached {
    // Dropped before the maps that it writes to.
    listener: Option<Listener>,
    loaded: LoadedProgram,
}

impl Attached {
    /// Loads and attaches it.
    ///
    /// # Errors
    /// The system refuses, or an address is in use.
    pub fn new(options: &AttachOptions) -> Result<Self> {
        let claw = ClawOptions { limits: options.limits, ..ClawOptions::default() };
        let config = Config {
            claw,
            clients: options.clients,
            serves: true,
            measures: options.measure,
            ..Config::default()
        };
        let loaded = LoadedProgram::new(config, &options.cgroup)?;
        let start = |at| {
            let peers = KernelPeers {
                map: loaded.map("peers")?,
                latest: Mutex::default(),
                full_from_load: claw.full_from_load,
            };
            let shared = options.shared_key.clone();
            Listener::start(at, keys::random_key()?, shared, Arc::new(peers))
        };
        let listener = options.reports.map(start).transpose()?;
        Ok(Self { listener, loaded })
    }

    /// Address on which reports are received.
    #[must_use]
    pub fn reports(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(Listener::address)
    }

    /// Counters of the run.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let counts = self.listener.as_ref().map(Listener::counts).unwrap_or_default();
        Figures {
            reports: counts.taken,
            forged: counts.forged,
            replayed: counts.replayed,
            too_many: counts.too_many,
            datagrams: self.listener.as_ref().map_or(0, |listener| listener.received().0),
            datagram_bytes: self.listener.as_ref().map_or(0, |listener| listener.received().1),
            ..self.loaded.figures()
        }
    }
}

/// Clients by address.
struct KernelPeers {
    map: MapHandle,
    latest: Mutex<BTreeMap<[u8; 16], ClientFeedback>>,
    full_from_load: f64,
}

/// Maximum number of addresses whose last report is kept; old ones are dropped first.
const KEPT: usize = 16_384;
/// A client without reports for this time is dropped.
const FORGOTTEN_NS: u64 = 20_000_000_000;

impl ReportSink for KernelPeers {
    fn on_report(&self, accepted: &AuthenticatedReport, alone: bool) -> usize {
        // The kernel knows only addresses, so the connections of shared addresses cannot be
        // assigned.
        if !alone {
            return 0;
        }
        let now_ns = monotonic_ns();
        let mut all = lock(&self.latest);
        if all.len() >= KEPT {
            all.retain(|_, client| now_ns.saturating_sub(client.received_ns) < FORGOTTEN_NS);
        }
        let key = maps::address(accepted.address);
        let client = all.entry(key).or_default();
        client.ingest(now_ns, &accepted.report, self.full_from_load);
        usize::from(self.map.update(&key, &client.bytes(), MapFlags::ANY).is_ok())
    }
}

/// Options on the ACKs of this machine's own connections.
#[derive(Debug)]
pub struct OptionWriter {
    loaded: LoadedProgram,
    map: MapHandle,
    full_from_load: f64,
}

impl OptionWriter {
    /// Loads and attaches the program: to a control group, or to the current namespace.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new(cgroup: &ControlGroup) -> Result<Self> {
        let config = Config { reports: true, ..Config::default() };
        let full_from_load = config.claw.full_from_load;
        let loaded = LoadedProgram::new(config, cgroup)?;
        let map = loaded.map("own_report")?;
        Ok(Self { loaded, map, full_from_load })
    }

    /// Sets the contents of the option.
    ///
    /// # Errors
    /// The kernel rejects it.
    pub fn set(&self, report: &FeedbackReport) -> Result<()> {
        let option = report.tcp_option(self.full_from_load);
        let bytes = maps::option(option, monotonic_ns());
        self.map
            .update(&0_u32.to_ne_bytes(), &bytes, MapFlags::ANY)
            .connect(|| "cannot set the option".to_owned())
    }

    /// Counters of the run.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.loaded.figures()
    }
}
