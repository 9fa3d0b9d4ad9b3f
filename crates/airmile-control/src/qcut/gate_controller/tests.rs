use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::qcut::LogFault;
use crate::qcut::class::TCP;

const MS: i64 = 1_000_000;

fn packet(flow: u64, bytes: u32) -> PacketInfo {
    PacketInfo { flow, bytes, protocol: TCP, far_port: 443, ..PacketInfo::default() }
}

/// A modem that sends a fixed number of bytes a ms and reports every 10 ms, with 10 ms
/// delay.
struct ModemModel {
    per_ms: u64,
    held: u64,
    sent: u64,
    due: VecDeque<(i64, ModemReport)>,
    silent: bool,
    late_ms: i64,
    /// Round trip below the modem; `None`: no acknowledgements.
    path_ms: Option<i64>,
    /// Acknowledgements on their way, and the last byte passed.
    acks: VecDeque<(i64, u32)>,
    end: u32,
}

impl ModemModel {
    fn new(per_ms: u64) -> Self {
        let (due, acks) = (VecDeque::new(), VecDeque::new());
        let (silent, late_ms, path_ms) = (false, 10, None);
        Self { per_ms, held: 0, sent: 0, due, silent, late_ms, path_ms, acks, end: 0 }
    }

    fn step(&mut self, ms: i64) {
        let goes = self.held.min(self.per_ms);
        self.held -= goes;
        self.sent += goes;
        if let Some(path_ms) = self.path_ms {
            self.acks.push_back(((ms + 1 + path_ms) * MS, self.sent as u32));
        }
        if ms % 10 == 9 && !self.silent {
            let room = 10 * self.per_ms;
            let (from_ns, to_ns) = ((ms - 9) * MS, (ms + 1) * MS);
            let due_ns = (ms + 1 + self.late_ms) * MS;
            self.due.push_back((
                due_ns,
                ModemReport::Sent {
                    from_ns,
                    to_ns,
                    low_bytes: room,
                    high_bytes: room,
                    largest_bytes: self.per_ms,
                },
            ));
            if ms % 40 == 39 {
                let (low_bytes, high_bytes) = (self.held, self.held);
                // Before any packet that arrives at that time.
                let report = ModemReport::Waiting { at_ns: to_ns - 1, low_bytes, high_bytes };
                self.due.push_back((due_ns, report));
            }
        }
    }

    /// Runs the gate in front of it with a permanent backlog; returns the occupancy each
    /// ms.
    fn run(&mut self, qcut: &mut Qcut<u32>, from_ms: i64, to_ms: i64) -> Vec<u64> {
        let mut held = Vec::new();
        for ms in from_ms..to_ms {
            let now = ms * MS;
            while self.due.front().is_some_and(|(due, _)| *due <= now) {
                let Some((_, report)) = self.due.pop_front() else { break };
                qcut.report(now, report);
            }
            while self.acks.front().is_some_and(|(due, _)| *due <= now) {
                let Some((_, ack)) = self.acks.pop_front() else { break };
                qcut.acknowledged(now, 1, ack);
            }
            while qcut.counts().waiting.packets < 200 {
                self.end += 1_500;
                let info = PacketInfo { tcp_end: Some(self.end), ..packet(1, 1_498) };
                qcut.push(now, info, 1_500);
            }
            while let Some(bytes) = qcut.poll(now) {
                self.held += u64::from(bytes);
            }
            self.step(ms);
            held.push(self.held);
        }
        held
    }
}

fn qcut_of<P>(evidence: BufferEvidence) -> Qcut<P> {
    let queue = QueueConfig { codel: None, ..QueueConfig::default() };
    Qcut::new(QcutConfig { evidence, queue, ..QcutConfig::default() })
}

fn qcut(limit: Limit, evidence: BufferEvidence) -> Qcut<u32> {
    let queue = QueueConfig { codel: None, ..QueueConfig::default() };
    Qcut::new(QcutConfig { limit, evidence, queue, ..QcutConfig::default() })
}

#[test]
fn the_modem_holds_the_limit_and_never_runs_empty() {
    // 8 Mbit/s: 20 ms and 21 ms of the grant are 41 kB, and 1.5 times that while probing.
    for (limit, low, high) in
        [(Limit::DelayMs(20), 30_000, 75_000), (Limit::Bytes(20_000), 12_000, 28_000)]
    {
        let (mut modem, mut qcut) = (ModemModel::new(1_000), qcut(limit, BufferEvidence::Modem));
        let held = modem.run(&mut qcut, 0, 3_000);
        let settled = &held[1_000..];
        let (least, most) = (settled.iter().min().unwrap(), settled.iter().max().unwrap());
        assert!(*least >= low && *most <= high, "{limit}: {least} to {most}");
        assert!(modem.sent > 2_900_000, "{limit}: {}", modem.sent);
    }
}

