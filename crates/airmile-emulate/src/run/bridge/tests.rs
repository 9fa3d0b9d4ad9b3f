use std::net::SocketAddrV4;

use airmile_model::units::MS_NS;
use airmile_model::{Direction, Record};
use proptest::prelude::*;

use super::{Bridge, NoPacket, PHONE_ADDRESS, SERVER_ADDRESS, read};
use crate::core::proxy::ProxyConfig;
use crate::net::{IpPacket, Transport};
use crate::run::{CapturePoint, RunSink};
use crate::scenario::{CoreConfig, PathConfig, Scenario};

/// A datagram of a given length with unique contents.
fn datagram(down: bool, n: u16, ip_bytes: usize) -> Vec<u8> {
    let phone = SocketAddrV4::new(PHONE_ADDRESS, 40_000);
    let server = SocketAddrV4::new(SERVER_ADDRESS, 443);
    let (src, dst) = if down { (server, phone) } else { (phone, server) };
    let payload = (0..ip_bytes - 28).map(|at| (at as u16).wrapping_mul(31).wrapping_add(n) as u8);
    IpPacket { src, dst, ip_id: n, transport: Transport::Udp(payload.collect()) }.emit()
}

#[derive(Default)]
struct SeenPackets {
    packets: Vec<(i64, CapturePoint, Vec<u8>)>,
    rlc_bytes: [u64; 2],
}

impl RunSink for SeenPackets {
    fn record(&mut self, record: Record) {
        if let Record::Rlc(pdu) = record {
            self.rlc_bytes[pdu.dir as usize] += u64::from(pdu.size_bytes);
        }
    }

    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        self.packets.push((at_ns, point, packet.emit()));
    }
}

fn scenario(proxy: bool) -> Scenario {
    let core = CoreConfig { rtt_ms: 30, proxy_rtt_ms: 10, ..CoreConfig::default() };
    Scenario { core, proxy: proxy.then(ProxyConfig::default), ..Scenario::default() }
}

#[test]
fn carries_bytes_unchanged_both_ways_in_order() {
    let mut bridge = Bridge::new(&scenario(false)).unwrap();
    let mut seen = SeenPackets::default();
    let mut got: Vec<(CapturePoint, Vec<u8>)> = Vec::new();
    for n in 0..400_u16 {
        if n < 200 {
            let bytes = 28 + usize::from(n) * 7;
            bridge.push(CapturePoint::Server, datagram(true, n, bytes)).unwrap();
            bridge.push(CapturePoint::Phone, datagram(false, n, 28 + usize::from(n))).unwrap();
        }
        bridge.step(&mut seen);
        got.extend(std::iter::from_fn(|| bridge.poll()));
    }
    let at = |point| got.iter().filter(move |(at, _)| *at == point).map(|(_, bytes)| bytes.clone());
    let sent = |down, per| (0..200_u16).map(move |n| datagram(down, n, 28 + usize::from(n) * per));
    assert!(at(CapturePoint::Phone).eq(sent(true, 7)));
    assert!(at(CapturePoint::Server).eq(sent(false, 1)));
    // The captures contain each packet twice, once at each end, in time order.
    assert_eq!(seen.packets.len(), 800);
    assert!(seen.packets.is_sorted_by_key(|(at_ns, ..)| *at_ns));
    // Sent and received bytes add up, with two bytes of PDCP per packet.
    let outcome = bridge.finish();
    let bytes = |dir: Direction| -> u64 {
        let point = if dir == Direction::Dl { CapturePoint::Phone } else { CapturePoint::Server };
        at(point).map(|bytes| bytes.len() as u64 + 2).sum()
    };
    for totals in outcome.totals[0] {
        assert_eq!(totals.arrived_bytes, bytes(totals.dir));
        assert_eq!(totals.delivered_bytes, bytes(totals.dir));
        // Each byte was in a PDU, in addition to headers and status PDUs.
        assert!(seen.rlc_bytes[totals.dir as usize] > bytes(totals.dir));
    }
}

#[test]
fn delay_is_the_core_s_and_the_air_s() {
    let mut bridge = Bridge::new(&scenario(false)).unwrap();
    bridge.push(CapturePoint::Server, datagram(true, 1, 100)).unwrap();
    let mut after_ms = 0;
    while bridge.poll().is_none() {
        bridge.step(&mut ());
        after_ms += 1;
    }
    // 15 ms of core network, then some TTIs to the phone, which is notified one TTI later.
    assert!((17..30).contains(&after_ms), "{after_ms}");
}

