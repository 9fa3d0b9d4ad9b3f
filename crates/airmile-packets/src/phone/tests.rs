mod families;

use std::collections::HashSet;

use airmile_model::TcpEventKind;
use airmile_model::packet::{SeqNum, TcpFlags};
use airmile_wire::attribute::{Marks, Reason};
use airmile_wire::clocks::between_points;
use airmile_wire::tcp::{TracedAck, TracedPacket};

use super::reader::MOST_USERS;
use super::*;

/// Of a thousand clients of a server, those with the most bytes are kept, and the
/// one that the phone's own capture has shown.
#[test]
fn a_server_with_many_clients() {
    let mut capture = PhoneReader::new(HashSet::from([77]), Some(500_000_000));
    for user in 0..1000_u64 {
        let isn = if user == 3 { 77 } else { 1_000_000 + user as u32 };
        for (seq, flags, bytes) in [(isn, TcpFlags::SYN, 0), (isn + 1, TcpFlags::ACK, user)] {
            capture.push(&TracedPacket {
                flow: user,
                user,
                at_ns: user as i64 * 1_000_000,
                dir: Direction::Dl,
                seq: SeqNum(seq),
                flags,
                offset_bytes: 1,
                payload_bytes: bytes as u32,
                new_bytes: bytes,
                flight_bytes: bytes,
                ..TracedPacket::EXAMPLE
            });
        }
    }
    assert!(capture.users.len() <= MOST_USERS + MOST_USERS / 2);
    assert!(capture.users.contains_key(&3) && capture.users.contains_key(&999));
    assert!(!capture.users.contains_key(&4));
}

/// A capture whose exchanges nobody asks for keeps none: else each packet after an answer would be one.
#[test]
fn without_a_pause_there_are_no_exchanges() {
    for (pause_ns, expected) in [(None, 0), (Some(500 * MS), 1)] {
        let mut capture = PhoneReader::new(HashSet::new(), pause_ns);
        for n in 0..1_000 {
            let (dir, at_ns) = (Direction::Dl, n * MS);
            let (payload_bytes, new_bytes) = (1_000, 1_000);
            let packet =
                TracedPacket { at_ns, dir, payload_bytes, new_bytes, ..TracedPacket::EXAMPLE };
            capture.push(&TracedPacket { offset_bytes: 1_000 * n, ..packet });
        }
        let connections = capture.users.values().flat_map(|user| user.connections.values());
        assert_eq!(connections.flat_map(|one| one.exchanges.iter()).count(), expected);
    }
}

const MS: i64 = 1_000_000;

/// A connection without time stamps: its server, its initial sequence number, when it begins on the
/// phone's clock, and the segments that the server sends, one each 10 ms.
#[derive(Clone, Copy)]
struct Connection {
    server: [u8; 4],
    isn: u32,
    begin_ms: i64,
    segments: i64,
}

const SEGMENT_BYTES: i64 = 1_400;
const CLIENT: [u8; 4] = [10, 0, 0, 2];
const ONE: Connection =
    Connection { server: [192, 0, 2, 1], isn: 1_000, begin_ms: 0, segments: 200 };

/// What a capture shows of connections whose packets pass it `down_ms` later towards the phone than
/// there, and `up_ms` later away from it, by a clock that is ahead by `ahead_ms`.
fn seen(connections: &[Connection], up_ms: i64, down_ms: i64, ahead_ms: i64) -> Phone {
    let both = [Direction::Ul, Direction::Dl];
    seen_of(&both, connections, (up_ms, down_ms), ahead_ms)
}

