//! Hand-built connections, one packet per line, and the study's results.

mod live;
mod odd;
mod properties;
mod usual;

use airmile_model::flow::{FlowRow, PacketRow, TcpEvent};
use airmile_model::packet::{Address, Ecn, Packet, SeqNum, TcpFlags, TcpHeader, Transport};
use airmile_model::{ClientBy, Direction, Leg, RttSource, TcpEventKind, Termination};

use super::*;

const MS: i64 = 1_000_000;
const SYN: u8 = TcpFlags::SYN.0;
const ACK: u8 = TcpFlags::ACK.0;
const FIN: u8 = TcpFlags::FIN.0;

/// One packet of the client 10.0.0.1:40000 or the server 192.0.2.1:443.
#[derive(Debug, Clone, Copy)]
struct P {
    ms: i64,
    up: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    len: u32,
    window: u16,
    id: u16,
    sack: Option<(u32, u32)>,
}

const fn p(ms: i64, up: bool, flags: u8, seq: u32, ack: u32, len: u32) -> P {
    P { ms, up, flags, seq, ack, len, window: 1000, id: 0, sack: None }
}

impl P {
    const fn id(self, id: u16) -> Self {
        Self { id, ..self }
    }

    const fn window(self, window: u16) -> Self {
        Self { window, ..self }
    }

    const fn sack(self, left: u32, right: u32) -> Self {
        Self { sack: Some((left, right)), ..self }
    }

    fn packet(self) -> Packet<'static> {
        let (client, server) = (Address::v4([10, 0, 0, 1]), Address::v4([192, 0, 2, 1]));
        let (src, dst) = if self.up { (client, server) } else { (server, client) };
        let (src_port, dst_port) = if self.up { (40_000, 443) } else { (443, 40_000) };
        let mut header = TcpHeader {
            seq: SeqNum(self.seq),
            ack: SeqNum(self.ack),
            flags: TcpFlags(self.flags),
            window: self.window,
            ..TcpHeader::default()
        };
        if self.flags & SYN != 0 {
            (header.mss_bytes, header.window_scale) = (Some(1000), Some(4));
            header.sack_permitted = true;
        }
        if let Some((left, right)) = self.sack {
            header.sack.push(SeqNum(left), SeqNum(right));
        }
        Packet {
            at_ns: self.ms * MS,
            src,
            dst,
            src_port,
            dst_port,
            protocol: 6,
            transport: Transport::Tcp(header),
            ecn: Ecn::NotEct,
            ip_id: Some(self.id),
            ip_bytes: 40 + self.len,
            payload_bytes: self.len,
            payload: &[],
            fragmented: false,
            tunnelled: false,
            interface: 0,
        }
    }
}

/// A handshake: SYN at 0, SYN-ACK at 20, ACK at 60 ms; then 100 bytes of request.
fn opening() -> Vec<P> {
    vec![
        p(0, true, SYN, 99, 0, 0),
        p(20, false, SYN | ACK, 999, 100, 0),
        p(60, true, ACK, 100, 1000, 0),
        p(61, true, ACK, 100, 1000, 100),
        p(90, false, ACK, 1000, 200, 0),
    ]
}

fn rows(packets: &[P]) -> Vec<PacketRow> {
    let options = StudyOptions { tables: Tables::ALL, ..StudyOptions::default() };
    let mut study = PacketStudy::new(options);
    packets.iter().for_each(|p| study.push(&p.packet()));
    let mut rows = Vec::new();
    while let Some(row) = study.poll() {
        rows.push(row);
    }
    let _ = study.finish_with(&mut |row| rows.push(row));
    rows
}

fn run(packets: &[P]) -> (Vec<FlowRow>, Vec<TcpEvent>) {
    let (mut flows, mut events) = (Vec::new(), Vec::new());
    for row in rows(packets) {
        match row {
            PacketRow::Flow(row) => flows.push(*row),
            PacketRow::Tcp(row) => events.push(*row),
            _ => {}
        }
    }
    (flows, events)
}

