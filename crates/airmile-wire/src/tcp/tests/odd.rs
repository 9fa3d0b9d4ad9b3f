//! Traffic that is odd and legal: many holes, data in a SYN, a clock that is set back.

use super::*;

/// Segments of 1,000 bytes of the server, one each millisecond.
fn segments(numbers: impl Iterator<Item = u32>, from_ms: i64) -> Vec<P> {
    let at = |(ms, n): (i64, u32)| p(from_ms + ms, false, ACK, 1000 + 1000 * n, 200, 1000);
    (0..).zip(numbers).map(at).collect()
}

/// Every second segment is late: no byte passes twice, however many holes there are.
#[test]
fn bytes_of_many_holes_are_counted_once() {
    let mut packets = segments((0..=400).step_by(2), 100);
    // Overtaken on the path: they come before any duplicate ACK.
    packets.iter_mut().for_each(|p| p.ms = 100);
    let late = segments((1..400).step_by(2), 100).into_iter().map(|p| P { ms: 102, ..p });
    packets.extend(late);
    packets.push(p(150, true, ACK, 200, 402_000, 0));
    let (flows, _) = run(&[opening(), packets].concat());
    let flow = &flows[0];
    assert_eq!((flow.dl_bytes, flow.dl_retx_bytes, flow.dl_unseen_bytes), (401_000, 0, 0));
    assert_eq!(flow.dl_reordered, 200);
}

/// The capture lacks every second segment.
#[test]
fn many_holes_that_are_never_filled_are_unseen() {
    let mut packets = segments((0..=400).step_by(2), 100);
    packets.push(p(600, true, ACK, 200, 402_000, 0));
    let (flows, _) = run(&[opening(), packets].concat());
    assert_eq!((flows[0].dl_bytes, flows[0].dl_unseen_bytes), (201_000, 200_000));
}

/// No round trip is measured over the step.
#[test]
fn a_clock_that_is_set_back_gives_no_round_trip_of_zero() {
    let flow = check(
        &[
            p(100, false, ACK, 1000, 200, 1000),
            p(140, true, ACK, 200, 2000, 0),
            p(150, false, ACK, 2000, 200, 1000),
            // Set back by 100 ms: 40 ms after the segment.
            p(90, true, ACK, 200, 3000, 0),
        ],
        &[],
    );
    assert_eq!(flow.rtt_min_ns, Some(40 * MS));
}

#[test]
fn options_that_were_cut_off_are_unknown() {
    let packets = opening().into_iter().chain([p(100, false, ACK, 1000, 200, 1000)]);
    for cut in [false, true] {
        for from in [0, 3] {
            let options = StudyOptions { tables: Tables::ALL, ..StudyOptions::default() };
            let mut study = PacketStudy::new(options);
            for p in packets.clone().skip(from) {
                let mut packet = p.packet();
                if let Transport::Tcp(tcp) = &mut packet.transport {
                    tcp.options_cut = cut;
                }
                study.push(&packet);
            }
            let mut stamps = Vec::new();
            let _ = study.finish_with(&mut |row| {
                if let PacketRow::Flow(row) = row {
                    stamps.push(row.timestamps);
                }
            });
            assert_eq!(stamps, [(!cut).then_some(false)], "from packet {from}");
        }
    }
}

/// TCP Fast Open (RFC 7413).
#[test]
fn data_in_a_syn_counts() {
    let (flows, events) = run(&[
        p(0, true, SYN, 99, 0, 100),
        p(20, false, SYN | ACK, 999, 200, 0),
        p(60, true, ACK, 200, 1000, 0),
        p(70, false, ACK, 1000, 200, 1000),
        p(100, true, ACK, 200, 2000, 0),
    ]);
    let flow = &flows[0];
    assert_eq!((flow.ul_bytes, flow.ul_segments, flow.ul_unseen_bytes), (100, 1, 0));
    assert_eq!((flow.dl_bytes, flow.ul_retx, events.len()), (1000, 0, 0));
    assert_eq!((flow.upstream_rtt_ns, flow.downstream_rtt_ns), (Some(20 * MS), Some(40 * MS)));
}

/// The server took no data of the SYN, so the client sends it again.
#[test]
fn data_of_a_syn_that_is_refused_is_sent_again() {
    let (flows, _) = run(&[
        p(0, true, SYN, 99, 0, 100),
        p(20, false, SYN | ACK, 999, 100, 0),
        p(60, true, ACK, 100, 1000, 100),
        p(80, false, ACK, 1000, 200, 0),
    ]);
    let flow = &flows[0];
    assert_eq!((flow.ul_bytes, flow.ul_retx, flow.ul_retx_bytes), (100, 1, 100));
    assert_eq!((flow.ul_unseen_bytes, flow.termination), (0, Termination::CaptureEnd));
}

