//! The study as a document and as a page, on synthetic captures.

use std::path::{Path, PathBuf};

use airmile::model::{Direction, TcpEventKind};
use airmile::packets::{FlowPlot, Plot};
use airmile::write::study::write_html;
use airmile::{Document, FlowName, PacketOptions, Progress, Study, Zone, study, study_page};

use crate::page::unpacked;

const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;

/// A packet between 10.0.0.`host`:`port` and 192.0.2.1:443, as raw IP in a pcap.
#[derive(Clone, Copy)]
struct P {
    us: u32,
    up: bool,
    host: u8,
    port: u16,
    flags: u8,
    seq: u32,
    ack: u32,
    bytes: u16,
    window: u16,
}

const fn p(ms: u32, up: bool, flags: u8, seq: u32, ack: u32, bytes: u16) -> P {
    P { us: ms * 1_000, up, host: 1, port: 40_000, flags, seq, ack, bytes, window: 60_000 }
}

impl P {
    /// Only headers are captured, as with a snaplen.
    fn record(self) -> Vec<u8> {
        let (client, server) = ([10, 0, 0, self.host], [192, 0, 2, 1]);
        let (src, dst) = if self.up { (client, server) } else { (server, client) };
        let (from, to) = if self.up { (self.port, 443) } else { (443, self.port) };
        let total = 40 + self.bytes;
        let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0];
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        ip.extend(src.iter().chain(&dst));
        ip.extend(from.to_be_bytes().iter().chain(&to.to_be_bytes()));
        ip.extend(self.seq.to_be_bytes().iter().chain(&self.ack.to_be_bytes()));
        ip.extend([0x50, self.flags]);
        ip.extend(self.window.to_be_bytes());
        ip.extend([0; 4]);
        let seconds = [1_700_000_000 + self.us / 1_000_000, self.us % 1_000_000];
        let lengths = [ip.len() as u32, u32::from(total)];
        let head = seconds.iter().chain(&lengths).flat_map(|n| n.to_le_bytes());
        head.chain(ip.iter().copied()).collect()
    }
}

fn capture(dir: &Path, packets: &[P]) -> PathBuf {
    // pcap, microseconds, LINKTYPE_RAW.
    let mut out: Vec<u8> = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    packets.iter().for_each(|p| out.extend(p.record()));
    let path = dir.join("made <b>.pcap");
    std::fs::write(&path, out).unwrap();
    path
}

fn opening() -> Vec<P> {
    vec![
        p(0, true, SYN, 99, 0, 0),
        p(20, false, SYN | ACK, 999, 100, 0),
        p(60, true, ACK, 100, 1000, 0),
        p(61, true, ACK, 100, 1000, 100),
    ]
}

/// Five segments; the first is lost after the monitor and retransmitted after four duplicate ACKs.
/// Then the window closes.
fn lossy() -> Vec<P> {
    let mut all = opening();
    all.extend((0..5).map(|n| p(100 + n, false, ACK, 1000 + 1000 * n, 200, 1000)));
    all.extend((0..4).map(|n| p(141 + n, true, ACK, 200, 1000, 0)));
    all.push(p(150, false, ACK, 1000, 200, 1000));
    all.push(P { window: 0, ..p(190, true, ACK, 200, 6000, 0) });
    all.push(p(200, false, ACK | FIN, 6000, 200, 0));
    all.push(p(240, true, ACK | FIN, 200, 6001, 0));
    all
}

fn run(path: &Path, asked: &[FlowName]) -> airmile::Result<Study> {
    let files = [path.to_owned()];
    study(&files, &PacketOptions::default(), asked, &Progress::default()).map(|(study, _)| study)
}

fn events(flow: &FlowPlot) -> Vec<(&str, u64)> {
    flow.events.iter().map(|line| (line.event.as_str(), line.n.iter().sum())).collect()
}

