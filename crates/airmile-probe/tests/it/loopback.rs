//! Server and client together, on loopback.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use airmile::{CompareOptions, CompareVerdict, ProbeLog, Progress, compare};
use airmile_probe::{Error, Probe, ProbeServer, ServeLimits, ServeOptions, Target, run, write};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn serve(limits: ServeLimits) -> ProbeServer {
    ProbeServer::start(&ServeOptions { bind: HERE, ports: vec![0, 0], tls: Vec::new(), limits })
        .unwrap()
}

fn probe(ports: Vec<u16>, tls: Vec<u16>) -> Probe {
    Probe {
        target: Target::parse("127.0.0.1").unwrap(),
        ports,
        tls,
        segments: 3,
        segment_bytes: 100_000,
        pause: Duration::from_millis(4),
        rounds: 2,
        seed: 7,
        timeout: Duration::from_secs(20),
    }
}

fn ports(server: &ProbeServer) -> Vec<u16> {
    server.addresses().iter().map(std::net::SocketAddr::port).collect()
}

#[test]
fn segments_come_over_all_ports_by_turns() {
    let server = serve(ServeLimits::default());
    let asked = probe(ports(&server), Vec::new());
    let mut reported = 0;
    let log = run(&asked, &mut |_, _| reported += 1).unwrap();
    assert_eq!((log.connections.len(), log.transfers.len(), reported), (4, 12, 12));
    assert_eq!(log.server_restarts_after_idle, server.restarts_after_idle());
    for transfer in &log.transfers {
        assert_eq!((transfer.bytes, &transfer.failed), (100_000, &None), "{transfer:?}");
        let arrived: u64 = transfer.arrivals.iter().map(|(_, bytes)| bytes).sum();
        // Including the answer's head.
        assert!((100_001..101_000).contains(&arrived), "{arrived}");
        assert!(transfer.start_us <= transfer.first_byte_us.unwrap());
        assert!(transfer.first_byte_us.unwrap() <= transfer.end_us);
    }
    // The first of each connection has no pause, the others have one.
    let pauses = log.transfers.iter().map(|transfer| transfer.pause_us);
    assert_eq!(pauses.clone().filter(Option::is_none).count(), 4);
    assert!(pauses.flatten().all(|us| us >= 4_000));
    // A turn has one segment of each port.
    for turn in 0..6 {
        let of = log.transfers.iter().filter(|transfer| transfer.turn == turn);
        let mut ports: Vec<u16> = of.map(|t| log.connections[t.connection].port).collect();
        ports.sort_unstable();
        let mut expected = asked.ports.clone();
        expected.sort_unstable();
        assert_eq!(ports, expected);
    }
}

#[test]
fn what_is_written_is_read() {
    let server = serve(ServeLimits::default());
    let asked = probe(ports(&server), Vec::new());
    let log = run(&asked, &mut |_, _| {}).unwrap();
    let dir = tempfile::tempdir().unwrap();
    write(&log, &asked.target, dir.path()).unwrap();
    let read = ProbeLog::read(&dir.path().join(ProbeLog::FILE), &Progress::default()).unwrap();
    assert_eq!(read, log);
    let answer =
        compare(&[dir.path().to_owned()], &CompareOptions::default(), &Progress::default())
            .unwrap();
    // Pauses are too short for restarts, and loopback has no round trip.
    assert_ne!(answer.verdict, CompareVerdict::MiddleboxRestarts);
    assert_eq!((answer.grouped_by, answer.groups.len()), ("port", 2));
    assert!(answer.groups.iter().all(|group| group.finding.transfers == 6));
}

#[test]
fn tls_is_spoken_where_it_is_asked_for() {
    // A free port is known only once it is in use.
    let free = serve(ServeLimits::default());
    let port = ports(&free)[0];
    drop(free);
    let options = ServeOptions {
        bind: HERE,
        ports: vec![port],
        tls: vec![port],
        limits: ServeLimits::default(),
    };
    let _server = ProbeServer::start(&options).unwrap();
    let log = run(&probe(vec![port], vec![port]), &mut |_, _| {}).unwrap();
    assert!(log.connections.iter().all(|c| c.tls && c.tls_us.is_some()));
    assert!(log.transfers.iter().all(|t| t.bytes == 100_000 && t.failed.is_none()));
    // Plain HTTP gets no answer there.
    let error = run(&probe(vec![port], Vec::new()), &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, Error::Nothing(_)), "{error}");
}

/// A connection that the server answers and then keeps, once earlier ones are freed.
fn answered(address: SocketAddr) -> TcpStream {
    for _ in 0..1_000 {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut head = [0; 12];
        let answer = stream
            .write_all(b"GET /segment?bytes=10 HTTP/1.1\r\n\r\n")
            .and_then(|()| stream.read_exact(&mut head));
        if answer.is_ok() {
            assert_eq!(&head, b"HTTP/1.1 200");
            return stream;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the server never let go of its connections");
}

#[test]
fn a_server_keeps_to_its_limits() {
    let limits = ServeLimits { segment_bytes: 50_000, connections: 1, ..ServeLimits::default() };
    let server = serve(limits);
    let error = run(&probe(ports(&server), Vec::new()), &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("413"), "{error}");
    // A second connection is closed at once. The probe's own may still count as one.
    let _first = answered(server.addresses()[0]);
    let mut second = TcpStream::connect(server.addresses()[1]).unwrap();
    let mut rest = Vec::new();
    // Closed, or reset.
    let _ = second.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn a_port_that_nobody_serves_is_noted_down() {
    let server = serve(ServeLimits::default());
    let open = ports(&server);
    let closed = {
        let gone = serve(ServeLimits::default());
        ports(&gone)[0]
    };
    let log = run(&probe(vec![open[0], closed], Vec::new()), &mut |_, _| {}).unwrap();
    let failed = log.transfers.iter().filter(|transfer| transfer.failed.is_some()).count();
    assert_eq!((failed, log.transfers.len()), (6, 12));
}