#[test]
fn a_rate_that_drops_tenfold_is_followed() {
    let (mut modem, mut qcut) =
        (ModemModel::new(1_000), qcut(Limit::DelayMs(20), BufferEvidence::Modem));
    modem.run(&mut qcut, 0, 2_000);
    modem.per_ms = 100;
    let after = modem.run(&mut qcut, 2_000, 4_000);
    // 41 ms of the new rate; one packet more may be arriving.
    let limit = 4_100 + 1_500;
    let back = after.iter().position(|held| *held <= limit).unwrap() as u64;
    // Maximum occupancy at the new rate after a report's interval and 50 ms, including what
    // entered before the first report of the drop arrived.
    let held = *after.iter().max().unwrap();
    assert!(back <= held / 100 + 10 + 50, "{back} ms for {held} bytes");
    assert!(held <= 61_500 + 1_000 * (20 + 10), "{held}: the limit and the reports' delay");
    assert!(after[back as usize + 200..].iter().all(|held| *held <= 2 * limit), "and stays");
}

/// A weak signal fades and comes back within the time that a report takes.
#[test]
fn a_link_that_has_faded_finds_data_when_it_is_back() {
    let (mut modem, mut qcut) =
        (ModemModel::new(30), qcut(Limit::DelayMs(20), BufferEvidence::Modem));
    let (mut sent, mut room, mut most) = (0, 0, 0);
    for ms in (0..20_000).step_by(160) {
        if ms < 2_000 {
            (sent, room, most) = (modem.sent, 0, 0);
        }
        for (per_ms, from_ms, to_ms) in [(30, ms, ms + 120), (300, ms + 120, ms + 160)] {
            modem.per_ms = per_ms;
            let held = modem.run(&mut qcut, from_ms, to_ms);
            room += per_ms * (to_ms - from_ms) as u64;
            most = held.into_iter().fold(most, u64::max);
        }
    }
    // 87 % without the second packet, with the same maximum: 39 ms of the better link.
    let share = (modem.sent - sent) * 100 / room;
    assert!(share >= 95 && most <= 12_000, "{share} %, {most} bytes");
}

#[test]
fn a_silent_modem_stops_nothing() {
    let (mut modem, mut qcut) =
        (ModemModel::new(1_000), qcut(Limit::DelayMs(20), BufferEvidence::Modem));
    modem.run(&mut qcut, 0, 2_000);
    let before = modem.sent;
    modem.silent = true;
    let held = modem.run(&mut qcut, 2_000, 3_800);
    // No round trips here: without evidence the gate continues at a quarter of the rate.
    let sent = modem.sent - before;
    assert!((300_000..1_000_000).contains(&sent), "{sent}");
    assert!(held.iter().all(|held| *held < 70_000));
    assert_eq!((qcut.silences(), qcut.held(3_800 * MS).silent), (1, true));
    modem.silent = false;
    let before = modem.sent;
    let held = modem.run(&mut qcut, 3_800, 5_800);
    assert!(modem.sent - before > 1_900_000, "{}", modem.sent - before);
    let most = held[200..].iter().enumerate().max_by_key(|(_, held)| **held).unwrap();
    assert!(*most.1 < 75_000, "{most:?}");
}

#[test]
fn a_log_that_comes_late_costs_no_rate() {
    for late_ms in [50, 150, 250] {
        let (mut modem, mut qcut) =
            (ModemModel::new(1_000), qcut(Limit::DelayMs(20), BufferEvidence::Modem));
        modem.late_ms = late_ms;
        modem.run(&mut qcut, 0, 4_000);
        let before = modem.sent;
        modem.run(&mut qcut, 4_000, 6_000);
        assert!(modem.sent - before > 1_800_000, "{late_ms}: {}", modem.sent - before);
    }
}

#[test]
fn a_late_log_gives_way_to_round_trips_and_comes_back() {
    let (mut modem, mut qcut) =
        (ModemModel::new(1_000), qcut(Limit::DelayMs(20), BufferEvidence::Modem));
    (modem.late_ms, modem.path_ms) = (150, Some(40));
    modem.run(&mut qcut, 0, 9_000);
    let before = modem.sent;
    let held = modem.run(&mut qcut, 9_000, 11_000);
    let (state, most) = (qcut.held(11_000 * MS), *held.iter().max().unwrap());
    assert_eq!((state.log_fault, state.silent), (Some(LogFault::Late), true));
    assert_eq!(qcut.log_rejections(), 1);
    // 40 ms are in flight; 20 ms may be held, 1.4 times that in a search.
    assert!(modem.sent - before > 1_800_000 && most < 40_000, "{} {most}", modem.sent - before);
    // Without answers the late log is used: it costs no rate.
    modem.path_ms = None;
    modem.acks.clear();
    modem.run(&mut qcut, 11_000, 14_000);
    assert!(!qcut.held(14_000 * MS).silent);
    // A good log is used after five seconds, and what it took to be sure of it.
    (modem.late_ms, modem.path_ms) = (10, Some(40));
    modem.run(&mut qcut, 14_000, 18_000);
    assert!(qcut.held(18_000 * MS).log_fault.is_some());
    modem.run(&mut qcut, 18_000, 40_000);
    let state = qcut.held(40_000 * MS);
    assert_eq!((state.log_fault, state.silent, qcut.log_rejections()), (None, false, 1));
}