#[test]
fn a_flow_as_it_passed() {
    let dir = tempfile::tempdir().unwrap();
    let study = run(&capture(dir.path(), &lossy()), &[]).unwrap();
    let [flow] = study.flows.as_slice() else { panic!("{} flows", study.flows.len()) };
    assert_eq!((flow.flow, flow.dir), (0, Direction::Dl));
    assert_eq!(flow.label, "10.0.0.1:40000-192.0.2.1:443");
    assert_eq!(
        flow.why,
        ["the largest", "retransmissions: 1", "receive window full 21 % of its time"]
    );
    // Offset 0 is the SYN's.
    assert_eq!(flow.data.from_ms, [100.0, 101.0, 102.0, 103.0, 104.0]);
    assert_eq!(flow.data.from_bytes, [1, 1001, 2001, 3001, 4001]);
    assert_eq!(flow.data.bin_ms, 0.0);
    let expected = [
        ("dup_ack", 4),
        ("recovered", 1),
        ("retx_fast", 1),
        ("window_full", 1),
        ("zero_window", 1),
    ];
    assert_eq!(events(flow), expected);
    let again = flow.events.iter().find(|line| line.event == TcpEventKind::RetxFast).unwrap();
    assert_eq!((again.at_ms[0], again.from_bytes[0], again.to_bytes[0]), (150.0, 1, 1001));
    assert_eq!(flow.facts.bytes, 5000);
    assert_eq!(flow.facts.dup_acks, 4);
    assert_eq!(flow.acks.acked_bytes.last(), Some(&5002), "the FIN counts");
    assert_eq!(flow.acks.window_bytes.iter().flatten().min(), Some(&0));
    assert_eq!(flow.flight.most.iter().fold(0.0, |a: f64, b| a.max(*b)), 5000.0);
    assert_eq!(study.left_out.flows, 0);
}

#[test]
fn each_figure_is_drawn_or_says_why_not() {
    let dir = tempfile::tempdir().unwrap();
    let study = run(&capture(dir.path(), &lossy()), &[]).unwrap();
    let numbers: Vec<u8> = study.figures.iter().map(|figure| figure.number).collect();
    assert_eq!(numbers, [2, 3, 5, 6, 7, 8, 10, 13, 14, 15, 16, 21, 22, 23, 24]);
    for figure in &study.figures {
        assert!(figure.plot.is_some() != figure.missing.is_some(), "figure {}", figure.number);
        assert!(figure.missing.as_ref().is_none_or(|why| why.len() > 20));
    }
    let figure = |number| study.figures.iter().find(|f| f.number == number).unwrap();
    let Some(Plot::Cumulative { of }) = &figure(2).plot else { panic!("figure 2") };
    let curve = |name: &str| of.curves.iter().find(|c| c.curve == name).unwrap();
    assert_eq!((curve("dl_bytes").n, curve("dl_bytes").percentiles[1]), (1, 5000.0));
    assert_eq!(study.packets.curves["dl_bytes"], [(5000.0, 1.0)]);
    assert_eq!((of.paper[0].x, of.paper[0].y), (35_900.0, 0.9));
    let Some(Plot::Excerpt { flow }) = &figure(15).plot else { panic!("figure 15") };
    assert_eq!(flow.flow, 0);
    let lost = figure(13).missing.as_deref();
    assert_eq!(lost, Some("No flow of the capture carries over 1 MB to a client."));
}

/// What a server had in flight is in its own capture, and not in the phone's.
#[test]
fn figures_of_a_sender_are_from_its_own_capture() {
    let dir = tempfile::tempdir().unwrap();
    airmile_lab::run_scenario("busy-file", None, dir.path()).unwrap();
    for (name, is_shown) in [("phone.pcapng", false), ("server.pcapng", true)] {
        let study = run(&dir.path().join(name), &[]).unwrap();
        let in_flight = study.figures.iter().find(|figure| figure.number == 13).unwrap();
        assert_eq!(study.headline.at_phone.is_none(), is_shown, "{name}");
        assert_eq!(in_flight.plot.is_some(), is_shown, "{name}: {:?}", in_flight.missing);
        assert_eq!(study.packets.curves.contains_key("flight_bytes"), is_shown, "{name}");
        let numbers: &[u8] = if is_shown { &[] } else { &[10, 13, 15, 16, 23] };
        for figure in study.figures.iter().filter(|one| numbers.contains(&one.number)) {
            let is_empty = figure.plot.is_none() && figure.key.is_empty();
            assert!(is_empty && figure.missing.is_some(), "{name}: {figure:?}");
        }
    }
}

/// A headline names an undesired slow start if the sender's timer expired, and not by R_ss.
#[test]
fn undesired_slow_starts_are_those_of_timers() {
    let dir = tempfile::tempdir().unwrap();
    for (scenario, captures, expected) in [
        ("lossy-line", &["phone.pcapng", "server.pcapng"][..], false),
        ("lossy-radio", &["phone.pcapng", "server.pcapng"], false),
        ("undesired-slow-start-far", &["server.pcapng"], true),
    ] {
        let out = dir.path().join(scenario);
        airmile_lab::run_scenario(scenario, None, &out).unwrap();
        for capture in captures {
            let findings = run(&out.join(capture), &[]).unwrap().headline.findings;
            let named = findings.iter().any(|one| one.what.contains("ndesired slow start"));
            assert_eq!(named, expected, "{scenario} {capture}");
        }
    }
}

