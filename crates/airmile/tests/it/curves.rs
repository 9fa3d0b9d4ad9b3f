//! The report's curves compared with the lab sender's own state.

use std::path::Path;

use airmile::{Inputs, Progress, RadioOptions, RangePoint, Report, report};

/// Columns of `senders.csv`.
const TIME: usize = 0;
const PLACE: usize = 1;
const FLIGHT: usize = 6;
const SRTT: usize = 9;

/// The server's state at a time: nanoseconds, and a column.
fn known(run: &Path, column: usize) -> Vec<(i64, f64)> {
    let text = std::fs::read_to_string(run.join("senders.csv")).unwrap();
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let of_server = rows.filter(|row| row[PLACE] == "server");
    of_server.filter_map(|row| Some((row[TIME].parse().ok()?, row[column].parse().ok()?))).collect()
}

/// Pairs of the curve's value, at most 100 ms before a known time, and the known value.
fn pairs(report: &Report, points: &[RangePoint], known: &[(i64, f64)]) -> Vec<(f64, f64)> {
    let first = &report.diagnosis.transfers[0].finding;
    let origin_ns = first.start_us.unwrap() * 1_000 - first.start_tti.0 * 1_000_000;
    let each = known.iter().filter_map(|(at_ns, value)| {
        let tti = (at_ns - origin_ns).div_euclid(1_000_000);
        let after = points.partition_point(|point| point.tti <= tti);
        let point = points.get(after.checked_sub(1)?)?;
        (tti - point.tti <= 100).then_some((f64::from(point.most), *value))
    });
    each.collect()
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|p| of(p.0 - x, p.1 - y)).sum::<f64>();
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

#[test]
fn bytes_in_flight_and_round_trips_at_the_phone_are_the_senders() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("weak-signal", None, &run).unwrap();
    let inputs = Inputs { files: vec![run.join("phone.pcapng")], ..Inputs::default() };
    let report = report(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    let flight = pairs(&report, &report.lanes.flight_bytes, &known(&run, FLIGHT));
    assert!(flight.len() > 100, "{}", flight.len());
    let most = flight.iter().map(|pair| pair.1).fold(0.0, f64::max);
    let mut errors: Vec<f64> = flight.iter().map(|(a, b)| (a - b).abs() / most).collect();
    errors.sort_by(f64::total_cmp);
    let middle = errors[errors.len() / 2];
    let with = correlation(&flight);
    assert!(with > 0.8 && middle < 0.15, "correlation {with:.2}, median error {middle:.2}");
    let rtts = pairs(&report, &report.lanes.rtt_us, &known(&run, SRTT));
    let mut ratios: Vec<f64> = rtts.iter().map(|(us, ns)| us * 1e3 / ns).collect();
    ratios.sort_by(f64::total_cmp);
    let middle = ratios[ratios.len() / 2];
    assert!((0.8..1.25).contains(&middle), "round trips {middle:.2} of the sender's");
}