/// The events after an opening, by name and offset in the server's stream.
#[track_caller]
fn check(after: &[P], expected: &[(TcpEventKind, i64)]) -> FlowRow {
    let packets = [opening().as_slice(), after].concat();
    let (flows, events) = run(&packets);
    let got: Vec<_> = events.iter().map(|e| (e.event, e.offset_bytes)).collect();
    assert_eq!(got, expected);
    assert_eq!(flows.len(), 1);
    flows.into_iter().next().unwrap()
}

#[test]
fn a_handshake_is_measured_on_both_sides() {
    let flow = check(&[], &[]);
    assert_eq!((flow.upstream_rtt_ns, flow.downstream_rtt_ns), (Some(20 * MS), Some(40 * MS)));
    assert_eq!((flow.client.as_str(), flow.client_by), ("10.0.0.1", ClientBy::Syn));
    assert_eq!((flow.ul_bytes, flow.dl_bytes), (100, 0));
    assert_eq!(flow.client_initial_window_bytes, Some(16_000));
    assert_eq!((flow.termination, flow.sack), (Termination::CaptureEnd, Some(true)));
}

#[test]
fn fin_rst_and_syn_only() {
    let closing = [
        p(100, false, FIN | ACK, 1000, 200, 0),
        p(140, true, FIN | ACK, 200, 1001, 0),
        p(141, false, ACK, 1001, 201, 0),
    ];
    assert_eq!(check(&closing, &[]).termination, Termination::Fin);
    assert_eq!(
        check(&[p(100, false, TcpFlags::RST.0, 1000, 0, 0)], &[]).termination,
        Termination::Rst
    );
    let (flows, events) = run(&[p(0, true, SYN, 99, 0, 0), p(1000, true, SYN, 99, 0, 0).id(1)]);
    assert_eq!((flows.len(), flows[0].termination), (1, Termination::SynOnly));
    assert_eq!(events[0].event, TcpEventKind::SynAgain);
}

#[test]
fn a_bare_fin_again_is_no_retransmitted_data() {
    let again = [
        p(100, false, FIN | ACK, 1000, 200, 0).id(1),
        p(400, false, FIN | ACK, 1000, 200, 0).id(2),
        p(440, true, ACK, 200, 1001, 0),
    ];
    let flow = check(&again, &[(TcpEventKind::FinAgain, 1)]);
    assert_eq!((flow.dl_retx, flow.dl_dup_acks, flow.dl_segments), (0, 0, 0));
}

/// Five segments of 1000 bytes at 100 ms, ids counting up from `id`.
fn burst(id: u16) -> Vec<P> {
    (0..5).map(|n| p(100, false, ACK, 1000 + n * 1000, 200, 1000).id(id + n as u16)).collect()
}

#[test]
fn three_duplicate_acks_make_it_fast() {
    let mut packets = burst(1);
    packets.push(p(140, true, ACK, 200, 2000, 0).id(1));
    for n in 0..3 {
        packets.push(
            p(141 + n, true, ACK, 200, 2000, 0).id(2 + n as u16).sack(3000, 4000 + n as u32 * 1000),
        );
    }
    packets.push(p(150, false, ACK, 2000, 200, 1000).id(6));
    packets.push(p(190, true, ACK, 200, 6000, 0).id(9));
    let dup = (TcpEventKind::DupAck, 1001);
    let flow = check(
        &packets,
        &[dup, dup, dup, (TcpEventKind::RetxFast, 1001), (TcpEventKind::Recovered, 1001)],
    );
    assert_eq!((flow.dl_retx, flow.dl_retx_fast, flow.dl_bytes), (1, 1, 5000));
    let (_, events) = run(&[opening(), packets].concat());
    // Retransmitted at 150 ms, acknowledged at 190; the newest data took 43 of its 100.
    let last = events.last().unwrap();
    assert_eq!((last.rtt_retx_ns, last.rtt_during_ns), (Some(40 * MS), Some(43 * MS)));
    assert_eq!((flow.dl_dup_acks, flow.dl_retx_bytes, flow.dl_reordered), (3, 1000, 0));
}

