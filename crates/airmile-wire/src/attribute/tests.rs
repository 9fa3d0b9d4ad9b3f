//! Hand-made connections: a simple sender, link and monitor.

use airmile_model::Cause;
use airmile_model::packet::TcpFlags;
use airmile_model::{Direction, TcpEventKind};
use proptest::prelude::*;

use super::*;
use crate::tcp::{TracedAck, TracedPacket};

const MS: i64 = 1_000_000;
const MSS: i64 = 1_000;
/// Round trip from the monitor, at the phone, to the server.
const RTT_MS: i64 = 50;

/// One connection as captured at the phone; times in ms.
struct Wire {
    attribution: (SenderModel, WaitTimeline, ByteBins),
    /// What a server behind a proxy waited for.
    behind: WaitTimeline,
    stamps: Option<(u32, u32)>,
    sent: i64,
    rwnd: u64,
}

impl Wire {
    /// A handshake at 0, done at 50 ms.
    fn open() -> Self {
        Self::open_at(0)
    }

    fn open_at(ms: i64) -> Self {
        let mut wire = Self {
            attribution: (SenderModel::new(), WaitTimeline::new(), ByteBins::default()),
            behind: WaitTimeline::new(),
            stamps: None,
            sent: 0,
            rwnd: 1 << 20,
        };
        wire.packet(ms, Direction::Ul, TcpFlags::SYN, 0, None);
        wire.packet(ms + RTT_MS, Direction::Dl, TcpFlags(0x12), 0, None);
        wire.ack(ms + RTT_MS);
        wire
    }

    /// A packet with time stamps.
    fn stamped(&mut self, ms: i64, dir: Direction, bytes: i64, stamps: (u32, u32)) {
        self.stamps = Some(stamps);
        self.packet(ms, dir, TcpFlags::ACK, bytes, None);
        self.stamps = None;
    }

    fn packet(
        &mut self,
        ms: i64,
        dir: Direction,
        flags: TcpFlags,
        bytes: i64,
        event: Option<TcpEventKind>,
    ) {
        let down = dir == Direction::Dl;
        let ack = (!down && flags.0 == TcpFlags::ACK.0)
            .then_some(TracedAck { rwnd_bytes: Some(self.rwnd), ..TracedAck::up_to(self.sent) });
        let packet = TracedPacket {
            at_ns: ms * MS,
            dir,
            flags,
            timestamps: self.stamps,
            event,
            offset_bytes: if down { self.sent } else { 0 },
            payload_bytes: bytes as u32,
            new_bytes: bytes as u64,
            ack,
            ..TracedPacket::EXAMPLE
        };
        if down {
            self.sent += bytes;
        }
        let (sender, waits, uplink) = &mut self.attribution;
        if !down {
            uplink.add(packet.at_ns, packet.new_bytes);
        }
        let mut held = Vec::new();
        sender.push(&packet, &mut held);
        waits.push(&held, packet.dir == Direction::Dl);
    }

    fn ack(&mut self, ms: i64) {
        self.packet(ms, Direction::Ul, TcpFlags::ACK, 0, None);
    }

    /// Duplicate acknowledgements: two segments are missing.
    fn dup_acks(&mut self, times_ms: &[i64]) {
        for at in times_ms {
            let (sender, ..) = &mut self.attribution;
            let duplicate = TracedAck {
                rwnd_bytes: Some(1 << 20),
                duplicate: true,
                flight_bytes: 2_000,
                ..TracedAck::up_to(self.sent - 2 * MSS)
            };
            let at_ns = *at * MS;
            let ack = TracedPacket { at_ns, ack: Some(duplicate), ..TracedPacket::EXAMPLE };
            sender.push(&ack, &mut Vec::new());
        }
    }

    fn request(&mut self, ms: i64) {
        self.packet(ms, Direction::Ul, TcpFlags::ACK, 100, None);
    }

    /// Segments that arrive together, each acknowledged.
    fn burst(&mut self, ms: i64, segments: i64) {
        for _ in 0..segments {
            self.packet(ms, Direction::Dl, TcpFlags::ACK, MSS, None);
            self.ack(ms);
        }
    }

