//! BurstTracker, figure 9, with real endpoints: a video through a middlebox that restarts,
//! and past it.

use std::collections::HashMap;
use std::path::Path;

use super::estimate::{Estimate, mean, quantile};
use super::figure::{Axis, Figure, Series};
use super::hosts::{Hosts, Job, Program, RealRuns};
use super::middlebox::{PASSING, play, seeded, video};
use super::player_log::PlayerLog;
use super::runs::{Work, read};
use super::{Experiment, ExperimentResult, Row};
use airmile::Inputs;
use airmile::Progress;
use airmile::RadioOptions;
use airmile::diagnose;
use airmile::{Error, Result};

pub(super) const FIGURE_9: Experiment = Experiment {
    name: "bursttracker-fig9",
    source: "BurstTracker, MobiCom 2019, figure 9",
    what: "video over ports 80, 443 and 7777: link demand and quality; real endpoints",
    run: figure_9,
};

pub(super) const SCENARIO: &str = include_str!("../../experiments/middlebox-ports.toml");

/// A video of the experiment, and its playback options.
struct Arm {
    name: &'static str,
    segment_s: u64,
    /// Options of the player.
    options: &'static str,
}

/// Both choose by throughput, as the paper's. Set with the scenario, before any run:
/// - two seconds are the shortest segments of a whole number of seconds after which the
///   player's pause (up to four tenths of them, as bitrates are a factor of 1.57 apart)
///   exceeds the sender's RTO of 0.3 s, so that there is a restart;
/// - of the ten bitrates the fourth has 390 KB in 4 s, the paper's segment (figure 7:
///   700 kbit/s of 4 s) and the 400 KB with pauses of 3 s of the scenario's file.
const ARMS: [Arm; 2] = [
    Arm { name: "adaptive, segments of 2 s", segment_s: 2, options: "--rule throughput" },
    Arm {
        name: "0.78 Mbit/s, segments of 4 s",
        segment_s: 4,
        options: "--rule throughput --most 800000",
    },
];

/// Minimum time without a request before a segment that counts as after a pause: longer
/// than the sender's RTO (chosen here).
pub(super) const PAUSE_S: f64 = 1.0;

/// Minimum bytes of a transfer that counts as a segment: more than the manifest, less than
/// any segment (chosen here).
const LEAST_SEGMENT_BYTES: u64 = 20_000;

/// A session over a port: the player's log, and link demand in percent, as estimated from
/// the modem log and in truth.
struct PortSession {
    log: PlayerLog,
    demand: f64,
    true_demand: f64,
}

fn session(dir: &Path) -> Result<PortSession> {
    let inputs = Inputs { files: vec![dir.to_owned()], ..Inputs::default() };
    let found = diagnose(&inputs, &RadioOptions::default(), &Progress::default())?;
    let truth = true_times(dir)?;
    let (mut estimated_ms, mut true_ms, mut duration_ms) = (0.0, 0.0, 0.0);
    for transfer in &found.transfers {
        let measures = &transfer.finding;
        if measures.bytes.is_some_and(|bytes| bytes >= LEAST_SEGMENT_BYTES) {
            estimated_ms += measures.throughput_time_ms.unwrap_or(f64::NAN);
            true_ms += truth.get(&transfer.id).copied().unwrap_or(f64::NAN);
            duration_ms += measures.duration_ms;
        }
    }
    let (demand, true_demand) = (estimated_ms / duration_ms, true_ms / duration_ms);
    let log = PlayerLog::read(dir)?;
    Ok(PortSession { log, demand: 100.0 * demand, true_demand: 100.0 * true_demand })
}

/// True throughput time in ms of a run's transfers.
fn true_times(dir: &Path) -> Result<HashMap<String, f64>> {
    #[derive(serde::Deserialize)]
    struct Row {
        id: String,
        throughput_time_ms: f64,
    }
    let path = dir.join("transfer_truth.csv");
    let wrong = |e: csv::Error| Error::read(&path, std::io::Error::other(e));
    let mut reader = csv::Reader::from_path(&path).map_err(wrong)?;
    let rows = reader.deserialize().collect::<std::result::Result<Vec<Row>, _>>().map_err(wrong)?;
    Ok(rows.into_iter().map(|row| (row.id, row.throughput_time_ms)).collect())
}

/// Sessions over these ports alternate, run by run, as in the paper's 5.1.
const PORTS: [u16; 3] = [80, 443, PASSING];

fn sessions(work: &Work<'_>, hosts: &dyn Hosts, arm: &Arm) -> Result<RealRuns<PortSession>> {
    let base = read(SCENARIO)?;
    let cases: Vec<(u16, u64)> =
        (0..work.size.of(1, 2, 20)).flat_map(|n| PORTS.map(|port| (port, 63_000 + n))).collect();
    work.in_real_time(
        hosts,
        &cases,
        |(port, seed)| {
            let job = Job {
                script: format!("{} {}", play(*port), arm.options),
                file_bytes: 0,
                video: Some(video(work.size, arm.segment_s)),
                ports: vec![PASSING],
            };
            Ok((seeded(&base, *seed), job))
        },
        |_, dir| session(dir),
    )
}

