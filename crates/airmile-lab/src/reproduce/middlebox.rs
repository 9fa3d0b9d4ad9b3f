//! BurstTracker, figures 1 and 8, with real endpoints: the kernel's TCP, a middlebox that
//! splits connections, and a DASH player in a browser.

use std::net::IpAddr;
use std::path::Path;

use airmile_emulate::{PHONE_ADDRESS, Scenario};

use super::estimate::{mean, quantile};
use super::figure::{Axis, Figure, Series};
use super::hosts::{Job, Program, Video};
use super::kernel::fetch;
use super::monitor::spans;
use super::player_log::PlayerLog;
use super::release::{passed_kb, width_ms};
use super::runs::{Work, read};
use super::{Experiment, ExperimentResult, Row, Size};
use airmile::Progress;
use airmile::Result;
use airmile::read_capture;

pub(super) const FIGURE_1: Experiment = Experiment {
    name: "bursttracker-fig1",
    source: "BurstTracker, MobiCom 2019, figure 1",
    what: "a video's throughput against speed tests before and after it; real endpoints",
    run: figure_1,
};

pub(super) const FIGURE_8: Experiment = Experiment {
    name: "bursttracker-fig8",
    source: "BurstTracker, MobiCom 2019, figure 8",
    what: "segments through a middlebox that restarts, and past it; kernel TCP",
    run: figure_8,
};

const BUSY: &str = include_str!("../../experiments/middlebox-busy.toml");
const IDLE: &str = include_str!("../../experiments/middlebox-idle.toml");

/// The port that bypasses the middlebox.
pub(super) const PASSING: u16 = 7777;

/// The video: the paper's duration, and less with fewer runs.
pub(super) fn video(size: Size, segment_s: u64) -> Video {
    Video { seconds: size.of(12, 60, 120), segment_s, bitrates_bps: &[] }
}

/// The player's options: the buffer is that of dash.js at the time of the paper (12 s),
/// which the paper does not give.
pub(super) fn play(port: u16) -> String {
    format!("\"$AIRMILE_PLAYER\" http://$AIRMILE_SERVER:{port}/video/manifest.mpd --buffer 12")
}

pub(super) fn seeded(base: &Scenario, seed: u64) -> Scenario {
    Scenario { seed, ..base.clone() }
}

fn figure_1(work: &Work<'_>) -> Result<ExperimentResult> {
    let hosts = match work.hosts(&[Program::Curl, Program::Player]) {
        Ok(hosts) => hosts,
        Err(why) => return Ok(ExperimentResult::skipped(why)),
    };
    let base = read(BUSY)?;
    let (test_s, pause_s) = (work.size.of(2, 10, 10), work.size.of(1, 5, 15));
    // Larger than a test can fetch: it ends by timeout, with status 28.
    let test = format!(
        "curl -q --noproxy '*' -fsS -m {test_s} -o /dev/null -w '{{\"event\":\"speed_test\",\"value\":%{{speed_download}}}}\\n' \
         http://$AIRMILE_SERVER/file 2>/dev/null >> \"$AIRMILE_APP_LOG\"; [ $? -eq 28 ]"
    );
    let plays = play(80);
    let job = Job {
        script: format!("{test} && sleep {pause_s} && {plays} && sleep {pause_s} && {test}"),
        file_bytes: 1_000_000_000,
        video: Some(video(work.size, 4)),
        ports: Vec::new(),
    };
    let seeds: Vec<u64> = (0..work.size.of(1, 2, 10)).map(|n| 61_000 + n).collect();
    let runs = work.in_real_time(
        hosts,
        &seeds,
        |seed| Ok((seeded(&base, *seed), job.clone())),
        |_, dir| PlayerLog::read(dir),
    )?;
    let logs = runs.there();
    let of = |f: &dyn Fn(&PlayerLog) -> f64| mean(&logs.iter().copied().map(f).collect::<Vec<_>>());
    let test = |n: usize| {
        of(&|log: &PlayerLog| log.speed_tests.get(n).map_or(f64::NAN, |bytes| bytes * 8.0 / 1e6))
    };
    const CELL: &str = "the cell's load was chosen so that speed tests match the paper's";
    let rows = vec![
        Row::new("speed test before the video", "Mbit/s", test(0)).paper(5.4).note(CELL),
        Row::new(
            "video, mean throughput of its segments",
            "Mbit/s",
            of(&PlayerLog::throughput_mbps),
        )
        .paper(3.8)
        .note("as computed by the player: the request's round trip is part of a segment's time"),
        Row::new("speed test after the video", "Mbit/s", test(1)).paper(5.2),
    ];
    let figure = logs.first().map(|log| {
        let points = log
            .segments
            .iter()
            .map(|s| (log.seconds(s.to_ns), s.bytes as f64 * 8e3 / (s.to_ns - s.from_ns) as f64));
        let mut figure = Figure::new(
            "throughput",
            "Throughput of a video's segments, and speed tests around it",
            Axis::new("time since the first request (s)"),
            Axis::new("throughput (Mbit/s)"),
        )
        .with(Series::scatter("segments", points.collect()));
        let last_s = log.segments.last().map_or(0.0, |s| log.seconds(s.to_ns));
        for (name, at) in [("speed test before", 0), ("speed test after", 1)] {
            let mbps = log.speed_tests.get(at).map(|bytes| bytes * 8.0 / 1e6);
            let line = mbps.map(|mbps| vec![(0.0, mbps), (last_s, mbps)]);
            figure = figure.with(Series::curve(name, line.unwrap_or_default()));
        }
        figure
            .paper_y("video, 3.8 Mbit/s", 3.8)
            .paper_y("speed test before, 5.4 Mbit/s", 5.4)
            .caption(format!("One of n = {} runs.", logs.len()))
    });
    Ok(ExperimentResult {
        rows,
        figures: figure.into_iter().collect(),
        failed: runs.failed,
        lateness: runs.lateness,
        skipped: None,
    })
}