    /// An answer in consecutive rounds; returns when the last one arrived.
    fn rounds(&mut self, from_ms: i64, rounds: &[i64]) -> i64 {
        let mut at = from_ms;
        for segments in rounds {
            at += RTT_MS;
            self.burst(at, *segments);
        }
        at
    }

    fn shares(
        self,
        from_ms: i64,
        to_ms: i64,
        radio: Option<RadioEvidence<'_>>,
    ) -> Vec<(Cause, i64)> {
        let (sender, waits, uplink) = self.attribution;
        let attribution = Attribution::new(waits, uplink)
            .with_lost(sender.lost().to_vec())
            .with_round_trip(RTT_MS * MS)
            .with_behind(self.behind);
        let shares = attribution.split(from_ms * MS, to_ms * MS, radio);
        assert_eq!(shares.total_ns(), (to_ms - from_ms) * MS);
        let radio = (shares.radio_ns > 0).then_some((Cause::RadioSignal, shares.radio_ns / MS));
        radio.into_iter().chain(shares.by_cause.into_iter().map(|(c, ns)| (c, ns / MS))).collect()
    }
}

#[track_caller]
fn check(wire: Wire, (from_ms, to_ms): (i64, i64), expected: &[(Cause, i64)]) {
    let nothing = RadioEvidence::default();
    assert_eq!(wire.shares(from_ms, to_ms, Some(nothing)), expected);
}

#[test]
fn a_first_slow_start_waits_for_acks() {
    let mut wire = Wire::open();
    wire.request(50);
    let end = wire.rounds(50, &[10, 20, 40]);
    // Handshake and request to 100 ms; two waits of a round trip.
    check(wire, (0, end), &[(Cause::FirstSlowStart, 100), (Cause::Setup, 100)]);
}

#[test]
fn a_window_that_shrank_over_idle_time_restarts() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10, 20, 40, 80]);
    wire.request(2_000);
    let end = wire.rounds(2_000, &[10, 20, 40, 30]);
    assert_eq!(wire.attribution.0.restarts_ns().len(), 1);
    check(wire, (2_000, end), &[(Cause::SlowStartRestart, 150), (Cause::Setup, 50)]);
}

#[test]
fn a_window_that_stayed_does_not() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10, 20, 40, 80]);
    wire.request(2_000);
    let end = wire.rounds(2_000, &[80, 80]);
    assert_eq!(wire.attribution.0.restarts_ns(), &[] as &[i64]);
    check(wire, (2_000, end), &[(Cause::SenderLimited, 50), (Cause::Setup, 50)]);
}

#[test]
fn a_window_update_is_no_request() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10]);
    wire.packet(101, Direction::Ul, TcpFlags::ACK, 57, None);
    let end = wire.rounds(100, &[20, 40]);
    check(wire, (100, end), &[(Cause::FirstSlowStart, 100)]);
}

#[test]
fn without_a_round_trip_nothing_is_told() {
    let mut wire = Wire {
        attribution: (SenderModel::new(), WaitTimeline::new(), ByteBins::default()),
        behind: WaitTimeline::new(),
        stamps: None,
        sent: 0,
        rwnd: 1 << 20,
    };
    wire.burst(0, 10);
    wire.burst(500, 10);
    check(wire, (0, 500), &[(Cause::Unknown, 500)]);
}

#[test]
fn time_without_the_captured_data_is_unknown() {
    for acked_first in [true, false] {
        let mut wire = Wire::open();
        wire.request(50);
        wire.rounds(50, &[10, 20, 40]);
        wire.sent += 200 * MSS;
        if acked_first {
            wire.ack(1_190);
        }
        wire.burst(1_200, 40);
        check(wire, (200, 1_200), &[(Cause::Unknown, 1_000)]);
    }
}

