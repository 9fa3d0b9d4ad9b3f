//! Endless studies: memory is bounded, and flows end by the clock.

use airmile_model::Termination;
use airmile_model::flow::PacketRow;
use airmile_model::packet::{Address, Ecn, Packet, TcpFlags, TcpHeader, Transport};

use super::super::{PacketStudy, StudyOptions, Tables};

const S: i64 = 1_000_000_000;

/// The client's n-th port to the server, with a TCP header or as UDP.
fn packet(at_ns: i64, n: u32, tcp: Option<TcpHeader>) -> Packet<'static> {
    Packet {
        at_ns,
        src: Address::v4([10, 0, (n >> 24) as u8, (n >> 16) as u8]),
        dst: Address::v4([192, 0, 2, 1]),
        src_port: n as u16,
        dst_port: 443,
        protocol: if tcp.is_some() { 6 } else { 17 },
        transport: tcp.map_or(Transport::Udp, Transport::Tcp),
        ecn: Ecn::NotEct,
        ip_id: None,
        ip_bytes: 60,
        payload_bytes: 0,
        payload: &[],
        fragmented: false,
        tunnelled: false,
        interface: 0,
    }
}

fn syn() -> Option<TcpHeader> {
    Some(TcpHeader { flags: TcpFlags::SYN, ..TcpHeader::default() })
}

/// A segment in the middle of a connection.
fn segment() -> Option<TcpHeader> {
    Some(TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() })
}

fn study(max_flows: Option<usize>) -> PacketStudy {
    PacketStudy::rows_only(StudyOptions {
        idle_ns: 300 * S,
        brief_idle_ns: Some(60 * S),
        user_gap_ns: 300 * S,
        max_flows,
        tables: Tables { flows: true, ..Tables::NONE },
        ..StudyOptions::default()
    })
}

/// The termination of each flow, by client port.
fn ended(study: &mut PacketStudy) -> Vec<(u16, Termination)> {
    let rows = std::iter::from_fn(|| study.poll());
    let flows = rows.filter_map(|row| match row {
        PacketRow::Flow(row) => Some((row.client_port, row.termination)),
        _ => None,
    });
    flows.collect()
}

#[test]
fn a_scan_crowds_out_what_is_longest_idle() {
    let mut study = study(Some(64));
    study.push(&packet(0, 65_535, segment()));
    for n in 0..10_000 {
        let tcp = if n % 2 == 0 { syn() } else { segment() };
        study.push(&packet(i64::from(n) * 1_000, n, tcp));
        assert!(study.open_flows() <= 64);
        // The active flow stays.
        study.push(&packet(i64::from(n) * 1_000, 65_535, segment()));
    }
    let ended = ended(&mut study);
    assert_eq!(ended.len() + study.open_flows(), 10_001);
    assert!(ended.iter().all(|(port, _)| *port != 65_535));
    // In order of arrival, each with its own termination.
    assert!(ended.is_sorted_by_key(|(port, _)| *port));
    let why = |port: u16| {
        if port.is_multiple_of(2) { Termination::SynOnly } else { Termination::Crowded }
    };
    assert!(ended.iter().all(|(port, how)| *how == why(*port)));
}

#[test]
fn flows_end_by_the_clock_alone() {
    let mut study = study(None);
    study.push(&packet(0, 1, None));
    study.push(&packet(0, 2, syn()));
    study.push(&packet(0, 3, segment()));
    let mut check = |at_s: i64, expected: &[u16]| {
        study.advance(at_s * S);
        let ports: Vec<u16> = ended(&mut study).into_iter().map(|(port, _)| port).collect();
        assert_eq!(ports, expected, "at {at_s} s");
    };
    check(50, &[]);
    check(75, &[1, 2]);
    check(290, &[]);
    check(320, &[3]);
    assert_eq!(study.open_flows(), 0);
}

#[test]
fn a_clock_that_is_set_back_ends_nothing_and_goes_on() {
    let mut study = study(None);
    study.push(&packet(1_000_000 * S, 1, segment()));
    study.set_back(500 * S);
    study.advance(700 * S);
    assert_eq!(ended(&mut study), []);
    study.advance(900 * S);
    assert_eq!(ended(&mut study), [(1, Termination::Idle)]);
}