fn figure_9(work: &Work<'_>) -> Result<ExperimentResult> {
    let hosts = match work.hosts(&[Program::Player]) {
        Ok(hosts) => hosts,
        Err(why) => return Ok(ExperimentResult::skipped(why)),
    };
    let mut found = ExperimentResult::default();
    for (at, arm) in ARMS.iter().enumerate() {
        let runs = sessions(work, hosts, arm)?;
        found.rows.extend(demand(arm, &runs.results));
        let of = |port: usize| runs.results.iter().skip(port).step_by(PORTS.len());
        // Pairs for which both sessions exist.
        let pairs = of(0).zip(of(PORTS.len() - 1));
        let pairs: Vec<(&PortSession, &PortSession)> =
            pairs.filter_map(|(a, b)| a.as_ref().zip(b.as_ref())).collect();
        if at == 0 {
            found.rows.extend(quality(&pairs));
            if let Some((through, past)) = pairs.first() {
                found.figures = over_time(through, past, pairs.len());
            }
        }
        found.lateness.extend(runs.lateness);
        found.failed.extend(runs.failed);
    }
    Ok(found)
}

/// Figure 9a: link demand by port, and related values.
fn demand(arm: &Arm, sessions: &[Option<PortSession>]) -> Vec<Row> {
    const THROUGH: &str = "the paper has 50 to 70 %, over carriers with different middleboxes, \
        without segment length or round trip; 443 is plain HTTP here";
    const PAPER: [(f64, &str); 3] =
        [(60.0, THROUGH), (60.0, THROUGH), (80.0, "the paper has over 80 %")];
    let mut rows = Vec::new();
    for (at, port) in PORTS.iter().enumerate() {
        let own = || sessions.iter().skip(at).step_by(PORTS.len()).flatten();
        let mean_of = |f: &dyn Fn(&PortSession) -> f64| mean(&own().map(f).collect::<Vec<_>>());
        let row = |what: &str, unit, value| {
            Row::new(format!("{}, port {port}: {what}", arm.name), unit, value)
        };
        let (paper, note) = PAPER[at];
        let of_link = mean_of(&|session| session.demand);
        rows.push(row("link demand", "%", of_link).paper(paper).note(note));
        rows.push(row("true link demand", "%", mean_of(&|session| session.true_demand)));
        rows.push(row("bitrate", "Mbit/s", mean_of(&|session| session.log.bitrate_mbps())));
        let behind: Vec<f64> = own().flat_map(|s| s.log.throughputs_after(PAUSE_S)).collect();
        let behind = quantile(&behind, 0.5);
        rows.push(row("throughput of a segment after a pause, median", "Mbit/s", behind));
    }
    rows
}

/// Figure 9c: improvement of the video past the middlebox.
fn quality(pairs: &[(&PortSession, &PortSession)]) -> Vec<Row> {
    let bitrate = |session: &PortSession| session.log.bitrate_mbps();
    let more = |(through, past): &(&PortSession, &PortSession)| {
        100.0 * (bitrate(past) / bitrate(through) - 1.0)
    };
    let bitrates: Vec<f64> = pairs.iter().map(more).collect();
    // Over all pairs together: selecting those whose video through the middlebox stalled
    // would select by the outcome.
    let sum_change = |f: &dyn Fn(&PlayerLog) -> f64| -> Estimate {
        let (through, past) = pairs
            .iter()
            .fold((0.0, 0.0), |(a, b), (through, past)| (a + f(&through.log), b + f(&past.log)));
        let value = if through > 0.0 { 100.0 * (past / through - 1.0) } else { f64::NAN };
        Estimate { value, n: pairs.len() as u64, interval: None }
    };
    let mean_of = |f: &dyn Fn(&(&PortSession, &PortSession)) -> f64| {
        mean(&pairs.iter().map(f).collect::<Vec<_>>())
    };
    const SUMS: &str = "over all pairs together; none if there was none over port 80";
    vec![
        Row::new("bitrate, port 7777 against 80", "% more", quantile(&bitrates, 0.5)).paper(35.0),
        Row::new("time stalled, port 80", "ms", mean_of(&|pair| pair.0.log.stalled_ms())),
        Row::new("time stalled, port 7777", "ms", mean_of(&|pair| pair.1.log.stalled_ms())),
        Row::new(
            "time stalled, port 7777 against 80",
            "% more",
            sum_change(&PlayerLog::stalled_ms),
        )
        .paper(-50.0)
        .note(SUMS),
        Row::new(
            "switches of bitrate, port 7777 against 80",
            "% more",
            sum_change(&PlayerLog::switches),
        )
        .paper(-10.0)
        .note(SUMS),
    ]
}

/// Figure 9b: bitrate and buffer of a pair.
fn over_time(through: &PortSession, past: &PortSession, n: usize) -> Vec<Figure> {
    let seconds = || Axis::new("time since the first request (s)");
    let mut bitrate = Figure::new(
        "bitrate",
        "Bitrate of the segments, through the middlebox and past it",
        seconds(),
        Axis::new("bitrate (Mbit/s)"),
    )
    .caption(format!("One of n = {n} pairs of runs."));
    let mut buffer = Figure::new(
        "buffer",
        "The player's buffer, through the middlebox and past it",
        seconds(),
        Axis::new("buffer (s)"),
    )
    .caption(format!("One of n = {n} pairs of runs."));
    for (name, PortSession { log, .. }) in [("port 80", through), ("port 7777", past)] {
        let points = log.segments.iter().map(|s| (log.seconds(s.from_ns), s.bps / 1e6));
        bitrate = bitrate.with(Series::curve(name, points.collect()));
        let points = log.buffer_s.iter().map(|(at, s)| (log.seconds(*at), *s));
        buffer = buffer.with(Series::curve(name, points.filter(|(at, _)| *at >= 0.0).collect()));
    }
    vec![bitrate, buffer]
}
