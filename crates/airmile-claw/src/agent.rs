//! The phone's side: reports from a live modem log.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use airmile_control::claw::Bottleneck;
use airmile_control::claw::feedback::{
    FeedbackKey, FeedbackReport, FeedbackReporter, REPORT_EVERY_NS, ReportStatus,
};
use airmile_host::Attempt;
use airmile_host::clock::now_since_start_ns;
use airmile_host::source::{LogPiece, LogReader, LogSource};
use airmile_host::thread::lock;
use airmile_host::thread::{StopFlag, Worker};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::keys;
use crate::live_cell::LiveCell;

/// After this time without data the modem counts as away, and the radio as idle.
const AWAY: Duration = Duration::from_millis(500);

/// After this time without data the reports end, and the server continues without feedback
/// (chosen here: the validity of an idle radio's report).
const GONE: Duration = Duration::from_secs(10);

/// RTT assumed for windows before one is known (chosen here: an LTE network with a nearby
/// server).
const USUAL_RTT_NS: i64 = 50_000_000;

/// Source of reports.
pub trait Reports: Send + Sync {
    /// The current report, for a round trip of `rtt_ns`; `None`: nothing to report. `used`:
    /// the server's window follows these reports.
    fn report(&self, rtt_ns: i64, used: bool) -> Option<FeedbackReport>;

    /// The reason for a missing report, if any.
    fn why_none(&self) -> Option<String> {
        None
    }

    /// Whether the source has ended.
    fn has_ended(&self) -> bool {
        false
    }
}

/// A constant report, for experiments.
#[derive(Debug, Clone, Copy)]
pub struct Fixed(pub FeedbackReport);

impl Reports for Fixed {
    fn report(&self, _: i64, _: bool) -> Option<FeedbackReport> {
        Some(self.0)
    }
}

/// A live modem log, read by a thread of its own.
#[derive(Debug)]
pub struct Modem {
    inner: Arc<Mutex<ModemState>>,
    _worker: Worker,
}

#[derive(Debug)]
struct ModemState {
    cell: LiveCell,
    /// When data last arrived.
    received: Option<Instant>,
    state: String,
    ended: bool,
}

impl Modem {
    /// Starts to read.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(source: &LogSource) -> Result<Self> {
        let pieces = LogReader::of(source).attempt(|| "cannot start a thread".to_owned())?;
        let state = format!("{}: starting", source.name());
        let inner = ModemState { cell: LiveCell::new(), received: None, state, ended: false };
        let inner = Arc::new(Mutex::new(inner));
        let (its_inner, name) = (inner.clone(), source.name());
        let read = move |stop: &StopFlag| {
            while !stop.is_set() {
                let piece = pieces.next_within(AWAY);
                let mut inner = lock(&its_inner);
                match piece {
                    Ok(LogPiece::Bytes(bytes)) => {
                        inner.cell.push(&bytes);
                        inner.received = Some(Instant::now());
                    }
                    Ok(LogPiece::Gap) => inner.cell.note_gap(),
                    Ok(LogPiece::State(state)) => inner.state = format!("{name}: {state:?}"),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        inner.ended = true;
                        return;
                    }
                }
            }
        };
        let worker = Worker::start("modem", StopFlag::new(), read);
        Ok(Self { inner, _worker: worker.attempt(|| "cannot start a thread".to_owned())? })
    }

    /// State of the source, for display.
    #[must_use]
    pub fn state(&self) -> String {
        lock(&self.inner).state.clone()
    }
}

impl Reports for Modem {
    fn report(&self, rtt_ns: i64, used: bool) -> Option<FeedbackReport> {
        let mut inner = lock(&self.inner);
        let since = inner.received?.elapsed();
        (since < GONE).then(|| inner.cell.look(rtt_ns, since > AWAY, used)).flatten()
    }

    fn why_none(&self) -> Option<String> {
        let inner = lock(&self.inner);
        if inner.received.is_none() {
            return Some(format!("no data from the modem; {}", inner.state));
        }
        Some(inner.cell.why_none().unwrap_or("no more data from the modem").to_owned())
    }

    fn has_ended(&self) -> bool {
        lock(&self.inner).ended
    }
}

/// State of an agent, for monitoring.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reported {
    /// Number of the report.
    pub n: u64,
    /// The window in bytes.
    pub w_claw_bytes: u32,
    /// Share of the cell's PRBs in use.
    pub load: f64,
    /// Where the bottleneck is.
    pub bottleneck: &'static str,
    /// The radio is idle.
    pub idle: bool,
    /// Packets lost by the radio.
    pub radio_losses: u32,
    /// Packets lost before the radio.
    pub queue_losses: u32,
    /// Minimum RTT to the server in ms.
    pub rtt_ms: Option<f64>,
    /// The session, which a page's address can name: `?claw=`.
    pub session: Option<String>,
    /// What the server does with the report.
    pub status: &'static str,
    /// Time taken to create the report, in µs.
    pub took_us: u64,
    /// Datagrams sent so far, including hellos.
    pub sent: u64,
    /// Their bytes, without the headers of UDP and IP.
    pub sent_bytes: u64,
    /// Answers received so far.
    pub heard: u64,
    /// Their bytes, without headers.
    pub heard_bytes: u64,
    /// Time since the first report, in ms.
    pub time_ms: u32,
}