#[test]
fn small_answers_say_nothing_of_a_window() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10, 20, 40, 80]);
    for at in [1_000, 2_000, 3_000] {
        wire.request(at);
        wire.rounds(at, &[2]);
    }
    assert_eq!(wire.attribution.0.restarts_ns(), &[] as &[i64]);
    wire.request(4_000);
    wire.rounds(4_000, &[10, 20]);
    assert_eq!(wire.attribution.0.restarts_ns().len(), 1);
}

#[test]
fn a_full_window_is_the_receivers() {
    let mut wire = Wire::open();
    wire.rwnd = 10_000;
    wire.ack(50);
    wire.request(50);
    let end = wire.rounds(50, &[10, 10, 10, 10]);
    check(wire, (100, end), &[(Cause::ReceiveWindow, 150)]);
}

#[test]
fn a_window_that_a_loss_cut_is_the_losss_until_it_is_back() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10, 20, 40]);
    wire.packet(250, Direction::Dl, TcpFlags::ACK, MSS, Some(TcpEventKind::RetxFast));
    wire.ack(250);
    // Half of it, and one more per round: no room for the radio's queue.
    let end = wire.rounds(250, &[20, 21, 22, 23, 24]);
    check(wire, (300, end), &[(Cause::LossRecoveryCongestion, 200)]);
}

#[test]
fn a_window_that_is_not_back_is_the_losss_in_later_answers_too() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10, 20, 40]);
    wire.packet(250, Direction::Dl, TcpFlags::ACK, MSS, Some(TcpEventKind::RetxFast));
    wire.ack(250);
    wire.rounds(250, &[20, 21, 22]);
    // Idle for a second; after it the window is as the loss had left it.
    wire.request(1_500);
    let end = wire.rounds(1_500, &[22, 23, 24, 25, 26]);
    check(wire, (1_500, end), &[(Cause::LossRecoveryCongestion, 200), (Cause::Setup, 50)]);
}

#[test]
fn a_loss_is_the_radios_where_the_radio_lost_something_before_it_was_missed() {
    let lost = |radio_ms: i64| {
        let mut wire = Wire::open();
        wire.request(50);
        // The last segment of the window, at 200 ms, is missing; it is retransmitted at
        // 250 ms.
        wire.rounds(50, &[10, 20, 40]);
        wire.packet(250, Direction::Dl, TcpFlags::ACK, MSS, Some(TcpEventKind::RetxFast));
        wire.ack(250);
        let end = wire.rounds(250, &[20, 21]);
        let losses_ns = [radio_ms * MS];
        let radio = RadioEvidence { losses_ns: &losses_ns, ..RadioEvidence::default() };
        wire.shares(300, end, Some(radio))
    };
    // RLC delivers the following packets up to 250 ms later.
    for (radio_ms, cause) in [
        (-60, Cause::LossRecoveryCongestion),
        (-40, Cause::LossRecoveryRadio),
        (190, Cause::LossRecoveryRadio),
        // Lost again before it arrived.
        (265, Cause::LossRecoveryRadio),
        (275, Cause::LossRecoveryCongestion),
    ] {
        assert_eq!(lost(radio_ms), [(cause, 50)], "{radio_ms}");
    }
}

#[test]
fn a_phone_that_was_released_connects_first() {
    let answered = |silences: &[(i64, i64)]| {
        let mut wire = Wire::open();
        wire.request(50);
        wire.rounds(50, &[10, 20]);
        wire.request(20_000);
        wire.burst(20_400, 10);
        let radio = RadioEvidence { silences, sees_uplink: true, ..RadioEvidence::default() };
        wire.shares(20_000, 20_400, Some(radio))
    };
    // 300 ms until something is scheduled, a round trip, and 50 ms of server think time.
    let expected = [(Cause::SenderLimited, 50), (Cause::Setup, 350)];
    assert_eq!(answered(&[(200 * MS, 20_300 * MS)]), expected);
    // The request had its grant, and the phone waits for the server.
    let thinks = answered(&[(200 * MS, 20_010 * MS), (20_010 * MS, 40_000 * MS)]);
    assert_eq!(thinks, [(Cause::SenderLimited, 340), (Cause::Setup, 60)]);
    let served = answered(&[(19_000 * MS, 20_390 * MS)]);
    assert_eq!(served, [(Cause::SenderLimited, 350), (Cause::Setup, 50)]);
    // A request that waits for 200 ms for its grant is that of a phone that was released.
    let released = answered(&[(18_900 * MS, 20_200 * MS)]);
    assert_eq!(released, [(Cause::SenderLimited, 150), (Cause::Setup, 250)]);
    assert_eq!(answered(&[]), [(Cause::SenderLimited, 350), (Cause::Setup, 50)]);
}

