use super::*;

const MS: i64 = 1_000_000;
/// Messages of a client's handshake: TLS's two, and QUIC's padded ones.
const HELLO: u64 = 517;
const FINISHED: u64 = 80;
const PROBE: u64 = 1_200;

/// Packets at ms, from the phone or to it, of so much payload; 0 is of a connection's set-up.
type Connection = Vec<(i64, bool, u64)>;

/// Name, begin and end in ms, bytes.
fn transfers(connections: &[&[(i64, bool, u64)]]) -> Vec<(String, i64, i64, u64)> {
    let mut all = Vec::new();
    for packets in connections {
        let mut exchanges = Exchanges::default();
        for &(ms, up, new_bytes) in *packets {
            let flags = if new_bytes == 0 { TcpFlags::SYN } else { TcpFlags::ACK };
            let packet = TracedPacket {
                at_ns: ms * MS,
                dir: if up { Direction::Ul } else { Direction::Dl },
                flags,
                payload_bytes: u32::try_from(new_bytes).unwrap(),
                new_bytes,
                ..TracedPacket::EXAMPLE
            };
            let shakes = matches!(new_bytes, HELLO | FINISHED | PROBE);
            exchanges.push(&packet, shakes, 500 * MS);
        }
        all.extend(exchanges.iter().copied());
    }
    let found = exchanged(all, (20_000, 500 * MS));
    let named = found.into_iter().map(|one| {
        let (from, to) = one.time.unwrap();
        (one.id, from.ns / MS, to.ns / MS, one.bytes.unwrap())
    });
    named.collect()
}

/// A request at ms, and its answer of a packet of 1,400 bytes each ms from another time on.
fn download(from_ms: i64, answer_ms: i64, packets: i64) -> Connection {
    let answer = (0..packets).map(|at| (answer_ms + at, false, 1_400));
    [(from_ms, true, 600)].into_iter().chain(answer).collect()
}

/// `n` requests and answers of these bytes, one each `period_ms`.
fn polls(from_ms: i64, (n, period_ms): (i64, i64), [asks, answers]: [u64; 2]) -> Connection {
    let at = |n: i64| from_ms + n * period_ms;
    (0..n).flat_map(|n| [(at(n), true, asks), (at(n) + 60, false, answers)]).collect()
}

/// The server works for 4 s on each answer.
#[test]
fn a_think_time_is_of_the_transfer() {
    let set_up = [(0, true, 0), (50, false, 0), (51, true, 600), (4_100, false, 400_000)];
    let next = [(6_000, true, 600), (10_000, false, 400_000)];
    let found = transfers(&[&[set_up.as_slice(), &next].concat()]);
    assert_eq!(found, [("dl0".into(), 0, 4_100, 400_000), ("dl1".into(), 6_000, 10_000, 400_000)]);
}

/// Its answer is late, and small; pings follow.
#[test]
fn an_upload_lasts_until_its_answer() {
    let upload = [(0, true, 0), (51, true, 300_000), (400, true, 300_000), (3_000, false, 500)];
    let pings = [(5_000, true, 40), (5_050, false, 40), (9_000, true, 40)];
    let found = transfers(&[&[upload.as_slice(), &pings].concat()]);
    assert_eq!(found, [("ul0".into(), 0, 3_000, 600_000)]);
}

#[test]
fn keep_alives_are_no_transfer() {
    for (period_ms, bytes) in [(150, [90, 90]), (300, [300, 1_200]), (100, [300, 2_000])] {
        assert_eq!(transfers(&[&polls(0, (400, period_ms), bytes)]), []);
    }
}