/// Destination and interval of reports.
#[derive(Debug)]
pub struct AgentOptions {
    /// The server's address for reports.
    pub to: SocketAddr,
    /// The key and its number.
    pub key: (FeedbackKey, u64),
    /// Interval between reports.
    pub every: Duration,
    /// RTT assumed for windows, instead of the measured one.
    pub rtt_ns: Option<i64>,
}

impl AgentOptions {
    /// Default interval and RTT.
    #[must_use]
    pub const fn new(to: SocketAddr, key: FeedbackKey, key_id: u64) -> Self {
        let every = Duration::from_nanos(REPORT_EVERY_NS.unsigned_abs());
        Self { to, key: (key, key_id), every, rtt_ns: None }
    }
}

/// Sends reports until the source ends or `stop` is set.
///
/// # Errors
/// The server cannot be reached, or there are no random bytes.
pub fn report(
    options: &AgentOptions,
    reports: &dyn Reports,
    stop: &AtomicBool,
    on_report: &mut dyn FnMut(&Reported),
) -> Result<()> {
    if options.every.is_zero() {
        return Err(Error::Option("the interval between reports must not be zero".to_owned()));
    }
    let to = options.to;
    let any: SocketAddr =
        if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).attempt(|| "cannot open a socket".to_owned())?;
    socket.connect(to).attempt(|| format!("cannot reach {to}"))?;
    let (key, key_id) = options.key.clone();
    let mut reporter = FeedbackReporter::new(key, key_id, u64::from_be_bytes(keys::random()?));
    let begun = Instant::now();
    let mut due = begun;
    let mut n = 0;
    let (mut sent, mut answers) = ((0, 0), (0, 0));
    while !stop.load(Ordering::Relaxed) && !reports.has_ended() {
        let now = Instant::now();
        if now < due {
            if let Some(bytes) = receive_answer(&socket, &mut reporter, due - now) {
                answers = (answers.0 + 1, answers.1 + bytes as u64);
            }
            continue;
        }
        // Overdue reports are skipped: only the latest counts.
        due = (due + options.every).max(now);
        let rtt_ns = options.rtt_ns.or(reporter.min_rtt_ns()).unwrap_or(USUAL_RTT_NS);
        let report = reports.report(rtt_ns, reporter.status() == Some(ReportStatus::Used));
        let took_us = u64::try_from(now.elapsed().as_micros()).unwrap_or(u64::MAX);
        let Some(report) = report else { continue };
        let time_ms = begun.elapsed().as_millis() as u32;
        let datagram = reporter.send(now_since_start_ns(), &FeedbackReport { time_ms, ..report });
        // A failure is temporary: the network may come back.
        if socket.send(&datagram).is_ok() {
            sent = (sent.0 + 1, sent.1 + datagram.len() as u64);
        }
        n += 1;
        on_report(&Reported {
            n,
            w_claw_bytes: report.w_claw_bytes,
            load: report.load,
            bottleneck: match report.bottleneck {
                Bottleneck::Cellular => "cellular",
                Bottleneck::Wireline => "wireline",
                Bottleneck::Unclear => "unclear",
            },
            idle: report.idle,
            radio_losses: report.radio_losses,
            queue_losses: report.queue_losses,
            rtt_ms: reporter.min_rtt_ns().map(|ns| ns as f64 / 1e6),
            session: reporter.token().map(|token| token.to_string()),
            status: match reporter.status() {
                Some(ReportStatus::Used) => "used",
                Some(ReportStatus::NoConnection) => "no connection",
                Some(ReportStatus::Moved) => "address changed",
                None => "not answered yet",
            },
            took_us,
            sent: sent.0,
            sent_bytes: sent.1,
            heard: answers.0,
            heard_bytes: answers.1,
            time_ms,
        });
    }
    Ok(())
}

/// Waits for an answer; returns the length of the server's answer.
fn receive_answer(
    socket: &UdpSocket,
    reporter: &mut FeedbackReporter,
    wait: Duration,
) -> Option<usize> {
    let mut buffer = [0; 2_048];
    // A zero timeout would wait forever.
    let wait = wait.max(Duration::from_millis(1));
    socket.set_read_timeout(Some(wait)).ok()?;
    match socket.recv(&mut buffer) {
        // Datagrams that are not from the server are ignored.
        Ok(bytes) => {
            let datagram = buffer.get(..bytes).unwrap_or_default();
            reporter.ingest(now_since_start_ns(), datagram).ok().map(|_| bytes)
        }
        // If the server is not running (yet), ICMP reports this at once.
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            thread::sleep(wait);
            None
        }
        Err(_) => None,
    }
}
