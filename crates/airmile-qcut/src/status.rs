//! Status of an instance, for HTTP and `airmile qcut watch`.

use airmile_control::qcut::{GateState, QueueCounts, Tier};
use airmile_host::http::Metrics;
use serde::{Deserialize, Serialize};

/// Status of an instance.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GateStatus {
    /// The interface whose queue is kept short.
    pub interface: String,
    /// Unix time of this status, in s.
    #[serde(default)]
    pub at_s: f64,
    /// Deployment: `nfqueue`, `htb`, `cake`, `tun` or `none`.
    pub deploy: String,
    /// Present evidence of the modem's occupancy: `modem` or `round_trips`.
    pub evidence: String,
    /// The limit as given by the user.
    pub limit: String,
    /// Uptime in s.
    pub uptime_s: f64,
    /// CPU time in s.
    pub cpu_s: f64,
    /// The modem's log and its state; absent: no modem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modem: Option<ModemStatus>,
    /// Estimated occupancy of the modem, in bytes.
    pub occupancy_bytes: u64,
    /// Time until the modem has sent this at the estimated rate, in ms; absent: no rate.
    #[serde(default)]
    pub queue_delay_ms: Option<f64>,
    /// Whether reports or round trips show occupancy and rate now.
    #[serde(default)]
    pub is_known: bool,
    /// Bounds of the occupancy from the modem's reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occupancy_bounds_bytes: Option<(u64, u64)>,
    /// The limit, in bytes.
    pub limit_bytes: u64,
    /// Estimated uplink rate, in bit/s.
    pub rate_bps: u64,
    /// Rate set on a shaper, in bit/s; absent: no shaper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_rate_bps: Option<u64>,
    /// Number of changes of this rate.
    pub rate_changes: u64,
    /// The last round trip below the gate (RTT_F), in ms.
    pub rtt_f_ms: Option<f64>,
    /// The recent minimum of it, in ms.
    pub least_rtt_f_ms: Option<f64>,
    /// Probes sent because no acknowledgement passed.
    pub probes: u64,
    /// How often the modem became silent.
    pub silences: u64,
    /// How often the modem's log was too late, incomplete or implausible to be used.
    #[serde(default)]
    pub log_rejections: u64,
    /// Current problems and their effects.
    pub warnings: Vec<String>,
    /// Classes in the order of service.
    pub classes: Vec<ClassStatus>,
    /// Hosts that most of the waiting packets are for, most bytes first; empty: none wait, or the
    /// kernel holds them.
    #[serde(default)]
    pub waiting: Vec<WaitingHost>,
    /// Packets that could not be passed on: a full device, or a verdict that came too late.
    pub failed_packets: u64,
}

/// A host that packets wait for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WaitingHost {
    /// Its address.
    pub to: String,
    /// Packets that wait.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The modem's log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModemStatus {
    /// The source.
    pub source: String,
    /// `connected`, `waiting` or `ended`, and why.
    pub state: String,
    /// Reports that were used.
    pub reports: u64,
    /// Reports that were redundant, implausible, or contradicted others.
    pub unused_reports: u64,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClassStatus {
    /// `urgent`, `normal` or `background`.
    pub class: String,
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Packets that were sent on.
    pub sent_packets: u64,
    /// Their IP bytes.
    pub sent_bytes: u64,
    /// Packets waiting.
    pub held_packets: u64,
    /// Their bytes.
    pub held_bytes: u64,
    /// Packets dropped by the queue management.
    pub dropped_aqm: u64,
    /// Packets dropped for lack of room.
    pub dropped_full: u64,
}

/// Name of a class.
#[must_use]
pub const fn name_of(tier: Tier) -> &'static str {
    match tier {
        Tier::Urgent => "urgent",
        Tier::Normal => "normal",
        Tier::Background => "background",
    }
}

impl ClassStatus {
    pub(crate) fn of(tier: Tier, counts: &QueueCounts) -> Self {
        Self {
            class: name_of(tier).to_owned(),
            arrived_packets: counts.arrived.packets,
            sent_packets: counts.sent.packets,
            sent_bytes: counts.sent.bytes,
            held_packets: counts.waiting.packets,
            held_bytes: counts.waiting.bytes,
            dropped_aqm: counts.dropped_aqm.packets,
            dropped_full: counts.dropped_full.packets,
        }
    }
}

impl GateStatus {
    /// Copies the gate's state.
    pub(crate) fn hold(&mut self, held: &GateState) {
        let by_reports = self.modem.is_some() && !held.silent;
        self.evidence = if by_reports { "modem" } else { "round_trips" }.to_owned();
        let bounds = (held.occupancy.low_bytes, held.occupancy.high_bytes);
        self.occupancy_bounds_bytes = by_reports.then_some(bounds);
        self.occupancy_bytes =
            if by_reports { held.occupancy.likely_bytes } else { held.unanswered_bytes };
        self.limit_bytes = held.limit_bytes;
        self.rate_bps = held.bytes_per_s.saturating_mul(8);
        self.is_known = !held.blind;
        let rate = held.bytes_per_s as f64;
        self.queue_delay_ms =
            (held.bytes_per_s > 0).then(|| 1e3 * self.occupancy_bytes as f64 / rate);
        let ms = |ns: i64| ns as f64 / 1e6;
        self.rtt_f_ms = held.round_trips_ns.map(|(last, _)| ms(last));
        self.least_rtt_f_ms = held.round_trips_ns.map(|(_, least)| ms(least));
    }