#[test]
fn a_box_sees_both_sides() {
    let mut bridge = Bridge::new(&scenario(true)).unwrap();
    let mut points = Vec::new();
    bridge.push(CapturePoint::Phone, datagram(false, 1, 100)).unwrap();
    bridge.push(CapturePoint::Server, datagram(true, 2, 100)).unwrap();
    for _ in 0..200 {
        bridge.step(&mut ());
        while let Some((point, bytes)) = bridge.poll() {
            points.push(point);
            // It forwards packets.
            match point {
                CapturePoint::ProxyRan => bridge.push(CapturePoint::ProxyCore, bytes).unwrap(),
                CapturePoint::ProxyCore => bridge.push(CapturePoint::ProxyRan, bytes).unwrap(),
                CapturePoint::Phone | CapturePoint::Server => {}
            }
        }
    }
    points.sort();
    use CapturePoint::{Phone, ProxyCore, ProxyRan, Server};
    assert_eq!(points, [Phone, ProxyRan, ProxyCore, Server]);
}

#[test]
fn loss_is_the_scenario_s() {
    let mut lossy = scenario(false);
    lossy.core.down = PathConfig { loss: 1.0, ..PathConfig::default() };
    let mut bridge = Bridge::new(&lossy).unwrap();
    bridge.push(CapturePoint::Server, datagram(true, 1, 100)).unwrap();
    for _ in 0..100 {
        bridge.step(&mut ());
    }
    assert_eq!(bridge.poll(), None);
}

#[test]
fn time_begins_where_the_scenario_says() {
    let epoch_ns = 1_800_000_000 * 1_000 * MS_NS;
    let moved = Scenario { epoch_ns, ..scenario(false) };
    let mut bridge = Bridge::new(&moved).unwrap();
    let start_ns = epoch_ns + i64::from(moved.first_tti) * MS_NS;
    assert_eq!(bridge.now_ns(), start_ns);
    bridge.push(CapturePoint::Phone, datagram(false, 1, 1_488)).unwrap();
    let mut seen = SeenPackets::default();
    for _ in 0..200 {
        bridge.step(&mut seen);
    }
    let outcome = bridge.finish();
    assert_eq!(seen.packets[0].0, start_ns);
    let time = outcome.transfers[0].transfer.time.unwrap();
    assert_eq!(time.0.ns, start_ns);
    assert_eq!(outcome.transfers[0].transfer.tti.unwrap().0.0, i64::from(moved.first_tti));
}

/// A segment of TCP without options.
fn segment(down: bool, seq: u32, ack: u32, payload: usize) -> Vec<u8> {
    let mut bytes = datagram(down, 1, 40 + payload);
    bytes[9] = 6;
    bytes[24..28].copy_from_slice(&seq.to_be_bytes());
    bytes[28..32].copy_from_slice(&ack.to_be_bytes());
    bytes[32..34].copy_from_slice(&[0x50, 0x10]);
    bytes
}

/// Transfers from packets that the phone sends (false) or receives (true), each at its ms:
/// direction, bytes, start and end in ms.
fn exchanges(packets: &[(i64, Vec<u8>)]) -> Vec<(Direction, u64, i64, i64)> {
    let mut exchanges = super::exchange::Exchanges::default();
    for (ms, bytes) in packets {
        let packet = read(bytes.clone()).unwrap();
        if *packet.src.ip() == PHONE_ADDRESS {
            exchanges.sent(ms * MS_NS, &packet);
        } else {
            exchanges.received(ms * MS_NS, &packet);
        }
    }
    let ended = exchanges.into_app_log().ended.into_iter();
    ended.map(|t| (t.dir, t.bytes, t.start_ns / MS_NS, t.end_ns / MS_NS)).collect()
}

fn syn(down: bool) -> Vec<u8> {
    let mut bytes = segment(down, 0, 0, 0);
    bytes[33] = if down { 0x12 } else { 0x02 };
    bytes
}

