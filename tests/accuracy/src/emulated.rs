//! Cells of our own emulator, so that a clone without other material also measures
//! something.
//!
//! All combinations of workload, scheduler, load of the cell and poll setting, with seeds
//! that nothing was fitted to. To investigate an error, run other seeds (`--series N`), so
//! that those of the thresholds stay unseen.

use airmile_emulate::{
    CellConfig, Competing, CoreConfig, EmulatedTransfer, LinkConfig, MeasurementConfig, RlcConfig,
    Scenario, SchedulerKind, Traffic, UplinkConfig, WindowConfig,
};
use airmile_model::{Direction, Record, VerdictThresholds};
use airmile_radio::transfer::Timeline;
use airmile_radio::uplink::{UplinkOptions, UplinkTracker};
use anyhow::Context;

use crate::jobs::on_all_cores;
use crate::run::Run;
use crate::score::{Kind, Score};

/// Number of the series of seeds for the thresholds.
pub const BARRED_SERIES: u64 = 90_210;
/// Seeds of each cell of the matrix.
const SEEDS: u64 = 9;
/// Number of places (signal quality, distance of the server, amount of data) that the seeds
/// cycle through.
const PLACES: u64 = 3;

/// The uplink's error in percent, per upload.
#[derive(Debug, Clone, Copy)]
pub struct UploadScore {
    /// From the phone's samples of its buffer.
    pub by_samples: f64,
    /// From its reports to the base station alone.
    pub by_reports: f64,
}

/// Results of the matrix.
#[derive(Debug, Default)]
pub struct Scores {
    /// Scores of the downlink transfers, with every kind of evidence.
    pub downlink: Vec<Score>,
    /// Scores of the uploads.
    pub uploads: Vec<UploadScore>,
    /// Runs.
    pub runs: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Workload {
    File,
    RateLimited,
    Video,
    Upload,
}

impl Workload {
    const ALL: [Self; 4] = [Self::File, Self::RateLimited, Self::Video, Self::Upload];

    const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::RateLimited => "ratelimit",
            Self::Video => "video",
            Self::Upload => "upload",
        }
    }

    /// Sizes and rates depend on the place.
    fn traffic(self, place: u64) -> Traffic {
        let (id, start_ms) = (self.name().to_owned(), 300);
        let window = WindowConfig::default();
        match self {
            Self::File => {
                Traffic::Download { id, start_ms, bytes: 3_000_000 * (1 + place), window }
            }
            Self::RateLimited => {
                let (bytes, rate_bps) = (1_500_000 * (1 + place), 1_500_000 << place);
                Traffic::Paced { id, start_ms, bytes, rate_bps }
            }
            Self::Video => Traffic::Video {
                id,
                start_ms,
                segments: 6,
                segment_ms: 2_000,
                bitrate_bps: 1_500_000 * (1 + place),
                buffer_ms: 6_000,
                window: WindowConfig { restart_after_idle: true, ..window },
            },
            Self::Upload => Traffic::Upload { id, start_ms, bytes: 1_000_000, window },
        }
    }
}

const fn scheduler_name(kind: SchedulerKind) -> &'static str {
    match kind {
        SchedulerKind::WholeTti => "whole-tti",
        SchedulerKind::RoundRobin => "round-robin",
        SchedulerKind::PfFrequency => "pf-frequency",
        SchedulerKind::MaxCi => "max-ci",
        SchedulerKind::BlindEqual => "blind-equal",
    }
}

/// Loads of the cell: no other users, files with pauses, permanent demand.
const LOADS: [(&str, Option<Competing>); 3] = [
    ("idle", None),
    (
        "sporadic",
        Some(Competing::Sporadic { users: 4, mean_file_bytes: 300_000, mean_pause_ms: 800 }),
    ),
    ("full", Some(Competing::FullBuffer { users: 3 })),
];

/// Triggers of polls at the base station: none, 16 PDUs, 25 kB.
const POLLS: [(&str, Option<u32>, Option<u64>); 3] =
    [("never", None, None), ("16-pdu", Some(16), None), ("25-kb", None, Some(25_000))];