/// The same of some directions.
fn seen_of(
    dirs: &[Direction],
    connections: &[Connection],
    (up_ms, down_ms): (i64, i64),
    ahead_ms: i64,
) -> Phone {
    let mut packets = Vec::new();
    for (flow, one) in connections.iter().enumerate() {
        let down = |at_ms: i64, segment: Option<i64>| TracedPacket {
            flow: flow as u64,
            user: 0,
            at_ns: (one.begin_ms + at_ms + ahead_ms) * MS + down_ms * MS,
            dir: Direction::Dl,
            seq: SeqNum(one.isn),
            flags: if segment.is_none() { TcpFlags::SYN } else { TcpFlags::ACK },
            offset_bytes: segment.map_or(0, |n| n * SEGMENT_BYTES),
            payload_bytes: segment.map_or(0, |_| SEGMENT_BYTES as u32),
            new_bytes: segment.map_or(0, |_| SEGMENT_BYTES as u64),
            ..TracedPacket::EXAMPLE
        };
        let up = |at_ms: i64, flags, acked: Option<i64>, bytes: u32| TracedPacket {
            at_ns: (one.begin_ms + at_ms + ahead_ms) * MS + up_ms * MS,
            dir: Direction::Ul,
            seq: SeqNum(7),
            flags,
            offset_bytes: 0,
            payload_bytes: bytes,
            new_bytes: u64::from(bytes),
            ack: acked.map(|n| TracedAck {
                offset_bytes: n * SEGMENT_BYTES,
                rwnd_bytes: Some(1_000_000),
                duplicate: false,
                flight_bytes: 0,
                sack: [(0, 0); 4],
            }),
            ..down(0, None)
        };
        let ends = [(CLIENT, 5_000 + flow as u16), (one.server, 443)]
            .map(|(to, port)| (Address::v4(to), port));
        let mut add = |packet: TracedPacket| packets.push((packet.at_ns, ends, packet));
        add(up(0, TcpFlags::SYN, None, 0));
        add(down(40, None));
        add(up(40, TcpFlags::ACK, Some(0), 300));
        for n in 0..one.segments {
            add(down(80 + n * 10, Some(n)));
            add(up(80 + n * 10, TcpFlags::ACK, Some(n + 1), 0));
        }
    }
    packets.sort_by_key(|(at_ns, ..)| *at_ns);
    let mut capture = PhoneReader::default();
    for (_, ends, packet) in packets.into_iter().filter(|one| dirs.contains(&one.2.dir)) {
        let down = packet.dir == Direction::Dl;
        capture.ends = Some(if down { [ends[1], ends[0]] } else { ends });
        capture.push(&packet);
    }
    capture.finish(false).remove(0)
}

#[test]
fn files_of_one_direction_each_are_no_parts() {
    let [sent, came] = [Direction::Ul, Direction::Dl].map(|dir| seen_of(&[dir], &[ONE], (0, 0), 0));
    assert!(sent.is_other_way_of(&came) && came.is_other_way_of(&sent));
    let whole = seen(&[ONE], 0, 0, 0);
    assert!(!came.is_other_way_of(&came) && !whole.is_other_way_of(&sent));
}

/// The phone's and the server's view of connections that the server has, 20 ms away.
fn view(phone: &[Connection], server: &[Connection]) -> ServerView {
    ServerView::of(&seen(phone, 0, 0, 0), &seen(server, 20, -20, 0), None, 20 * MS).pop().unwrap()
}

/// Whether the server's waits count for all that came to the phone in a span.
fn counts(view: &ServerView, phone: &[Connection], span_ms: (i64, i64)) -> bool {
    let (from_ns, to_ns) = (span_ms.0 * MS, span_ms.1 * MS);
    let all_bytes = seen(phone, 0, 0, 0).followed.within(from_ns, to_ns);
    view.waits(from_ns, to_ns, all_bytes).is_some()
}

#[test]
fn the_servers_waits_count_for_its_own_data() {
    assert!(counts(&view(&[ONE], &[ONE]), &[ONE], (0, 2_100)));
    // It has a third of the connection.
    let part = Connection { segments: 70, ..ONE };
    let (phone, server) = (seen(&[ONE], 0, 0, 0), seen(&[part], 20, -20, 0));
    assert!(ServerView::of(&phone, &server, None, 20 * MS).is_empty());
}

