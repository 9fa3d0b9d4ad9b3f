//! Figure 22: available and used bandwidth of a flow over time.

use airmile_model::Direction;
use airmile_model::flow::{BandwidthSample, FlowRow};
use airmile_wire::tcp::TracedPacket;
use schemars::JsonSchema;
use serde::Serialize;

use super::flow_plot::label;

/// The paper's windows (6.3).
const WINDOW_NS: i64 = 250_000_000;
/// Maximum points of a line; a longer flow has wider windows (chosen here).
const MOST_POINTS: i64 = 1_200;

/// Bandwidth of one flow, in windows from its first packet.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BandwidthTimeline {
    /// Number of the flow.
    pub flow: u64,
    /// Its ends.
    pub label: String,
    /// Length of a window in seconds.
    pub window_s: f64,
    /// Mean of the estimates in a window, in bit/s; null where it has none.
    pub available_bps: Vec<Option<f64>>,
    /// Payload that passed for the first time, in bit/s.
    pub used_bps: Vec<f64>,
    /// Number of estimates.
    pub n: u64,
}

/// Gathers the bandwidth of one flow.
#[derive(Debug)]
pub(super) struct TimelineBuilder {
    flow: u64,
    label: String,
    start_ns: i64,
    window_ns: i64,
    available: Vec<(f64, u32)>,
    used_bytes: Vec<u64>,
}

impl TimelineBuilder {
    pub(super) fn new(row: &FlowRow) -> Self {
        let windows = row.duration_ns / WINDOW_NS + 1;
        let merged = (windows + MOST_POINTS - 1) / MOST_POINTS;
        let n = usize::try_from((windows + merged - 1) / merged).unwrap_or(1);
        Self {
            flow: row.flow,
            label: label(row),
            start_ns: row.start_ns,
            window_ns: WINDOW_NS * merged,
            available: vec![(0.0, 0); n],
            used_bytes: vec![0; n],
        }
    }

    pub(super) const fn flow(&self) -> u64 {
        self.flow
    }

    fn place(&self, at_ns: i64) -> Option<usize> {
        usize::try_from((at_ns - self.start_ns).div_euclid(self.window_ns)).ok()
    }

    pub(super) fn packet(&mut self, packet: &TracedPacket) {
        if packet.dir == Direction::Dl
            && let Some(place) = self.place(packet.at_ns)
            && let Some(bytes) = self.used_bytes.get_mut(place)
        {
            *bytes += packet.new_bytes;
        }
    }

    pub(super) fn sample(&mut self, sample: &BandwidthSample) {
        if sample.dir == Direction::Dl
            && let Some(place) = self.place(sample.time_ns)
            && let Some((sum, n)) = self.available.get_mut(place)
        {
            *sum += sample.r_rcv_bps;
            *n += 1;
        }
    }

    pub(super) fn finish(self) -> BandwidthTimeline {
        let seconds = self.window_ns as f64 / 1e9;
        let mean = |(sum, n): &(f64, u32)| (*n > 0).then(|| (sum / f64::from(*n)).round());
        BandwidthTimeline {
            flow: self.flow,
            label: self.label,
            window_s: seconds,
            available_bps: self.available.iter().map(mean).collect(),
            used_bps: self.used_bytes.iter().map(|b| (*b as f64 * 8.0 / seconds).round()).collect(),
            n: self.available.iter().map(|a| u64::from(a.1)).sum(),
        }
    }
}