/// Runs the matrix on all cores; scores in the matrix's order.
pub fn measure(series: u64) -> anyhow::Result<Scores> {
    let scenarios = matrix(series);
    let done = on_all_cores(&scenarios, |_, (name, scenario)| {
        score(name, scenario).with_context(|| name.clone())
    })?;
    let mut all = Scores { runs: scenarios.len(), ..Scores::default() };
    for scores in done {
        all.downlink.extend(scores.downlink);
        all.uploads.extend(scores.uploads);
    }
    Ok(all)
}

fn matrix(series: u64) -> Vec<(String, Scenario)> {
    let mut scenarios = Vec::new();
    for workload in Workload::ALL {
        for scheduler in [SchedulerKind::WholeTti, SchedulerKind::RoundRobin] {
            for (load, competing) in &LOADS {
                for (poll, poll_pdu, poll_byte) in POLLS {
                    for n in 0..SEEDS {
                        // Each run has its own seed: no two share a channel.
                        let seed = (series << 16) + scenarios.len() as u64;
                        let place = n % PLACES;
                        let name = format!(
                            "{}_{}_{load}_{poll}_{n}",
                            workload.name(),
                            scheduler_name(scheduler)
                        );
                        let dl_rlc = RlcConfig { poll_pdu, poll_byte, ..RlcConfig::default() };
                        let scenario = Scenario {
                            seed,
                            duration_ms: 60_000,
                            tail_ms: 400,
                            first_tti: 7_003,
                            cell: CellConfig { scheduler, ..CellConfig::default() },
                            // Poor, typical and good places.
                            link: LinkConfig {
                                snr_mean_db: 8.0 + 5.0 * place as f64,
                                ..LinkConfig::default()
                            },
                            measurement: MeasurementConfig::default(),
                            dl_rlc,
                            ul_rlc: RlcConfig { poll_pdu: Some(16), ..RlcConfig::default() },
                            uplink: UplinkConfig::default(),
                            core: CoreConfig {
                                rtt_ms: 20 + 20 * place as u32,
                                ..CoreConfig::default()
                            },
                            competing: competing.iter().cloned().collect(),
                            traffic: vec![workload.traffic(place)],
                            ..Scenario::default()
                        };
                        scenarios.push((name, scenario));
                    }
                }
            }
        }
    }
    scenarios
}

fn score(name: &str, scenario: &Scenario) -> anyhow::Result<Scores> {
    let trace = airmile_emulate::run(scenario)?;
    let mut scores = Scores::default();
    let (downlink, uploads): (Vec<_>, Vec<_>) =
        trace.transfers.iter().partition(|transfer| transfer.dir == Direction::Dl);
    for upload in uploads {
        scores.uploads.push(score_upload(&trace.records, upload));
    }
    if !downlink.is_empty() {
        let transfers = downlink.iter().map(|t| t.transfer.clone()).collect();
        let truth = downlink.iter().map(|t| t.truth.clone()).collect();
        let run = Run::emulated(name.to_owned(), trace.records, transfers, truth);
        scores.downlink = Kind::ALL.into_iter().flat_map(|kind| run.score(kind)).collect();
    }
    Ok(scores)
}

fn score_upload(records: &[Record], upload: &EmulatedTransfer) -> UploadScore {
    let error = |use_samples: bool| {
        let mut tracker = UplinkTracker::new(UplinkOptions::default());
        let mut timeline = Timeline::new(Direction::Ul);
        let wanted = |record: &&Record| use_samples || !matches!(record, Record::BufferStatus(_));
        records.iter().filter(wanted).for_each(|record| tracker.push(record));
        tracker.finish().into_iter().for_each(|burst| timeline.add_burst(burst));
        timeline.set_summary(&tracker.summary());
        let transfers = std::slice::from_ref(&upload.transfer);
        let found = timeline.findings(transfers, &VerdictThresholds::default());
        let truth = upload.truth.throughput_time_ms;
        let estimate = found.first().and_then(|finding| finding.throughput_time_ms);
        estimate.map_or(f64::NAN, |estimate| 100.0 * (estimate - truth).abs() / truth)
    };
    UploadScore { by_samples: error(true), by_reports: error(false) }
}
