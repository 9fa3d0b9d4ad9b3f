//! Queueing disciplines above the phone's firmware buffer.

use std::collections::BTreeMap;

use airmile_emulate::net::{Packet, Transport};
use airmile_emulate::{CapturePoint, DropPoint, Outcome, Scenario, Sink, run_into};

/// What passes the gate, and what the firmware holds.
#[derive(Default)]
struct Watch {
    handed: u64,
    sent: u64,
    dropped: u64,
    held: Vec<u64>,
    /// Segments' ends by number, of each port: when they went to the firmware.
    under_way: BTreeMap<(u16, u32), i64>,
    rtt_ms: Vec<f64>,
}

impl Sink for Watch {
    fn handed_over(&mut self, at_ns: i64, packet: &Packet) {
        self.handed += 1;
        if let Transport::Tcp(segment) = &packet.transport
            && segment.payload_bytes() > 0
        {
            let end = segment.seq.wrapping_add(segment.payload_bytes());
            self.under_way.insert((packet.src.port(), end), at_ns);
        }
    }

    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &Packet) {
        if point != CapturePoint::Phone {
            return;
        }
        let Transport::Tcp(segment) = &packet.transport else { return };
        if packet.src.ip().is_private() {
            self.sent += 1;
        } else if let Some(since) = self.under_way.remove(&(packet.dst.port(), segment.ack)) {
            self.rtt_ms.push((at_ns - since) as f64 / 1e6);
        }
    }

    fn dropped(&mut self, _at_ns: i64, _user: usize, point: DropPoint, _packet: &Packet) {
        self.dropped += u64::from(point == DropPoint::Phone);
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

fn run(snr_db: f64, discipline: &str, rest: &str) -> (Watch, Outcome) {
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
    let scenario = Scenario::from_toml(&text).unwrap();
    let mut watch = Watch::default();
    let outcome = run_into(&scenario, &mut watch).unwrap();
    (watch, outcome)
}

/// Mbit/s that the upload's server has got.
fn mbps(outcome: &Outcome) -> f64 {
    outcome.totals[0][1].delivered_bytes as f64 * 8.0 / 19.5e6
}

/// Mbit/s, median RTT_F in ms, and what the firmware held in 95 % of TTIs.
fn measure(snr_db: f64, discipline: &str, rest: &str) -> (f64, f64, f64) {
    let (watch, outcome) = run(snr_db, discipline, rest);
    let settled = &watch.rtt_ms[watch.rtt_ms.len() / 4..];
    let (median, p95) = (Watch::quantile(settled, 0.5), Watch::quantile(settled, 0.95));
    let mbps = mbps(&outcome);
    // Nothing else is sent: what was not handed over nor dropped waits at the end.
    assert!(watch.handed + watch.dropped <= watch.sent + 1_000, "probes apart");
    println!(
        "{snr_db:>5} dB {discipline:<55} {mbps:6.2} Mbit/s, RTT_F {median:7.1} p95 {p95:7.1} ms, \
         held {:7.0} p95 {:7.0}, dropped {}",
        watch.held_at(0.5),
        watch.held_at(0.95),
        watch.dropped,
    );
    (mbps, median, watch.held_at(0.95))
}

/// Share of the plain queue's throughput that a discipline has at least, and what
/// its firmware holds at most in 95 % of TTIs, in bytes.
const DISCIPLINES: [(&str, f64, f64); 8] = [
    // What is above the firmware alone leaves it full.
    ("{ kind = \"codel\", target_ms = 5 }", 0.95, 450_000.0),
    ("{ kind = \"fq-codel\", target_ms = 5 }", 0.95, 450_000.0),
    ("{ kind = \"tsq\", flow_bytes = 262144 }", 0.95, 450_000.0),
    ("{ kind = \"qcut\", limit = { bytes = 5000 } }", 0.5, 12_000.0),
    ("{ kind = \"qcut\", limit = { bytes = 20000 } }", 0.9, 30_000.0),
    ("{ kind = \"qcut\", limit = { delay_ms = 20 } }", 0.8, 30_000.0),
    ("{ kind = \"round-trips\", limit = { delay_ms = 20 } }", 0.6, 60_000.0),
    ("{ kind = \"autorate\", start_bps = 4000000 }", 0.3, 60_000.0),
];

#[test]
fn gates_keep_the_firmware_short_and_the_rate_up() {
    for snr_db in [14.0, 2.0] {
        let (most, fifo_ms, held) = measure(snr_db, "{ kind = \"fifo\" }", "");
        assert!(held > 400_000.0 && fifo_ms > 500.0, "the firmware's buffer is full: {held}");
        for (discipline, share, most_held) in DISCIPLINES {
            let (mbps, rtt_ms, held) = measure(snr_db, discipline, "");
            assert!(mbps > share * most, "{discipline}: {mbps} of {most}");
            assert!(held <= most_held, "{discipline}: {held}");
            assert!(held > 100_000.0 || rtt_ms < fifo_ms / 4.0, "{discipline}: {rtt_ms}");
        }
        // Vegas keeps it short by itself, and leaves some of the rate.
        let vegas = "[phone_tcp]\ncontrol = { name = \"vegas\" }";
        let (mbps, _, held) = measure(snr_db, "{ kind = \"fifo\" }", vegas);
        assert!(mbps > 0.4 * most && held < 60_000.0, "{mbps} {held}");
    }
}