/// The phone loads from another server, too: later, and at the same time.
#[test]
fn the_data_of_another_server_waits_for_other_things() {
    let other = Connection { server: [192, 0, 2, 9], isn: 2_000, ..ONE };
    let later = Connection { begin_ms: 3_000, ..other };
    let both = [ONE, later];
    let by_one = view(&both, &[ONE]);
    assert!(counts(&by_one, &both, (0, 2_100)));
    assert!(!counts(&by_one, &both, (3_000, 5_100)));
    assert!(!counts(&view(&[ONE, other], &[ONE]), &[ONE, other], (0, 2_100)));
}

/// Behind a translation others use the phone's address: the server's waits are also theirs.
#[test]
fn others_behind_the_same_address_have_waits_of_their_own() {
    let neighbour = Connection { isn: 3_000, ..ONE };
    assert!(!counts(&view(&[ONE], &[ONE, neighbour]), &[ONE], (0, 2_100)));
    // Before it comes, and when the server's capture goes on after the phone's.
    let late = Connection { begin_ms: 2_500, ..neighbour };
    assert!(counts(&view(&[ONE], &[ONE, late]), &[ONE], (0, 2_100)));
}

/// The waits are on the phone's clock; one wrong pair moves nothing.
#[test]
fn a_servers_clock_may_differ() {
    let (phone, server) = (seen(&[ONE], 0, 0, 0), seen(&[ONE], 20, -20, 5_000));
    let line = between_points(&phone.pairs(&server)).unwrap();
    let mut paths = Paths::between(&phone, &server, Some(&line));
    // Clocks are aligned so that both directions take the same time.
    assert!((paths.base_ns - 20 * MS).abs() < MS, "{}", paths.base_ns);
    let by_other_clock = ServerView::of(&phone, &server, Some(&line), paths.base_ns).pop().unwrap();
    let spans = |view: &ServerView| {
        let waits = view.waits(0, 2_100 * MS, 0).unwrap();
        let rounded = |ns: i64| (ns + MS / 2).div_euclid(MS);
        let spans = waits.spans().iter();
        spans.map(|one| (rounded(one.from_ns), rounded(one.to_ns), one.reason)).collect::<Vec<_>>()
    };
    assert_eq!(spans(&by_other_clock), spans(&view(&[ONE], &[ONE])));
    let mut stepped = seen(&[ONE], 20, -20, 5_000);
    let marks = stepped.connections.first_mut().unwrap();
    marks.down = (0..200).fold(Marks::default(), |mut marks, n| {
        let late_ms = if n == 100 { 9_000 } else { 5_060 };
        marks.add((n + 1) * SEGMENT_BYTES, (n * 10 + late_ms) * MS);
        marks
    });
    paths = Paths::between(&phone, &stepped, Some(&line));
    assert!((paths.base_ns - 20 * MS).abs() < MS, "{}", paths.base_ns);
    assert_eq!(paths.down.touching(i64::MIN, i64::MAX).count(), 0);
}

/// A connection with time stamps whose last ten segments the server sends again after a second: their
/// first copies were lost, or else arrived. `with_other`: there is also one without them, of a segment.
fn sent_again(are_lost: bool, with_other: bool) -> Vec<ServerView> {
    sent_again_by(true, are_lost, with_other)
}

