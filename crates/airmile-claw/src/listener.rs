//! Takes reports over UDP, checks them, and hands them on (docs/claw-feedback.md).

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

/// How long the thread waits until it looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where authenticated reports go.
pub trait ReportSink: Send + Sync {
    /// A report that is of the key and new. `alone`: no other session is at its address,
    /// so that connections from there are its. Gives for how many it was used.
    fn on_report(&self, report: &AuthenticatedReport, alone: bool) -> usize;
}

/// A socket and its thread; ends with it.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    sessions: Arc<Mutex<Sessions>>,
    /// Datagrams, and bytes of them.
    received: Arc<[AtomicU64; 2]>,
    _worker: Worker,
}

impl Listener {
    /// Starts to listen. Key 0 is `shared`; others are derived from `secret`.
    ///
    /// # Errors
    /// The address cannot be had, or the thread not be started.
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
                    // Who is not there any more asks again.
                    let _ = socket.send_to(&answer, from);
                }
            }
        };
        let worker = Worker::start("reports", StopFlag::new(), run);
        let worker = worker.attempt(|| "cannot start a thread".to_owned())?;
        Ok(Self { address, sessions, received, _worker: worker })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many datagrams came so far, and how many bytes of them, without headers.
    #[must_use]
    pub fn received(&self) -> (u64, u64) {
        let [datagrams, bytes] = &*self.received;
        (datagrams.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
    }

    /// What came so far.
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
    let Some(heard) = taken.report else { return taken.answer };
    let alone = sessions.sessions_at(now_ns, heard.address).nth(1).is_none();
    let status = match (sink.on_report(&heard, alone), heard.moved) {
        (_, true) => ReportStatus::Moved,
        (0, _) => ReportStatus::NoConnection,
        _ => ReportStatus::Used,
    };
    sessions.answer(&heard, status)
}
