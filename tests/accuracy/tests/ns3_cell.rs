//! Compares the emulated cell with simulated ones (medians of PRBs per scheduled TTI, burst
//! length and throughput of the same workload within 15 %).
//!
//! The radio is configured from the simulations' inputs: the MCS of their channel (mean 25
//! to 26), not from their results.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test may")]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use airmile_control::ControllerKind;
use airmile_decode::table::{GrantReader, read_transfers, read_truth};
use airmile_emulate::tcp::TcpConfig;
use airmile_emulate::workload::Workload;
use airmile_emulate::{
    AppConfig, CellConfig, Competing, CoreConfig, LinkConfig, PathConfig, RateLimit, RlcConfig,
    Scenario, TransportKind, run,
};
use airmile_model::{Clock, Direction, Grant, Record, Transfer, TruthRun, TtiState};
use airmile_testing::shared_data;
use flate2::read::MultiGzDecoder;

/// Our runs for each simulation.
const SEEDS: u64 = 9;

/// Values of a run that are compared.
#[derive(Debug)]
struct Medians {
    /// PRB pairs of a TTI in which the user has any.
    n_prb: f64,
    /// TTIs of a burst: the median, and the length of the burst that contains the median
    /// TTI of all bursts.
    burst_ttis: (f64, f64),
    /// Bursts, and transfers.
    n: (usize, usize),
    /// Throughput of a transfer, in Mbit/s.
    throughput_mbps: f64,
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n == 0 { f64::NAN } else { (values[(n - 1) / 2] + values[n / 2]) / 2.0 }
}

/// The value at which half of the sum is reached.
fn weighted_median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let half = values.iter().sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let reaches = |value: &&f64| {
        sum += **value;
        sum >= half
    };
    values.iter().find(reaches).copied().unwrap_or(f64::NAN)
}

fn medians<'a>(
    grants: impl IntoIterator<Item = &'a Grant>,
    truth: &[TruthRun],
    transfers: &[Transfer],
) -> Medians {
    let mut by_tti: BTreeMap<i64, f64> = BTreeMap::new();
    for grant in grants.into_iter().filter(|grant| grant.dir == Direction::Dl) {
        *by_tti.entry(grant.position.tti.0).or_default() += f64::from(grant.n_prb.unwrap_or(0));
    }
    let mut bursts = Vec::new();
    let mut start = None;
    for run in truth {
        match run.state {
            TtiState::Active => start = start.or(Some(run.tti)),
            TtiState::LastActive => {
                bursts.push(start.take().map_or(0.0, |start| run.tti.since(start) as f64));
            }
            TtiState::Underflow => start = None,
            TtiState::Contention => {}
        }
    }
    let throughput = transfers.iter().filter_map(|transfer| {
        let (start, end) = transfer.tti?;
        Some(transfer.bytes? as f64 * 8.0 / 1_000.0 / end.since(start) as f64)
    });
    Medians {
        n_prb: median(by_tti.into_values()),
        n: (bursts.len(), transfers.len()),
        burst_ttis: (median(bursts.iter().copied()), weighted_median(&bursts)),
        throughput_mbps: median(throughput),
    }
}

fn open(folder: &Path, name: &str) -> MultiGzDecoder<File> {
    MultiGzDecoder::new(File::open(folder.join(name)).unwrap())
}

fn simulated(folder: &Path) -> Medians {
    let reader = GrantReader::new(open(folder, "grants.csv.gz"), Clock::Modem).unwrap();
    let grants: Vec<Grant> = reader.filter_map(Result::ok).collect();
    let truth = read_truth(open(folder, "truth.csv.gz")).unwrap().rows;
    let transfers = File::open(folder.join("transfers.csv")).unwrap();
    let transfers = read_transfers(transfers, Clock::Modem).unwrap().rows;
    medians(&grants, &truth, &transfers)
}

fn emulated(scenario: &Scenario) -> Medians {
    let trace = run(scenario).unwrap();
    let grants = trace.records.iter().filter_map(|record| match record {
        Record::Grant(grant) => Some(grant),
        _ => None,
    });
    let transfers: Vec<Transfer> = trace.transfers.iter().map(|t| t.transfer.clone()).collect();
    medians(grants, &trace.truth, &transfers)
}