#[test]
fn what_nobody_tells_of_is_not_held_back() {
    // No report and no answer: after 2 s, as without a gate.
    let mut qcut: Qcut<u64> = qcut_of(BufferEvidence::Modem);
    for n in 0..3_000 {
        qcut.push(0, packet(1, 1_500), n);
    }
    let mut passed = |ms: i64| std::iter::from_fn(|| qcut.poll(ms * MS)).count();
    let by_2_s: usize = (0..2_000).map(&mut passed).sum();
    assert!(by_2_s < 100, "{by_2_s}");
    assert_eq!(by_2_s + (2_000..2_200).map(&mut passed).sum::<usize>(), 3_000);
}

#[test]
fn a_modem_that_falls_silent_behind_a_shut_gate_is_silent() {
    let mut qcut = qcut(Limit::Bytes(3_000), BufferEvidence::Modem);
    for n in 0..9 {
        qcut.push(0, packet(1, 1_500), n);
    }
    while qcut.poll(0).is_some() {}
    // The modem reports a full buffer once and then stays silent.
    let full = ModemReport::Waiting { at_ns: 10 * MS, low_bytes: 3_000, high_bytes: 3_004 };
    qcut.report(20 * MS, full);
    assert!(!qcut.held(119 * MS).silent && qcut.held(120 * MS).silent);
}

#[test]
fn less_is_held_while_somebody_waits() {
    let (mut modem, mut qcut) =
        (ModemModel::new(1_000), qcut(Limit::DelayMs(20), BufferEvidence::Modem));
    modem.run(&mut qcut, 0, 2_000);
    let mut held = Vec::new();
    for ms in (2_000..3_000).step_by(20) {
        qcut.push(ms * MS, packet(2, 100), 100);
        held.extend(modem.run(&mut qcut, ms, ms + 20));
    }
    // 13 ms, a packet that passes below the limit, and the uncertainty of the reports.
    let most = held[100..].iter().max().unwrap();
    assert!(*most <= 22_000, "{most}");
    assert!((900_000..1_100_000).contains(&qcut.held(3_000 * MS).bytes_per_s));
    // 300 ms after the last sparse packet, the state is as before.
    let held = modem.run(&mut qcut, 3_000, 4_000);
    let least = held[500..].iter().min().unwrap();
    assert!(*least >= 30_000, "{least}");
}

#[test]
fn the_gate_says_when_to_come_back() {
    let mut qcut = qcut(Limit::Bytes(3_000), BufferEvidence::Modem);
    assert_eq!(qcut.poll_timeout(0), None, "nothing waits");
    for n in 0..3 {
        qcut.push(0, packet(1, 1_500), n);
    }
    assert_eq!(qcut.poll_timeout(0), Some(0));
    assert_eq!((qcut.poll(0), qcut.poll(0), qcut.poll(0)), (Some(0), Some(1), None));
    // 3,004 bytes: 5 more than the limit lets pass, at 125 kB/s 40 us; at most once a TTI.
    assert_eq!(qcut.poll_timeout(0), Some(MS));
    assert_eq!(qcut.finish().collect::<Vec<_>>(), [2]);
}

/// Inputs of a gate.
#[derive(Debug, Clone)]
enum GateInput {
    Push(u64, u32, bool, u8),
    Poll,
    Wait(i64),
    Sent(i64, u64),
    Waiting(i64, u64, u64),
    Answer(u64, u32),
    Probe,
}

fn steps() -> impl Strategy<Value = Vec<GateInput>> {
    let step = prop_oneof![
        4 => (0_u64..5, 40_u32..1_501, any::<bool>(), any::<u8>())
            .prop_map(|(flow, bytes, ack, dscp)| GateInput::Push(flow, bytes, ack, dscp % 64)),
        4 => Just(GateInput::Poll),
        2 => (0_i64..300).prop_map(GateInput::Wait),
        1 => (1_i64..50, 0_u64..50_000).prop_map(|(ms, bytes)| GateInput::Sent(ms, bytes)),
        1 => (0_i64..50, any::<u64>(), any::<u64>())
            .prop_map(|(ms, low, high)| GateInput::Waiting(ms, low, high)),
        1 => (0_u64..5, any::<u32>()).prop_map(|(flow, ack)| GateInput::Answer(flow, ack)),
        1 => Just(GateInput::Probe),
    ];
    prop::collection::vec(step, 0..300)
}

