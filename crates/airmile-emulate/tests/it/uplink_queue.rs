//! Queueing disciplines above the phone's firmware buffer.

use std::collections::BTreeMap;

use airmile_emulate::net::{IpPacket, Transport};
use airmile_emulate::{CapturePoint, RunOutcome, RunSink, Scenario, ScenarioError, run_into};

/// Packets that pass the gate, and the firmware's occupancy.
#[derive(Default)]
struct Watch {
    held: Vec<u64>,
    /// Segments in transit by port and end number: when they went to the firmware.
    under_way: BTreeMap<(u16, u32), i64>,
    rtt_ms: Vec<f64>,
}

impl RunSink for Watch {
    fn handed_over(&mut self, at_ns: i64, packet: &IpPacket) {
        if let Transport::Tcp(segment) = &packet.transport
            && segment.payload_bytes() > 0
        {
            let end = segment.seq.wrapping_add(segment.payload_bytes());
            self.under_way.insert((packet.src.port(), end), at_ns);
        }
    }

    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        if point != CapturePoint::Phone {
            return;
        }
        let Transport::Tcp(segment) = &packet.transport else { return };
        if let Some(since) = self.under_way.remove(&(packet.dst.port(), segment.ack)) {
            self.rtt_ms.push((at_ns - since) as f64 / 1e6);
        }
    }

    fn firmware(&mut self, _at_ns: i64, bytes: u64) {
        self.held.push(bytes);
    }
}

impl Watch {
    fn quantile(values: &[f64], p: f64) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.get((sorted.len() as f64 * p) as usize).copied().unwrap_or(f64::NAN)
    }

    fn held_at(&self, p: f64) -> f64 {
        let held: Vec<f64> =
            self.held[5_000.min(self.held.len() / 2)..].iter().map(|b| *b as f64).collect();
        Self::quantile(&held, p)
    }
}

fn run(snr_db: f64, discipline: &str, rest: &str) -> Result<(Watch, RunOutcome), ScenarioError> {
    let text = format!(
        "seed = 5
        duration_ms = 20_000
        [link]
        ul_snr_mean_db = {snr_db:.1}
        [uplink]
        grant_every_tti = 2
        firmware_bytes = 450_000
        [uplink_queue]
        discipline = {discipline}
        {rest}
        [[apps]]
        name = \"upload\"
        start_ms = 500
        workload = {{ kind = \"upload\", bytes = 100_000_000 }}
        "
    );
    let scenario = Scenario::from_toml(&text)?;
    let mut watch = Watch::default();
    let outcome = run_into(&scenario, &mut watch)?;
    Ok((watch, outcome))
}

/// Mbit/s received by the upload's server.
fn mbps(outcome: &RunOutcome) -> f64 {
    outcome.totals[0][1].delivered_bytes as f64 * 8.0 / 19.5e6
}

/// Mbit/s, median RTT_F in ms, and the firmware's occupancy in 95 % of TTIs.
fn measure(snr_db: f64, discipline: &str, rest: &str) -> Result<(f64, f64, f64), ScenarioError> {
    let (watch, outcome) = run(snr_db, discipline, rest)?;
    let settled = &watch.rtt_ms[watch.rtt_ms.len() / 4..];
    let median = Watch::quantile(settled, 0.5);
    let mbps = mbps(&outcome);
    Ok((mbps, median, watch.held_at(0.95)))
}

/// Minimum share of the plain queue's throughput, and maximum firmware occupancy in 95 % of
/// TTIs, in bytes.
const DISCIPLINES: [(&str, f64, f64); 8] = [
    // Disciplines only above the firmware leave it full.
    ("{ kind = \"codel\", target_ms = 5 }", 0.95, 450_000.0),
    ("{ kind = \"fq-codel\", target_ms = 5 }", 0.95, 450_000.0),
    ("{ kind = \"tsq\", flow_bytes = 262144 }", 0.95, 450_000.0),
    ("{ kind = \"qcut\", limit = { bytes = 5000 } }", 0.5, 12_000.0),
    ("{ kind = \"qcut\", limit = { bytes = 20000 } }", 0.9, 30_000.0),
    ("{ kind = \"qcut\", limit = { delay_ms = 20 } }", 0.9, 60_000.0),
    ("{ kind = \"round-trips\", limit = { delay_ms = 20 } }", 0.6, 100_000.0),
    ("{ kind = \"autorate\", start_bps = 4000000 }", 0.3, 60_000.0),
];

#[test]
fn gates_keep_the_firmware_short_and_the_rate_up() {
    for snr_db in [14.0, 2.0] {
        let (most, fifo_ms, held) = measure(snr_db, "{ kind = \"fifo\" }", "").unwrap();
        assert!(held > 400_000.0 && fifo_ms > 500.0, "the firmware's buffer is full: {held}");
        for (discipline, share, most_held) in DISCIPLINES {
            let (mbps, rtt_ms, held) = measure(snr_db, discipline, "").unwrap();
            assert!(mbps > share * most, "{discipline}: {mbps} of {most}");
            assert!(held <= most_held, "{discipline}: {held}");
            assert!(held > 100_000.0 || rtt_ms < fifo_ms / 4.0, "{discipline}: {rtt_ms}");
        }
        // Vegas keeps it short by itself, and leaves some of the rate unused.
        let vegas = "[phone_tcp]\ncontrol = { name = \"vegas\" }";
        let (mbps, _, held) = measure(snr_db, "{ kind = \"fifo\" }", vegas).unwrap();
        assert!(mbps > 0.4 * most && held < 60_000.0, "{mbps} {held}");
    }
}