/// The same of a connection with time stamps or without.
fn sent_again_by(is_stamped: bool, are_lost: bool, with_other: bool) -> Vec<ServerView> {
    let capture = |at_phone: bool| {
        let (down_ms, up_ms) = if at_phone { (20, 20) } else { (0, 40) };
        let mut capture = PhoneReader::default();
        let ends = [(CLIENT, 5_000), ([192, 0, 2, 1], 443)];
        let ends = ends.map(|(to, port)| (Address::v4(to), port));
        let mut push =
            |ms: i64, dir, flags, (offset_bytes, bytes, acked): (i64, u32, i64), new: bool| {
                let event = (bytes > 0 && !new).then_some(TcpEventKind::RetxTimeout);
                let at_ms = ms + if dir == Direction::Dl { down_ms } else { up_ms };
                capture.ends = Some(if dir == Direction::Dl { [ends[1], ends[0]] } else { ends });
                capture.push(&TracedPacket {
                    at_ns: at_ms * MS,
                    dir,
                    flags,
                    timestamps: is_stamped.then_some((ms as u32, 0)),
                    event,
                    offset_bytes,
                    payload_bytes: bytes,
                    new_bytes: if new { bytes.into() } else { 0 },
                    ack: (dir == Direction::Ul).then_some(TracedAck {
                        offset_bytes: acked,
                        rwnd_bytes: Some(1_000_000),
                        duplicate: false,
                        flight_bytes: 0,
                        sack: [(0, 0); 4],
                    }),
                    ..TracedPacket::EXAMPLE
                });
            };
        push(-40, Direction::Ul, TcpFlags::SYN, (0, 0, 0), true);
        push(0, Direction::Dl, TcpFlags::SYN, (0, 0, 0), true);
        push(0, Direction::Ul, TcpFlags::ACK, (0, 300, 0), true);
        let bytes = SEGMENT_BYTES as u32;
        for n in 0..40_i64 {
            let (ms, copies) = (100 + n * 41, if n < 30 { 1 } else { 2 });
            for copy in 0..copies {
                let is_first = copy == 0;
                if at_phone && are_lost && is_first && copies == 2 {
                    continue;
                }
                let ms = if is_first { ms.min(1_330) } else { ms + 1_000 };
                let data = (n * SEGMENT_BYTES, bytes, 0);
                let is_new = is_first || at_phone && are_lost;
                push(ms, Direction::Dl, TcpFlags::ACK, data, is_new);
                let acked = (n + 1) * SEGMENT_BYTES;
                if copies == 1 {
                    push(ms, Direction::Ul, TcpFlags::ACK, (300, 0, acked), true);
                }
            }
        }
        for (ms, up, flags) in
            [(200, true, TcpFlags::SYN), (240, false, TcpFlags::SYN), (250, false, TcpFlags::ACK)]
        {
            let ends = [(ends[0].0, 5_001), ends[1]];
            capture.ends = Some(if up { ends } else { [ends[1], ends[0]] });
            let (dir, way_ms) = if up { (Direction::Ul, up_ms) } else { (Direction::Dl, down_ms) };
            let bytes = if flags == TcpFlags::ACK { SEGMENT_BYTES as u32 } else { 0 };
            let packet = TracedPacket { flow: 9, dir, flags, ..TracedPacket::EXAMPLE };
            if with_other {
                capture.push(&TracedPacket {
                    at_ns: (ms + way_ms) * MS,
                    seq: SeqNum(9),
                    payload_bytes: bytes,
                    new_bytes: bytes.into(),
                    ..packet
                });
            }
        }
        capture.finish(false).remove(0)
    };
    ServerView::of(&capture(true), &capture(false), None, 20 * MS)
}

/// The phone sees a pause and then new data; if the first copies arrived, nothing was lost.
#[test]
fn the_server_shows_losses_of_all_that_followed() {
    for with_other in [false, true] {
        let shown = sent_again(true, with_other);
        let waits = shown.iter().find_map(|one| one.waits(0, 3_000 * MS, 0)).unwrap();
        let by_loss = waits.spans().iter().filter(|span| span.reason == Reason::LossRecovery);
        assert!(by_loss.map(|span| span.to_ns - span.from_ns).sum::<i64>() > 900 * MS);
        assert_eq!(shown.iter().map(|one| one.lost.len()).sum::<usize>(), 10);
    }
    assert!(sent_again(false, false).is_empty());
    // The one without time stamps cannot show whose copies arrived, and changes nothing for the other.
    assert!(sent_again(false, true).iter().all(|one| one.lost.is_empty()));
    let lost = |are_lost| {
        let shown = sent_again_by(false, are_lost, false);
        shown.iter().map(|one| one.lost.len()).sum::<usize>()
    };
    assert_eq!([lost(true), lost(false)], [10, 0]);
}