/// Common settings of all runs, from their `meta.csv`.
fn common(end_ms: u32, workload: Workload) -> Scenario {
    Scenario {
        seed: 11,
        duration_ms: end_ms,
        cell: CellConfig { queue_bytes: 750_000, ..CellConfig::default() },
        // 150 m from the mast; EPA at 3 km/h.
        link: LinkConfig { snr_mean_db: 17.7, ..LinkConfig::default() },
        dl_rlc: RlcConfig { poll_pdu: Some(32), poll_byte: Some(25_000), ..RlcConfig::default() },
        // 2 ms and 15 ms each way.
        core: CoreConfig { rtt_ms: 34, ..CoreConfig::default() },
        server_tcp: TcpConfig {
            control: ControllerKind::Cubic { hystart: false },
            slow_start_after_idle: false,
            ..TcpConfig::default()
        },
        apps: vec![AppConfig {
            name: "file".to_owned(),
            start_ms: 500,
            port: 443,
            transport: TransportKind::Tcp,
            workload,
        }],
        ..Scenario::default()
    }
}

fn cases() -> Vec<(&'static str, Scenario)> {
    let file = |end_ms, bytes| common(end_ms, Workload::File { bytes, count: 100, gap_ms: 1_000 });
    let wired = RateLimit { rate_bps: 8_000_000, queue_bytes: 60 * 1_500, from_ms: 0, to_ms: None };
    vec![
        ("file_comm_alone_pcap", file(12_500, 8_000_000)),
        (
            "file_comm_f5",
            Scenario {
                competing: vec![Competing::FullBuffer { users: 5 }],
                ..file(20_500, 3_000_000)
            },
        ),
        (
            "file_comm_wired8_pcap",
            Scenario {
                core: CoreConfig {
                    rtt_ms: 34,
                    down: PathConfig { limit: Some(wired), ..PathConfig::default() },
                    ..CoreConfig::default()
                },
                ..file(14_500, 4_000_000)
            },
        ),
        (
            "slow_comm_sp2",
            common(
                22_500,
                Workload::Paced { bytes: 1_250_000, rate_bps: 1_000_000, block_bytes: None },
            ),
        ),
    ]
}

/// Minimum number of bursts for a meaningful median: slow start cuts a file's start into
/// many tiny bursts, by chance of a few bytes, and the rest is one.
const FEW_BURSTS: usize = 100;

/// With fewer bursts, the minimum number of transfers: otherwise the values are printed,
/// not checked.
const FEW_TRANSFERS: usize = 3;

/// PRB pairs of a resource block group, the step of an allocation.
const RBG_PRB: f64 = 3.0;

/// Within 15 %, or within one step if a value has hardly any.
fn is_near(ours: f64, theirs: f64, slack: f64) -> bool {
    (ours - theirs).abs() <= (0.15 * theirs).max(slack)
}

#[test]
fn medians_are_those_of_simulated_cells() {
    let Some(root) = shared_data("ns3") else { return };
    println!("{:<24}{:>16}{:>16}{:>20}", "ours / simulated", "PRB pairs", "burst TTIs", "Mbit/s");
    let mut far: Vec<&str> = Vec::new();
    for (name, scenario) in cases() {
        let theirs = simulated(&root.join(name));
        let runs: Vec<Medians> =
            (11..11 + SEEDS).map(|seed| emulated(&Scenario { seed, ..scenario.clone() })).collect();
        let of = |value: &dyn Fn(&Medians) -> f64| median(runs.iter().map(value));
        let few = theirs.n.0 < FEW_BURSTS;
        let burst = |m: &Medians| if few { m.burst_ttis.1 } else { m.burst_ttis.0 };
        let rows = [
            (of(&|m| m.n_prb), theirs.n_prb, RBG_PRB),
            (of(&burst), burst(&theirs), 1.0),
            (of(&|m| m.throughput_mbps), theirs.throughput_mbps, 0.0),
        ];
        let judged = !few || theirs.n.1 >= FEW_TRANSFERS;
        let [prb, ttis, mbps] = rows;
        println!(
            "{name:<24}{:>8.0} /{:>6.0}{:>8.0} /{:>6.0}{:>10.2} /{:>8.2}{}",
            prb.0,
            prb.1,
            ttis.0,
            ttis.1,
            mbps.0,
            mbps.1,
            if judged { "" } else { "  (two transfers in all: not barred)" }
        );
        let near = |(ours, theirs, slack): &(f64, f64, f64)| is_near(*ours, *theirs, *slack);
        if judged && !rows.iter().all(near) {
            far.push(name);
        }
    }
    assert!(far.is_empty(), "more than 15 % from the simulations: {far:?}");
}
