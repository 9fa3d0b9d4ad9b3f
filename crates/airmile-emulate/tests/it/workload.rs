//! Applications over TCP, with and without a proxy on the path.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::support::chain::Chain;
use crate::support::{LinkConfig, MS};
use airmile_emulate::net::{Host, IpPacket, Transport};
use airmile_emulate::proxy::{Proxy, ProxyConfig, ProxyPort, Side};
use airmile_emulate::tcp::{EventKind, TcpConfig, bytes_of};
use airmile_emulate::workload::{
    Abr, AppEvent, AppEventKind, EndHost, VideoConfig, WebConfig, Workload, WorkloadServer,
};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000_000;
const PHONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn hosts(workload: &Workload) -> (EndHost, EndHost) {
    let config = TcpConfig { time_wait_ns: SECOND, ..TcpConfig::default() };
    let server = SocketAddrV4::new(SERVER, 80);
    let client = workload.client(0, 1);
    (
        EndHost::client(PHONE, server, config.clone(), client, 1),
        EndHost::server(SERVER, &[80], config, Box::new(WorkloadServer::new()), 2),
    )
}

fn log(host: &mut EndHost) -> Vec<AppEvent> {
    std::iter::from_fn(|| host.poll_event()).collect()
}

/// Time, index of the sender, whether to the right, packet.
type Trace = Vec<(i64, usize, bool, IpPacket)>;

/// Runs a workload over a link; returns the client's log and all packets.
fn run(workload: &Workload, link: LinkConfig, seconds: i64) -> (Vec<AppEvent>, Trace) {
    let (mut client, mut server) = hosts(workload);
    let trace = {
        let row: Vec<(&mut dyn Host, _)> =
            vec![(&mut client, Some(PHONE)), (&mut server, Some(SERVER))];
        let mut chain = Chain::new(row, &[link], 1);
        chain.run(seconds * SECOND);
        chain.trace
    };
    assert!(client.is_done(), "{workload:?}");
    assert_eq!(client.connections().count() + server.connections().count(), 0);
    (log(&mut client), trace)
}

/// (transfer, start, first byte, end, bytes) of each transfer.
fn transfers(log: &[AppEvent]) -> Vec<(u64, i64, i64, i64, u64)> {
    let mut rows = Vec::new();
    for event in log {
        if let AppEventKind::Ended { transfer, bytes, failed } = event.kind {
            assert!(!failed);
            let at = |wanted: &dyn Fn(&AppEventKind) -> bool| {
                log.iter().find(|e| wanted(&e.kind)).map_or(-1, |e| e.at_ns)
            };
            let began = at(
                &|k| matches!(k, AppEventKind::RequestStarted { transfer: t, .. } if *t == transfer),
            );
            let first =
                at(&|k| matches!(k, AppEventKind::FirstByte { transfer: t } if *t == transfer));
            assert!(began <= first && first <= event.at_ns);
            rows.push((transfer, began, first, event.at_ns, bytes));
        }
    }
    rows
}

const LINK: LinkConfig = LinkConfig {
    rate_bps: Some(10_000_000),
    delay_ns: 20 * MS,
    queue_packets: 100,
    loss: 0.0,
    duplicate: 0.0,
    reorder: 0.0,
    reorder_ns: 0,
    drop_every: None,
};

#[test]
fn series_by_hand() {
    // Workload, transfers, bytes of each, seconds for all (from - to).
    let check = |workload: Workload, count: usize, bytes: u64, from: f64, to: f64| {
        let (log, _) = run(&workload, LINK, 200);
        let rows = transfers(&log);
        assert_eq!(rows.len(), count, "{workload:?}");
        assert!(rows.iter().all(|row| row.4 == bytes), "{rows:?}");
        let seconds = rows.last().map_or(0.0, |row| row.3 as f64 / 1e9);
        assert!((from..=to).contains(&seconds), "{workload:?}: {seconds} s");
    };
    // 5 MB at 9.65 Mbit/s: 4.15 s, and slow start.
    check(Workload::File { bytes: 5_000_000, count: 1, gap_ms: 0 }, 1, 5_000_000, 4.2, 4.5);
    check(Workload::File { bytes: 100_000, count: 3, gap_ms: 2000 }, 3, 100_000, 4.5, 5.2);
    // 1 MB at 1 Mbit/s.
    let paced =
        |block_bytes| Workload::Paced { bytes: 1_000_000, rate_bps: 1_000_000, block_bytes };
    check(paced(None), 1, 1_000_000, 8.0, 8.2);
    check(paced(Some(64_000)), 1, 1_000_000, 7.7, 8.2);
    // A second on and a second off at 4 Mbit/s: 0.5 MB each two seconds.
    let on_off =
        Workload::OnOff { bytes: 1_500_000, on_ms: 1000, off_ms: 1000, rate_bps: Some(4_000_000) };
    check(on_off, 1, 1_500_000, 4.9, 5.2);
    check(Workload::Upload { bytes: 2_000_000, count: 1, gap_ms: 0 }, 1, 0, 1.65, 2.0);
    // Ten of 40 ms and 100 ms of think time, nine pauses, and the handshake: 9.18 s.
    let (request_bytes, response_bytes) = (200, 300);
    let interactive = Workload::Interactive {
        period_ms: None,
        request_bytes,
        response_bytes,
        count: 10,
        gap_ms: 860,
        think_ms: 100,
    };
    check(interactive, 10, 300, 9.18, 9.19);
    check(
        Workload::SlowReader { bytes: 2_000_000, read_rate_bps: 2_000_000 },
        1,
        2_000_000,
        7.9,
        8.1,
    );
    check(Workload::Periodic { bytes: 10_000, count: 5, period_ms: 3000 }, 5, 10_000, 12.0, 12.2);
}