/// A connection that begins while another one of that server has filled the uplink.
#[test]
fn a_new_connection_knows_the_path_of_parallel_ones() {
    let parallel = Connection { isn: 4_000, begin_ms: 1_000, ..ONE };
    let phone = seen(&[ONE, parallel], 0, 0, 0);
    let upstream = |n: usize| phone.connections.get(n).unwrap().sender.upstream_rtt_ns();
    assert_eq!((upstream(0), upstream(1)), (Some(40 * MS), Some(40 * MS)));
    let mut capture = PhoneReader::default();
    for (flow, at_ms, server, port) in
        [(1, 0, 1, 443), (2, 900, 1, 443), (3, 900, 9, 443), (4, 900, 1, 80)]
    {
        let ends = [(CLIENT, 5_000 + flow as u16), ([192, 0, 2, server], port)];
        let [client, host] = ends.map(|(to, port)| (Address::v4(to), port));
        // All SYN-ACKs but the first take 400 ms.
        let answer_ms = if flow == 1 { 40 } else { 400 };
        let isn = SeqNum(flow as u32);
        let packet = |at_ms: i64, dir| TracedPacket {
            flow,
            user: 0,
            at_ns: at_ms * MS,
            dir,
            seq: isn,
            flags: TcpFlags::SYN,
            timestamps: None,
            event: None,
            offset_bytes: 0,
            payload_bytes: 0,
            new_bytes: 0,
            flight_bytes: 0,
            ack: None,
        };
        capture.ends = Some([client, host]);
        capture.push(&packet(at_ms, Direction::Ul));
        capture.ends = Some([host, client]);
        capture.push(&packet(at_ms + answer_ms, Direction::Dl));
    }
    let phone = capture.finish(false).remove(0);
    let upstream = phone.connections.iter().map(|one| one.sender.upstream_rtt_ns().unwrap() / MS);
    assert_eq!(upstream.collect::<Vec<_>>(), [40, 40, 400, 400]);
}

/// An upload of 2 s, seen at the phone, or at a server that its packets reach 60 ms later, and whose own
/// packets take 20 ms back; the clock is ahead by some time.
fn upload(at_server: bool, ahead_ms: i64) -> Phone {
    let mut capture = PhoneReader::new(HashSet::new(), Some(500_000_000));
    let ends = [(CLIENT, 5_000), (ONE.server, 5_001)].map(|(to, port)| (Address::v4(to), port));
    let mut add = |sent_ms: i64, dir, flags, bytes: u32, sent: i64, acked: i64| {
        let way_ms = if dir == Direction::Ul { 60 } else { -20 };
        capture.ends = Some(if dir == Direction::Ul { ends } else { [ends[1], ends[0]] });
        capture.push(&TracedPacket {
            flow: 1,
            user: 0,
            at_ns: (sent_ms + ahead_ms + if at_server { way_ms } else { 0 }) * MS,
            dir,
            seq: SeqNum(if dir == Direction::Ul { 7 } else { 1_000 }),
            flags,
            timestamps: None,
            event: None,
            offset_bytes: sent,
            payload_bytes: bytes,
            new_bytes: bytes.into(),
            flight_bytes: 0,
            ack: Some(TracedAck {
                offset_bytes: acked,
                rwnd_bytes: Some(1_000_000),
                duplicate: false,
                flight_bytes: 0,
                sack: [(0, 0); 4],
            }),
        });
    };
    add(0, Direction::Ul, TcpFlags::SYN, 0, 0, 0);
    add(80, Direction::Dl, TcpFlags::SYN, 0, 0, 0);
    let acknowledged = |n: i64| (n * 10 + 80, n * SEGMENT_BYTES);
    for n in 0..200 {
        let sent_ms = 80 + n * 10;
        add(sent_ms, Direction::Ul, TcpFlags::ACK, SEGMENT_BYTES as u32, n * SEGMENT_BYTES, 0);
        if n > 8 {
            let (at_ms, acked) = acknowledged(n);
            add(at_ms, Direction::Dl, TcpFlags::ACK, 0, 0, acked);
        }
    }
    capture.finish(false).remove(0)
}