/// Without IP identification and time stamps it looks like a copy of the packet in the capture, but
/// duplicate ACKs asked for it.
#[test]
fn a_retransmission_that_was_asked_for_is_no_copy() {
    let mut packets = segments(0..6, 100);
    packets.iter_mut().for_each(|p| p.ms = 100);
    packets.extend((0..4).map(|_| p(101, true, ACK, 200, 1000, 0)));
    let again = p(102, false, ACK, 1000, 200, 1000);
    packets.push(again);
    packets.push(p(142, true, ACK, 200, 7000, 0));
    let packets = [opening(), packets].concat();
    let (flows, _) = run(&packets);
    assert_eq!((flows[0].dl_retx, flows[0].dl_retx_fast), (1, 1));
    // The retransmission itself captured twice is one.
    let mut twice = packets;
    twice.insert(twice.len() - 1, again);
    assert_eq!(run(&twice).0[0].dl_retx, 1);
}

/// Without the SYNs only a closed window is known, and no first window.
#[test]
fn a_window_of_unknown_scale_is_full_while_it_is_closed() {
    let mut packets = Vec::new();
    for n in 0..40 {
        packets.push(p(100 * i64::from(n), false, ACK, 1000 + 1000 * n, 200, 1000));
        packets.push(p(100 * i64::from(n) + 10, true, ACK, 200, 2000 + 1000 * n, 0));
    }
    packets.insert(20, p(911, true, ACK, 200, 11_000, 0).window(0));
    packets.insert(21, p(915, true, ACK, 200, 11_000, 0));
    let (flows, _) = run(&packets);
    let flow = &flows[0];
    assert_eq!((flow.window_full_ns, flow.client_zero_windows), (4 * MS, 1));
    assert_eq!(flow.client_initial_window_bytes, None);
    let (flows, _) = run(&[opening(), vec![p(911, true, ACK, 200, 1000, 0).window(0)]].concat());
    assert_eq!(flows[0].client_initial_window_bytes, Some(16_000));
}

/// A direction that the capture lacks: the acknowledged FIN is no byte of it.
#[test]
fn unseen_bytes_of_a_missing_direction_have_no_fin() {
    let all = [
        opening(),
        vec![
            p(100, false, ACK, 1000, 200, 1000),
            p(140, true, ACK, 200, 2000, 0),
            p(150, false, FIN | ACK, 2000, 200, 0),
            p(190, true, FIN | ACK, 200, 2001, 0),
            p(210, false, ACK, 2001, 201, 0),
        ],
    ]
    .concat();
    let of = |up: bool| {
        let one: Vec<P> = all.iter().copied().filter(|p| p.up == up).collect();
        let (flows, _) = run(&one);
        (flows[0].ul_unseen_bytes, flows[0].dl_unseen_bytes)
    };
    assert_eq!((of(true), of(false)), ((0, 1000), (100, 0)));
}

/// A datagram with a missing fragment is given out after later packets: that is no retransmission.
#[test]
fn a_datagram_with_a_missing_fragment_is_not_sent_again() {
    for acked in [false, true] {
        let mut study =
            PacketStudy::new(StudyOptions { tables: Tables::ALL, ..StudyOptions::default() });
        let mut packets = [opening(), segments([0, 2, 3, 4].into_iter(), 100)].concat();
        if acked {
            packets.push(p(150, true, ACK, 200, 6000, 0));
        }
        packets.iter().for_each(|p| study.push(&p.packet()));
        let late = Packet { fragmented: true, ..p(101, false, ACK, 2000, 200, 600).packet() };
        study.push(&late);
        study.push(&p(200, true, ACK, 200, 6000, 0).packet());
        let mut flows = Vec::new();
        let _ = study.finish_with(&mut |row| {
            if let PacketRow::Flow(row) = row {
                flows.push(row);
            }
        });
        let flow = &flows[0];
        assert_eq!((flow.dl_segments, flow.dl_retx, flow.dl_reordered), (5, 0, 0));
        let seen = if acked { (4000, 1000) } else { (4600, 400) };
        assert_eq!((flow.dl_bytes, flow.dl_unseen_bytes), seen);
    }
}

/// Without time stamps and IP identification: what a duplicate ACK asks for takes the round trip from
/// the monitor to the server, 20 ms.
#[test]
fn what_comes_sooner_than_a_round_trip_after_its_hole_was_overtaken() {
    for (ms, kind) in [(106, TcpEventKind::Reordered), (121, TcpEventKind::RetxFast)] {
        let mut packets = segments([0, 2, 3, 4].into_iter(), 100);
        packets.iter_mut().for_each(|p| p.ms = 100);
        packets.extend((1..5).map(|n| p(100 + n, true, ACK, 200, 2000, 0)));
        packets.push(p(ms, false, ACK, 2000, 200, 1000));
        packets.push(p(ms + 40, true, ACK, 200, 6000, 0));
        let (_, events) = run(&[opening(), packets].concat());
        assert!(events.iter().any(|event| event.event == kind), "{kind:?}: {events:?}");
    }
}
