//! Server, client and agent over loopback: no root, no network, no waiting for a clock.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use airmile_claw::agent::{AgentOptions, Fixed, report};
use airmile_claw::client::{Fetched, Trust, ask_for_key, get};
use airmile_claw::server::{ServeOptions, Server, ServerEvent, Used, Window};
use airmile_claw::{FeedbackReport, OperatorLimits};
use airmile_control::claw::feedback::{FeedbackKey, FeedbackReporter};

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const BYTES: usize = 3_000_000;

struct Site {
    _dir: tempfile::TempDir,
    server: Server,
    ended: mpsc::Receiver<Used>,
}

fn site(window: Window, limits: OperatorLimits) -> Site {
    let dir = tempfile::tempdir().unwrap();
    let body: Vec<u8> = (0..BYTES).map(|n| (n / 7) as u8).collect();
    std::fs::write(dir.path().join("image.png"), body).unwrap();
    std::fs::write(dir.path().join("index.html"), "<img src=image.png>").unwrap();
    let options = ServeOptions {
        dir: dir.path().to_owned(),
        bind: LOCAL,
        reports: (window == Window::Claw).then_some(LOCAL),
        identity: None,
        names: vec!["localhost".to_owned()],
        shared_key: Some(FeedbackKey::new([5; 32])),
        limits,
        window,
    };
    let (sender, ended) = mpsc::channel();
    let sender = Mutex::new(sender);
    let on_event = Arc::new(move |event: &ServerEvent| {
        if let ServerEvent::Ended { used, .. } = event {
            // The test may have ended.
            let _ = sender.lock().unwrap().send(*used);
        }
    });
    Site { server: Server::start(options, on_event).unwrap(), ended, _dir: dir }
}

impl Site {
    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.server.address().port())
    }

    /// Fetches a file; returns the result and the use of the window.
    fn fetch(&self, path: &str, report: Option<FeedbackReport>) -> (Fetched, Used) {
        let reports = report.map(|report| Arc::new(Fixed(report)) as Arc<_>);
        let fetched = get(&self.url(path), &Trust::Anyone, reports, &mut |_| Ok(())).unwrap();
        let used = self.ended.recv_timeout(Duration::from_secs(60));
        (fetched, used.expect("the connection has ended"))
    }
}

fn free(w_claw_bytes: u32) -> FeedbackReport {
    FeedbackReport { w_claw_bytes, load: 0.1, ..FeedbackReport::default() }
}

#[test]
fn files_arrive_whole_with_each_window() {
    for window in [Window::Claw, Window::Cubic, Window::Bbr, Window::NewReno] {
        let site = site(window, OperatorLimits::default());
        let (fetched, used) = site.fetch("/image.png", None);
        assert_eq!((fetched.status, fetched.bytes), (200, BYTES as u64), "{window:?}");
        // Without a report the window is Cubic's.
        assert_eq!((used.reports, used.acks_with_client_window), (0, 0), "{window:?}");
        let (again, used) = site.fetch("/image.png", Some(free(100_000)));
        assert_eq!(again.sha256, fetched.sha256, "{window:?}");
        assert!(again.reports > 0);
        assert_eq!(used.acks_with_client_window > 0, window == Window::Claw, "{window:?}");
        assert_eq!(site.fetch("/", None).0.bytes, 19);
        assert_eq!(site.fetch("/none", None).0.status, 404);
        assert_eq!(site.fetch("/../Cargo.toml", None).0.status, 404);
    }
}

#[test]
fn reports_on_the_connection_stay_under_the_cap() {
    let limits = OperatorLimits { window_bytes: 40_000, rate_bps: 1_000_000_000 };
    let site = site(Window::Claw, limits);
    for report in [
        free(u32::MAX),
        FeedbackReport { radio_losses: u32::MAX, queue_losses: 7, ..free(u32::MAX) },
        FeedbackReport { time_ms: u32::MAX, ..free(50_000) },
    ] {
        let (fetched, used) = site.fetch("/image.png", Some(report));
        assert_eq!(fetched.bytes, BYTES as u64);
        assert!(used.acks_with_client_window > 0, "{used:?}");
        assert!(used.most_client_window_bytes <= 40_000, "{used:?}");
    }
}