/// While a request is awaited, bulk packets wait for a shorter limit; the request does not.
#[test]
fn a_sparse_packet_passes_where_bulk_waits() {
    let (mut modem, mut qcut) =
        (ModemModel::new(1_000), qcut(Limit::DelayMs(20), BufferEvidence::Modem));
    modem.run(&mut qcut, 0, 3_000);
    // 5 ms later some 5 kB have left.
    let (now, request) = (3_005 * MS, 400);
    let held = qcut.held(now);
    assert!(held.occupancy.likely_bytes > 20_000, "{held:?}");
    qcut.push(now, packet(2, request), request);
    let passed: Vec<u32> = std::iter::from_fn(|| qcut.poll(now)).collect();
    assert_eq!(passed, [request]);
}

proptest! {
    /// Any order of packets, reports and answers, honest or not: every packet leaves once
    /// or is dropped and counted, packets of a flow keep their order, and finally the gate
    /// opens by time alone.
    #[test]
    fn nothing_is_lost_and_nothing_sticks(steps in steps(), which in 0_usize..4, codel in any::<bool>()) {
        use BufferEvidence::{Autorate, Modem, Nothing, RoundTrips};
        let evidence = [Modem, RoundTrips, Autorate, Nothing][which];
        let queue = QueueConfig {
            codel: codel.then(Default::default),
            max_packets: 40,
            ..QueueConfig::default()
        };
        let mut qcut = Qcut::new(QcutConfig { evidence, queue, ..QcutConfig::default() });
        let (mut now, mut number, mut dropped) = (0, 0_u64, 0);
        let mut out: Vec<(u64, u64)> = Vec::new();
        let mut probe = None;
        for step in steps {
            match step {
                GateInput::Push(flow, bytes, pure_ack, dscp) => {
                    let tcp_end = (!pure_ack).then_some(number as u32);
                    let info = PacketInfo { pure_ack, dscp, tcp_end, ..packet(flow, bytes) };
                    qcut.push(now, info, (flow, number));
                    number += 1;
                }
                GateInput::Poll => out.extend(qcut.poll(now)),
                GateInput::Wait(ms) => now += ms * MS,
                GateInput::Sent(ms, bytes) => qcut.report(now, ModemReport::Sent {
                    from_ns: now - ms * MS, to_ns: now, low_bytes: bytes / 2, high_bytes: bytes,
                    largest_bytes: bytes / 10,
                }),
                GateInput::Waiting(ms, low_bytes, high_bytes) => {
                    qcut.report(now, ModemReport::Waiting { at_ns: now - ms * MS, low_bytes, high_bytes });
                }
                GateInput::Answer(flow, ack) => qcut.acknowledged(now, flow, ack),
                GateInput::Probe => match probe.take() {
                    Some(id) => qcut.probe_answered(now, id),
                    None => probe = qcut.poll_probe(now),
                },
            }
            dropped += std::iter::from_fn(|| qcut.poll_dropped()).count();
        }
        // Time alone empties it.
        let mut rounds = 0;
        while qcut.counts().waiting.packets > 0 {
            match qcut.poll(now) {
                Some(packet) => out.push(packet),
                None => {
                    // CoDel may have dropped the last waiting packets.
                    qcut.poll_probe(now);
                    let due = qcut.poll_timeout(now).unwrap_or(now);
                    prop_assert!(due > now || qcut.counts().waiting.packets == 0, "no wait");
                    now = due;
                }
            }
            rounds += 1;
            prop_assert!(rounds < 40_000, "stuck: {:?}", qcut.held(now));
        }
        dropped += std::iter::from_fn(|| qcut.poll_dropped()).count();
        let counts = qcut.counts();
        prop_assert_eq!(out.len() + dropped, number as usize);
        prop_assert_eq!(counts.arrived.packets, number);
        prop_assert_eq!(counts.sent.packets, out.len() as u64);
        prop_assert_eq!(counts.dropped_aqm.packets + counts.dropped_full.packets, dropped as u64);
        prop_assert_eq!(counts.arrived.bytes,
            counts.sent.bytes + counts.dropped_aqm.bytes + counts.dropped_full.bytes);
        prop_assert_eq!(counts.waiting, Default::default());
        let mut last: HashMap<u64, u64> = HashMap::new();
        for (flow, number) in out {
            prop_assert!(last.insert(flow, number).is_none_or(|before| before < number), "order");
        }
    }
}