#[test]
fn a_small_request_after_the_clients_own_pause() {
    // Time of the server or without a request, and of the request's round trip.
    let answered = |bytes: i64, ms: i64| {
        let mut wire = Wire::open();
        wire.request(50);
        wire.rounds(50, &[10, 20]);
        wire.packet(3_000, Direction::Ul, TcpFlags::ACK, bytes, None);
        wire.burst(ms, 10);
        let shares = wire.shares(140, ms, None);
        let of = |cause| shares.iter().find(|(one, _)| *one == cause).map_or(0, |(_, ms)| *ms);
        [of(Cause::SenderLimited), of(Cause::Setup)]
    };
    for bytes in [1, 57, 60] {
        assert_eq!(answered(bytes, 3_050), [2_850, 50], "{bytes}");
    }
    // A window update, and later the server sends of its own accord.
    assert_eq!(answered(57, 4_000)[1], 0);
}

/// Commands of Redis and their answers are small. In TLS such an exchange may be control: nobody waits
/// for acknowledgements then, either.
#[test]
fn a_small_answer_after_the_clients_own_pause() {
    let shares = |begin: &[u8], answered_ms: i64| {
        let mut wire = Wire::open();
        wire.request(50);
        wire.rounds(50, &[10, 20]);
        wire.attribution.0.client_payload(begin);
        wire.packet(3_000, Direction::Ul, TcpFlags::ACK, 14, None);
        wire.packet(answered_ms, Direction::Dl, TcpFlags::ACK, 7, None);
        let shares = wire.shares(140, answered_ms, None);
        [Cause::FirstSlowStart, Cause::SenderLimited, Cause::Setup]
            .map(|cause| shares.iter().find(|(one, _)| *one == cause).map_or(0, |(_, ms)| *ms))
    };
    assert_eq!(shares(b"*1\r\n", 3_050), [10, 2_850, 50]);
    for answered_ms in [3_050, 4_000] {
        assert_eq!(shares(&[23, 3, 3], answered_ms), [60, answered_ms - 200, 0]);
    }
}

#[test]
fn tls_is_set_up_not_asked_for() {
    let mut wire = Wire::open();
    wire.attribution.0.client_payload(&[22, 3, 1]);
    wire.request(60);
    // The server's certificate, after a delay.
    wire.burst(300, 3);
    wire.attribution.0.client_payload(&[20, 3, 3]);
    wire.request(310);
    wire.burst(360, 4);
    check(wire, (0, 360), &[(Cause::Setup, 360)]);
}

#[test]
fn behind_a_proxy_the_server_tells_what_is_waited_for() {
    let trickling = |reason: Reason| {
        let mut wire = Wire::open();
        wire.request(50);
        for at in (100..1_000).step_by(100) {
            wire.burst(at, 2);
        }
        let held = WaitSpan { from_ns: 0, to_ns: 2_000 * MS, reason };
        wire.behind.push(&[held], true);
        wire.shares(500, 900, Some(RadioEvidence::default()))
    };
    let cause_of = |reason| trickling(reason).into_iter().max_by_key(|(_, ms)| *ms).map(|(c, _)| c);
    assert_eq!(cause_of(Reason::Queue), Some(Cause::Wireline));
    assert_eq!(cause_of(Reason::LossRecovery), Some(Cause::Wireline));
    assert_eq!(cause_of(Reason::ReceiveWindow), Some(Cause::ReceiveWindow));
    assert_eq!(cause_of(Reason::ServerThinkTime), Some(Cause::SenderLimited));
}

