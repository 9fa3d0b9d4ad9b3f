//! Named scenarios, as data.

use crate::scenario::{
    CellConfig, Competing, CoreConfig, Scenario, SchedulerKind, Traffic, UplinkConfig, WindowConfig,
};

/// A scenario with a name.
#[derive(Debug, Clone, Copy)]
pub struct NamedScenario {
    /// Its name.
    pub name: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    source: ScenarioSource,
}

/// Source of a named scenario.
#[derive(Debug, Clone, Copy)]
enum ScenarioSource {
    Code(fn() -> Scenario),
    /// A scenario file; a test parses each.
    Toml(&'static str),
}

impl NamedScenario {
    /// The scenario.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        match self.source {
            ScenarioSource::Code(build) => build(),
            ScenarioSource::Toml(text) => Scenario::from_toml(text).unwrap_or_default(),
        }
    }

    /// Its file, if it has one: an example for new scenarios.
    #[must_use]
    pub const fn file(&self) -> Option<&'static str> {
        match self.source {
            ScenarioSource::Code(_) => None,
            ScenarioSource::Toml(text) => Some(text),
        }
    }
}

/// All named scenarios.
#[must_use]
pub const fn library() -> &'static [NamedScenario] {
    LIBRARY
}

/// The scenario with a name.
#[must_use]
pub fn named(name: &str) -> Option<&'static NamedScenario> {
    LIBRARY.iter().find(|scenario| scenario.name == name)
}

