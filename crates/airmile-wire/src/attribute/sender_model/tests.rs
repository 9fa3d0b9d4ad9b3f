//! A phone's own upload, by hand.

use airmile_model::Cause;
use airmile_model::packet::TcpFlags;

use super::super::{Attribution, ByteBins, RadioEvidence, Uploads, WaitTimeline};
use super::*;
use crate::tcp::TracedAck;

const MS: i64 = 1_000_000;
const MSS: i64 = 1_000;

/// A connection of the phone, captured there; times in ms.
struct Upload {
    model: SenderModel,
    uploads: Uploads,
    waits: WaitTimeline,
    bytes: ByteBins,
    sent: i64,
    received: i64,
    rwnd: u64,
}

impl Upload {
    /// A handshake from 0 to 50 ms.
    fn open(rwnd: u64) -> Self {
        let mut upload = Self {
            model: SenderModel::of_phone(),
            uploads: Uploads::default(),
            waits: WaitTimeline::new(),
            bytes: ByteBins::default(),
            sent: 0,
            received: 0,
            rwnd,
        };
        upload.packet(0, Direction::Ul, TcpFlags::SYN, 0, 0);
        upload.packet(50, Direction::Dl, TcpFlags(0x12), 0, 0);
        upload
    }

    fn packet(&mut self, ms: i64, dir: Direction, flags: TcpFlags, bytes: i64, acked: i64) {
        let up = dir == Direction::Ul;
        let rwnd_bytes = Some(if up { 1 << 20 } else { self.rwnd });
        let ack = TracedAck { rwnd_bytes, ..TracedAck::up_to(acked) };
        let packet = TracedPacket {
            at_ns: ms * MS,
            dir,
            flags,
            offset_bytes: if up { self.sent } else { self.received },
            payload_bytes: bytes as u32,
            new_bytes: bytes as u64,
            ack: (flags.0 != TcpFlags::SYN.0).then_some(ack),
            ..TracedPacket::EXAMPLE
        };
        *if up { &mut self.sent } else { &mut self.received } += bytes;
        let mut held = Vec::new();
        self.model.push(&packet, &mut held);
        self.uploads.push(&packet, &held, (&mut self.waits, &mut self.bytes));
    }

    /// Segments of one flight, whose acknowledgements take so long.
    fn flight(&mut self, ms: i64, segments: i64, round_trip_ms: i64) -> i64 {
        (0..segments).for_each(|_| self.packet(ms, Direction::Ul, TcpFlags::ACK, MSS, 0));
        let acked = self.sent;
        self.packet(ms + round_trip_ms, Direction::Dl, TcpFlags::ACK, 0, acked);
        ms + round_trip_ms
    }

    /// An answer that acknowledges all.
    fn answer(&mut self, ms: i64) {
        self.download(ms, 1, 100);
    }

    /// Segments of an answer that acknowledges all, one each 5 ms, and their acknowledgements.
    fn download(&mut self, ms: i64, segments: i64, bytes: i64) -> i64 {
        let acked = self.sent;
        for n in 0..segments {
            self.packet(ms + 5 * n, Direction::Dl, TcpFlags::ACK, bytes, acked);
            let received = self.received;
            self.packet(ms + 5 * n, Direction::Ul, TcpFlags::ACK, 0, received);
        }
        ms + 5 * segments
    }

    #[track_caller]
    fn check(mut self, to_ms: i64, expected: &[(Cause, i64)]) {
        Uploads::finish([&mut self.uploads].into_iter(), (&mut self.waits, &mut self.bytes));
        self.check_from(0, to_ms, expected);
    }

    #[track_caller]
    fn check_from(&self, from_ms: i64, to_ms: i64, expected: &[(Cause, i64)]) {
        let shares = Attribution::new(self.waits.clone(), ByteBins::default())
            .with_round_trip(50 * MS)
            .split(from_ms * MS, to_ms * MS, Some(RadioEvidence::default()));
        assert_eq!(shares.total_ns(), (to_ms - from_ms) * MS);
        let found: Vec<_> =
            shares.by_cause.into_iter().map(|(cause, ns)| (cause, ns / MS)).collect();
        assert_eq!(found, expected);
    }
}

/// The round trip of the last flight ends with the server's answer.
#[test]
fn a_first_slow_start_of_the_phone() {
    let mut upload = Upload::open(1 << 20);
    let end = [10, 20, 40].into_iter().fold(50, |ms, segments| upload.flight(ms, segments, 50));
    upload.answer(end);
    upload.check(end, &[(Cause::FirstSlowStart, 100), (Cause::Setup, 100)]);
}

#[test]
fn a_full_window_of_the_server() {
    let mut upload = Upload::open(10_000);
    let mut ms = 50;
    for _ in 0..20 {
        ms = upload.flight(ms, 10, 50);
    }
    upload.answer(ms);
    upload.check(ms, &[(Cause::ReceiveWindow, 950), (Cause::Setup, 100)]);
}