#[test]
fn an_agent_reports_for_a_browser_beside_it() {
    let site =
        site(Window::Claw, OperatorLimits { window_bytes: 50_000, ..OperatorLimits::default() });
    let (key, key_id, to) = ask_for_key(&site.url("/"), &Trust::Anyone).unwrap();
    site.ended.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(Some(to.port()), site.server.reports().map(|at| at.port()));
    let stop = AtomicBool::new(false);
    let mut options = AgentOptions::new(to, key, key_id);
    options.every = Duration::from_millis(20);
    std::thread::scope(|scope| {
        let agent = scope.spawn(|| report(&options, &Fixed(free(600_000)), &stop, &mut |_| {}));
        // A fetch may end before a report arrives.
        let mut all = (0..200).map(|_| site.fetch("/image.png", None).1);
        let limited = all.find(|used| used.acks_with_client_window > 0);
        stop.store(true, Ordering::Relaxed);
        agent.join().unwrap().unwrap();
        let limited = limited.expect("a report that was used");
        assert!(limited.most_client_window_bytes <= 50_000, "{limited:?}");
    });
}

#[test]
fn what_is_forged_or_repeated_changes_nothing() {
    let site = site(Window::Claw, OperatorLimits::default());
    let to = site.server.reports().unwrap();
    let socket = UdpSocket::bind(LOCAL).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut buffer = [0; 256];
    // A client with the key sends a hello and one report.
    let mut reporter = FeedbackReporter::new(FeedbackKey::new([5; 32]), 0, 1);
    socket.send(&reporter.send(0, &free(1_000_000))).unwrap();
    let bytes = socket.recv(&mut buffer).unwrap();
    reporter.ingest(1, &buffer[..bytes]).unwrap();
    let good = reporter.send(2, &free(1_000_000));
    socket.send(&good).unwrap();
    let bytes = socket.recv(&mut buffer).unwrap();
    reporter.ingest(3, &buffer[..bytes]).unwrap();
    // A client without the key, and one that replays a datagram.
    let mut stranger = FeedbackReporter::new(FeedbackKey::new([6; 32]), 0, 1);
    for n in 0..300_usize {
        let mut forged = good.clone();
        forged[n % good.len()] ^= 1;
        for datagram in [&good, &forged, &stranger.send(n as i64, &free(9)), &vec![n as u8; n]] {
            socket.send(datagram).unwrap();
        }
    }
    let (fetched, used) = site.fetch("/image.png", None);
    assert_eq!(fetched.bytes, BYTES as u64);
    // The socket drops datagrams that arrive too fast: only received ones count.
    let counts = site.server.counts().unwrap();
    assert_eq!((used.reports, used.acks_with_client_window), (0, 0), "{counts:?}");
    assert_eq!((counts.taken, counts.hellos), (1, 1));
    assert!(counts.forged > 0 && counts.replayed > 0 && counts.malformed > 0, "{counts:?}");
}

#[test]
fn what_cannot_be_served_says_so() {
    let wrong = |dir: &Path| {
        let options = ServeOptions {
            dir: dir.to_owned(),
            bind: LOCAL,
            reports: None,
            identity: Some((dir.join("cert.pem"), dir.join("key.pem"))),
            names: Vec::new(),
            shared_key: None,
            limits: OperatorLimits::default(),
            window: Window::Claw,
        };
        Server::start(options, Arc::new(|_: &ServerEvent| {})).unwrap_err().to_string()
    };
    let dir = tempfile::tempdir().unwrap();
    assert!(wrong(&dir.path().join("none")).contains("none: No such file"));
    assert!(wrong(dir.path()).contains("cert.pem"));
    std::fs::write(dir.path().join("cert.pem"), "nothing").unwrap();
    std::fs::write(dir.path().join("key.pem"), "nothing").unwrap();
    let what = wrong(dir.path());
    assert!(what.contains("key.pem") || what.contains("certificate"), "{what}");
}
