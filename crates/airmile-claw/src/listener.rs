//! Receives reports over UDP, checks them, and passes them on (docs/claw-feedback.md).

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airmile_control::claw::feedback::{
    AuthenticatedReport, FeedbackKey, ReportStatus, SessionCounts, SessionOptions, Sessions,
};
use airmile_host::Attempt;
use airmile_host::clock::now_since_start_ns;
use airmile_host::thread::{StopFlag, Worker, lock};

use crate::error::Result;

/// How often the thread checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Receiver of authenticated reports.
pub trait ReportSink: Send + Sync {
    /// Processes an authentic new report. `alone`: no other session exists at its address,
    /// so the connections from there belong to it. Returns the number of connections that
    /// use it.
    fn on_report(&self, report: &AuthenticatedReport, alone: bool) -> usize;
}

/// A socket and its thread, which stops when this is dropped.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    sessions: Arc<Mutex<Sessions>>,
    /// Datagrams received, and their bytes.
    received: Arc<[AtomicU64; 2]>,
    _worker: Worker,
}

impl Listener {
    /// Starts to listen. Key 0 is `shared`; the others are derived from `secret`.
    ///
    /// # Errors
    /// The address cannot be bound, or the thread cannot be started.
    pub fn start(
        bind: SocketAddr,
        secret: FeedbackKey,
        shared: Option<FeedbackKey>,
        sink: Arc<dyn ReportSink>,
    ) -> Result<Self> {
        let socket = UdpSocket::bind(bind).attempt(|| format!("cannot listen at {bind} (UDP)"))?;
        socket.set_read_timeout(Some(LOOK_EVERY)).attempt(|| "a socket".to_owned())?;
        let address = socket.local_addr().attempt(|| "a socket".to_owned())?;
        let options = SessionOptions::default();
        let sessions = Arc::new(Mutex::new(Sessions::new(secret, shared, options)));
        let received = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let (its_sessions, its_received) = (sessions.clone(), received.clone());
        let run = move |stop: &StopFlag| {
            let mut buffer = [0; 2_048];
            while !stop.is_set() {
                let Ok((bytes, from)) = socket.recv_from(&mut buffer) else { continue };
                let datagram = buffer.get(..bytes).unwrap_or_default();
                its_received[0].fetch_add(1, Ordering::Relaxed);
                its_received[1].fetch_add(bytes as u64, Ordering::Relaxed);
                if let Some(answer) = take(&its_sessions, datagram, from, &*sink) {
                    // A client that misses the answer asks again.
                    let _ = socket.send_to(&answer, from);
                }
            }
        };
        let worker = Worker::start("reports", StopFlag::new(), run);
        let worker = worker.attempt(|| "cannot start a thread".to_owned())?;
        Ok(Self { address, sessions, received, _worker: worker })
    }

    /// The bound address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Datagrams received so far, and their bytes without headers.
    #[must_use]
    pub fn received(&self) -> (u64, u64) {
        let [datagrams, bytes] = &*self.received;
        (datagrams.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
    }

    /// Counts of datagrams by their outcome.
    #[must_use]
    pub fn counts(&self) -> SessionCounts {
        lock(&self.sessions).counts()
    }
}

fn take(
    sessions: &Mutex<Sessions>,
    datagram: &[u8],
    from: SocketAddr,
    sink: &dyn ReportSink,
) -> Option<Vec<u8>> {
    let now_ns = now_since_start_ns();
    let mut sessions = lock(sessions);
    let taken = sessions.ingest(now_ns, from.ip(), datagram);
    let Some(accepted) = taken.report else { return taken.answer };
    let alone = sessions.sessions_at(now_ns, accepted.address).nth(1).is_none();
    let status = match (sink.on_report(&accepted, alone), accepted.moved) {
        (_, true) => ReportStatus::Moved,
        (0, _) => ReportStatus::NoConnection,
        _ => ReportStatus::Used,
    };
    sessions.answer(&accepted, status)
}