#[test]
fn who_has_nothing_to_send_or_thinks_is_the_sender() {
    let mut wire = Wire::open();
    wire.request(50);
    // A round trip and 300 ms of server think time; then nothing for 500 ms.
    wire.burst(400, 2);
    wire.burst(900, 2);
    let expected = [(Cause::FirstSlowStart, 50), (Cause::SenderLimited, 750), (Cause::Setup, 100)];
    check(wire, (0, 900), &expected);
}

#[test]
fn long_round_trips_are_a_queue_before_the_radio_or_behind_an_upload() {
    let paced = |upload: bool| {
        let mut wire = Wire::open();
        wire.request(50);
        wire.burst(100, 10);
        if upload {
            for at in 0..50 {
                wire.packet(110 + at, Direction::Ul, TcpFlags::ACK, 1_000, None);
            }
        }
        // Each segment answers an ACK sent 450 ms before.
        for at in (110..1_000_u32).step_by(10) {
            if at >= 550 {
                wire.stamped(at.into(), Direction::Dl, MSS, (0, at - 450));
            }
            wire.stamped(at.into(), Direction::Ul, 0, (at, 0));
        }
        wire
    };
    let radio = Some(RadioEvidence::default());
    let of = |wire: Wire, radio| wire.shares(550, 990, radio).first().copied();
    assert_eq!(of(paced(false), radio), Some((Cause::Wireline, 440)));
    assert_eq!(of(paced(false), None), Some((Cause::Unknown, 440)));
    assert_eq!(of(paced(true), radio), Some((Cause::UplinkQueue, 440)));
}

/// Data that answers an acknowledgement of 450 ms before may be all that the sender had.
#[test]
fn late_acknowledgements_are_a_queue_unless_the_sender_has_no_more_data() {
    for (bytes, expected) in [(MSS, Reason::Queue), (MSS / 2, Reason::QueueOrSender)] {
        let mut wire = Wire::open();
        wire.request(50);
        wire.burst(100, 10);
        for at in (110..1_000_u32).step_by(10) {
            if at >= 550 {
                wire.stamped(at.into(), Direction::Dl, bytes, (0, at - 450));
            }
            wire.stamped(at.into(), Direction::Ul, 0, (at, 0));
        }
        let mut spans = wire.attribution.1.touching(600 * MS, 900 * MS);
        assert!(spans.all(|span| span.reason == expected), "{expected:?}");
    }
}

/// A segment is missed while the data around it answers acknowledgements of so long before.
#[test]
fn what_is_missed_behind_long_round_trips_was_queued() {
    for (old_ms, queued) in [(450, true), (60, false)] {
        let mut wire = Wire::open();
        wire.request(50);
        wire.burst(100, 10);
        for at in (110..1_000_u32).step_by(10) {
            if at >= 110 + old_ms {
                wire.stamped(at.into(), Direction::Dl, MSS, (0, at - old_ms));
            }
            wire.stamped(at.into(), Direction::Ul, 0, (at, 0));
        }
        wire.dup_acks(&[1_000, 1_010, 1_020]);
        wire.stamps = Some((0, 1_020 - old_ms));
        wire.packet(1_020, Direction::Dl, TcpFlags::ACK, MSS, Some(TcpEventKind::RetxFast));
        let (sender, ..) = wire.attribution;
        let queued = [queued; 2];
        let lost =
            LostSegment { missed_ns: 1_000 * MS, again_ns: 1_020 * MS, queued, unseen: false };
        assert_eq!(sender.lost(), [lost]);
    }
}

#[test]
fn the_radio_takes_precedence() {
    let mut wire = Wire::open();
    wire.request(50);
    let end = wire.rounds(50, &[10, 20, 40]);
    let span = |from: i64, to: i64| RadioSpan { from_ns: from * MS, to_ns: to * MS, queued: true };
    let data_queue = [span(90, 110), span(130, 150)];
    let radio = RadioEvidence { data_queue: &data_queue, ..RadioEvidence::default() };
    let shares = wire.shares(0, end, Some(radio));
    let expected = [(Cause::RadioSignal, 40), (Cause::FirstSlowStart, 70), (Cause::Setup, 90)];
    assert_eq!(shares, expected);
}