const LIBRARY: &[NamedScenario] = &[
    NamedScenario {
        name: "sample-download",
        about: "6 MB from a fast server in a busy cell: the radio is the bottleneck",
        source: ScenarioSource::Code(sample_download),
    },
    NamedScenario {
        name: "sample-rate-limited",
        about: "3 MB from a server that sends 2 Mbit/s, far below the cell: not the radio",
        source: ScenarioSource::Code(sample_rate_limited),
    },
    NamedScenario {
        name: "sample-video",
        about: "12 video segments with pauses, each from a restarted window: the queue runs empty",
        source: ScenarioSource::Code(sample_video),
    },
    NamedScenario {
        name: "sample-upload",
        about: "2 MB from the phone: the uplink is the bottleneck",
        source: ScenarioSource::Code(sample_upload),
    },
    NamedScenario {
        name: "busy-file",
        about: "a 10 MB file with three competing downloads: the radio is the bottleneck",
        source: ScenarioSource::Toml(include_str!("../../scenarios/busy-file.toml")),
    },
    NamedScenario {
        name: "busy-video",
        about: "adaptive video with five competing downloads: the radio is the bottleneck",
        source: ScenarioSource::Toml(include_str!("../../scenarios/busy-video.toml")),
    },
    NamedScenario {
        name: "drx",
        about: "small exchanges with pauses: packets wait for the phone's on-duration",
        source: ScenarioSource::Toml(include_str!("../../scenarios/drx.toml")),
    },
    NamedScenario {
        name: "driving",
        about: "adaptive video of a moving phone, with varying shadowing",
        source: ScenarioSource::Toml(include_str!("../../scenarios/driving.toml")),
    },
    NamedScenario {
        name: "far-server",
        about: "800 kB from a server 200 ms away: the window grows until the file has arrived",
        source: ScenarioSource::Toml(include_str!("../../scenarios/far-server.toml")),
    },
    NamedScenario {
        name: "idle",
        about: "three small exchanges, each from RRC idle: promotion and paging dominate",
        source: ScenarioSource::Toml(include_str!("../../scenarios/idle.toml")),
    },
    NamedScenario {
        name: "lossy-line",
        about: "a 5 MB file over a line that loses 1 % of the packets: not the radio",
        source: ScenarioSource::Toml(include_str!("../../scenarios/lossy-line.toml")),
    },
    NamedScenario {
        name: "lossy-radio",
        about: "a 5 MB file over a bearer without retransmissions after HARQ (RLC UM)",
        source: ScenarioSource::Toml(include_str!("../../scenarios/lossy-radio.toml")),
    },
    NamedScenario {
        name: "middlebox-ports",
        about: "segments over ports 80, 443 and 7777 alternately: a split-TCP box restarts the \
            first two",
        source: ScenarioSource::Toml(include_str!("../../scenarios/middlebox-ports.toml")),
    },
    NamedScenario {
        name: "nr-tdd-video",
        about: "adaptive video in an NR cell of band n78 (30 kHz, TDD) with two downloads",
        source: ScenarioSource::Toml(include_str!("../../scenarios/nr-tdd-video.toml")),
    },
    NamedScenario {
        name: "nr-two-carriers",
        about: "a 40 MB file over two NR carriers at once (30 kHz, TDD)",
        source: ScenarioSource::Toml(include_str!("../../scenarios/nr-two-carriers.toml")),
    },
    NamedScenario {
        name: "nsa-split-bearer",
        about: "a 40 MB file over a split bearer on LTE and NR (EN-DC)",
        source: ScenarioSource::Toml(include_str!("../../scenarios/nsa-split-bearer.toml")),
    },
    NamedScenario {
        name: "page",
        about: "a page of a document and eleven objects, alone in the cell",
        source: ScenarioSource::Toml(include_str!("../../scenarios/page.toml")),
    },
    NamedScenario {
        name: "page-slow-server",
        about: "a page with a server think time of 400 ms before each response: not the radio",
        source: ScenarioSource::Toml(include_str!("../../scenarios/page-slow-server.toml")),
    },
    NamedScenario {
        name: "quic-file",
        about: "a 10 MB file over QUIC with a competing download over TCP",
        source: ScenarioSource::Toml(include_str!("../../scenarios/quic-file.toml")),
    },
    NamedScenario {
        name: "rate-limited-server",
        about: "4 MB from a server limited to 2 Mbit/s: not the radio",
        source: ScenarioSource::Toml(include_str!("../../scenarios/rate-limited-server.toml")),
    },
    NamedScenario {
        name: "receive-window",
        about: "a 5 MB file into a receive window of 64 kB over 100 ms: not the radio",
        source: ScenarioSource::Toml(include_str!("../../scenarios/receive-window.toml")),
    },
    NamedScenario {
        name: "slow-start-restart",
        about: "video with pauses from a server that restarts slow start: the queue runs empty",
        source: ScenarioSource::Toml(include_str!("../../scenarios/slow-start-restart.toml")),
    },
    NamedScenario {
        name: "slow-start-restart-proxy",
        about: "the same with a split-TCP box that restarts on its radio side",
        source: ScenarioSource::Toml(include_str!("../../scenarios/slow-start-restart-proxy.toml")),
    },
    NamedScenario {
        name: "tdd",
        about: "a 5 MB file in a TDD cell (configuration 1)",
        source: ScenarioSource::Toml(include_str!("../../scenarios/tdd.toml")),
    },
    NamedScenario {
        name: "thousand-users",
        about: "a video in a cell of a thousand users",
        source: ScenarioSource::Toml(include_str!("../../scenarios/thousand-users.toml")),
    },
    NamedScenario {
        name: "two-carriers",
        about: "a 20 MB file over two carriers at once",
        source: ScenarioSource::Toml(include_str!("../../scenarios/two-carriers.toml")),
    },
    NamedScenario {
        name: "undesired-slow-start",
        about: "losses while the round trip grows: the retransmission timer expires (Huang et al. \
            2013, 5)",
        source: ScenarioSource::Toml(include_str!("../../scenarios/undesired-slow-start.toml")),
    },
    NamedScenario {
        name: "undesired-slow-start-far",
        about: "a far server with a spurious timeout: a slow start while the queue is empty",
        source: ScenarioSource::Toml(include_str!("../../scenarios/undesired-slow-start-far.toml")),
    },
    NamedScenario {
        name: "upload-beside-download",
        about: "an upload fills the phone's firmware buffer: the download's acknowledgements wait",
        source: ScenarioSource::Toml(include_str!("../../scenarios/upload-beside-download.toml")),
    },
    NamedScenario {
        name: "weak-signal",
        about: "a 3 MB file at the edge of the cell: the radio is the bottleneck",
        source: ScenarioSource::Toml(include_str!("../../scenarios/weak-signal.toml")),
    },
    NamedScenario {
        name: "web-browsing",
        about: "three pages in a cell with others: many short bursts",
        source: ScenarioSource::Toml(include_str!("../../scenarios/web-browsing.toml")),
    },
    NamedScenario {
        name: "wireline-behind-proxy",
        about: "a 5 MB file through a 4 Mbit/s line beyond a split-TCP box: not the radio",
        source: ScenarioSource::Toml(include_str!("../../scenarios/wireline-behind-proxy.toml")),
    },
    NamedScenario {
        name: "wireline-limited",
        about: "a 10 MB file through an 8 Mbit/s line before the base station: not the radio",
        source: ScenarioSource::Toml(include_str!("../../scenarios/wireline-limited.toml")),
    },
];

/// One phone alone in a 10 MHz cell, without transfers.
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
        // Two full buffers leave about a third of the cell, more than a restarted window
        // needs.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_scenarios() {
        for named in library() {
            let Some(text) = named.file() else { continue };
            match Scenario::from_toml(text) {
                Ok(scenario) => assert_eq!(scenario.about, named.about, "{}", named.name),
                Err(error) => panic!("{}: {error}", named.name),
            }
        }
    }
}
