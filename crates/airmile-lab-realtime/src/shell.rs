//! Runs a command as the phone, with everything that it needs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;
use std::result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use airmile_emulate::{Bridge, PHONE_ADDRESS, SERVER_ADDRESS, ScenarioError};
use airmile_host::Attempt;
use airmile_host::clock::monotonic_ns;
use airmile_lab::{Clock, LabRun, RealTime, RunWriter, Scenario};

use crate::command::{self, Running, Start};
use crate::engine::{Engine, LaneOf, Left, Port};
use crate::error::{Error, Result};
use crate::events::{RunEvent, end_at_once_on_signal, end_server, wait, watch_signals};
use crate::lateness::Punctuality;
use crate::marking::Marking;
use crate::namespace::Namespace;
use crate::network::{Host, Tcp, lost_packets};
use crate::recorder::{Feed, Recording};
use crate::{privilege, senders, serve, split};

/// Maximum time for a server's command to start listening (chosen here).
const LISTENS_WITHIN: Duration = Duration::from_secs(30);

/// Time from complete setup to the first TTI, in which the cell is created (chosen here:
/// enough for a thousand users).
const LEAD: Duration = Duration::from_millis(20);

/// Options of a run.
#[derive(Debug)]
pub struct Shell {
    /// A scenario's name, or its file.
    pub scenario: String,
    /// Overrides the scenario's seed.
    pub seed: Option<u64>,
    /// The phone's command; none: the user's shell.
    pub command: Vec<OsString>,
    /// A shell command for the server's namespace.
    pub server: Option<String>,
    /// A directory to serve there over HTTP, on port 80 and each port that the scenario's
    /// middlebox intercepts.
    pub serve: Option<PathBuf>,
    /// Further ports for it.
    pub serve_ports: Vec<u16>,
    /// Directory for the run's files, new or empty; absent: no files are written.
    pub output: Option<PathBuf>,
    /// Replace an earlier run in the directory.
    pub force: bool,
    /// The modem marks ECN-capable packets whose uplink took this much longer than the shortest one.
    pub mark_uplink_above: Option<Duration>,
    /// Limit of the 99th percentile of the lateness of TTIs.
    pub late_limit: Duration,
    /// Program and first arguments that run [`inside`](crate::inside()).
    pub launcher: Vec<OsString>,
    /// The command that made the run, for its files.
    pub about: String,
    /// End when the thread that started this process ends.
    pub dies_with_parent: bool,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The command's exit status, or 128 plus the number of the signal that ended the run.
    pub exit_status: u8,
    /// Statistics of the run.
    pub real_time: RealTime,
    /// Its files.
    pub run: Option<LabRun>,
}

/// Runs a command as the phone of a scenario.
///
/// If this process is not root, it enters a user namespace and stays in it; no other thread
/// may be running then.
///
/// # Errors
/// The scenario cannot be run, the system refuses, the server does not start, or files
/// cannot be written.
pub fn shell(options: Shell) -> Result<Ended> {
    if options.dies_with_parent {
        let signal = Some(rustix::process::Signal::TERM);
        rustix::process::set_parent_process_death_signal(signal)
            .attempt(|| "cannot follow the parent".to_owned())?;
    }
    let mut scenario = airmile_lab::load(&options.scenario)?;
    if let Some(seed) = options.seed {
        scenario.seed = seed;
    }
    let serve = options.serve.as_ref().map(fs::canonicalize).transpose();
    let serve = serve.attempt(|| "cannot serve the directory".to_owned())?;
    privilege::acquire()?;
    let network = Network::new(&scenario)?;
    let (events, happened) = mpsc::channel();
    let create =
        |dir: &PathBuf| RunWriter::create(&scenario, dir, options.force, options.about.clone());
    let mut writer = options.output.as_ref().map(create).transpose()?;
    if let Some(dir) = serve.clone() {
        let mut ports = vec![serve::PORT];
        ports.extend(network.boxes.iter().flat_map(|(_, taken)| taken));
        ports.extend(&options.serve_ports);
        serve::serve(&network.server, dir, ports)?;
    }
    let server = match &options.server {
        Some(line) => {
            let log = writer.as_mut().map(RunWriter::server_log).transpose()?;
            Some(network.start_server(&options, line, log, events.clone())?)
        }
        None => None,
    };
    let app_log = writer.as_mut().map(RunWriter::command_log).transpose()?;
    let modem_log = match &mut writer {
        Some(writer) => writer.live_modem_log(&scenario)?,
        None => None,
    };
    let logs = Logs { app: app_log, modem: modem_log };
    let marking = options.mark_uplink_above.map(Marking::new);
    let ends = network.run(&mut scenario, writer, marking)?;
    let launched = watch_signals(events.clone())
        .and_then(|()| ends.network.start_phone(&options, logs, events));
    let (exit_status, server_ended) = match launched {
        Ok(phone) => wait(phone, &happened),
        Err(error) => {
            server.inspect(|server| server.kill());
            return Err(error);
        }
    };
    if let Some(server) = server.filter(|_| server_ended.is_none()) {
        end_server(server, &happened);
    }
    end_at_once_on_signal(happened);
    ends.leave(options, serve, (exit_status, server_ended), &scenario)
}