#[test]
fn a_timeout_behind_duplicate_acks_is_an_undesired_slow_start() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10, 20]);
    wire.dup_acks(&[151, 152, 153]);
    wire.packet(450, Direction::Dl, TcpFlags::ACK, MSS, Some(TcpEventKind::RetxTimeout));
    check(wire, (150, 450), &[(Cause::UndesiredSlowStart, 300)]);
}

/// Many segments follow within half a round trip: the window is not that of a timeout. Then what is
/// sent again behind duplicate ACKs, without a silence, is not the timer's either.
#[test]
fn a_lost_retransmission_that_is_sent_again_is_no_timeout() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10, 20]);
    wire.dup_acks(&[151, 152, 153]);
    let again = Some(TcpEventKind::RetxTimeout);
    wire.packet(450, Direction::Dl, TcpFlags::ACK, MSS, again);
    for at in [454, 458, 462] {
        wire.packet(at, Direction::Dl, TcpFlags::ACK, MSS, None);
    }
    wire.dup_acks(&[470, 471, 472]);
    wire.packet(480, Direction::Dl, TcpFlags::ACK, MSS, again);
    check(wire, (462, 480), &[(Cause::LossRecoveryCongestion, 18)]);
}

/// A slow reader: RFC 1122 lets a sender wait for room for a full segment.
#[test]
fn a_window_below_a_segment_is_no_idle_sender() {
    let check_window = |rwnd: u64, expected: &[(Cause, i64)]| {
        let mut wire = Wire::open();
        wire.request(50);
        wire.rounds(50, &[10]);
        wire.rwnd = rwnd;
        wire.ack(110);
        wire.packet(530, Direction::Dl, TcpFlags::ACK, 500, None);
        wire.ack(530);
        wire.packet(950, Direction::Dl, TcpFlags::ACK, 500, None);
        check(wire, (160, 950), expected);
    };
    check_window(700, &[(Cause::ReceiveWindow, 790)]);
    check_window(70_000, &[(Cause::SenderLimited, 790)]);
}

proptest! {
    /// For any input the parts add up (`shares` checks it), also when the clock steps
    /// back; and shifting all times changes nothing else.
    #[test]
    fn parts_add_up(
        steps in prop::collection::vec((-200_i64..400, 0_usize..5, 1_i64..30), 1..60),
        from in 0_i64..2_000,
        length in 1_i64..5_000,
        shift in 0_i64..1_000_000,
    ) {
        let run = |shift: i64| {
            // Bins of an upload start at whole tenths of a second.
            let shift = shift * 100;
            let mut wire = Wire::open_at(shift);
            let mut at = 60 + shift;
            for &(gap, what, n) in &steps {
                at += gap;
                match what {
                    0 => wire.request(at),
                    1 => wire.packet(at, Direction::Dl, TcpFlags::ACK, MSS, Some(TcpEventKind::RetxTimeout)),
                    2 => wire.packet(at, Direction::Dl, TcpFlags::ACK, MSS, Some(TcpEventKind::RetxFast)),
                    _ => wire.burst(at, n),
                }
            }
            wire.shares(from + shift, from + length + shift, None)
        };
        prop_assert_eq!(run(0), run(shift));
    }
}