#[test]
fn heads_are_literal_in_captures() {
    let (_, trace) = run(&Workload::File { bytes: 3000, count: 2, gap_ms: 10 }, LINK, 20);
    let payload = |sender: usize| -> Vec<u8> {
        let mut bytes = Vec::new();
        for (_, _, _, packet) in trace.iter().filter(|t| t.1 == sender) {
            if let Transport::Tcp(segment) = &packet.transport {
                bytes.extend(bytes_of(segment.payload.clone(), &segment.literals));
            }
            // Everything in a capture is a packet.
            assert!(IpPacket::parse(&packet.emit()).is_ok());
        }
        bytes
    };
    let requests = String::from_utf8(payload(0)).unwrap();
    assert_eq!(requests.matches("GET /file?bytes=3000 HTTP/1.1\r\n").count(), 2);
    let responses = String::from_utf8(payload(1)).unwrap();
    assert_eq!(responses.matches("HTTP/1.1 200 OK\r\n").count(), 2);
    let heads = 2 * airmile_emulate::workload::http::response_head(200, 3000).len();
    assert_eq!(responses.len(), 6000 + heads);
}

#[test]
fn video_plays_what_the_link_carries() {
    // 5 Mbit/s: the highest bitrate under 0.85 of it is 3.07 Mbit/s.
    let link = LinkConfig { rate_bps: Some(5_000_000), ..LINK };
    let config = VideoConfig::default();
    let (log, _) = run(&Workload::Video(config.clone()), link, 200);
    let chosen: Vec<u64> = log
        .iter()
        .filter_map(|e| match e.kind {
            AppEventKind::SegmentChosen { bitrate_bps, .. } => Some(bitrate_bps),
            _ => None,
        })
        .collect();
    assert_eq!(chosen.len(), 30);
    assert_eq!(chosen[0], 200_000);
    assert!(chosen[10..].iter().all(|&bps| bps == 3_070_000), "{chosen:?}");
    assert!(!log.iter().any(|e| e.kind == AppEventKind::Stalled));
    let at = |kind| log.iter().find(|e| e.kind == kind).map_or(-1, |e| e.at_ns);
    let played_ns = at(AppEventKind::PlaybackEnded) - at(AppEventKind::PlaybackStarted);
    assert_eq!(played_ns, 120 * SECOND, "without a stall");

    // A buffer-based choice that exceeds 1 Mbit/s stalls, and reports how long.
    let abr = Abr::Buffer { reservoir_ms: 0, cushion_ms: 1000 };
    let greedy = VideoConfig { abr, duration_ms: 40_000, ..config };
    let link = LinkConfig { rate_bps: Some(1_000_000), ..LINK };
    let (log, _) = run(&Workload::Video(greedy), link, 2000);
    let stalled_ns: i64 = log
        .iter()
        .filter_map(|e| match e.kind {
            AppEventKind::Resumed { stalled_ns } => Some(stalled_ns),
            _ => None,
        })
        .sum();
    let at = |kind| log.iter().find(|e| e.kind == kind).map_or(-1, |e| e.at_ns);
    let played_ns = at(AppEventKind::PlaybackEnded) - at(AppEventKind::PlaybackStarted);
    assert!(stalled_ns > SECOND);
    assert_eq!(played_ns, 40 * SECOND + stalled_ns);
}

#[test]
fn pages_load_over_six_connections() {
    let config = WebConfig { pages: 2, ..WebConfig::default() };
    let (log, trace) = run(&Workload::Web(config), LINK, 60);
    let loaded: Vec<(u64, i64)> = log
        .iter()
        .filter_map(|e| match e.kind {
            AppEventKind::PageLoaded { bytes, duration_ns, .. } => Some((bytes, duration_ns)),
            _ => None,
        })
        .collect();
    assert_eq!(loaded.len(), 2);
    for (bytes, duration_ns) in loaded {
        assert!(bytes.abs_diff(2_000_000) < 100);
        // 2 MB take 1.66 s; depth and handshakes add to it.
        assert!((17 * SECOND / 10..4 * SECOND).contains(&duration_ns), "{duration_ns}");
    }
    assert_eq!(transfers(&log).len(), 140);
    let syns = trace
        .iter()
        .filter(|t| matches!(&t.3.transport, Transport::Tcp(s) if s.flags.syn && !s.flags.ack));
    assert_eq!(syns.count(), 6);
}