/// Files that the command may use during the run.
struct Logs {
    /// Log for events of the command.
    app: Option<PathBuf>,
    /// The growing modem log.
    modem: Option<PathBuf>,
}

/// Hosts and boxes of a run.
struct Network {
    phone: Namespace,
    server: Namespace,
    /// Boxes, each with the ports that it intercepts.
    boxes: Vec<(Namespace, Vec<u16>)>,
    ports: Vec<Port>,
}

impl Network {
    fn new(scenario: &Scenario) -> Result<Self> {
        let mut ports = Vec::new();
        let mut host = |name: &'static str, lane: usize, host: Host| -> Result<Namespace> {
            let namespace = Namespace::new(name)?;
            let devices = namespace.run(|| host.set_up())??;
            ports.extend(devices.into_iter().map(|(point, device)| Port { point, lane, device }));
            Ok(namespace)
        };
        let phone = host("phone", 0, Host::phone(scenario.phone_tcp.clone()))?;
        let server = host("server", 0, Host::server(scenario.server_tcp.clone()))?;
        let mut boxes = Vec::new();
        for (lane, (tcp, taken)) in boxes_of(scenario).into_iter().enumerate() {
            let namespace = host("box", lane, Host::middlebox(tcp, taken.clone()))?;
            split::split(&namespace, taken.clone())?;
            boxes.push((namespace, taken));
        }
        Ok(Self { phone, server, boxes, ports })
    }

    /// Starts the server's command and waits until a socket listens.
    fn start_server(
        &self,
        options: &Shell,
        line: &str,
        log: Option<File>,
        events: mpsc::Sender<RunEvent>,
    ) -> Result<Running> {
        let [output, error] = match log {
            Some(file) => {
                let again = file.try_clone().attempt(|| "cannot share a file".to_owned())?;
                [Stdio::from(file), Stdio::from(again)]
            }
            None => [Stdio::null(), Stdio::inherit()],
        };
        let start = Start {
            launcher: options.launcher.clone(),
            words: ["/bin/sh", "-c", line].map(OsString::from).to_vec(),
            environment: environment(options),
            lingers: true,
            stdio: [Stdio::null(), output, error],
        };
        let before = self.server.run(listeners)?;
        let (ended, has_ended) = mpsc::channel();
        let send_status = move |status| {
            let _ = ended.send(status);
            let _ = events.send(RunEvent::Server(status));
        };
        let running = command::start(&self.server, start, send_status)?;
        let fail = |what: String| {
            running.kill();
            Err(Error::Server { command: line.to_owned(), what })
        };
        let until = monotonic_ns() + LISTENS_WITHIN.as_nanos() as i64;
        while self.server.run(listeners)?.is_subset(&before) {
            if let Ok(status) = has_ended.recv_timeout(Duration::from_millis(5)) {
                return fail(format!("ended with status {status}"));
            }
            if monotonic_ns() > until {
                return fail(format!("did not listen within {} s", LISTENS_WITHIN.as_secs()));
            }
        }
        Ok(running)
    }

    fn start_phone(
        &self,
        options: &Shell,
        logs: Logs,
        events: mpsc::Sender<RunEvent>,
    ) -> Result<Running> {
        let words = if options.command.is_empty() {
            vec![std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())]
        } else {
            options.command.clone()
        };
        let mut environment = environment(options);
        environment.extend(logs.app.map(|path| ("AIRMILE_APP_LOG", path.into())));
        environment.extend(logs.modem.map(|path| ("AIRMILE_MODEM_LOG", path.into())));
        let start = Start {
            launcher: options.launcher.clone(),
            words,
            environment,
            lingers: false,
            stdio: [Stdio::inherit(), Stdio::inherit(), Stdio::inherit()],
        };
        command::start(&self.phone, start, move |status| {
            let _ = events.send(RunEvent::Phone(status));
        })
    }

    /// Starts the clock, and writes the start time to the scenario.
    fn run(
        mut self,
        scenario: &mut Scenario,
        writer: Option<RunWriter>,
        marking: Option<Marking>,
    ) -> Result<Ends> {
        let slot_ns = Bridge::new(scenario).map_err(unusable)?.slot_ns();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + LEAD;
        // The first TTI starts at a whole millisecond of the system clock.
        let start_wall_ns = (wall.as_millis() as i64 + 1) * 1_000_000;
        let start_ns =
            monotonic_ns() + start_wall_ns - wall.as_nanos() as i64 + LEAD.as_nanos() as i64;
        scenario.epoch_ns = start_wall_ns - i64::from(scenario.first_tti) * slot_ns;
        let slot = Duration::from_nanos(slot_ns.unsigned_abs());
        let punctuality = Punctuality::new(slot).ok_or(Error::Thread("the engine"))?;
        let (feed, recording) = match writer {
            Some(writer) => {
                let (feed, recording) = Feed::into(writer)?;
                (feed, Some(recording))
            }
            None => (Feed::none(), None),
        };
        let feed = feed.with_marking(marking);
        let tail_ms = if feed.keeps() { scenario.tail_ms } else { 0 };
        let stop = Arc::new(AtomicBool::new(false));
        let clock = senders::RunClock { monotonic_ns: start_ns, wall_ns: start_wall_ns };
        let mut watchers = Vec::new();
        if let Some(out) = feed.senders() {
            let boxes = self.boxes.iter().map(|(namespace, _)| namespace);
            for namespace in [&self.phone, &self.server].into_iter().chain(boxes) {
                let (out, stop) = (out.clone(), stop.clone());
                watchers.push(senders::watch(namespace, clock, out, stop)?);
            }
        }
        let engine = Engine {
            scenario: scenario.clone(),
            ports: std::mem::take(&mut self.ports),
            lane_of: self.lane_of(),
            punctuality,
            feed,
            start_ns,
            tail: Duration::from_millis(tail_ms.into()),
            stop: stop.clone(),
        };
        let engine = thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || engine.run())
            .attempt(|| "cannot start the engine's thread".to_owned())?;
        Ok(Ends { network: self, engine, watchers, recording, stop })
    }

    /// Index of the box that handles a port's connections. Traffic to a port that no box
    /// intercepts passes through the first.
    fn lane_of(&self) -> LaneOf {
        let taken: Vec<Vec<u16>> = self.boxes.iter().map(|(_, taken)| taken.clone()).collect();
        Box::new(move |port| taken.iter().position(|ports| ports.contains(&port)).unwrap_or(0))
    }

    /// Packets dropped by full devices.
    fn lost_packets(&self) -> Result<u64> {
        let boxes = self.boxes.iter().map(|(namespace, _)| namespace);
        let mut lost = 0;
        for namespace in [&self.phone, &self.server].into_iter().chain(boxes) {
            lost += namespace.run(lost_packets)??;
        }
        Ok(lost)
    }
}