#[test]
fn what_the_phone_never_had_is_the_radios_loss() {
    let shares = |losses_ns: &[i64]| {
        let mut wire = Wire::open();
        wire.request(50);
        let sent = wire.rounds(50, &[10]);
        // All data is acknowledged; the next is sent by the timer.
        wire.burst(sent + 400, 10);
        wire.shares(sent, sent + 400, Some(RadioEvidence { losses_ns, ..RadioEvidence::default() }))
    };
    // A round trip belongs to slow start; RTT_MS and the slack after it are not yet a
    // pause.
    let of = |shares: Vec<(Cause, i64)>, cause| {
        shares.into_iter().find(|(of, _)| *of == cause).map_or(0, |(_, ms)| ms)
    };
    assert_eq!(of(shares(&[]), Cause::SenderLimited), 400 - RTT_MS);
    assert_eq!(of(shares(&[]), Cause::LossRecoveryRadio), 0);
    let lost = [(100 + RTT_MS) * MS];
    assert_eq!(of(shares(&lost), Cause::LossRecoveryRadio), 400 - RTT_MS);
    // A pause that no timer explains stays a pause.
    let pause = |losses_ns: &[i64]| {
        let mut wire = Wire::open();
        wire.request(50);
        let sent = wire.rounds(50, &[10]);
        wire.burst(sent + 8_000, 10);
        wire.shares(
            sent,
            sent + 8_000,
            Some(RadioEvidence { losses_ns, ..RadioEvidence::default() }),
        )
    };
    assert_eq!(of(pause(&lost), Cause::SenderLimited), 8_000 - RTT_MS);
    // A loss long before has no effect.
    assert_eq!(of(shares(&[20 * MS]), Cause::LossRecoveryRadio), 0);
}

impl Wire {
    /// A block that the application writes at once; its last segment is not full.
    fn block(&mut self, ms: i64, segments: i64) {
        self.burst(ms, segments);
        self.packet(ms, Direction::Dl, TcpFlags::ACK, MSS / 2, None);
        self.ack(ms);
    }
}

#[track_caller]
fn sender_limited_ms(wire: Wire, from_ms: i64, to_ms: i64) -> i64 {
    let shares = wire.shares(from_ms, to_ms, Some(RadioEvidence::default()));
    shares.into_iter().find(|(cause, _)| *cause == Cause::SenderLimited).map_or(0, |(_, ms)| ms)
}

/// A server that writes a block every 130 ms fits each into its window: the phone waits
/// for the application, not for slow start (RFC 9002, 7.8).
#[test]
fn a_server_that_paces_blocks_is_no_slow_start() {
    let mut wire = Wire::open();
    wire.request(50);
    for at in (100..2_000).step_by(130) {
        wire.block(at, 9);
    }
    assert_eq!(sender_limited_ms(wire, 100, 1_920), 1_820);
    // Blocks of whole segments show it by the bytes in flight and acknowledged before.
    let mut wire = Wire::open();
    wire.request(50);
    for at in (100..2_000).step_by(130) {
        wire.burst(at, 9);
    }
    assert!(sender_limited_ms(wire, 230, 1_920) > 1_600);
}

/// An application that writes little at first and the rest later: slow start continues.
#[test]
fn a_slow_start_goes_on_where_the_application_gives_more() {
    let mut wire = Wire::open();
    wire.request(50);
    for at in (100..1_000).step_by(90) {
        wire.block(at, 4);
    }
    let end = wire.rounds(1_000, &[10, 20, 40, 80]);
    let shares = wire.shares(1_100, end, Some(RadioEvidence::default()));
    assert_eq!(shares, [(Cause::FirstSlowStart, 100)]);
}

/// The SYN-ACK of 1 ms is lost; the phone retransmits its SYN after a second.
#[test]
fn a_lost_syn_ack_is_set_up() {
    let mut wire = Wire {
        attribution: (SenderModel::new(), WaitTimeline::new(), ByteBins::default()),
        behind: WaitTimeline::new(),
        stamps: None,
        sent: 0,
        rwnd: 1 << 20,
    };
    wire.packet(0, Direction::Ul, TcpFlags::SYN, 0, None);
    wire.packet(1_000, Direction::Ul, TcpFlags::SYN, 0, None);
    wire.packet(1_050, Direction::Dl, TcpFlags(0x12), 0, None);
    wire.ack(1_050);
    wire.request(1_050);
    let end = wire.rounds(1_050, &[10, 20, 40]);
    check(wire, (0, end), &[(Cause::FirstSlowStart, 100), (Cause::Setup, 1_100)]);
}

