//! Named scenarios, as data.

use crate::scenario::{
    CellConfig, Competing, CoreConfig, Scenario, SchedulerKind, Traffic, UplinkConfig, WindowConfig,
};

/// A scenario with a name.
#[derive(Debug, Clone, Copy)]
pub struct NamedScenario {
    /// Its name.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    build: fn() -> Scenario,
}

impl NamedScenario {
    /// The scenario.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        (self.build)()
    }
}

/// All named scenarios.
#[must_use]
pub const fn library() -> &'static [NamedScenario] {
    LIBRARY
}

/// The scenario of a name.
#[must_use]
pub fn named(name: &str) -> Option<&'static NamedScenario> {
    LIBRARY.iter().find(|scenario| scenario.name == name)
}

const LIBRARY: &[NamedScenario] = &[
    NamedScenario {
        name: "sample-download",
        about: "6 MB from a fast server in a busy cell: the radio is the bottleneck",
        build: sample_download,
    },
    NamedScenario {
        name: "sample-rate-limited",
        about: "3 MB from a server that sends 2 Mbit/s, far below the cell: not the radio",
        build: sample_rate_limited,
    },
    NamedScenario {
        name: "sample-video",
        about: "12 video segments with pauses, each from a restarted window: the queue runs empty",
        build: sample_video,
    },
    NamedScenario {
        name: "sample-upload",
        about: "2 MB from the phone: the uplink is the bottleneck",
        build: sample_upload,
    },
];

/// One phone alone in a 10 MHz cell, with nothing to transfer.
fn quiet_cell(seed: u64, duration_ms: u32) -> Scenario {
    Scenario { seed, duration_ms, ..Scenario::default() }
}

fn sample_download() -> Scenario {
    Scenario {
        competing: vec![Competing::FullBuffer { users: 3 }],
        traffic: vec![Traffic::Download {
            id: "download".to_owned(),
            start_ms: 500,
            bytes: 6_000_000,
            window: WindowConfig::default(),
        }],
        ..quiet_cell(1, 30_000)
    }
}

fn sample_rate_limited() -> Scenario {
    Scenario {
        competing: vec![Competing::Sporadic {
            users: 3,
            mean_file_bytes: 200_000,
            mean_pause_ms: 1_500,
        }],
        traffic: vec![Traffic::Paced {
            id: "paced".to_owned(),
            start_ms: 500,
            bytes: 3_000_000,
            rate_bps: 2_000_000,
        }],
        ..quiet_cell(2, 30_000)
    }
}

fn sample_video() -> Scenario {
    Scenario {
        // Two full buffers leave about a third of the cell, more than a
        // restarted window asks for.
        competing: vec![Competing::FullBuffer { users: 2 }],
        core: CoreConfig { rtt_ms: 60, ..CoreConfig::default() },
        traffic: vec![Traffic::Video {
            id: "segment".to_owned(),
            start_ms: 500,
            segments: 12,
            segment_ms: 2_000,
            bitrate_bps: 2_000_000,
            buffer_ms: 6_000,
            window: WindowConfig { max_bytes: 300_000, restart_after_idle: true },
        }],
        ..quiet_cell(3, 40_000)
    }
}

fn sample_upload() -> Scenario {
    Scenario {
        cell: CellConfig { scheduler: SchedulerKind::RoundRobin, ..CellConfig::default() },
        uplink: UplinkConfig { grant_every_tti: 3, ..UplinkConfig::default() },
        traffic: vec![Traffic::Upload {
            id: "upload".to_owned(),
            start_ms: 500,
            bytes: 2_000_000,
            window: WindowConfig::default(),
        }],
        ..quiet_cell(4, 30_000)
    }
}