/// Their number is no matter, nor on which connection they come.
#[test]
fn keep_alives_neither_extend_nor_join_transfers() {
    let expected =
        [("dl0".into(), 30_000, 30_349, 420_000), ("dl1".into(), 33_000, 33_349, 420_000)];
    let gets = [download(30_000, 30_050, 300), download(33_000, 33_050, 300)];
    for (n, period_ms, bytes) in
        [(97, 300, [120, 200]), (97, 300, [300, 1_200]), (290, 100, [300, 2_000])]
    {
        let before = polls(500, (n, period_ms), bytes);
        let between = polls(30_500, (8, 300), bytes);
        let after = polls(33_600, (40, 300), bytes);
        let one = [before, gets[0].clone(), between, gets[1].clone(), after].concat();
        assert_eq!(transfers(&[&one]), expected, "{n}");
        let others = polls(500, (400, period_ms), bytes);
        assert_eq!(transfers(&[&gets.concat(), &others]), expected, "{n} apart");
    }
}

/// The server has nothing to answer for 25 s, then 1,500 or 28,000 bytes: the latter are a transfer, and the wait
/// is theirs alone.
#[test]
fn a_long_poll_joins_no_downloads() {
    let gets = [2_000, 10_000, 18_000, 24_900].map(|ms| download(ms, ms + 50, 3_000));
    let mut expected: Vec<_> = (0..)
        .zip([2_000, 10_000, 18_000, 24_900])
        .map(|(at, ms)| (format!("dl{at}"), ms, ms + 3_049, 4_200_000))
        .collect();
    let gets = gets.concat();
    let small = [(500, true, 300), (25_500, false, 1_500)];
    assert_eq!(transfers(&[&gets, &small]), expected);
    let large = download(500, 25_500, 20);
    expected.insert(0, ("dl0".into(), 500, 25_519, 28_000));
    (1..).zip(&mut expected[1..]).for_each(|(at, one)| one.0 = format!("dl{at}"));
    assert_eq!(transfers(&[&gets, &large]), expected);
}

/// Six connections of a page, each with a small part of it; the next page comes 3 s later.
#[test]
fn parts_of_a_page_are_one_transfer() {
    let lane = |from_ms: i64| {
        let ms = [0, 3_000].map(|page| (0..4).map(move |at| page + from_ms + at * 100));
        ms.into_iter().flatten().flat_map(|ms| download(ms, ms + 60, 5)).collect::<Connection>()
    };
    let lanes: Vec<Connection> = (0..6).map(|lane_ms| lane(lane_ms * 7)).collect();
    let lanes: Vec<_> = lanes.iter().map(Vec::as_slice).collect();
    let found = transfers(&lanes);
    let bytes = 6 * 4 * 5 * 1_400;
    assert_eq!(found, [("dl0".into(), 0, 399, bytes), ("dl1".into(), 3_000, 3_399, bytes)]);
}

/// A connection was opened in advance, without TLS and with it; or for this request.
#[test]
fn a_client_that_pauses_has_not_asked_yet() {
    let syn = [(0, true, 0), (51, false, 0)];
    let tls = [(52, true, HELLO), (100, false, 4_000), (101, true, FINISHED)];
    let shaken = [syn.as_slice(), &tls].concat();
    for (set_up, tls_bytes) in [(syn.as_slice(), 0), (&shaken, 4_000)] {
        let asked = download(5_000, 5_100, 50);
        let found = transfers(&[&[set_up, &asked].concat()]);
        assert_eq!(found, [("dl0".into(), 5_000, 5_149, 70_000)]);
        let asked = download(110, 210, 50);
        let found = transfers(&[&[set_up, &asked].concat()]);
        assert_eq!(found, [("dl0".into(), 0, 259, 70_000 + tls_bytes)]);
    }
}

/// As with QUIC: the client acknowledges the handshake, and probes the path; the server's control data is no answer.
#[test]
fn a_set_up_of_many_flights_is_of_the_first_transfer() {
    let flights = (0..5).flat_map(|at| [(at * 30 + 1, true, PROBE), (at * 30 + 29, false, 1_200)]);
    let set_up = [vec![(0, true, 0)], flights.collect()].concat();
    let answer = |from_ms: i64| (0..50).map(move |at| (from_ms + at, false, 1_400));
    let thought: Connection = set_up.iter().copied().chain(answer(4_000)).collect();
    assert_eq!(transfers(&[&thought]), [("dl0".into(), 0, 4_049, 76_000)]);
    let paused = [set_up, download(4_000, 4_050, 50)].concat();
    assert_eq!(transfers(&[&paused]), [("dl0".into(), 4_000, 4_099, 70_000)]);
}