/// Bytes sent count with what they waited for: both of a later part, neither of one that overlaps.
#[test]
fn parts_of_a_capture_join_their_uploads() {
    let (mut phone, later) = (upload(false, 0), upload(false, 5_000));
    let bytes = phone.sent.total();
    assert_eq!(bytes, 200 * SEGMENT_BYTES.unsigned_abs());
    assert!(phone.go_on(vec![upload(false, 0)]));
    assert_eq!(phone.sent.total(), bytes);
    assert!(phone.go_on(vec![later]));
    assert_eq!(phone.sent.total(), 2 * bytes);
}

/// What is not TCP's in one part stays known where the other part has several users.
#[test]
fn parts_of_a_capture_keep_what_is_not_tcp() {
    for known in [[true, false], [false, true], [true, true], [false, false]] {
        let mut parts = [upload(false, 0), upload(false, 5_000)];
        for (part, known) in parts.iter_mut().zip(known) {
            part.others = known.then(ByteBins::default);
            part.others.iter_mut().for_each(|others| others.add(0, 700));
        }
        let [mut phone, later] = parts;
        assert!(phone.go_on(vec![later]));
        let n = known.iter().filter(|known| **known).count() as u64;
        assert_eq!(phone.others_unknown.len(), usize::from(n == 1));
        let in_first =
            phone.others_unknown.first().is_some_and(|(_, to_ns)| *to_ns < 5_000_000_000);
        assert_eq!(in_first, known == [false, true]);
        assert_eq!(phone.others.map(|others| others.total()), (n > 0).then_some(700 * n));
    }
}

/// Whether two uploads wait for slow readers: one whose reader frees two segments each time, of 40, and
/// one whose reader frees ten of ten.
fn waits_for_readers(slow_flights: i64, fast_flights: i64) -> bool {
    let mut capture = PhoneReader::new(HashSet::new(), Some(500_000_000));
    let flows = [(1, slow_flights, 2, 40), (2, fast_flights, 10, 10)];
    for (flow, flights, segments, window) in flows {
        let mut sent = 0;
        let mut add = |at_ms: i64, dir, flags, bytes: u32, free: i64| {
            let up = dir == Direction::Ul;
            capture.push(&TracedPacket {
                flow,
                user: 0,
                at_ns: at_ms * MS,
                dir,
                seq: SeqNum(0),
                flags,
                timestamps: None,
                event: None,
                offset_bytes: if up { sent } else { 0 },
                payload_bytes: bytes,
                new_bytes: bytes.into(),
                flight_bytes: 0,
                ack: Some(TracedAck {
                    offset_bytes: if up { 0 } else { sent },
                    rwnd_bytes: Some((free * SEGMENT_BYTES) as u64),
                    duplicate: false,
                    flight_bytes: 0,
                    sack: [(0, 0); 4],
                }),
            });
            sent += i64::from(if up { bytes } else { 0 });
        };
        add(0, Direction::Ul, TcpFlags::SYN, 0, 40);
        add(50, Direction::Dl, TcpFlags::SYN, 0, window);
        for n in 0..flights {
            for _ in 0..segments {
                add(50 + 50 * n, Direction::Ul, TcpFlags::ACK, SEGMENT_BYTES as u32, 40);
            }
            add(100 + 50 * n, Direction::Dl, TcpFlags::ACK, 0, segments);
        }
    }
    capture.finish(false).remove(0).waits_for_readers()
}

/// Most of what all of them waited for counts.
#[test]
fn a_slow_reader_of_one_upload_is_not_that_of_others() {
    assert!(waits_for_readers(20, 0) && waits_for_readers(20, 5));
    assert!(!waits_for_readers(0, 20) && !waits_for_readers(5, 20));
}

/// Nothing but acknowledgements comes back.
#[test]
fn an_upload_aligns_the_clocks_of_both_ends() {
    let (phone, server) = (upload(false, 0), upload(true, 5_000));
    assert!(phone.shares_data_with(&server));
    let line = between_points(&phone.pairs(&server)).unwrap();
    // Half of the difference of both ways, 20 ms, is not visible.
    assert!((line.offset_ns - 5_020 * MS).abs() <= 2 * MS, "{}", line.offset_ns);
    assert!(line.error_ns >= 20 * MS, "{}", line.error_ns);
}
