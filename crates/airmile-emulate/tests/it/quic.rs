//! Applications over QUIC.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::support::LinkConfig;
use crate::support::chain::Chain;
use airmile_control::ControllerKind;
use airmile_emulate::net::{Host, IpPacket};
use airmile_emulate::quic::{QuicConfig, QuicControl, QuicHost};
use airmile_emulate::workload::{
    AppEvent, AppEventKind, VideoConfig, WebConfig, Workload, WorkloadServer,
};

const SECOND: i64 = 1_000_000_000;
const PHONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Time, index of the sender, whether to the right, packet.
type Trace = Vec<(i64, usize, bool, IpPacket)>;

fn run(
    workload: &Workload,
    control: QuicControl,
    link: LinkConfig,
    seed: u64,
) -> (Vec<AppEvent>, Trace) {
    let config = QuicConfig { control, ..QuicConfig::default() };
    let server = SocketAddrV4::new(SERVER, 443);
    let mut client = QuicHost::client(PHONE, server, &config, workload.client(0, 1), seed);
    let mut host = QuicHost::server(server, &config, Box::new(WorkloadServer::new()), seed);
    let trace = {
        let row: Vec<(&mut dyn Host, _)> =
            vec![(&mut client, Some(PHONE)), (&mut host, Some(SERVER))];
        let mut chain = Chain::new(row, &[link], seed);
        chain.run(200 * SECOND);
        chain.trace
    };
    assert!(client.is_done(), "{workload:?} {control:?}");
    // The client's CONNECTION_CLOSE closes the connection on both sides.
    assert!(client.snapshots().chain(host.snapshots()).all(|s| s.closed));
    (std::iter::from_fn(|| client.poll_event()).collect(), trace)
}

fn ended(log: &[AppEvent]) -> Vec<(i64, u64)> {
    log.iter()
        .filter_map(|e| match e.kind {
            AppEventKind::Ended { bytes, failed: false, .. } => Some((e.at_ns, bytes)),
            _ => None,
        })
        .collect()
}

#[test]
fn downloads_fill_the_link() {
    let file = Workload::File { bytes: 5_000_000, count: 1, gap_ms: 0 };
    // 5 MB at 10 Mbit/s are 4.0 s without headers; a shallow queue loses some.
    for control in [
        QuicControl::QuinnCubic,
        QuicControl::QuinnNewReno,
        QuicControl::Bbr,
        QuicControl::Ours(ControllerKind::NewReno),
        QuicControl::Ours(ControllerKind::Cubic { hystart: false }),
        QuicControl::Ours(ControllerKind::Cubic { hystart: true }),
    ] {
        let (log, trace) = run(&file, control, LinkConfig::new(10_000_000, 20, 60), 1);
        let (at_ns, bytes) = ended(&log)[0];
        assert_eq!(bytes, 5_000_000);
        let seconds = at_ns as f64 / 1e9;
        assert!((4.1..5.5).contains(&seconds), "{control:?}: {seconds} s");
        for (_, _, _, packet) in &trace {
            assert!(packet.ip_bytes() <= 1500);
            assert_eq!(IpPacket::parse(&packet.emit()).as_ref(), Ok(packet));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let link = LinkConfig { loss: 0.01, ..LinkConfig::new(10_000_000, 20, 60) };
    let file = Workload::File { bytes: 500_000, count: 2, gap_ms: 100 };
    let ours = QuicControl::Ours(ControllerKind::default());
    for control in [QuicControl::QuinnCubic, QuicControl::QuinnNewReno, ours] {
        let sizes = |seed| -> Vec<(i64, usize, u32)> {
            let (_, trace) = run(&file, control, link, seed);
            trace.iter().map(|(at_ns, from, _, p)| (*at_ns, *from, p.ip_bytes())).collect()
        };
        assert_eq!(sizes(1), sizes(1));
        assert_ne!(sizes(1), sizes(2));
    }
}

#[test]
fn all_workloads_run() {
    let link = LinkConfig { loss: 0.005, ..LinkConfig::new(10_000_000, 20, 100) };
    let web = Workload::Web(WebConfig { lanes: 100, ..WebConfig::default() });
    let video = Workload::Video(VideoConfig { duration_ms: 40_000, ..VideoConfig::default() });
    let check = |workload: Workload, count: usize, bytes: u64| {
        let (log, _) = run(&workload, QuicControl::QuinnCubic, link, 3);
        let rows = ended(&log);
        assert_eq!(rows.len(), count, "{workload:?}");
        assert!(bytes == 0 || rows.iter().all(|row| row.1 == bytes), "{workload:?} {rows:?}");
    };
    check(web, 70, 0);
    check(video, 10, 0);
    check(Workload::Upload { bytes: 500_000, count: 2, gap_ms: 10 }, 2, 0);
    check(Workload::SlowReader { bytes: 1_000_000, read_rate_bps: 2_000_000 }, 1, 1_000_000);
    let (request_bytes, response_bytes) = (200, 300);
    check(
        Workload::Interactive {
            request_bytes,
            response_bytes,
            count: 5,
            gap_ms: 100,
            period_ms: None,
            think_ms: 5,
        },
        5,
        300,
    );
    check(Workload::Paced { bytes: 500_000, rate_bps: 1_000_000, block_bytes: None }, 1, 500_000);
    check(Workload::Periodic { bytes: 10_000, count: 5, period_ms: 500 }, 5, 10_000);
}
