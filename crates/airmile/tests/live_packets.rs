//! Packets as they pass: the flows of the file, whenever they are looked at.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may")]

use airmile::lab;
use airmile::live::packets::{LiveFlow, LivePackets, PacketView};
use airmile::{Captures, PacketOptions, Progress};

/// A capture at the phone of our own lab.
fn capture() -> (tempfile::TempDir, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    lab::run_scenario("web-browsing", None, &dir.path().join("run")).unwrap();
    let bytes = std::fs::read(dir.path().join("run/phone.pcapng")).unwrap();
    (dir, bytes)
}

fn look(live: &mut LivePackets) -> PacketView {
    live.look(0)
}

/// By number, payload each way, and segments sent again.
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
                // To look changes nothing.
                look(&mut live);
            }
        }
        let last = look(&mut live);
        for flow in &last.flows {
            seen.insert(flow.flow, facts(flow));
        }
        assert_eq!(seen.into_values().collect::<Vec<_>>(), of_file, "{piece}");
        assert_eq!(last.packets, document["items"].as_u64().unwrap_or(last.packets));
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
    live.look(last_ns + 2_000_000_000);
    let later = live.look(last_ns + 20_000_000_000);
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