    /// Packets waiting.
    #[must_use]
    pub fn held_packets(&self) -> u64 {
        self.classes.iter().map(|class| class.held_packets).sum()
    }

    /// Packets dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.classes.iter().map(|class| class.dropped_aqm + class.dropped_full).sum()
    }

    /// The status in Prometheus text format.
    #[must_use]
    pub fn metrics(&self) -> String {
        let mut out = Metrics::default();
        let mut gauge = |name: &str, help: &str, value: Option<f64>| {
            if let Some(value) = value {
                out.one(&format!("airmile_qcut_{name}"), "gauge", help, value);
            }
        };
        let of = |n: u64| n as f64;
        gauge("occupancy_bytes", "Estimated bytes in the modem.", Some(of(self.occupancy_bytes)));
        gauge("limit_bytes", "Maximum bytes in the modem.", Some(of(self.limit_bytes)));
        gauge("rate_bits_per_second", "The uplink's rate.", Some(of(self.rate_bps)));
        let set = self.set_rate_bps.map(of);
        gauge("set_rate_bits_per_second", "The rate set on the shaper.", set);
        let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
        let help = "The last round trip below the gate.";
        gauge("rtt_f_seconds", help, seconds(self.rtt_f_ms));
        let help = "The recent minimum round trip below the gate.";
        gauge("least_rtt_f_seconds", help, seconds(self.least_rtt_f_ms));
        let connected = self.modem.as_ref().map(|modem| modem.state.starts_with("connected"));
        gauge("modem_connected", "Whether the modem's log is connected.", connected.map(f64::from));
        let mut count = |name: &str, help: &str, value: f64| {
            out.one(&format!("airmile_qcut_{name}_total"), "counter", help, value);
        };
        count("cpu_seconds", "Processor time.", self.cpu_s);
        count("rate_changes", "Changes of the shaper's rate.", of(self.rate_changes));
        count("probes", "Probes sent.", of(self.probes));
        count("silences", "Times the modem became silent.", of(self.silences));
        let help = "Times the modem's log was too late, incomplete or implausible to be used.";
        count("log_rejections", help, of(self.log_rejections));
        count("failed_packets", "Packets that could not be passed on.", of(self.failed_packets));
        if let Some(modem) = &self.modem {
            count("reports", "The modem's reports that were used.", of(modem.reports));
        }
        type Of = fn(&ClassStatus) -> u64;
        let by_class: [(&str, &str, &str, Of); 6] = [
            ("held_packets", "gauge", "Packets waiting.", |class| class.held_packets),
            ("held_bytes", "gauge", "Bytes waiting.", |class| class.held_bytes),
            ("sent_packets_total", "counter", "Packets sent on.", |class| class.sent_packets),
            ("sent_bytes_total", "counter", "Bytes sent on.", |class| class.sent_bytes),
            ("dropped_aqm_total", "counter", "Packets dropped by the queue management.", |class| {
                class.dropped_aqm
            }),
            ("dropped_full_total", "counter", "Packets dropped for lack of room.", |class| {
                class.dropped_full
            }),
        ];
        for (name, kind, help, value) in by_class {
            let values: Vec<(&str, f64)> =
                self.classes.iter().map(|class| (class.class.as_str(), of(value(class)))).collect();
            out.many(&format!("airmile_qcut_{name}"), kind, help, "class", &values);
        }
        out.into_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_name_classes() {
        let class =
            ClassStatus { class: "urgent".to_owned(), held_packets: 3, ..ClassStatus::default() };
        let status = GateStatus {
            occupancy_bytes: 9_000,
            rtt_f_ms: Some(52.5),
            log_rejections: 2,
            classes: vec![class],
            ..GateStatus::default()
        };
        let text = status.metrics();
        for line in [
            "airmile_qcut_occupancy_bytes 9000",
            "airmile_qcut_rtt_f_seconds 0.0525",
            "airmile_qcut_log_rejections_total 2",
            "airmile_qcut_held_packets{class=\"urgent\"} 3",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        }
        assert!(!text.contains("modem_connected"));
    }

    #[test]
    fn the_evidence_is_what_is_used_now() {
        let mut status =
            GateStatus { modem: Some(ModemStatus::default()), ..GateStatus::default() };
        for (silent, evidence) in [(false, "modem"), (true, "round_trips"), (false, "modem")] {
            status.hold(&GateState { silent, ..GateState::default() });
            assert_eq!(status.evidence, evidence);
        }
    }
}