/// The boxes of a scenario. The kernel's restart setting applies to a whole namespace:
/// ports with and without it need two boxes.
fn boxes_of(scenario: &Scenario) -> Vec<(Tcp, Vec<u16>)> {
    let Some(config) = &scenario.proxy else { return Vec::new() };
    let with = |restart: bool| {
        let ports = config.ports.iter().filter(|port| port.slow_start_after_idle == restart);
        let tcp = Tcp {
            slow_start_after_idle: restart,
            send_buffer_bytes: config.buffer_bytes,
            ..config.tcp.clone()
        };
        (tcp, ports.map(|port| port.port).collect::<Vec<u16>>())
    };
    let mut boxes = vec![with(true), with(false)];
    boxes.retain(|(_, ports)| !ports.is_empty());
    if boxes.is_empty() {
        boxes.push(with(true));
    }
    boxes
}

fn unusable(error: ScenarioError) -> Error {
    Error::Lab(airmile::Error::Option(format!("the scenario cannot be run: {error}")))
}

/// Environment variables for the commands.
fn environment(options: &Shell) -> Vec<(&'static str, OsString)> {
    let mut all = vec![
        ("AIRMILE_SERVER", SERVER_ADDRESS.to_string().into()),
        ("AIRMILE_PHONE", PHONE_ADDRESS.to_string().into()),
        ("AIRMILE_SCENARIO", options.scenario.clone().into()),
    ];
    if options.serve.is_some() {
        all.push(("AIRMILE_URL", format!("http://{SERVER_ADDRESS}/").into()));
    }
    all
}