#[test]
fn flows_that_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let other = lossy().into_iter().map(|p| P { port: 50_000, us: p.us + 500, ..p });
    let path = capture(dir.path(), &[lossy(), other.collect()].concat());
    let check = |asked: &str, expected: &[u64]| {
        let found = run(&path, &[asked.parse().unwrap()]).unwrap();
        let numbers: Vec<u64> = found.flows.iter().map(|flow| flow.flow).collect();
        assert_eq!(numbers, expected, "{asked}");
        assert_eq!(found.left_out.flows, 2 - expected.len() as u64);
    };
    // A flow's number is the number of packets before its first: they are put in order of time.
    let begin_us = lossy()[0].us + 500;
    let second = lossy().iter().filter(|p| p.us <= begin_us).count() as u64;
    check(&second.to_string(), &[second]);
    check("10.0.0.1:50000-192.0.2.1:443", &[second]);
    check("192.0.2.1:443-10.0.0.1:40000", &[0]);
    let error = run(&path, &["9".parse().unwrap()]).unwrap_err().to_string();
    assert!(error.contains("--flow 9: no such flow"), "{error}");
}

/// Six users on several threads.
#[test]
fn any_number_of_threads_draws_the_same() {
    let mut all = Vec::new();
    for host in 1..=6 {
        let late = u32::from(host) * 30_000;
        all.extend(lossy().into_iter().map(|p| P { us: p.us + late, host, ..p }));
    }
    all.sort_by_key(|p| p.us);
    let dir = tempfile::tempdir().unwrap();
    let files = [capture(dir.path(), &all)];
    let found = |threads: usize| {
        let options = PacketOptions { threads, ..PacketOptions::default() };
        let (study, _) = study(&files, &options, &[], &Progress::default()).unwrap();
        assert!(study.flows.iter().any(|flow| !flow.data.from_ms.is_empty()));
        serde_json::to_string(&study).unwrap()
    };
    let alone = found(1);
    for threads in [2, 4] {
        assert!(found(threads) == alone, "{threads} threads");
    }
}

/// 60,000 segments: as many points as a screen can use, and all are counted.
#[test]
fn the_document_stays_small() {
    let dir = tempfile::tempdir().unwrap();
    let mut all = opening();
    for n in 0..60_000_u32 {
        let seq = 1000 + 1000 * n;
        all.push(P { us: 100_000 + 200 * n, ..p(0, false, ACK, seq, 200, 1000) });
        all.push(P { us: 100_150 + 200 * n, ..p(0, true, ACK, 200, seq + 1000, 0) });
    }
    let study = run(&capture(dir.path(), &all), &[]).unwrap();
    let flow = &study.flows[0];
    assert!(flow.data.bin_ms > 0.0 && flow.data.from_ms.len() <= 5_000);
    assert_eq!(flow.data.segments, 60_000);
    assert_eq!(*flow.data.to_bytes.last().unwrap(), 60_000_001);
    let covered = flow.data.from_bytes.iter().zip(&flow.data.to_bytes);
    assert_eq!(covered.map(|(from, to)| to - from).sum::<i64>(), 60_000_000);
    assert!(flow.acks.at_ms.len() <= 5_000 && flow.acks.acks >= 60_000);
    let size = serde_json::to_vec(&study).unwrap().len();
    assert!(size < 1_500_000, "{size}");
}

#[test]
fn the_page_holds_the_document_and_asks_nothing_of_a_network() {
    let dir = tempfile::tempdir().unwrap();
    let path = capture(dir.path(), &lossy());
    let whole = run(&path, &[]).unwrap();
    let mut page = Vec::new();
    write_html(&mut page, &whole, Zone::UTC).unwrap();
    let page = String::from_utf8(page).unwrap();
    let packed = page.split_once("id=\"airmile-study\">").unwrap().1.split_once('<').unwrap().0;
    let document = String::from_utf8(unpacked(packed)).unwrap();
    assert!(document == serde_json::to_string(&Document::new("study", &whole)).unwrap());
    assert!(page.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"));
    let lower = page.to_lowercase().replace("http://www.w3.org/2000/svg", "");
    for outside in ["src=", "<link", "@import", "url(", "http://", "https://", "fetch("] {
        assert!(!lower.contains(outside), "{outside}");
    }
    assert!(!page.contains("<b>") && page.contains("&lt;b&gt;.pcap - airmile</title>"));
}

#[test]
fn the_capture_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = capture(dir.path(), &lossy());
    let (files, options) = ([path.clone()], PacketOptions::default());
    let error = study_page(&files, &options, &[], &path, &Progress::default()).unwrap_err();
    assert!(error.to_string().contains("is one of the files to read"), "{error}");
}
