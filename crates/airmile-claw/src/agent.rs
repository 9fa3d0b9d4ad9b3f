//! The phone's side: what a live modem log says of the cell, in reports.

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

/// Nothing from the modem for so long: it is away, and the radio taken for idle.
const AWAY: Duration = Duration::from_millis(500);

/// A modem away for so long: its reports end, and the server goes on as without (chosen
/// here: as long as an idle radio's word stands).
const GONE: Duration = Duration::from_secs(10);

/// The round trip that windows are for before any is known (chosen here: an LTE network's
/// to a near server).
const USUAL_RTT_NS: i64 = 50_000_000;

/// Gives reports.
pub trait Reports: Send + Sync {
    /// The report of now, for a round trip of so many nanoseconds; `None`: there is
    /// nothing to say. `used`: the server's window is by these.
    fn report(&self, rtt_ns: i64, used: bool) -> Option<FeedbackReport>;

    /// Why there is nothing to say, where there is nothing.
    fn why_none(&self) -> Option<String> {
        None
    }

    /// Whether nothing will come any more.
    fn has_ended(&self) -> bool {
        false
    }
}

/// The same report again and again, to try things out.
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
    /// When bytes last came.
    heard: Option<Instant>,
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
        let inner = ModemState { cell: LiveCell::new(), heard: None, state, ended: false };
        let inner = Arc::new(Mutex::new(inner));
        let (its_inner, name) = (inner.clone(), source.name());
        let read = move |stop: &StopFlag| {
            while !stop.is_set() {
                let piece = pieces.next_within(AWAY);
                let mut inner = lock(&its_inner);
                match piece {
                    Ok(LogPiece::Bytes(bytes)) => {
                        inner.cell.push(&bytes);
                        inner.heard = Some(Instant::now());
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

    /// How the source is, in words.
    #[must_use]
    pub fn state(&self) -> String {
        lock(&self.inner).state.clone()
    }
}

impl Reports for Modem {
    fn report(&self, rtt_ns: i64, used: bool) -> Option<FeedbackReport> {
        let mut inner = lock(&self.inner);
        let since = inner.heard?.elapsed();
        (since < GONE).then(|| inner.cell.look(rtt_ns, since > AWAY, used)).flatten()
    }

    fn why_none(&self) -> Option<String> {
        let inner = lock(&self.inner);
        if inner.heard.is_none() {
            return Some(format!("nothing has come from the modem; {}", inner.state));
        }
        Some(inner.cell.why_none().unwrap_or("nothing comes from the modem any more").to_owned())
    }

    fn has_ended(&self) -> bool {
        lock(&self.inner).ended
    }
}

/// What an agent does, for who watches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reported {
    /// Number of the report.
    pub n: u64,
    /// The window in bytes.
    pub w_claw_bytes: u32,
    /// Share of the cell that is taken.
    pub load: f64,
    /// Where the bottleneck is.
    pub bottleneck: &'static str,
    /// The radio is idle.
    pub idle: bool,
    /// Packets that the radio lost.
    pub radio_losses: u32,
    /// Packets that were lost before it.
    pub queue_losses: u32,
    /// Least round trip to the server in ms.
    pub rtt_ms: Option<f64>,
    /// The session, by which a page's address can name it: `?claw=`.
    pub session: Option<String>,
    /// What the server does with it.
    pub status: &'static str,
    /// How long it took to make the report, in µs.
    pub took_us: u64,
    /// Datagrams sent so far, hellos among them.
    pub sent: u64,
    /// Bytes of them, without the headers of UDP and IP.
    pub sent_bytes: u64,
    /// Answers so far.
    pub heard: u64,
    /// Bytes of them, without headers.
    pub heard_bytes: u64,
    /// Since the first, in ms.
    pub time_ms: u32,
}

/// Where reports go, and how often.
#[derive(Debug)]
pub struct AgentOptions {
    /// The server's port of reports.
    pub to: SocketAddr,
    /// The key, and its number.
    pub key: (FeedbackKey, u64),
    /// How often.
    pub every: Duration,
    /// The round trip that windows are for, in place of the measured one.
    pub rtt_ns: Option<i64>,
}

impl AgentOptions {
    /// With what is usual.
    #[must_use]
    pub const fn new(to: SocketAddr, key: FeedbackKey, key_id: u64) -> Self {
        let every = Duration::from_nanos(REPORT_EVERY_NS.unsigned_abs());
        Self { to, key: (key, key_id), every, rtt_ns: None }
    }
}

/// Sends reports until there are none any more, or `stop` says so.
///
/// # Errors
/// There is no way to the server, or no random bytes.
pub fn report(
    options: &AgentOptions,
    reports: &dyn Reports,
    stop: &AtomicBool,
    on_report: &mut dyn FnMut(&Reported),
) -> Result<()> {
    if options.every.is_zero() {
        return Err(Error::Option("reports need some time in between".to_owned()));
    }
    let to = options.to;
    let any: SocketAddr =
        if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).attempt(|| "cannot get a socket".to_owned())?;
    socket.connect(to).attempt(|| format!("cannot reach {to}"))?;
    let (key, key_id) = options.key.clone();
    let mut reporter = FeedbackReporter::new(key, key_id, u64::from_be_bytes(keys::random()?));
    let begun = Instant::now();
    let mut due = begun;
    let mut n = 0;
    let (mut sent, mut heard) = ((0, 0), (0, 0));
    while !stop.load(Ordering::Relaxed) && !reports.has_ended() {
        let now = Instant::now();
        if now < due {
            if let Some(bytes) = hear(&socket, &mut reporter, due - now) {
                heard = (heard.0 + 1, heard.1 + bytes as u64);
            }
            continue;
        }
        // Late ones are left out: only the latest counts.
        due = (due + options.every).max(now);
        let rtt_ns = options.rtt_ns.or(reporter.min_rtt_ns()).unwrap_or(USUAL_RTT_NS);
        let report = reports.report(rtt_ns, reporter.status() == Some(ReportStatus::Used));
        let took_us = u64::try_from(now.elapsed().as_micros()).unwrap_or(u64::MAX);
        let Some(report) = report else { continue };
        let time_ms = begun.elapsed().as_millis() as u32;
        let datagram = reporter.send(now_since_start_ns(), &FeedbackReport { time_ms, ..report });
        // A network that is away comes back.
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
            heard: heard.0,
            heard_bytes: heard.1,
            time_ms,
        });
    }
    Ok(())
}

/// Takes an answer, or waits for a while; gives the bytes of the server's answer.
fn hear(socket: &UdpSocket, reporter: &mut FeedbackReporter, wait: Duration) -> Option<usize> {
    let mut buffer = [0; 2_048];
    // A zero would be for ever.
    let wait = wait.max(Duration::from_millis(1));
    socket.set_read_timeout(Some(wait)).ok()?;
    match socket.recv(&mut buffer) {
        // What is not the server's is left out.
        Ok(bytes) => {
            let datagram = buffer.get(..bytes).unwrap_or_default();
            reporter.ingest(now_since_start_ns(), datagram).ok().map(|_| bytes)
        }
        // A server that is not there (yet) answers by ICMP, at once.
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            thread::sleep(wait);
            None
        }
        Err(_) => None,
    }
}