/// TCP sockets that listen in the caller's namespace, and bound UDP sockets, by address.
fn listeners() -> BTreeSet<String> {
    /// TCP_LISTEN of the kernel's tcp_states.h.
    const LISTEN: &str = "0A";
    let mut found = BTreeSet::new();
    for file in ["tcp", "tcp6", "udp", "udp6"] {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            if let (Some(local), Some(state)) = (words.nth(1), words.nth(1))
                && (state == LISTEN || file.starts_with("udp") && local.contains(':'))
            {
                found.insert(format!("{file} {local}"));
            }
        }
    }
    found
}

/// A run in progress.
struct Ends {
    network: Network,
    engine: JoinHandle<result::Result<Left, ScenarioError>>,
    /// Watchers of the senders' state.
    watchers: Vec<JoinHandle<()>>,
    recording: Option<Recording>,
    stop: Arc<AtomicBool>,
}

impl Ends {
    /// Stops the clock and writes the run's files.
    fn leave(
        self,
        options: Shell,
        serve: Option<PathBuf>,
        (exit_status, server_exit_status): (u8, Option<u8>),
        scenario: &Scenario,
    ) -> Result<Ended> {
        self.stop.store(true, Ordering::Relaxed);
        let left = self.engine.join().map_err(|_| Error::Thread("the engine"))?;
        let left = left.map_err(unusable)?;
        for watcher in self.watchers {
            watcher.join().map_err(|_| Error::Thread("the watcher of senders"))?;
        }
        let (lateness, late_ttis) = left.punctuality.finish(options.late_limit);
        let real_time = RealTime {
            command: options.command.iter().map(|word| word.display().to_string()).collect(),
            server: options.server,
            serve: serve.map(|dir| dir.display().to_string()),
            exit_status,
            server_exit_status,
            valid: lateness.is_valid(),
            lateness,
            late_ttis,
            load_average: load_average(),
            not_ipv4: left.not_ipv4,
            lost_at_device: self.network.lost_packets()?,
        };
        let run = match self.recording {
            Some(recording) => {
                let clock = Clock::Real(Box::new(real_time.clone()));
                let writer = recording.finish()?;
                Some(writer.finish(scenario, &left.outcome, Vec::new(), clock)?)
            }
            None => None,
        };
        Ok(Ended { exit_status, real_time, run })
    }
}

/// Load averages of the machine (proc(5)).
fn load_average() -> Option<[f64; 3]> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

#[cfg(test)]
mod tests {
    use airmile_emulate::proxy::{ProxyConfig, ProxyPort};

    use super::*;

    #[test]
    fn ports_with_and_without_the_restart_are_two_boxes() {
        let check = |ports: &[(u16, bool)], boxes: &[(bool, &[u16])]| {
            let port = |&(port, slow_start_after_idle)| ProxyPort { port, slow_start_after_idle };
            let ports = ports.iter().map(port).collect();
            let proxy = Some(ProxyConfig { ports, ..ProxyConfig::default() });
            let got = boxes_of(&Scenario { proxy, ..Scenario::default() });
            let got: Vec<_> =
                got.iter().map(|(tcp, ports)| (tcp.slow_start_after_idle, &ports[..])).collect();
            assert_eq!(got, boxes);
        };
        check(&[], &[(true, &[])]);
        check(&[(443, true), (80, true)], &[(true, &[443, 80])]);
        check(&[(443, true), (7777, false)], &[(true, &[443]), (false, &[7777])]);
        assert!(boxes_of(&Scenario::default()).is_empty());
    }
}
