//! Rate and queue of the uplink for other programs (cake-autorate, SQM, a home's MQTT broker),
//! which own the queueing themselves.

mod mqtt;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use airmile_host::thread::StopFlag;
use airmile_host::{Attempt, files};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::instance::{StateFile, SystemChange};
use crate::kernel::{Host, UBUS, find_program};
use crate::options::PublishTo;
use crate::serve::Published;
use crate::status::GateStatus;

/// A file is replaced as often as a status is made (chosen there).
const FILE_EVERY: Duration = Duration::from_millis(200);
/// Events and messages (chosen here: each event is a process of its own).
const EVENT_EVERY: Duration = Duration::from_secs(1);
/// A broker that cannot be reached is tried again after this (chosen here).
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The reason why a connection ended that lasted longer is told again (chosen here).
const REMEMBERED_FOR: Duration = Duration::from_secs(60);
/// Time for the last message and the end of a connection (chosen here).
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// The name of events on OpenWrt's bus.
const UBUS_EVENT: &str = "airmile.qcut";

/// What others need of a status: no addresses of whom anybody talks to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct UplinkReport<'a> {
    interface: &'a str,
    /// Unix time in s.
    at_s: f64,
    /// Whether anything shows rate and queue now.
    is_known: bool,
    /// `modem` or `round_trips`.
    evidence: &'a str,
    rate_kbps: u64,
    queue_bytes: u64,
    queue_delay_ms: Option<f64>,
    limit_bytes: u64,
}

impl<'a> UplinkReport<'a> {
    fn of(status: &'a GateStatus) -> Self {
        Self {
            interface: &status.interface,
            at_s: status.at_s,
            is_known: status.is_known,
            evidence: &status.evidence,
            rate_kbps: status.rate_bps / 1_000,
            queue_bytes: status.occupancy_bytes,
            queue_delay_ms: status.queue_delay_ms,
            limit_bytes: status.limit_bytes,
        }
    }
}

/// Publishes until it is dropped; files go with it.
#[derive(Debug)]
pub(crate) struct Publisher {
    stop: StopFlag,
    threads: Vec<JoinHandle<()>>,
    files: Vec<PathBuf>,
}

impl Publisher {
    /// Starts a thread for each target; `notify` receives messages for the user.
    pub(crate) fn start(
        targets: &[PublishTo],
        published: &Published,
        state: &mut StateFile,
        notify: &Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Self> {
        let mut publisher = Self { stop: StopFlag::new(), threads: Vec::new(), files: Vec::new() };
        for target in targets {
            let (published, stop) = (published.clone(), publisher.stop.clone());
            let thread = match target.clone() {
                PublishTo::File(path) => {
                    state.add(SystemChange::File { path: files::part_of(&path) })?;
                    state.add(SystemChange::File { path: path.clone() })?;
                    // At once: a path that cannot be written is an error now.
                    if let Err(error) = replace(&path, &published.now()) {
                        // What is there is another's.
                        state.forget_last()?;
                        Err(error).attempt(|| format!("cannot publish to {}", path.display()))?;
                    }
                    publisher.files.push(path.clone());
                    start(move || {
                        each(&stop, FILE_EVERY, || drop(replace(&path, &published.now())));
                    })
                }
                PublishTo::Ubus => {
                    if find_program("ubus").is_none() {
                        let remedy = Host::here().remedy(UBUS);
                        return Err(Error::Unfit(format!("--publish ubus needs {remedy}")));
                    }
                    start(move || each(&stop, EVENT_EVERY, || send_event(&published.now())))
                }
                PublishTo::Mqtt { host, port, topic } => {
                    let notify = Arc::clone(notify);
                    start(move || {
                        publish_messages(&stop, (&host, port), &topic, &published, &*notify);
                    })
                }
            };
            publisher.threads.push(thread?);
        }
        Ok(publisher)
    }
}

fn start(run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = thread::Builder::new().name("publish".to_owned()).spawn(run);
    Ok(thread.attempt(|| "cannot start a thread".to_owned())?)
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.stop.set();
        self.threads.iter().for_each(|each| each.thread().unpark());
        // One that waits for a broker or the bus ends with the process.
        let until = Instant::now() + ENDS_WITHIN;
        while Instant::now() < until && !self.threads.iter().all(JoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(5));
        }
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
    }
}

/// Does something each so often until it is time to stop.
fn each(stop: &StopFlag, every: Duration, mut run: impl FnMut()) {
    while !stop.is_set() {
        run();
        thread::park_timeout(every);
    }
}

/// The whole status, replaced at once. Only its user reads it: it names who waits.
fn replace(path: &Path, status: &GateStatus) -> io::Result<()> {
    let text = serde_json::to_vec(status)?;
    files::replace(path, 0o600, |file| file.write_all(&text))
}

