//! The report's curves compared with the lab sender's own state.

use std::path::Path;

use airmile::{Inputs, Progress, RadioOptions, RangePoint, Report, report};

/// Columns of `senders.csv`.
const TIME: usize = 0;
const PLACE: usize = 1;
const REMOTE: usize = 3;
const FLIGHT: usize = 6;
const SRTT: usize = 9;

/// The server's state at a time: nanoseconds, and a column.
fn known(run: &Path, column: usize) -> Vec<(i64, f64)> {
    let text = std::fs::read_to_string(run.join("senders.csv")).unwrap();
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let of_server = rows.filter(|row| row[PLACE] == "server");
    of_server.filter_map(|row| Some((row[TIME].parse().ok()?, row[column].parse().ok()?))).collect()
}

/// The server's bytes in flight over all its connections.
fn known_flight(run: &Path) -> Vec<(i64, f64)> {
    let text = std::fs::read_to_string(run.join("senders.csv")).unwrap();
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let mut of_each = std::collections::HashMap::new();
    let of_server = rows.filter(|row| row[PLACE] == "server");
    let sums = of_server.map(|row| {
        let bytes: f64 = row[FLIGHT].parse().unwrap();
        of_each.insert(row[REMOTE].to_owned(), bytes);
        (row[TIME].parse().unwrap(), of_each.values().sum())
    });
    sums.collect()
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

/// Six connections through one queue: what each sent is known at different times.
#[test]
fn bytes_in_flight_are_the_sum_of_all_connections() {
    let dir = tempfile::tempdir().unwrap();
    let (path, run) = (dir.path().join("scenario.toml"), dir.path().join("run"));
    let text = "seed = 31\nduration_ms = 60_000\n[core.down.limit]\nrate_bps = 2_000_000\n\
                queue_bytes = 250_000\n[[apps]]\nname = \"page\"\nstart_ms = 500\nworkload = \
                { kind = \"web\", objects = 20, page_bytes = 1_500_000, depth = 3, parse_ms = 20 }\n";
    std::fs::write(&path, text).unwrap();
    let scenario = airmile_lab::load(path.to_str().unwrap()).unwrap();
    airmile_lab::leave(&scenario, &run, false).unwrap();
    let files = vec![run.join("page.har"), run.join("phone.pcapng")];
    let inputs = Inputs { files, ..Inputs::default() };
    let report = report(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    let flight = pairs(&report, &report.lanes.flight_bytes, &known_flight(&run));
    assert!(flight.len() > 100, "{}", flight.len());
    let most = flight.iter().map(|pair| pair.1).fold(0.0, f64::max);
    let drawn = flight.iter().map(|pair| pair.0).fold(0.0, f64::max);
    let mut errors: Vec<f64> = flight.iter().map(|(a, b)| (a - b).abs() / most).collect();
    errors.sort_by(f64::total_cmp);
    let middle = errors[errors.len() / 2];
    let with = correlation(&flight);
    println!("correlation {with:.2}, median error {middle:.3}, maximum {drawn} of {most}");
    assert!(with > 0.8 && middle < 0.15, "correlation {with:.2}, median error {middle:.2}");
    assert!((0.8..1.25).contains(&(drawn / most)), "maximum {drawn} of {most}");
}