#[test]
fn silence_and_then_the_first_bytes_are_a_timeout() {
    let mut packets = burst(1);
    packets.push(p(600, false, ACK, 1000, 200, 1000).id(6));
    packets.push(p(640, true, ACK, 200, 2000, 0));
    packets.push(p(641, false, ACK, 2000, 200, 1000).id(7));
    packets.push(p(680, true, ACK, 200, 6000, 0));
    let flow =
        check(&packets, &[(TcpEventKind::RetxTimeout, 1), (TcpEventKind::RetxTimeout, 1001)]);
    assert_eq!((flow.dl_retx_timeout, flow.rtt_samples), (2, 1), "the handshake's alone");
}

#[test]
fn the_last_segment_soon_again_is_a_probe() {
    let mut packets = burst(1);
    packets.push(p(140, true, ACK, 200, 5000, 0));
    packets.push(p(250, false, ACK, 5000, 200, 1000).id(6));
    let flow = check(&packets, &[(TcpEventKind::RetxProbe, 4001)]);
    assert_eq!(flow.dl_retx_probe, 1);
}

#[test]
fn what_was_acknowledged_is_needless() {
    let mut packets = burst(1);
    packets.push(p(140, true, ACK, 200, 6000, 0));
    packets.push(p(141, false, ACK, 1000, 200, 1000).id(6));
    assert_eq!(check(&packets, &[(TcpEventKind::RetxSpurious, 1)]).dl_retx_spurious, 1);
}

#[test]
fn ids_tell_reordering_from_a_loss_before_the_monitor() {
    let mut overtaken = burst(1);
    overtaken.swap(2, 3);
    let flow = check(&overtaken, &[(TcpEventKind::Ahead, 3001), (TcpEventKind::Reordered, 2001)]);
    assert_eq!((flow.dl_retx, flow.dl_reordered, flow.dl_out_of_order), (0, 1, 1));
    let mut lost = burst(1);
    lost.extend((5..8).map(|n| p(100, false, ACK, 1000 + n * 1000, 200, 1000).id(1 + n as u16)));
    lost.remove(6);
    lost.push(p(101, false, ACK, 7000, 200, 1000).id(9));
    let flow = check(&lost, &[(TcpEventKind::Ahead, 7001), (TcpEventKind::RetxOther, 6001)]);
    assert_eq!((flow.dl_retx, flow.dl_reordered, flow.dl_bytes), (1, 0, 8000));
}

#[test]
fn copies_of_the_capture_count_once() {
    let once = [opening(), burst(1)].concat();
    let twice: Vec<P> = once.iter().flat_map(|p| [*p, *p]).collect();
    assert_eq!(run(&once), run(&twice));
}

#[test]
fn a_probe_with_the_next_byte_is_no_data() {
    let closed = |taken: u32| {
        let mut packets = burst(1);
        packets.push(p(140, true, ACK, 200, 6000, 0).id(1).window(0));
        packets.push(p(1000, false, ACK, 6000, 200, 1).id(6));
        packets.push(p(1040, true, ACK, 200, 6000, 0).id(2).window(0));
        packets.push(p(2000, false, ACK, 6000, 200, 1).id(7));
        packets.push(p(2040, true, ACK, 200, 6000 + taken, 0).id(3));
        packets.push(p(2041, false, ACK, 6000 + taken, 200, 1000).id(8));
        packets.push(p(2090, true, ACK, 200, 7000 + taken, 0).id(4));
        packets
    };
    let expected = [
        (TcpEventKind::ZeroWindow, 0),
        (TcpEventKind::WindowFull, 5001),
        (TcpEventKind::WindowProbe, 5001),
        (TcpEventKind::WindowProbe, 5001),
    ];
    for taken in [0, 1] {
        let flow = check(&closed(taken), &expected);
        assert_eq!((flow.window_probes, flow.dl_retx, flow.dl_unseen_bytes), (2, 0, 0));
        assert_eq!(flow.dl_bytes, u64::from(6000 + taken));
    }
}

