//! Requests of any size.

use super::*;

/// Times of the transfers of two answers to messages of `bytes`, 3 s apart, over a round trip of
/// 50 ms; the second is `late` ms later than that and has `segments`.
fn answers_to(bytes: u32, begin: &[u8], late: i64, segments: i64) -> Vec<(i64, i64)> {
    let mut phones = CapturedPhones::new();
    let syn = |at, dir| TracedPacket { flags: TcpFlags::SYN, ..packet(at, dir, 0, 0) };
    phones.push(&syn(0, Direction::Ul));
    phones.push(&syn(50 * MS, Direction::Dl));
    phones.push(&packet(50 * MS, Direction::Ul, 0, 0));
    let ack = |at, up: i64, bytes, down: i64| {
        let mut packet = packet(at * MS, Direction::Ul, up, bytes);
        packet.ack.as_mut().unwrap().offset_bytes = down;
        packet
    };
    let mut down = 0;
    for (n, (asked, late, segments)) in [(60, 0, 100), (3_210, late, segments)].iter().enumerate() {
        let up = n as i64 * i64::from(bytes);
        phones.begins_as(begin);
        phones.push(&ack(*asked, up, bytes, down));
        for n in 0..*segments {
            let at = asked + 50 + late + n;
            phones.push(&packet(at * MS, Direction::Dl, down, 1_000));
            down += 1_000;
            phones.push(&ack(at, up + i64::from(bytes), 0, down));
        }
    }
    let spans = phones.finish().remove(0).transfers(20_000);
    spans.iter().map(|s| (s.from_ns / MS, s.to_ns / MS)).collect()
}

/// HTTP/2's window updates are as small as some requests. What a small message after an idle time
/// brings shows that it was one; words show it at any time.
#[test]
fn small_requests() {
    let two = |late: i64| vec![(0, 209), (3_210, 3_359 + late)];
    assert_eq!(answers_to(60, b"", 1_000, 100), two(1_000));
    for bytes in [1, 40, 57] {
        assert_eq!(answers_to(bytes, b"", 0, 100), two(0), "{bytes}");
        // The server sends of its own accord.
        assert_eq!(answers_to(bytes, b"", 1_000, 100), [(0, 4_359)], "{bytes}");
    }
    assert_eq!(answers_to(40, b"GET /f0 HTTP/1.1", 1_000, 100), two(1_000));
}

/// It is short, and comes after all of the upload; a download meanwhile is one.
#[test]
fn the_response_after_an_upload_is_no_part_of_a_download() {
    let mut phones = CapturedPhones::new();
    let on = |flow, packet| TracedPacket { flow, ..packet };
    for n in 0..1_000 {
        phones.push(&on(1, packet(n * 20 * MS, Direction::Ul, n * 1_000, 1_000)));
        if (100..200).contains(&n) {
            let asked = if n == 100 { 300 } else { 0 };
            phones.push(&on(2, packet(n * 20 * MS, Direction::Ul, 0, asked)));
            phones.push(&on(2, packet(n * 20 * MS + 1, Direction::Dl, n * 1_000, 1_000)));
        }
    }
    phones.push(&on(1, packet(20_050 * MS, Direction::Dl, 0, 103)));
    let phone = phones.finish().remove(0);
    let spans = phone.transfers(20_000);
    let found: Vec<_> = spans.iter().map(|s| (s.from_ns, s.to_ns, s.bytes)).collect();
    assert_eq!(found, [(2_000 * MS, 3_980 * MS + 1, 100_000)]);
    assert_eq!(phone.uploaded_bytes, 1_000_000);
}

/// `--pause-ms`.
#[test]
fn the_pause_that_separates_transfers() {
    let count = |pause_ms: i64| {
        let mut phones = CapturedPhones::new().with_pause_ns(pause_ms * MS);
        for n in 0..6 {
            let at = n * 1_000 * MS;
            phones.push(&packet(at, Direction::Ul, n * 300, 300));
            phones.push(&packet(at + 40 * MS, Direction::Dl, n * 30_000, 30_000));
        }
        phones.finish().remove(0).transfers(20_000).len()
    };
    assert_eq!((count(0), count(500), count(950), count(970), count(20_000)), (6, 6, 6, 1, 1));
}

/// A capture of what the phone sent shows by its acknowledgements what it received.
#[test]
fn acknowledged_data_of_a_capture_of_one_direction() {
    let mut phones = CapturedPhones::new();
    for n in 0..100 {
        let mut ack = packet(n * MS, Direction::Ul, 0, 0);
        ack.ack.iter_mut().for_each(|ack| ack.offset_bytes = n * 1_000);
        phones.push(&ack);
    }
    let phone = phones.finish().remove(0);
    assert_eq!((phone.bytes, phone.unseen_bytes, phone.one_way), (0, 98_999, true));
}
