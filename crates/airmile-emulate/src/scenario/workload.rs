//! Workloads of clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Workload of a client; the server is always the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// Downloads one after another.
    File {
        /// Bytes of each.
        bytes: u64,
        /// Number of downloads.
        #[serde(default = "one")]
        count: u32,
        /// Pause after each.
        #[serde(default)]
        gap_ms: u64,
    },
    /// Adaptive video (DASH).
    Video(VideoConfig),
    /// Web pages.
    Web(WebConfig),
    /// A download from a rate-limited server.
    Paced {
        /// Total bytes.
        bytes: u64,
        /// The server's rate.
        rate_bps: u64,
        /// Block size of the server; absent: 10 ms worth.
        #[serde(default)]
        block_bytes: Option<u64>,
    },
    /// A download from a server that alternates between sending and pausing.
    OnOff {
        /// Total bytes.
        bytes: u64,
        /// Duration of sending.
        on_ms: u64,
        /// Duration of pauses.
        off_ms: u64,
        /// Its rate while it sends; absent: unlimited.
        #[serde(default)]
        rate_bps: Option<u64>,
    },
    /// Uploads one after another.
    Upload {
        /// Bytes of each.
        bytes: u64,
        /// Number of uploads.
        #[serde(default = "one")]
        count: u32,
        /// Pause after each.
        #[serde(default)]
        gap_ms: u64,
    },
    /// Small requests and responses.
    Interactive {
        /// Bytes of a request's body.
        request_bytes: u64,
        /// Bytes of a response.
        response_bytes: u64,
        /// Number of requests.
        count: u32,
        /// Pause after each.
        #[serde(default)]
        gap_ms: u64,
        /// Interval between starts, in place of the pause; longer if the previous one is
        /// not finished.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period_ms: Option<u64>,
        /// Server think time.
        #[serde(default)]
        think_ms: u64,
    },
    /// A download that the client reads slowly.
    SlowReader {
        /// Total bytes.
        bytes: u64,
        /// Rate at which the client reads.
        read_rate_bps: u64,
    },
    /// Downloads that start at equal intervals.
    Periodic {
        /// Bytes of each.
        bytes: u64,
        /// Number of downloads.
        count: u32,
        /// Interval between starts; longer if the previous one is not finished.
        period_ms: u64,
    },
}

fn one() -> u32 {
    1
}

/// How a player chooses bitrates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Abr {
    /// The highest below a share of the harmonic mean of the last five segments' throughput
    /// (Jiang et al., FESTIVE, CoNEXT 2012, 4.2: 0.85).
    Rate {
        /// That share.
        safety: f64,
    },
    /// By the buffered time: the lowest below the reservoir, the highest above reservoir
    /// plus cushion, proportional in between (Huang et al., BBA-0, SIGCOMM 2014, 4).
    Buffer {
        /// Reservoir.
        reservoir_ms: u64,
        /// Cushion.
        cushion_ms: u64,
    },
}

/// Adaptive video.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VideoConfig {
    /// Available bitrates, ascending (BurstTracker, 5.1: ten of 0.2 to 12 Mbit/s).
    pub bitrates_bps: Vec<u64>,
    /// Length of a segment.
    pub segment_ms: u64,
    /// Length of the video.
    pub duration_ms: u64,
    /// The player requests nothing while it has this much buffered.
    pub buffer_ms: u64,
    /// Playback starts with this much buffered, and resumes with it after a stall.
    pub start_ms: u64,
    /// How bitrates are chosen.
    pub abr: Abr,
    /// Sizes of segments vary by up to this share around bitrate times length.
    pub variation: f64,
    /// Bitrates of the first segments, in order, in place of the player's choice: its
    /// choices in another run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chosen_bps: Vec<u64>,
}

impl Default for VideoConfig {
    fn default() -> Self {
        Self {
            // The ends are the paper's; in between a constant ratio (chosen here).
            bitrates_bps: vec![
                200_000, 315_000, 500_000, 780_000, 1_230_000, 1_950_000, 3_070_000, 4_830_000,
                7_620_000, 12_000_000,
            ],
            segment_ms: 4000,
            duration_ms: 120_000,
            // Chosen here: typical of web players.
            buffer_ms: 30_000,
            start_ms: 4000,
            abr: Abr::Rate { safety: 0.85 },
            variation: 0.0,
            chosen_bps: Vec::new(),
        }
    }
}

/// Web pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebConfig {
    /// Pages, one after another.
    pub pages: u32,
    /// Reading time of each.
    pub gap_ms: u64,
    /// Objects of a page, including the document itself.
    pub objects: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Longest chain of objects that refer to each other, including the document.
    pub depth: u32,
    /// Parallel connections (browsers: six a host with HTTP/1.1).
    pub lanes: u32,
    /// Request everything at once on one connection, as with HTTP/2: responses arrive back
    /// to back in the order of the requests, and `lanes` has no effect.
    pub multiplexed: bool,
    /// Parsing time of an object before its references are requested.
    pub parse_ms: u64,
    /// Server think time.
    pub think_ms: u64,
    /// Duration of the first name lookup; later ones are cached.
    pub dns_ms: u64,
}

impl Default for WebConfig {
    fn default() -> Self {
        // Similar to the HTTP Archive's median mobile page: 70 objects, 2 MB; depth and
        // times chosen here.
        Self {
            pages: 1,
            gap_ms: 5000,
            objects: 70,
            page_bytes: 2_000_000,
            depth: 4,
            lanes: 6,
            multiplexed: false,
            parse_ms: 10,
            think_ms: 0,
            dns_ms: 0,
        }
    }
}
