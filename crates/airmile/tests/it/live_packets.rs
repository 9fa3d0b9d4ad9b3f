//! Live packets: the flows equal those of the file, independent of when they are viewed.

use airmile::live::packets::{LiveFlow, LivePackets, PacketView};
use airmile::{Captures, PacketOptions, Progress};

/// A capture at the phone from the lab.
fn capture() -> (tempfile::TempDir, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    airmile_lab::run_scenario("web-browsing", None, &dir.path().join("run")).unwrap();
    let bytes = std::fs::read(dir.path().join("run/phone.pcapng")).unwrap();
    (dir, bytes)
}

fn look(live: &mut LivePackets) -> PacketView {
    live.look(None)
}

/// By number: payload in each direction, and retransmitted segments.
fn facts(flow: &LiveFlow) -> (u64, u64, u64, u64) {
    (flow.flow, flow.dl_bytes, flow.ul_bytes, flow.dl_retx + flow.ul_retx)
}

#[test]
fn flows_are_those_of_the_file() {
    let (dir, bytes) = capture();
    let path = dir.path().join("run/phone.pcapng");
    let options = PacketOptions::default();
    let (report, _) = airmile::packets::packets(
        Captures::from(std::slice::from_ref(&path)),
        &options,
        &Progress::default(),
    )
    .unwrap();
    let document = serde_json::to_value(&report).unwrap();
    let count = |name: &str, flow: &serde_json::Value| flow[name].as_u64().unwrap();
    let of_file = document["flows"].as_array().unwrap().iter().map(|flow| {
        let again = count("dl_retx", flow) + count("ul_retx", flow);
        (count("flow", flow), count("dl_bytes", flow), count("ul_bytes", flow), again)
    });
    let mut of_file: Vec<_> = of_file.collect();
    of_file.sort_unstable();
    assert!(of_file.len() > 5);
    for piece in [bytes.len(), 1 << 16, 997] {
        let mut live = LivePackets::new();
        let mut seen = std::collections::BTreeMap::new();
        for part in bytes.chunks(piece) {
            live.push(part);
            for flow in live.take_ended() {
                seen.insert(flow.flow, facts(&flow));
            }
            if piece > 1_000 {
                // A view changes nothing.
                look(&mut live);
            }
        }
        let last = look(&mut live);
        for flow in &last.flows {
            seen.insert(flow.flow, facts(flow));
        }
        assert_eq!(seen.into_values().collect::<Vec<_>>(), of_file, "{piece}");
        assert_eq!(Some(last.packets), document["quality"]["packets"].as_u64());
        assert_eq!(last.unread, 0);
        let open = last.flows.iter().filter(|flow| flow.open).count() as u64;
        assert!(
            last.flows_open >= open && last.flows_total + last.flows_open <= of_file.len() as u64
        );
    }
}

#[test]
fn rates_fall_where_nothing_passes() {
    let (_dir, bytes) = capture();
    let mut live = LivePackets::new();
    look(&mut live);
    let mut most: f64 = 0.0;
    for part in bytes.chunks(1 << 16) {
        live.push(part);
        most = most.max(look(&mut live).bps.unwrap_or_default());
    }
    // A page over a cell of some ten Mbit/s.
    assert!((1e6..100e6).contains(&most), "{most}");
    let last_ns = look(&mut live).last_us.unwrap() * 1_000;
    live.look(Some(last_ns + 2_000_000_000));
    let later = live.look(Some(last_ns + 20_000_000_000));
    assert_eq!(later.bps, Some(0.0));
    assert_eq!(later.rtt_median_ms, None);
    assert!(later.flows.iter().all(|flow| flow.dl_bps.unwrap_or_default() == 0.0));
}

#[test]
fn damage_is_counted_and_passed_over() {
    let (_dir, bytes) = capture();
    let mut live = LivePackets::new();
    let middle = bytes.len() / 2;
    live.push(&bytes[..middle]);
    live.push(&[0xff; 300]);
    live.push(&bytes[middle..]);
    let view = look(&mut live);
    assert!(view.unread > 0 && view.packets > 0);
    live.note_gap();
    live.push(&bytes);
    assert!(look(&mut live).packets > view.packets);
}

/// A pcap of bare IPv4 packets (LINKTYPE_RAW), each a UDP packet with a number of bytes, by time in
/// milliseconds and client port.
fn udp_capture(packets: impl Iterator<Item = (u32, u16)>) -> Vec<u8> {
    let mut out = Vec::new();
    for field in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        out.extend(field.to_le_bytes());
    }
    for (ms, port) in packets {
        let (seconds, us) = (1_700_000_000 + ms / 1000, ms % 1000 * 1000);
        for field in [seconds, us, 1_000, 1_000] {
            out.extend(field.to_le_bytes());
        }
        let mut ip = vec![0x45, 0, 0x03, 0xe8, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1];
        ip.extend(port.to_be_bytes());
        ip.extend([0x11, 0x51, 0x03, 0xd4, 0, 0]);
        ip.resize(1_000, 0);
        out.extend(ip);
    }
    out
}

#[test]
fn rates_of_flows_that_come_back_are_those_of_late() {
    // Three times as many flows as are reported take turns, for a second each: 1,000 bytes every 10
    // s are 800 bit/s over a flow's life, and 8,000 in the second in which it is reported.
    let turns =
        (0..60_u32).flat_map(|s| (0..64).map(move |n| (s * 1000 + n, (s % 3 * 64 + n) as u16)));
    let mut live = LivePackets::new();
    let bytes = udp_capture(turns.map(|(ms, n)| (ms, 20_000 + n)));
    let per_second = 64 * (16 + 1_000);
    live.push(&bytes[..24]);
    for (second, part) in bytes[24..].chunks(per_second).enumerate() {
        live.push(part);
        let view = live.look(Some((1_700_000_000 + second as i64) * 1_000_000_000 + 999_000_000));
        assert_eq!(view.flows.len(), 64);
        for flow in &view.flows {
            let expected = if second < 3 { vec![None, Some(8)] } else { vec![None] };
            let kbps = flow.ul_bps.map(|bps| (bps / 1e3).round() as i64);
            assert!(expected.contains(&kbps), "second {second}: {flow:?}");
        }
    }
}

#[test]
fn a_clock_that_is_set_back_stops_nothing() {
    let mut live = LivePackets::new();
    let ms = |from: u32| (0..400).map(move |n| (from + n * 10, 20_000));
    live.push(&udp_capture(ms(4_000_000)));
    let before = live.look(None);
    live.note_gap();
    live.push(&udp_capture(ms(0)));
    let base_ns = 1_700_000_000_000_000_000;
    live.look(Some(base_ns + 4_000_000_000));
    live.note_gap();
    live.push(&udp_capture(ms(4_000)));
    let now = live.look(Some(base_ns + 8_000_000_000));
    assert_eq!((now.packets, now.flows_open, now.flows_total), (1_200, 1, 0));
    assert_eq!(now.flows[0].flow, before.flows[0].flow);
    // 100 packets of 1,000 bytes per second.
    let rate = now.bps.unwrap();
    assert!((700e3..900e3).contains(&rate), "{rate}");
}