/// They begin as soon as the connection is open, without TLS or with it, and a request follows the last at once.
#[test]
fn keep_alives_behind_a_set_up_are_no_part_of_it() {
    let syn = [(0, true, 0), (50, false, 0)];
    let tls = [(51, true, HELLO), (100, false, 3_000), (101, true, FINISHED)];
    for (set_up, from_ms) in [(syn.to_vec(), 60), ([syn.as_slice(), &tls].concat(), 110)] {
        let polls = polls(from_ms, (30, 150), [200, 300]);
        let get = download(from_ms + 29 * 150 + 150, from_ms + 29 * 150 + 200, 3_000);
        let asked_ms = from_ms + 4_500;
        let found = transfers(&[&[set_up, polls, get].concat()]);
        assert_eq!(found, [("dl0".into(), asked_ms, asked_ms + 3_049, 4_200_000)]);
    }
}

/// As of a WebSocket: the server sends without a request, long after it answered the only one.
#[test]
fn a_push_long_behind_the_set_up_begins_by_itself() {
    let syn = [(0, true, 0), (50, false, 0)];
    let tls = [(51, true, HELLO), (100, false, 4_000), (101, true, FINISHED)];
    let upgrade = [(102, true, 300), (160, false, 500), (200, false, 500)];
    let pushed = (0..1_000).map(|at| (40_000 + at, false, 1_400));
    for set_up in [syn.to_vec(), [syn.as_slice(), &tls].concat()] {
        let all = set_up.into_iter().chain(upgrade).chain(pushed.clone());
        let found = transfers(&[&all.collect::<Connection>()]);
        assert_eq!(found, [("dl0".into(), 40_000, 40_999, 1_400_000)]);
    }
}

/// The phone's own upload delays acknowledgements: the second flight comes 9.9 s after the first.
#[test]
fn the_flights_of_an_answer_are_of_one_transfer() {
    let set_up = [(0, true, 0), (100, false, 0), (101, true, 600)];
    let flights = (0..10).map(|n| (200 + n, false, 1_400));
    let next = (0..100).map(|n| (10_100 + n, false, 1_400));
    let all = set_up.into_iter().chain(flights).chain(next);
    let found = transfers(&[&all.collect::<Connection>()]);
    assert_eq!(found, [("dl0".into(), 0, 10_199, 154_000)]);
}

/// Plain HTTP: the radio is out for 3.5 s, within an answer whose segments come one by one, or merged by the phone
/// (GRO). A last one that is not full ends an answer: what follows is another.
#[test]
fn an_outage_parts_no_answer_of_full_segments() {
    let set_up = [(0, true, 0), (100, false, 0), (101, true, 600)];
    let rest = (0..100).map(|n| (3_801 + n, false, 7_000));
    for (before, whole) in [
        (vec![1_400; 9], true),
        (vec![300, 1_400, 1_400], true),
        (vec![8_400, 4_200], true),
        (vec![8_400, 2_800, 1_400], true),
        (vec![300, 7_000, 5_600], true),
        // One of the merged ones ends with less than a segment.
        (vec![8_400, 7_900, 5_600, 4_200], true),
        (vec![1_400, 1_400, 7_900, 5_600], true),
        (vec![1_400, 1_400, 5_600, 1_050], false),
        (vec![8_400, 4_000], false),
        (vec![5_600, 4_200, 900], false),
    ] {
        let begin = (300..).zip(&before).map(|(ms, bytes)| (ms, false, *bytes));
        let found =
            transfers(&[&[set_up.to_vec(), begin.collect(), rest.clone().collect()].concat()]);
        let bytes: u64 = if whole { before.iter().sum() } else { 0 };
        let from_ms = if whole { 0 } else { 3_801 };
        assert_eq!(found, [("dl0".into(), from_ms, 3_900, bytes + 700_000)], "{before:?}");
    }
}