/// An event. That nobody listens is no error, and a bus that is away may come back.
fn send_event(status: &GateStatus) {
    let Ok(text) = serde_json::to_string(&UplinkReport::of(status)) else { return };
    let mut command = Command::new("ubus");
    command.args(["-t", "1", "send", UBUS_EVENT, &text]);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

fn publish_messages(
    stop: &StopFlag,
    to: (&str, u16),
    topic: &str,
    published: &Published,
    notify: &dyn Fn(&str),
) {
    let mut reason = String::new();
    while !stop.is_set() {
        let begun = Instant::now();
        let sent = mqtt::Connection::open(to).and_then(|mut broker| {
            while !stop.is_set() {
                let status = published.now();
                broker.publish(topic, &serde_json::to_vec(&UplinkReport::of(&status))?)?;
                thread::park_timeout(EVENT_EVERY);
            }
            Ok(())
        });
        let Err(error) = sent else { return };
        // Each reason once: the broker may stay away for hours.
        let why = error.to_string();
        if why != reason || begun.elapsed() > REMEMBERED_FOR {
            let (host, port) = to;
            notify(&format!("--publish mqtt: {host}, port {port}: {why}"));
            reason = why;
        }
        thread::park_timeout(AGAIN_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;
    use crate::watch::tests::status;

    #[test]
    fn a_file_is_replaced_and_goes_with_the_instance() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("uplink.json");
        let other = dir.path().join("uplink.new");
        let state_dir = tempfile::tempdir().unwrap();
        let mut state = StateFile::of_test(state_dir.path(), Vec::new());
        fs::write(&other, "another program's").unwrap();
        let published = Published::default();
        let publisher = start_to(PublishTo::File(path.clone()), &published, &mut state).unwrap();
        published.set(status());
        let read = || serde_json::from_slice::<GateStatus>(&fs::read(&path).unwrap()).unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while read() != status() {
            assert!(std::time::Instant::now() < until, "{:?}", read());
            thread::sleep(Duration::from_millis(20));
        }
        drop(publisher);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(&other).unwrap(), "another program's");
        let nowhere = PublishTo::File("/proc/none/x".into());
        assert!(start_to(nowhere, &published, &mut state).is_err());
    }

    fn start_to(
        target: PublishTo,
        published: &Published,
        state: &mut StateFile,
    ) -> Result<Publisher> {
        let silent: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
        Publisher::start(&[target], published, state, &silent)
    }

    #[test]
    fn a_file_is_a_change_that_others_undo() {
        let dir = tempfile::tempdir().unwrap();
        let mut state = StateFile::of_test(dir.path(), Vec::new());
        let path = dir.path().join("uplink.json");
        let file = PublishTo::File(path.clone());
        drop(start_to(file, &Published::default(), &mut state).unwrap());
        // Both are there if the process was killed.
        let part = files::part_of(&path);
        for left in [&path, &part] {
            fs::write(left, "").unwrap();
        }
        assert_eq!(state.undo(), [""; 0]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // What could not be replaced is not removed.
        let mut state = StateFile::of_test(dir.path(), Vec::new());
        fs::create_dir(&path).unwrap();
        let taken = PublishTo::File(path.clone());
        assert!(start_to(taken, &Published::default(), &mut state).is_err());
        assert_eq!(state.undo(), [""; 0]);
        assert!(path.exists());
    }

    #[test]
    fn a_broker_that_refuses_is_told_of_once() {
        // Answers to CONNECT, then the end of the connection.
        let (mut told, stop) = (Vec::new(), StopFlag::new());
        let broker = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = broker.local_addr().unwrap().port();
        let answering = thread::spawn({
            let stop = stop.clone();
            let answers: [&[u8]; 4] =
                [&[0x20, 2, 0, 5], &[0x20, 2, 0, 4], b"HTTP", &[0x20, 2, 0, 3]];
            move || {
                for (n, answer) in answers.iter().enumerate() {
                    let (mut stream, _) = broker.accept().unwrap();
                    if n + 1 == answers.len() {
                        stop.set();
                    }
                    stream.write_all(answer).unwrap();
                    let _ = stream.read_to_end(&mut Vec::new());
                }
            }
        });
        let published = Published::default();
        let told_by = std::sync::Mutex::new(&mut told);
        let (ours, done) = (thread::current(), StopFlag::new());
        // Wakes the publishing thread from its pauses.
        let waking = thread::spawn({
            let done = done.clone();
            move || {
                while !done.is_set() {
                    ours.unpark();
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
        publish_messages(&stop, ("127.0.0.1", port), "a", &published, &|words| {
            told_by.lock().unwrap().push(words.to_owned());
        });
        done.set();
        waking.join().unwrap();
        answering.join().unwrap();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("AIRMILE_MQTT_PASSWORD"), "{told:?}");
        assert!(told[1].contains("does not accept MQTT"), "{told:?}");
    }

    #[test]
    fn a_connection_to_a_broker_is_ended() {
        let broker = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = broker.local_addr().unwrap().port();
        let (host, topic) = ("127.0.0.1".to_owned(), "a".to_owned());
        let target = PublishTo::Mqtt { host, port, topic };
        let mut state = StateFile::of_test(Path::new("/nonexistent"), Vec::new());
        let publisher = start_to(target, &Published::default(), &mut state).unwrap();
        let (mut stream, _) = broker.accept().unwrap();
        stream.write_all(&[0x20, 2, 0, 0]).unwrap();
        // CONNECT has less than 64 bytes; the first message more.
        let mut got = vec![0; 128];
        stream.read_exact(&mut got).unwrap();
        drop(publisher);
        stream.read_to_end(&mut got).unwrap();
        // DISCONNECT.
        assert!(got.ends_with(&[0xe0, 0]), "{got:x?}");
    }

    #[test]
    fn a_report_has_what_a_shaper_needs_and_no_addresses() {
        let mut status = status();
        status.waiting = vec![crate::status::WaitingHost {
            to: "192.0.2.7".to_owned(),
            packets: 1,
            bytes: 1_500,
        }];
        let text = serde_json::to_string(&UplinkReport::of(&status)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["rate_kbps"], 6_000);
        assert_eq!(value["queue_bytes"], 12_000);
        assert!(!text.contains("192.0.2"), "{text}");
    }
}