#[test]
fn keep_alives_and_probes_of_a_closed_window() {
    let mut packets = burst(1);
    packets.push(p(140, true, ACK, 200, 6000, 0).id(1));
    packets.push(p(5000, false, ACK, 5999, 200, 0).id(6));
    packets.push(p(5040, true, ACK, 200, 6000, 0).id(2).window(0));
    packets.push(p(6000, false, ACK, 5999, 200, 0).id(7));
    packets.push(p(6040, true, ACK, 200, 6000, 0).id(3));
    let expected = [
        (TcpEventKind::KeepAlive, 5000),
        (TcpEventKind::ZeroWindow, 0),
        (TcpEventKind::WindowFull, 5001),
        (TcpEventKind::WindowProbe, 5000),
    ];
    let flow = check(&packets, &expected);
    assert_eq!((flow.keep_alives, flow.window_probes, flow.dl_retx), (1, 1, 0));
    assert_eq!((flow.client_zero_windows, flow.window_full_ns), (1, 1000 * MS));
}

#[test]
fn a_wild_sequence_number_counts_its_bytes_and_nothing_else() {
    let mut packets = burst(1);
    packets.insert(3, p(100, false, ACK, 1_500_000_000, 200, 1000).id(77));
    packets.push(p(140, true, ACK, 200, 6000, 0));
    let flow = check(&packets, &[(TcpEventKind::WildSequence, 1_499_999_001)]);
    assert_eq!((flow.dl_bytes, flow.dl_retx, flow.dl_unseen_bytes), (6000, 0, 0));
}

#[test]
fn what_the_capture_missed_is_told() {
    let mut packets = burst(1);
    packets.remove(2);
    packets.push(p(140, true, ACK, 200, 6000, 0));
    let flow = check(&packets, &[(TcpEventKind::Ahead, 3001)]);
    assert_eq!((flow.dl_bytes, flow.dl_unseen_bytes), (4000, 1000));
}

#[test]
fn a_flow_from_its_middle() {
    let packets = &[burst(1), vec![p(140, true, ACK, 200, 6000, 0)]].concat();
    let (flows, _) = run(packets);
    assert!(flows[0].mid_flow);
    assert_eq!((flows[0].client_by, flows[0].dl_bytes), (ClientBy::Private, 5000));
    assert_eq!((flows[0].dl_unseen_bytes, flows[0].client_min_window_bytes), (0, None));
}

#[test]
fn a_new_syn_on_the_same_ports_is_a_new_flow() {
    let mut packets = opening();
    packets.push(p(100, true, FIN | ACK, 200, 1000, 0));
    packets.push(p(200, true, SYN, 5000, 0, 0).id(3));
    let (flows, _) = run(&packets);
    assert_eq!(
        flows.iter().map(|f| f.termination).collect::<Vec<_>>(),
        [Termination::Fin, Termination::SynOnly]
    );
}