/// Also after more data, unless a message of the client in the silence may ask for what follows.
#[test]
fn an_outage_parts_no_large_answer() {
    for (message, bytes, from_ms) in [(None, 560_000, 0), (Some((3_000, true, 40)), 280_000, 5_000)]
    {
        let rest = (0..200).map(|n| (5_000 + n, false, 1_400));
        let all = download(0, 50, 200).into_iter().chain(message).chain(rest);
        let found = transfers(&[&all.collect::<Connection>()]);
        let (last, begin) = (found.last().unwrap(), found.len());
        assert_eq!((last.1, last.2, last.3), (from_ms, 5_199, bytes));
        assert_eq!(begin, if message.is_some() { 2 } else { 1 });
    }
}

/// The server sends more without a request, a second or so after its answer to the only one: the rest of that answer
/// would have come after the sender's timers, which depend on the round trip.
#[test]
fn a_push_soon_behind_the_set_up_begins_by_itself() {
    for (round_trip_ms, from_ms) in [(50, 2_000), (200, 0)] {
        let answered_ms = 2 * round_trip_ms;
        let set_up = [(0, true, 0), (round_trip_ms, false, 0), (round_trip_ms, true, 300)];
        let answer = (answered_ms, false, 500);
        let pushed = (0..1_000).map(|at| (2_000 + at, false, 1_400));
        let all = set_up.into_iter().chain([answer]).chain(pushed);
        let found = transfers(&[&all.collect::<Connection>()]);
        let bytes = if from_ms > 0 { 1_400_000 } else { 1_400_500 };
        assert_eq!(found, [("dl0".into(), from_ms, 2_999, bytes)]);
    }
}

/// A document of a packet asks for what follows it.
#[test]
fn a_small_document_is_of_its_page() {
    let document = [(0, true, 0), (80, false, 0), (81, true, 111), (670, false, 1_332)];
    let all = document.into_iter().chain(download(680, 1_260, 100));
    let found = transfers(&[&all.collect::<Connection>()]);
    assert_eq!(found, [("dl0".into(), 0, 1_359, 141_332)]);
}

/// Tickets of TLS follow the request; the answer takes 4 s.
#[test]
fn tickets_are_no_answer() {
    let set_up = [(0, true, 0), (50, false, 0), (51, true, HELLO), (100, false, 4_000)];
    let asked = [(101, true, FINISHED), (102, true, 300), (152, false, 500)];
    let answer = (0..100).map(|at| (4_102 + at, false, 1_400));
    let all = set_up.into_iter().chain(asked).chain(answer);
    let found = transfers(&[&all.collect::<Connection>()]);
    assert_eq!(found, [("dl0".into(), 0, 4_201, 144_500)]);
}

/// Window updates of HTTP/2 follow the data, and pings its end.
#[test]
fn control_frames_do_not_extend_a_transfer() {
    let frames = (0..12).flat_map(|at| [(at * 400 + 110, true, 39), (at * 400 + 170, false, 39)]);
    let first = [download(0, 50, 50), frames.collect()].concat();
    let found = transfers(&[&[first, download(5_000, 5_050, 50)].concat()]);
    let expected = [("dl0".into(), 0, 170, 70_039), ("dl1".into(), 5_000, 5_099, 70_000)];
    assert_eq!(found, expected);
}

/// A second request while the first answer's rate is low, and an upload whose acknowledgements are late.
#[test]
fn a_slow_begin_is_of_the_transfer() {
    let begin = [(0, true, 0), (60, false, 0), (61, true, 600)];
    let slow = (0..20).map(|at| (800 + 25 * at, false, 1_400));
    let rest =
        [vec![(1_280, true, 300)], (0..2_000).map(|at| (1_281 + at, false, 1_400)).collect()];
    let download = [begin.to_vec(), slow.collect(), rest.concat()].concat();
    assert_eq!(transfers(&[&download]), [("dl0".into(), 0, 3_280, 2_828_000)]);
    let upload = [(61, true, 14_000), (1_300, true, 100_000), (2_000, false, 500)];
    let found = transfers(&[&[&begin[..2], &upload].concat()]);
    assert_eq!(found, [("ul0".into(), 0, 2_000, 114_000)]);
}