#[test]
fn an_upload_ends_when_its_last_byte_is_acknowledged() {
    let (up, ack) = (|seq| segment(false, seq, 0, 1_000), |ack| segment(true, 0, ack, 0));
    let packets = [
        (0, syn(false)),
        (40, syn(true)),
        (41, up(1)),
        (42, up(1_001)),
        // Retransmitted: no new bytes.
        (90, up(1)),
        (130, ack(2_001)),
        // A window, and the FIN's acknowledgement.
        (500, ack(2_001)),
        (8_000, ack(2_002)),
    ];
    assert_eq!(exchanges(&packets), [(Direction::Ul, 2_000, 41, 130)]);
}

#[test]
fn a_word_about_the_data_is_no_request() {
    let (up, down) = (|seq| segment(false, seq, 0, 30), |ack| segment(true, 0, ack, 1_400));
    let mut packets = vec![(0, syn(false)), (40, syn(true)), (41, up(1))];
    // Data over 200 ms, with a window update in the middle.
    packets.extend((85..285).map(|ms| (ms, down(31))));
    packets.push((150, up(31)));
    // A request when all data has arrived; its response takes a round trip.
    packets.push((286, up(61)));
    packets.extend((330..340).map(|ms| (ms, down(91))));
    packets.sort_by_key(|(ms, _)| *ms);
    let expected = [(Direction::Dl, 280_000, 41, 284), (Direction::Dl, 14_000, 286, 339)];
    assert_eq!(exchanges(&packets), expected);
}

#[test]
fn a_next_request_begins_a_next_transfer() {
    let mut bridge = Bridge::new(&scenario(false)).unwrap();
    // Two requests with a response each; acknowledgements are not transfers.
    for request in 0..2 {
        let next = (request + 1) * 100;
        bridge.push(CapturePoint::Phone, segment(false, request * 100, 0, 100)).unwrap();
        for n in 0..100 {
            if n % 10 == 0 {
                bridge.push(CapturePoint::Server, segment(true, 0, next, 1_000)).unwrap();
                bridge.push(CapturePoint::Phone, segment(false, next, 0, 0)).unwrap();
            }
            bridge.step(&mut ());
        }
        (0..200).for_each(|_| bridge.step(&mut ()));
    }
    let outcome = bridge.finish();
    let transfers: Vec<_> = outcome.transfers.iter().map(|t| (t.dir, t.transfer.bytes)).collect();
    assert_eq!(transfers, [(Direction::Dl, Some(10_000)); 2]);
    let events: Vec<_> = outcome.notes.iter().map(|note| note.event).collect();
    assert_eq!(events, ["request", "first_byte", "end", "request", "first_byte", "end"]);
}

#[test]
fn what_is_no_packet_is_told() {
    let good = datagram(true, 1, 40);
    let mut long = good.clone();
    long.push(0);
    let cases = [
        (Vec::new(), NoPacket::Version(0)),
        (vec![0x60; 40], NoPacket::Version(6)),
        (good[..30].to_vec(), NoPacket::Length { told: 40, there: 30 }),
        (long, NoPacket::Length { told: 40, there: 41 }),
        (vec![0x45, 0, 0, 4], NoPacket::Length { told: 4, there: 4 }),
    ];
    for (bytes, error) in cases {
        assert_eq!(read(bytes), Err(error));
    }
    assert_eq!(read(good).unwrap().dst.port(), 40_000);
}

proptest! {
    /// Packets of any protocol and options, and invalid ones: no panic, and accepted
    /// packets are returned unchanged.
    #[test]
    fn what_is_taken_arrives_as_it_was(
        mut packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..20),
        good in any::<bool>(),
    ) {
        let mut bridge = Bridge::new(&scenario(false)).unwrap();
        let mut taken = Vec::new();
        for packet in &mut packets {
            if good && packet.len() >= 20 {
                packet[0] = 0x40 | packet[0] & 0xf;
                packet[2] = 0;
                packet[3] = packet.len() as u8;
            }
            if bridge.push(CapturePoint::Server, packet.clone()).is_ok() {
                taken.push(packet.clone());
            }
        }
        (0..300).for_each(|_| bridge.step(&mut ()));
        let arrived: Vec<Vec<u8>> = std::iter::from_fn(|| bridge.poll()).map(|(_, b)| b).collect();
        prop_assert_eq!(arrived, taken);
    }
}
