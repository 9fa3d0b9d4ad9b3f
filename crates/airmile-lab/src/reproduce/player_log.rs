//! Quality of experience from a player's log.

use std::path::Path;

use serde::Deserialize;

use airmile::{Error, Result};

/// A line of `command.jsonl`.
#[derive(Deserialize)]
struct CommandRecord {
    #[serde(default)]
    at_ns: i64,
    event: String,
    id: Option<String>,
    bytes: Option<u64>,
    value: Option<f64>,
    what: Option<String>,
}

/// Statistics of the module that kept the window warm (web/keep-warm).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeptWarm {
    pub(super) fetches: f64,
    /// Bytes of its fetches, by its own count.
    pub(super) bytes: f64,
    /// Bytes fetched by the player.
    pub(super) media_bytes: f64,
    /// Long pauses kept warm, and left alone.
    pub(super) kept: f64,
    pub(super) alone: f64,
    /// Early rate after the former over that after the latter.
    #[serde(default = "unknown")]
    pub(super) gain: f64,
    pub(super) radio_mj: f64,
    pub(super) radio_without_mj: f64,
}

const fn unknown() -> f64 {
    f64::NAN
}

/// A segment fetched by a player.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Segment {
    /// Request time, in ns since the Unix epoch.
    pub(super) from_ns: i64,
    /// When its last byte arrived.
    pub(super) to_ns: i64,
    /// Bytes.
    pub(super) bytes: u64,
    /// Bitrate of its representation.
    pub(super) bps: f64,
}

/// A session of a player, and speed tests around it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PlayerLog {
    /// Segments in the order of their ends.
    pub(super) segments: Vec<Segment>,
    /// Stalls in ms.
    pub(super) stalls_ms: Vec<f64>,
    /// Buffer level: time, and seconds.
    pub(super) buffer_s: Vec<(i64, f64)>,
    /// Results of speed tests in bytes per second, in order.
    pub(super) speed_tests: Vec<f64>,
    /// Present if the window was kept warm.
    pub(super) kept_warm: Option<KeptWarm>,
}

impl PlayerLog {
    /// Parses a run's log.
    ///
    /// # Errors
    /// It cannot be read, or a line is not an event.
    pub(super) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join("command.jsonl");
        let text = std::fs::read_to_string(&path).map_err(|e| Error::read(&path, e))?;
        Self::parse(&text)
            .map_err(|e| Error::Unusable { path, what: format!("is not a player's log: {e}") })
    }

    fn parse(text: &str) -> serde_json::Result<Self> {
        let mut log = Self::default();
        let mut asked = std::collections::HashMap::new();
        for line in text.lines() {
            let CommandRecord { at_ns, event, id, bytes, value, what } =
                serde_json::from_str(line)?;
            match (event.as_str(), id, value) {
                ("request", Some(id), _) => _ = asked.insert(id, at_ns),
                ("end", Some(id), Some(bps)) => {
                    log.segments.extend(asked.remove(&id).map(|from_ns| Segment {
                        from_ns,
                        to_ns: at_ns,
                        bytes: bytes.unwrap_or(0),
                        bps,
                    }));
                }
                ("resumed", _, Some(ms)) => log.stalls_ms.push(ms),
                ("buffer", _, Some(ms)) => log.buffer_s.push((at_ns, ms / 1e3)),
                ("keep_warm", ..) => {
                    log.kept_warm = what.map(|text| serde_json::from_str(&text)).transpose()?;
                }
                ("speed_test", _, Some(bytes_per_s)) => log.speed_tests.push(bytes_per_s),
                _ => {}
            }
        }
        Ok(log)
    }

    /// Mean bitrate of the segments in Mbit/s.
    pub(super) fn bitrate_mbps(&self) -> f64 {
        let sum: f64 = self.segments.iter().map(|segment| segment.bps).sum();
        sum / 1e6 / self.segments.len() as f64
    }

    /// Number of bitrate changes.
    pub(super) fn switches(&self) -> f64 {
        self.segments.windows(2).filter(|pair| pair[0].bps != pair[1].bps).count() as f64
    }

    /// Total stall time.
    pub(super) fn stalled_ms(&self) -> f64 {
        // The sum of no floats is -0.
        self.stalls_ms.iter().sum::<f64>() + 0.0
    }

    /// Mean throughput of the segments in Mbit/s, as computed by players.
    pub(super) fn throughput_mbps(&self) -> f64 {
        let mbps = |s: &Segment| s.bytes as f64 * 8e3 / (s.to_ns - s.from_ns) as f64;
        self.segments.iter().map(mbps).sum::<f64>() / self.segments.len() as f64
    }

    /// Throughput in Mbit/s of each segment that was requested at least `pause_s` seconds
    /// after the previous one had arrived.
    pub(super) fn throughputs_after(&self, pause_s: f64) -> Vec<f64> {
        let mut last_ns = i64::MAX;
        let mut found = Vec::new();
        for s in &self.segments {
            if s.from_ns.saturating_sub(last_ns) as f64 >= pause_s * 1e9 {
                found.push(s.bytes as f64 * 8e3 / (s.to_ns - s.from_ns) as f64);
            }
            last_ns = s.to_ns;
        }
        found
    }

    /// Seconds since the first request.
    pub(super) fn seconds(&self, at_ns: i64) -> f64 {
        let first_ns = self.segments.iter().map(|s| s.from_ns).min().unwrap_or(at_ns);
        (at_ns - first_ns) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read() {
        let text = r#"{"event":"speed_test","bytes":10,"value":500000}
{"at_ns":1000000000,"app":"segment","event":"request","id":"segment-1"}
{"at_ns":2000000000,"app":"segment","event":"end","id":"segment-1","bytes":250000,"value":500000}
{"at_ns":2100000000,"app":"segment","event":"buffer","value":4000}
{"at_ns":2200000000,"app":"segment","event":"stalled"}
{"at_ns":2500000000,"app":"segment","event":"resumed","value":300}
{"at_ns":3000000000,"app":"segment","event":"request","id":"segment-2"}
{"at_ns":5000000000,"app":"segment","event":"end","id":"segment-2","bytes":1000000,"value":2000000}
"#;
        let log = PlayerLog::parse(text).unwrap();
        let got = (log.bitrate_mbps(), log.switches(), log.stalled_ms(), log.throughput_mbps());
        // 250 kB in 1 s and 1 MB in 2 s.
        assert_eq!(got, (1.25, 1.0, 300.0, 3.0));
        assert_eq!(log.buffer_s, [(2_100_000_000, 4.0)]);
        assert_eq!(
            (log.speed_tests.as_slice(), log.seconds(5_000_000_000)),
            (&[500_000.0][..], 4.0)
        );
        // The second was requested 1 s after the first had arrived.
        assert_eq!((log.throughputs_after(1.0), log.throughputs_after(1.1)), (vec![4.0], vec![]));
        assert!(PlayerLog::parse("{\"event\": 3}").is_err());
        let statistics = r#"{"fetches":14,"bytes":12000,"mediaBytes":700000,"kept":3,"alone":2,"radioMj":5,"radioWithoutMj":4}"#;
        let line =
            serde_json::json!({"at_ns": 1, "event": "keep_warm", "what": statistics}).to_string();
        let kept = PlayerLog::parse(&line).unwrap().kept_warm.unwrap();
        assert_eq!((kept.fetches, kept.kept, kept.gain.is_nan()), (14.0, 3.0, true));
        assert!(PlayerLog::parse(r#"{"event":"keep_warm","what":"{}"}"#).is_err());
        assert_eq!(PlayerLog::parse("").unwrap().stalled_ms(), 0.0);
    }
}
