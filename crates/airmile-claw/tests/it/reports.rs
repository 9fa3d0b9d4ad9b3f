//! Compares the reports from a modem log with the rate that the phone achieved.

use std::fs;

use airmile::{Inputs, Progress, RadioOptions, radio};
use airmile_claw::live_cell::LiveCell;
use airmile_decode::diag::{Deframer, Event};
use airmile_model::Direction;

/// End of each frame of a log, and its time.
fn written(bytes: &[u8]) -> Vec<(usize, i64)> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut deframer = Deframer::new();
    // Frame by frame, except for the first two, which identify the container.
    for frame in bytes.split_inclusive(|b| *b == 0x7e) {
        deframer.push(frame);
        at += frame.len();
        while let Some(event) = deframer.poll() {
            if let Event::Log(packet) = event {
                out.push((at, packet.at.ns / 1_000));
            }
        }
    }
    out
}

/// CLAW's reports for a cell with a single phone: a download gets all free capacity.
#[test]
fn the_report_of_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = dir.path().join("idle-cell.toml");
    let text = "seed = 3\nduration_ms = 6000\n[cell]\nqueue_bytes = 3000000\n[[apps]]\n\
                name = \"file\"\nworkload = { kind = \"file\", bytes = 9000000 }\n";
    fs::write(&scenario, text).unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario(scenario.to_str().unwrap(), None, &run).unwrap();
    let bytes = fs::read(run.join("modem.mi2log")).unwrap();
    let (mut cell, mut reports) = (LiveCell::new(), Vec::new());
    assert_eq!(cell.look(50_000_000, false, true), None);
    let (mut from, mut due) = (0, 0);
    for (to, at) in written(&bytes) {
        if at >= due {
            due = at + 100_000;
            cell.push(&bytes[from..to]);
            from = to;
            reports.extend(cell.look(50_000_000, false, true));
        }
    }
    let inputs = Inputs { files: vec![run.join("modem.mi2log")], ..Inputs::default() };
    let whole = radio(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    let long = whole.bursts.iter().filter(|burst| burst.dir == Direction::Dl);
    let long = long.max_by_key(|burst| burst.n_tti()).unwrap();
    let got_bps = long.bytes as f64 * 8_000.0 / long.n_tti() as f64;
    let active = reports.iter().filter(|report| !report.idle);
    // A window is for the minimum RTT plus 16 ms for HARQ.
    let rate_bps = |w_claw_bytes: u32| f64::from(w_claw_bytes) * 8.0 / 0.066;
    let mut rates_bps: Vec<f64> = active.map(|report| rate_bps(report.w_claw_bytes)).collect();
    rates_bps.sort_by(f64::total_cmp);
    let median = rates_bps[rates_bps.len() / 2];
    println!("{} reports, median {median:.0} bit/s, achieved {got_bps:.0}", reports.len());
    assert!(rates_bps.len() >= 10);
    // Accuracy of the capacity: failed blocks and channel variation.
    assert!((0.7..1.4).contains(&(median / got_bps)), "{median} of {got_bps}");
    assert!(reports.iter().all(|report| (0.0..=1.0).contains(&report.load)));
    // The modem sends no more data.
    assert!(cell.look(50_000_000, true, true).is_some_and(|report| report.idle));
}
