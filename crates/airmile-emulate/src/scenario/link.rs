//! Radio links and their measurement.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The radio link of the measured phone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinkConfig {
    /// Mean downlink SNR in dB.
    pub snr_mean_db: f64,
    /// Standard deviation of the fading in dB.
    pub fading_sigma_db: f64,
    /// Time in ms over which the fading's correlation falls to 1/e.
    pub fading_coherence_ms: f64,
    /// Standard deviation in dB of the shadowing of a moving phone.
    pub shadowing_sigma_db: f64,
    /// Time in ms over which the shadowing's correlation falls to 1/e.
    pub shadowing_coherence_ms: f64,
    /// Standard deviation in dB of a resource block group's quality relative to the
    /// carrier; used by schedulers in frequency.
    pub subband_sigma_db: f64,
    /// Mean RSRP in dBm; noise and interference follow from it and the SNR.
    pub rsrp_mean_dbm: f64,
    /// Mean uplink SNR in dB.
    pub ul_snr_mean_db: f64,
    /// Target share of failed first transmissions for link adaptation.
    pub bler_target: f64,
    /// Link traces to replay in place of the channel, in Mahimahi's format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceFiles>,
    /// The downlink's trace, once it is loaded.
    #[serde(skip)]
    pub dl_trace: Option<Arc<LinkTrace>>,
    /// The uplink's trace, once it is loaded.
    #[serde(skip)]
    pub ul_trace: Option<Arc<LinkTrace>>,
}

/// Files of link traces, read by the caller.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TraceFiles {
    /// Network to phone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<String>,
    /// Phone to network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<String>,
}

/// Bytes of a delivery opportunity of a link trace (Mahimahi).
const OPPORTUNITY_BYTES: u32 = 1_500;

/// A link trace: capacity in each millisecond. It repeats when it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTrace {
    opportunities: Vec<u16>,
}

/// Why a link trace cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct LinkTraceError {
    /// Line, from 1.
    pub line: usize,
    /// The problem.
    pub why: &'static str,
}

impl LinkTrace {
    /// Parses a trace: each line is a time in ms, in order, at which one packet of 1,500
    /// bytes can be sent.
    ///
    /// # Errors
    /// A line that is not a number, goes back in time or lies over a day ahead; an empty
    /// trace.
    pub fn parse(text: &str) -> Result<Self, LinkTraceError> {
        let mut opportunities: Vec<u16> = Vec::new();
        let mut last = 0;
        for (n, line) in text.lines().enumerate() {
            let fail = |why| LinkTraceError { line: n + 1, why };
            if line.trim().is_empty() {
                continue;
            }
            let ms: usize =
                line.trim().parse().map_err(|_| fail("expected a time in whole milliseconds"))?;
            if ms < last {
                return Err(fail("goes back in time"));
            }
            if ms > 86_400_000 {
                return Err(fail("lies more than a day ahead"));
            }
            last = ms;
            opportunities.resize(opportunities.len().max(ms + 1), 0);
            opportunities[ms] = opportunities[ms].saturating_add(1);
        }
        // The last line's time is the period: opportunities at that time belong to the
        // first millisecond of the next round.
        let wrapped = opportunities.pop().filter(|_| last > 0);
        match wrapped {
            Some(count) => opportunities[0] = opportunities[0].saturating_add(count),
            None => {
                return Err(LinkTraceError { line: 1, why: "a trace has a line after 0 ms" });
            }
        }
        Ok(Self { opportunities })
    }

    /// The trace as a file. The first opportunity of a round is written at its end, which
    /// gives the period.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let mut line = |ms: usize| {
            out.push_str(&ms.to_string());
            out.push('\n');
        };
        for (ms, &count) in self.opportunities.iter().enumerate() {
            (u16::from(ms == 0)..count).for_each(|_| line(ms));
        }
        line(self.opportunities.len());
        out
    }

    /// Bytes that can be sent in a millisecond.
    #[must_use]
    pub fn bytes_at(&self, ms: i64) -> u32 {
        let at = ms.rem_euclid(self.opportunities.len() as i64);
        u32::from(self.opportunities[at as usize]) * OPPORTUNITY_BYTES
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            snr_mean_db: 14.0,
            fading_sigma_db: 3.0,
            // Roughly a walking phone at 1.8 GHz (chosen here: 3 km/h gives a Doppler shift
            // of 5 Hz, a coherence time of some 80 ms).
            fading_coherence_ms: 80.0,
            rsrp_mean_dbm: -95.0,
            ul_snr_mean_db: 12.0,
            // A stationary phone. For a moving one: 50 m of decorrelation distance (TR
            // 36.814, table B.1.2.2.1-4: 37 to 50 m) at 50 km/h.
            shadowing_sigma_db: 0.0,
            shadowing_coherence_ms: 3_600.0,
            subband_sigma_db: 2.0, // chosen here
            bler_target: 0.1,
            trace: None,
            dl_trace: None,
            ul_trace: None,
        }
    }
}

/// The phone's measurements of the cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MeasurementConfig {
    /// TTIs between two measurements.
    pub period_ms: u32,
    /// Standard deviation in dB of a power reading's error.
    pub error_sigma_db: f64,
    /// Standard deviation in dB of an SNR reading's error.
    pub snr_error_sigma_db: f64,
    /// Share of the mean noise that is a neighbour cell's data: it varies with that cell's
    /// load, redrawn for each measurement.
    pub interference_share: f64,
    /// Load of that neighbour: the share of measurements with its interference.
    pub interference_load: f64,
    /// Whether receive antenna 1 reads raw zeros, as if switched off.
    pub rx1_stuck: bool,
}

impl Default for MeasurementConfig {
    fn default() -> Self {
        Self {
            period_ms: 40, // as in real logs; connected and active, also 10
            // Chosen here.
            error_sigma_db: 0.2,
            snr_error_sigma_db: 0.2,
            interference_share: 0.0,
            interference_load: 0.5,
            rx1_stuck: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_counts_by_millisecond_and_repeats() {
        let trace = LinkTrace::parse("0\n1\n1\n4\n").unwrap();
        // Period 4 ms; the line at 4 ms is 0 ms of the next round.
        let bytes: Vec<u32> = (0..6).map(|ms| trace.bytes_at(ms)).collect();
        assert_eq!(bytes, [3_000, 3_000, 0, 0, 3_000, 3_000]);
        assert_eq!(trace.to_text(), "0\n1\n1\n4\n");
        assert_eq!(LinkTrace::parse(&trace.to_text()).unwrap(), trace);
        for (text, line) in [("", 1), ("3\n2\n", 2), ("1\nx\n", 2), ("99999999999\n", 1)] {
            assert_eq!(LinkTrace::parse(text).unwrap_err().line, line, "{text:?}");
        }
    }
}