/// An application that pauses, and a server that thinks before its answer.
#[test]
fn an_application_and_a_server_that_wait() {
    let mut upload = Upload::open(1 << 20);
    let ms = upload.flight(50, 10, 50);
    upload.flight(ms + 400, 10, 50);
    upload.answer(850);
    upload.flight(1_000, 10, 50);
    upload.answer(1_050);
    // Two waits of the application (400 and 150 ms), one for the server (300 ms).
    upload.check(
        1_050,
        &[(Cause::FirstSlowStart, 50), (Cause::SenderLimited, 850), (Cause::Setup, 150)],
    );
}

/// Round trips grow beyond the least one and half of it: a queue behind the phone.
#[test]
fn a_queue_behind_the_phone() {
    let mut upload = Upload::open(1 << 20);
    let mut ms = 50;
    for n in 0..20 {
        ms = upload.flight(ms, 40, 50 + 10 * n);
    }
    upload.answer(ms);
    let shares = |cause| {
        let split = Attribution::new(upload.waits.clone(), ByteBins::default());
        split.split(0, ms * MS, Some(RadioEvidence::default())).by_cause[&cause] / MS
    };
    // From the fourth flight on 5, 15, 25 ms and so on, up to 165 ms.
    assert_eq!(shares(Cause::Wireline), 1_445);
}

/// The phone sends 70 kB, receives 500 kB and sends again: what it waits for is known from the first
/// byte on, as without the download.
#[test]
fn an_upload_after_a_download_on_its_connection() {
    for segments in [1, 500] {
        let mut upload = Upload::open(1 << 20);
        let end = [10, 20, 40].into_iter().fold(50, |ms, n| upload.flight(ms, n, 50));
        let idle = upload.download(end, segments, MSS) + 1_000;
        let from = idle.max(3_700);
        let to = [10, 20, 40].into_iter().fold(from, |ms, n| upload.flight(ms, n, 50));
        upload.answer(to);
        let expected = [(Cause::SlowStartRestart, 100), (Cause::Setup, 50)];
        upload.check_from(from, to, &expected);
        assert_eq!(upload.bytes.within(from * MS, to * MS), 70 * MSS as u64, "{segments}");
        // In between the application sent nothing.
        upload.check_from(end, from, &[(Cause::SenderLimited, from - end)]);
    }
}

/// Requests of downloads are no uploads, of any size below an initial window.
#[test]
fn requests_of_downloads() {
    let mut upload = Upload::open(1 << 20);
    let mut ms = 50;
    for segments in [1, 3, 14] {
        let end = upload.flight(ms, segments, 50);
        ms = upload.download(end, 100, MSS) + 400;
    }
    Uploads::finish([&mut upload.uploads].into_iter(), (&mut upload.waits, &mut upload.bytes));
    assert_eq!((upload.waits.spans().len(), upload.bytes.total()), (0, 0));
}

/// Small exchanges of two connections in turn all count, in whatever order the connections are listed.
#[test]
fn small_exchanges_of_two_connections() {
    for swap in [false, true] {
        let (mut one, mut other) = (Upload::open(1 << 20), Upload::open(1 << 20));
        let end = one.flight(500, 4, 50);
        one.answer(end);
        let end = other.flight(3_000, 8, 50);
        other.answer(end);
        let end = one.flight(7_900, 4, 50);
        one.answer(end);
        let (mut waits, mut bytes) = (WaitTimeline::default(), ByteBins::default());
        let mut all = [&mut one.uploads, &mut other.uploads];
        if swap {
            all.reverse();
        }
        Uploads::finish(all.into_iter(), (&mut waits, &mut bytes));
        assert_eq!(bytes.total(), 16 * MSS as u64, "{swap}");
    }
}

/// After a small exchange and a pause the first slow start is still to come.
#[test]
fn a_first_slow_start_after_a_small_exchange() {
    let mut upload = Upload::open(1 << 20);
    let end = upload.flight(50, 1, 50);
    let from = upload.download(end, 10, MSS) + 1_700;
    let to = [10, 20, 40].into_iter().fold(from, |ms, n| upload.flight(ms, n, 50));
    upload.answer(to);
    upload.check_from(from, to, &[(Cause::FirstSlowStart, 100), (Cause::Setup, 50)]);
}

/// A segment leaves with each acknowledgement: at the pace of a line, if these come evenly, and at that of
/// the window, if they come together.
#[test]
fn acknowledgements_alone_set_the_pace() {
    for (together, cause) in [(1, Cause::Wireline), (10, Cause::SenderLimited)] {
        let mut upload = Upload::open(1 << 20);
        let mut ms = 50;
        for _ in 0..10 {
            ms = upload.flight(ms, 10, 50);
        }
        (0..10).for_each(|_| upload.packet(ms, Direction::Ul, TcpFlags::ACK, MSS, 0));
        let from = ms + 1_000;
        for _ in 0..40 {
            for n in 0..10 {
                let at = ms + 50 + if n % together == 0 { 5 * n } else { 0 };
                let acked = upload.sent - 9 * MSS;
                upload.packet(at, Direction::Dl, TcpFlags::ACK, 0, acked);
                upload.packet(at, Direction::Ul, TcpFlags::ACK, MSS, 0);
            }
            ms += 50;
        }
        Uploads::finish([&mut upload.uploads].into_iter(), (&mut upload.waits, &mut upload.bytes));
        upload.check_from(from, from + 500, &[(cause, 500)]);
    }
}