/// Three segments of which the middle one is lost after the monitor; its retransmission
/// repairs it.
#[test]
fn a_trace_is_what_passed() {
    let lost = [
        p(100, false, ACK, 1000, 200, 1000),
        p(101, false, ACK, 2000, 200, 1000),
        p(102, false, ACK, 3000, 200, 1000),
        p(140, true, ACK, 200, 2000, 0),
        p(142, true, ACK, 200, 2000, 0).sack(3000, 4000),
        p(150, false, ACK, 2000, 200, 1000),
        p(190, true, ACK, 200, 4000, 0).window(0),
    ];
    let packets = [opening().as_slice(), &lost].concat();
    let trace_of = |traced_flows: Vec<u64>| {
        let traced = Traced::Flows(traced_flows);
        let mut study = PacketStudy::new(StudyOptions { traced, ..StudyOptions::default() });
        packets.iter().for_each(|p| study.push(&p.packet()));
        std::iter::from_fn(move || study.poll_trace()).collect::<Vec<_>>()
    };
    assert!(trace_of(vec![]).is_empty() && trace_of(vec![1]).is_empty(), "flow 0 was not chosen");
    let trace = trace_of(vec![0]);
    assert_eq!(trace.len(), packets.len());
    // Data of the server: offset 0 is the SYN's, so the first byte is at 1.
    let data = trace.iter().filter(|t| t.dir == Direction::Dl && t.payload_bytes > 0);
    let data: Vec<_> = data.map(|t| (t.at_ns / MS, t.event, t.offset_bytes, t.new_bytes)).collect();
    let expected = [
        (100, None, 1, 1000),
        (101, None, 1001, 1000),
        (102, None, 2001, 1000),
        (150, Some(TcpEventKind::RetxFast), 1001, 0),
    ];
    assert_eq!(data, expected);
    let acks = trace.iter().skip(8).filter(|t| t.dir == Direction::Ul).filter_map(|t| t.ack);
    let acks: Vec<_> = acks
        .map(|a| (a.offset_bytes, a.duplicate, a.sack[0], a.flight_bytes, a.rwnd_bytes))
        .collect();
    let expected = [
        (1001, false, (0, 0), 2000, Some(16_000)),
        (1001, true, (2001, 3001), 2000, Some(16_000)),
        (3001, false, (0, 0), 0, Some(0)),
    ];
    assert_eq!(acks, expected);
}

/// Both legs of a connection at a proxy: the phone's, and the proxy's own.
fn split_legs() -> Vec<P> {
    let mut packets = opening();
    // It connects when it has the request.
    packets.extend([
        p(70, true, SYN, 7_000_099, 0, 0),
        p(90, false, SYN | ACK, 5_000_999, 7_000_100, 0),
        p(91, true, ACK, 7_000_100, 5_001_000, 100),
        p(111, false, ACK, 5_001_000, 7_000_200, 1000),
        p(112, true, ACK, 7_000_200, 5_002_000, 0),
        p(113, false, ACK, 1000, 200, 1000),
        p(150, true, ACK, 200, 2000, 0),
        p(151, false, FIN | ACK, 2000, 200, 0),
        p(152, false, FIN | ACK, 5_002_000, 7_000_200, 0),
    ]);
    packets
}

#[test]
fn legs_of_a_split_connection_are_told_apart() {
    let (flows, events) = run(&split_legs());
    assert!(events.is_empty(), "{events:?}");
    let of = |f: &FlowRow| (f.leg, f.ul_bytes, f.dl_bytes, f.upstream_rtt_ns, f.termination);
    let got: Vec<_> = flows.iter().map(of).collect();
    let expected = [
        (Some(Leg::Client), 100, 1000, Some(20 * MS), Termination::Fin),
        (Some(Leg::Server), 100, 1000, Some(20 * MS), Termination::Fin),
    ];
    assert_eq!(got, expected);
}

#[test]
fn a_transfer_through_a_proxy_is_summed_once() {
    let mut study = PacketStudy::new(StudyOptions::default());
    split_legs().iter().for_each(|p| study.push(&p.packet()));
    let summary = study.finish();
    assert_eq!((summary.tcp.flows, summary.tcp.bytes, summary.users), (1, 1100, 1));
    assert_eq!((summary.quality.split_connections, summary.quality.wild_sequences), (1, 0));
}

#[test]
fn a_port_used_again_is_no_leg() {
    let again: Vec<P> = opening()
        .iter()
        .map(|p| P { ms: p.ms + 5000, seq: p.seq + 9_000_000, ack: p.ack + 9_000_000, ..*p })
        .collect();
    let (flows, _) = run(&[opening(), again].concat());
    assert_eq!(flows.iter().map(|f| (f.leg, f.ul_bytes)).collect::<Vec<_>>(), [(None, 100); 2]);
}