/// When data for the phone passed the server and the phone, and its transfers.
struct PassTimes {
    server: Vec<(i64, u32)>,
    phone: Vec<(i64, u32)>,
    /// All except the first, whose windows are new on both sides.
    spans: Vec<(i64, i64)>,
}

fn passed(dir: &Path) -> Result<PassTimes> {
    let read = |name: &str| -> Result<Vec<(i64, u32)>> {
        let mut passed = Vec::new();
        read_capture(&dir.join(name), &Progress::default(), &mut |packet| {
            let is_for_phone = packet.dst == IpAddr::V4(PHONE_ADDRESS).into();
            if is_for_phone && packet.payload_bytes > 0 {
                passed.push((packet.at_ns, packet.payload_bytes));
            }
        })?;
        Ok(passed)
    };
    let (server, phone) = (read("server.pcapng")?, read("phone.pcapng")?);
    let spans = spans(dir)?.into_iter().skip(1).collect();
    Ok(PassTimes { server, phone, spans })
}

/// Figure 7's segment: 700 kbit/s of 4 s.
const SEGMENT_BYTES: u64 = 350_000;

fn figure_8(work: &Work<'_>) -> Result<ExperimentResult> {
    let hosts = match work.hosts(&[Program::Curl]) {
        Ok(hosts) => hosts,
        Err(why) => return Ok(ExperimentResult::skipped(why)),
    };
    let base = read(IDLE)?;
    let segments = work.size.of(3, 10, 30);
    let cases: Vec<(u16, u64)> = (0..work.size.of(1, 2, 10))
        .flat_map(|n| [80, PASSING].map(|port| (port, 62_000 + n)))
        .collect();
    let runs = work.in_real_time(
        hosts,
        &cases,
        |(port, seed)| {
            let job = fetch(SEGMENT_BYTES, "--rate 15/m", &format!("?[1-{segments}]"));
            let address = format!("$AIRMILE_SERVER:{port}");
            let script = job.script.replace("$AIRMILE_SERVER", &address);
            Ok((seeded(&base, *seed), Job { script, ports: vec![PASSING], ..job }))
        },
        |_, dir| passed(dir),
    )?;
    let of = |port: u16| {
        let runs = cases.iter().zip(&runs.results);
        runs.filter(move |((p, _), _)| *p == port).filter_map(|(_, run)| run.as_ref())
    };
    let widths = |port, side: fn(&PassTimes) -> &[(i64, u32)]| {
        let all = of(port).flat_map(|run| run.spans.iter().map(|span| width_ms(side(run), *span)));
        quantile(&all.collect::<Vec<_>>(), 0.5)
    };
    const DELIVERY: &str = "the paper shows one segment of an unknown size on an unknown round trip; ours has figure \
                            7's size and network, as in virtual time";
    let rows = vec![
        Row::new(
            "port 80: release by the server, median of segments",
            "ms",
            widths(80, |p| &p.server),
        )
        .paper(25.0)
        .note("the server's window is open: it releases into the middlebox at once"),
        Row::new("port 80: delivery to the phone", "ms", widths(80, |p| &p.phone))
            .paper(700.0)
            .note(DELIVERY),
        Row::new("port 7777: release by the server", "ms", widths(PASSING, |p| &p.server)),
        Row::new("port 7777: delivery to the phone", "ms", widths(PASSING, |p| &p.phone))
            .note("figure 8b: the throughput does not restart"),
    ];
    let mut figure = Figure::new(
        "segment",
        "One segment at the phone, through a middlebox that restarts and past it",
        Axis::new("time since its first packet at the server (ms)"),
        Axis::new("passed (kB)"),
    )
    .paper_x("delivered over 700 ms", 700.0)
    .caption(format!("The middle segment of one of n = {} runs each way.", cases.len() / 2));
    for (port, name) in [(80, "port 80"), (PASSING, "port 7777")] {
        let Some(run) = of(port).next() else { continue };
        let Some(&span) = run.spans.get(run.spans.len() / 2) else { continue };
        let first = run.server.iter().find(|(at, _)| *at >= span.0).map_or(span.0, |(at, _)| *at);
        if port == 80 {
            figure = figure.with(Series::curve("server", passed_kb(&run.server, span, first)));
        }
        figure = figure.with(Series::curve(name, passed_kb(&run.phone, span, first)));
    }
    let (lateness, failed) = (runs.lateness, runs.failed);
    Ok(ExperimentResult { rows, figures: vec![figure], lateness, failed, skipped: None })
}