/// A server that echoes the request's time stamp in its whole answer: the data it sends
/// shows which ACKs it has received.
#[test]
fn an_echo_that_stands_still_is_no_queue() {
    let mut wire = Wire::open();
    let mut asked = 50;
    for _ in 0..3 {
        wire.stamped(asked, Direction::Ul, 100, (asked as u32, 0));
        let mut at = asked;
        for segments in [10, 20, 40, 60] {
            at += RTT_MS;
            for _ in 0..segments {
                wire.stamped(at, Direction::Dl, MSS, (0, asked as u32));
                wire.stamped(at, Direction::Ul, 0, (at as u32, 0));
            }
        }
        asked += 2_000;
    }
    let shares = wire.shares(2_050, 2_250, Some(RadioEvidence::default()));
    assert_eq!(shares, [(Cause::SlowStartRestart, 150), (Cause::Setup, 50)]);
}

/// A capture that begins within a connection shows no window: what its sender waits for
/// is unknown until a pause or a loss.
#[test]
fn a_capture_that_begins_late_does_not_know_the_window() {
    let mut wire = Wire {
        attribution: (SenderModel::new(), WaitTimeline::new(), ByteBins::default()),
        behind: WaitTimeline::new(),
        stamps: None,
        sent: 0,
        rwnd: 1 << 20,
    };
    for at in (0..1_000_i64).step_by(50) {
        for _ in 0..10 {
            wire.stamped(at, Direction::Dl, MSS, (0, (at - 50).max(0) as u32));
            wire.stamped(at, Direction::Ul, 0, (at as u32, 0));
        }
    }
    assert_eq!(wire.shares(200, 900, Some(RadioEvidence::default())), [(Cause::Unknown, 700)]);
}

/// An application that stops reading: the phone's window is closed for five seconds.
#[test]
fn a_closed_window_is_the_receivers_until_it_opens() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10, 20]);
    wire.rwnd = 0;
    wire.ack(151);
    wire.rwnd = 1 << 20;
    wire.ack(5_150);
    wire.burst(5_150 + RTT_MS, 10);
    check(wire, (250, 5_150), &[(Cause::ReceiveWindow, 4_900)]);
}

/// A path without any packet for four seconds, which ends with a retransmission by the timer.
#[test]
fn a_path_that_was_dead_is_a_loss() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10, 20]);
    wire.packet(4_150, Direction::Dl, TcpFlags::ACK, MSS, Some(TcpEventKind::RetxTimeout));
    wire.ack(4_150);
    check(wire, (250, 4_150), &[(Cause::LossRecoveryCongestion, 3_900)]);
}

/// A tail loss probe of data that had arrived (RFC 8985, 7.4): nothing was lost, and the window keeps
/// its size.
#[test]
fn data_that_had_arrived_is_no_loss() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10, 20, 40]);
    let event = Some(TcpEventKind::RetxSpurious);
    wire.packet(230, Direction::Dl, TcpFlags::ACK, MSS, event);
    wire.ack(230);
    let end = wire.rounds(200, &[60, 60, 60]);
    let shares = wire.shares(200, end, None);
    assert!(shares.iter().all(|(of, _)| *of != Cause::LossRecoveryCongestion), "{shares:?}");
}

/// The acknowledgements were lost, and the timer ended the wait.
#[test]
fn data_that_had_arrived_ends_a_wait_for_lost_acknowledgements() {
    let mut wire = Wire::open();
    wire.request(50);
    wire.rounds(50, &[10, 20]);
    let event = Some(TcpEventKind::RetxSpurious);
    wire.packet(1_200, Direction::Dl, TcpFlags::ACK, MSS, event);
    wire.ack(1_200);
    let end = wire.rounds(1_200, &[20]);
    let shares = wire.shares(150, end, None);
    assert!(shares.contains(&(Cause::LossRecoveryCongestion, 1_050)), "{shares:?}");
}