#[test]
fn without_sack_duplicate_acks_are_of_segments_in_order() {
    let mut packets = vec![p(100, false, ACK, 1000, 200, 1000).id(1)];
    packets.extend(
        (1..5).map(|n| p(100 + n, false, ACK, 1000 + n as u32 * 1000, 200, 1000).id(1 + n as u16)),
    );
    // The first is missing; ACKs at 141, 145, 149 and 153 ms report the others.
    packets.extend((0..4).map(|n| p(141 + 4 * n, true, ACK, 200, 1000, 0).id(n as u16)));
    packets.push(p(160, false, ACK, 1000, 200, 1000).id(6));
    packets.push(p(220, true, ACK, 200, 6000, 0).id(9));
    let (_, events) = run(&[opening(), packets].concat());
    let last = events.last().unwrap();
    // The fifth passed at 104 ms.
    assert_eq!((last.rtt_during_ns, last.rtt_retx_ns), (Some(49 * MS), Some(60 * MS)));
}

/// Of two holes the first is filled: its ACK reports what came meanwhile (RFC 2018, 4), so that the
/// next duplicate is of one segment, whose round trip is known.
#[test]
fn an_ack_that_advances_reports_the_rest_of_a_recovery() {
    let mut packets: Vec<P> =
        (1..9).map(|n| p(100, false, ACK, n * 1000, 200, 1000).id(n as u16)).collect();
    packets.extend([
        p(141, true, ACK, 200, 1000, 0).id(1).sack(2000, 3000),
        p(142, true, ACK, 200, 1000, 0).id(2).sack(2000, 4000),
        p(143, true, ACK, 200, 1000, 0).id(3).sack(5000, 6000),
        p(150, false, ACK, 1000, 200, 1000).id(9),
        // ACKs of 6000 and 7000 are lost.
        p(190, true, ACK, 200, 4000, 0).id(4).sack(5000, 8000),
        p(191, true, ACK, 200, 4000, 0).id(5).sack(5000, 9000),
    ]);
    let samples = |row| match row {
        PacketRow::Rtt(sample) => (sample.by == RttSource::Sack).then_some(sample.rtt_ns / MS),
        _ => None,
    };
    let rtts: Vec<i64> =
        rows(&[opening(), packets].concat()).into_iter().filter_map(samples).collect();
    assert_eq!(rtts, [41, 42, 43, 91]);
}

/// The timer sent again what was in flight, and the ACK of all of it says so (RFC 2883).
#[test]
fn an_ack_that_advances_reports_what_came_twice() {
    let too_soon = |came_twice: bool| {
        let mut packets = burst(1);
        for n in 0..4 {
            let dup = p(141 + n, true, ACK, 200, 1000, 0).id(n as u16);
            packets.push(dup.sack(2000, 3000 + n as u32 * 1000));
        }
        packets.push(p(150, false, ACK, 1000, 200, 1000).id(6));
        packets.push(p(600, false, ACK, 1000, 200, 1000).id(7));
        let last = p(660, true, ACK, 200, 6000, 0).id(9);
        packets.push(if came_twice { last.sack(1000, 2000) } else { last });
        let (_, events) = run(&[opening(), packets].concat());
        events.last().unwrap().timer_too_soon
    };
    assert_eq!([false, true].map(too_soon), [Some(false), Some(true)]);
}

#[test]
fn what_is_sent_again_long_behind_the_duplicate_acks_is_a_timeout() {
    let mut packets = burst(1);
    for n in 0..4 {
        packets.push(
            p(141 + n, true, ACK, 200, 1000, 0).id(n as u16).sack(2000, 3000 + n as u32 * 1000),
        );
    }
    packets.push(p(600, false, ACK, 1000, 200, 1000).id(6));
    packets.push(p(660, true, ACK, 200, 6000, 0).id(9));
    let (flows, _) = run(&[opening(), packets].concat());
    assert_eq!((flows[0].dl_retx_timeout, flows[0].dl_retx_fast), (1, 0));
}

