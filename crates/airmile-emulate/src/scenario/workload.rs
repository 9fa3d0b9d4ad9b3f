//! Which application a client runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which application a client runs; the server is always the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// Downloads one after another.
    File {
        /// Bytes of each.
        bytes: u64,
        /// How many.
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
    /// A download from a server that keeps to a rate.
    Paced {
        /// Bytes in all.
        bytes: u64,
        /// The server's rate.
        rate_bps: u64,
        /// It sends in blocks of this size; 10 ms worth if absent.
        #[serde(default)]
        block_bytes: Option<u64>,
    },
    /// A download from a server that sends and pauses by turns.
    OnOff {
        /// Bytes in all.
        bytes: u64,
        /// How long it sends.
        on_ms: u64,
        /// How long it pauses.
        off_ms: u64,
        /// Its rate while it sends; as fast as it can if absent.
        #[serde(default)]
        rate_bps: Option<u64>,
    },
    /// Uploads one after another.
    Upload {
        /// Bytes of each.
        bytes: u64,
        /// How many.
        #[serde(default = "one")]
        count: u32,
        /// Pause after each.
        #[serde(default)]
        gap_ms: u64,
    },
    /// Small requests and answers.
    Interactive {
        /// Bytes of a request's body.
        request_bytes: u64,
        /// Bytes of an answer.
        response_bytes: u64,
        /// How many.
        count: u32,
        /// Pause after each.
        #[serde(default)]
        gap_ms: u64,
        /// From begin to begin, in place of the pause; later where the one
        /// before is not done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period_ms: Option<u64>,
        /// How long the server thinks.
        #[serde(default)]
        think_ms: u64,
    },
    /// A download that the client reads slowly.
    SlowReader {
        /// Bytes in all.
        bytes: u64,
        /// How fast it reads.
        read_rate_bps: u64,
    },
    /// Downloads that begin at equal distances.
    Periodic {
        /// Bytes of each.
        bytes: u64,
        /// How many.
        count: u32,
        /// From begin to begin; later where the one before is not done.
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
    /// The highest under a share of the harmonic mean of the last five segments'
    /// throughput (Jiang et al., FESTIVE, CoNEXT 2012, 4.2: 0.85).
    Rate {
        /// That share.
        safety: f64,
    },
    /// By what is in store: the lowest under the reservoir, the highest over
    /// reservoir and cushion, in between in proportion (Huang et al., BBA-0,
    /// SIGCOMM 2014, 4).
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
    /// Bitrates on offer, ascending (BurstTracker, 5.1: ten of 0.2 to 12 Mbit/s).
    pub bitrates_bps: Vec<u64>,
    /// Length of a segment.
    pub segment_ms: u64,
    /// Length of the video.
    pub duration_ms: u64,
    /// The player asks for no more while it has this much in store.
    pub buffer_ms: u64,
    /// Playback begins with this much in store, and goes on after a stall.
    pub start_ms: u64,
    /// How bitrates are chosen.
    pub abr: Abr,
    /// Sizes of segments vary by up to this share around bitrate times length.
    pub variation: f64,
    /// Bitrates of the first segments, in order, in place of the player's own
    /// choice: what it chose in another run.
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
            // Chosen here: what web players keep.
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
    /// Time to read each.
    pub gap_ms: u64,
    /// Objects of a page, the document itself included.
    pub objects: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Longest chain of objects that ask for each other, the document included.
    pub depth: u32,
    /// Connections at a time (browsers: six a host with HTTP/1.1).
    pub lanes: u32,
    /// Ask for all at once on one connection, as HTTP/2 does: responses come back to
    /// back in the order of the requests, and `lanes` does not count.
    pub multiplexed: bool,
    /// Time to read an object before what it asks for is asked for.
    pub parse_ms: u64,
    /// How long the server thinks.
    pub think_ms: u64,
    /// How long the first name lookup takes; the later ones are cached.
    pub dns_ms: u64,
}

impl Default for WebConfig {
    fn default() -> Self {
        // Of the order of the HTTP Archive's median mobile page: 70 objects,
        // 2 MB; depth and times chosen here.
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