/// Video through a proxy; returns the log, and the proxy's restarts towards the client.
fn through_proxy(port: Option<ProxyPort>) -> (Vec<AppEvent>, u64, usize) {
    let video = VideoConfig { duration_ms: 60_000, buffer_ms: 12_000, ..VideoConfig::default() };
    let (mut client, mut server) = hosts(&Workload::Video(video));
    let config = ProxyConfig { ports: port.into_iter().collect(), ..ProxyConfig::default() };
    let mut proxy = Proxy::new(config, 3);
    // A deep queue, as in a cell: a window sent at once is not lost.
    let near = LinkConfig { rate_bps: Some(50_000_000), queue_packets: 5000, ..LINK };
    let wired = LinkConfig { rate_bps: Some(1_000_000_000), delay_ns: MS, ..LINK };
    {
        let row: Vec<(&mut dyn Host, _)> =
            vec![(&mut client, Some(PHONE)), (&mut proxy, None), (&mut server, Some(SERVER))];
        let mut chain = Chain::new(row, &[near, wired], 1);
        chain.run(200 * SECOND);
        for (_, from, _, packet) in &chain.trace {
            let client_sees = *from < 2 && *packet.dst.ip() == PHONE;
            assert!(!client_sees || *packet.src.ip() == SERVER);
        }
    }
    assert!(client.is_done());
    let mut restarts = 0;
    let mut splits = 0;
    while let Some((side, event)) = proxy.poll_connection_event() {
        let restarted = matches!(event.event.kind, EventKind::Restarted { .. });
        restarts += u64::from(restarted && side == Side::Client);
        splits += usize::from(event.event.kind == EventKind::Established);
    }
    (log(&mut client), restarts, splits)
}

#[test]
fn a_proxy_splits_its_ports_and_lets_others_pass() {
    let restarting = ProxyPort { port: 80, slow_start_after_idle: true };
    let (slow, restarts, splits) = through_proxy(Some(restarting));
    assert_eq!(splits, 2);
    assert!(restarts >= 5, "a restart a segment: {restarts}");
    let steady = ProxyPort { slow_start_after_idle: false, ..restarting };
    let (fast, restarts, _) = through_proxy(Some(steady));
    assert_eq!(restarts, 0);
    let (_, restarts, splits) = through_proxy(None);
    assert_eq!((restarts, splits), (0, 0));
    // Without restarts a segment of 6 MB takes less time.
    let longest = |log: &[AppEvent]| transfers(log).iter().map(|t| t.3 - t.1).skip(3).max();
    assert!(longest(&slow) > longest(&fast), "{:?} {:?}", longest(&slow), longest(&fast));
}

#[test]
fn a_refused_connection_is_told() {
    let workload = Workload::File { bytes: 1000, count: 1, gap_ms: 0 };
    let server = SocketAddrV4::new(SERVER, 81);
    let client = workload.client(0, 1);
    let mut client = EndHost::client(PHONE, server, TcpConfig::default(), client, 1);
    let (_, mut server) = hosts(&workload);
    {
        let row: Vec<(&mut dyn Host, _)> =
            vec![(&mut client, Some(PHONE)), (&mut server, Some(SERVER))];
        Chain::new(row, &[LINK], 1).run(SECOND);
    }
    assert!(
        log(&mut client).iter().any(|e| matches!(e.kind, AppEventKind::Ended { failed: true, .. }))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the network does, a proxy relays every byte.
    #[test]
    fn transfers_come_through_a_proxy(
        seed in any::<u32>(),
        loss in 0.0..0.1f64,
        reorder in 0.0..0.1f64,
        bytes in 1u64..400_000,
        buffer_bytes in 5_000u64..100_000,
    ) {
        let (mut client, mut server) = hosts(&Workload::File { bytes, count: 2, gap_ms: 50 });
        let port = ProxyPort { port: 80, slow_start_after_idle: true };
        let config = ProxyConfig { ports: vec![port], buffer_bytes, ..ProxyConfig::default() };
        let mut proxy = Proxy::new(config, 3);
        let link = LinkConfig { loss, reorder, reorder_ns: 15 * MS, ..LINK };
        {
            let row: Vec<(&mut dyn Host, _)> = vec![
                (&mut client, Some(PHONE)),
                (&mut proxy, None),
                (&mut server, Some(SERVER)),
            ];
            Chain::new(row, &[link, link], u64::from(seed)).run(2000 * SECOND);
        }
        prop_assert!(client.is_done());
        let got: Vec<u64> = transfers(&log(&mut client)).iter().map(|row| row.4).collect();
        prop_assert_eq!(got, vec![bytes; 2]);
        prop_assert_eq!(proxy.connections(Side::Client).count(), 0);
        prop_assert_eq!(proxy.connections(Side::Server).count(), 0);
    }
}