#[test]
fn the_first_ack_in_the_middle_of_a_flow_repeats_nothing() {
    let (flows, events) = run(&[
        p(0, true, ACK, 200, 4000, 0),
        p(1, false, ACK, 9000, 200, 1000),
        p(2, false, ACK, 10_000, 200, 1000),
        p(20, true, ACK, 200, 9000, 0),
        p(41, true, ACK, 200, 11_000, 0),
    ]);
    assert_eq!((flows[0].dl_dup_acks, events.len()), (0, 0), "{events:?}");
}

/// A capture with a tap per direction: ACKs are 1 ms early.
#[test]
fn an_ack_ahead_of_its_data_loses_nothing() {
    let mut packets = Vec::new();
    for n in 0..20 {
        let (at, seq) = (100 + 5 * i64::from(n), 1000 + n * 2000);
        packets.push(p(at, true, ACK, 200, seq + 2000, 0).id(n as u16));
        packets.push(p(at + 1, false, ACK, seq, 200, 1000).id(2 * n as u16));
        packets.push(p(at + 1, false, ACK, seq + 1000, 200, 1000).id(2 * n as u16 + 1));
    }
    let flow = check(&packets, &[]);
    assert_eq!((flow.dl_bytes, flow.dl_retx, flow.dl_unseen_bytes), (40_000, 0, 0));
    let mut study = PacketStudy::new(StudyOptions::default());
    [opening(), packets].concat().iter().for_each(|p| study.push(&p.packet()));
    assert_eq!(study.finish().quality.late_segments, 40);
}

#[test]
fn the_other_fin_may_come_minutes_later() {
    let closing = [
        p(100, false, FIN | ACK, 1000, 200, 0),
        p(140, true, ACK, 200, 1001, 0),
        p(100_000, true, FIN | ACK, 200, 1001, 0),
        p(100_020, false, ACK, 1001, 201, 0),
    ];
    let flow = check(&closing, &[]);
    assert_eq!((flow.termination, flow.payload_to_end_ns), (Termination::Fin, Some(99_959 * MS)));
}

#[test]
fn a_server_with_a_private_address_is_the_server() {
    let mut packet = p(0, false, ACK, 5000, 900, 1000).packet();
    let check = |packet: &Packet<'_>, expected: (&str, ClientBy)| {
        let options = StudyOptions { tables: Tables::ALL, ..StudyOptions::default() };
        let mut study = PacketStudy::new(options);
        study.push(packet);
        let mut rows = Vec::new();
        let _ = study.finish_with(&mut |row| rows.push(row));
        let flows = rows.iter().find_map(|row| match row {
            PacketRow::Flow(row) => Some((row.client.clone(), row.client_by)),
            _ => None,
        });
        assert_eq!(flows, Some((expected.0.to_owned(), expected.1)));
    };
    check(&packet, ("10.0.0.1", ClientBy::Private));
    packet.src = Address::v4([172, 31, 0, 10]);
    packet.dst = Address::v4([203, 0, 113, 77]);
    check(&packet, ("203.0.113.77", ClientBy::Port));
    packet.src_port = 50_001;
    check(&packet, ("172.31.0.10", ClientBy::Private));
}

/// A capture of the uplink alone: an acknowledgement that reports more is a duplicate, a repeated
/// one is not (RFC 6675, 2).
#[test]
fn duplicate_acks_of_the_uplink_alone_report_more() {
    let mut packets: Vec<P> = opening().into_iter().filter(|p| p.up).collect();
    packets.push(p(100, true, ACK, 200, 5000, 0).id(1));
    packets.extend((2..6).map(|n| {
        p(100 + i64::from(n), true, ACK, 200, 5000, 0).id(n as u16).sack(6000, 6000 + n * 1000)
    }));
    let (flows, _) = run(&packets);
    assert_eq!(flows[0].dl_dup_acks, 4);
}
