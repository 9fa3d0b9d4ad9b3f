//! What must hold.

use airmile_model::{Verdict, VerdictThresholds};

use crate::score::{Kind, Score, errors, percentile};

/// Percentiles are barred only over so many transfers (spec 10).
const MIN_BARRED: usize = 20;

const SCHEDULERS: [&str; 7] = ["comm", "pf_trim", "rr_trim", "tdbet_trim", "fdmt_trim", "pf", "rr"];
const TRIMMED: [&str; 5] = ["comm", "pf_trim", "rr_trim", "tdbet_trim", "fdmt_trim"];

/// Prints the verdicts' agreement and every bar; whether all are met.
/// The uplink's is ours: the phone knows its own buffer.
pub fn print(scores: &[Score], uplink_error: f64) -> bool {
    let mut all = true;
    let mut bar = |what: String, value: f64, limit: f64, at_most: bool, n: usize, barred: bool| {
        let holds = if at_most { value <= limit } else { value >= limit };
        let state = match (barred, holds) {
            (true, true) => "met",
            (true, false) => "MISSED",
            (false, _) => "not barred, too few",
        };
        let sign = if at_most { "<=" } else { ">=" };
        println!("{what:<52}{value:>9.2} {sign} {limit:<7.2} n={n:<5}{state}");
        all &= holds || !barred;
    };

    println!("Bars");
    for scheduler in SCHEDULERS {
        let own = errors(scores, Kind::Auto, |s| s.scheduler() == scheduler);
        let barred = own.len() >= MIN_BARRED;
        let name = format!("auto, {scheduler}: median %");
        bar(name, percentile(&own, 0.5), 0.5, true, own.len(), barred);
        let name = format!("auto, {scheduler}: 75th percentile %");
        bar(name, percentile(&own, 0.75), 1.5, true, own.len(), barred);
    }
    let own = errors(scores, Kind::Poll, |_| true);
    bar("poll: median %".into(), percentile(&own, 0.5), 3.0, true, own.len(), true);
    for scheduler in SCHEDULERS {
        let own = errors(scores, Kind::Poll, |s| s.scheduler() == scheduler);
        let name = format!("poll, {scheduler}: median %");
        bar(name, percentile(&own, 0.5), 5.0, true, own.len(), own.len() >= MIN_BARRED);
    }
    for scheduler in TRIMMED {
        let own = errors(scores, Kind::Grants, |s| s.scheduler() == scheduler);
        let name = format!("grants, {scheduler}: median %");
        bar(name, percentile(&own, 0.5), 3.0, true, own.len(), own.len() >= MIN_BARRED);
    }
    let points: Vec<f64> = scores
        .iter()
        .filter(|s| s.kind == Kind::Grants && s.upstream_limited())
        .filter_map(Score::error_points)
        .collect();
    let name = "grants, limited upstream: median points".to_owned();
    bar(name, percentile(&points, 0.5), 5.0, true, points.len(), true);
    for scheduler in SCHEDULERS {
        let own = errors(scores, Kind::Grants, |s| s.scheduler() == scheduler);
        let paper = errors(scores, Kind::Paper, |s| s.scheduler() == scheduler);
        let name = format!("grants against paper, {scheduler}: median %");
        bar(name, percentile(&own, 0.5), percentile(&paper, 0.5), true, own.len(), true);
    }
    let own = percentile(&errors(scores, Kind::Grants, |_| true), 0.5);
    let paper_errors = errors(scores, Kind::Paper, |_| true);
    let paper = percentile(&paper_errors, 0.5);
    bar("grants against paper: median %".into(), own, paper, true, paper_errors.len(), true);

    println!("\nVerdicts that agree with the truth (true demand of 75 to 90 % left out)");
    for kind in [Kind::Auto, Kind::Poll, Kind::Padding, Kind::Grants, Kind::Paper] {
        let (agree, n) = agreement(scores, kind);
        let (low, high) = wilson(agree, n);
        println!(
            "{:<10}{agree:>4} of {n:<4} {:>6.1} %   95 % interval {:.1} to {:.1} %",
            kind.name(),
            100.0 * agree as f64 / n as f64,
            100.0 * low,
            100.0 * high
        );
    }
    let (agree, n) = agreement(scores, Kind::Auto);
    let share = 100.0 * agree as f64 / n as f64;
    bar("auto: verdicts that agree %".into(), share, 95.0, false, n, true);
    if !uplink_error.is_nan() {
        bar("uplink by buffer samples: error %".into(), uplink_error, 1.0, true, 1, true);
    }
    println!("\n{}", if all { "all bars met" } else { "A BAR IS MISSED" });
    all
}

fn agreement(scores: &[Score], kind: Kind) -> (usize, usize) {
    let thresholds = VerdictThresholds::default();
    let judged: Vec<(Verdict, Verdict)> = scores
        .iter()
        .filter(|s| s.kind == kind && s.estimate_ms.is_some())
        .map(|s| (thresholds.judge(s.true_demand()), s.verdict))
        .filter(|(truth, _)| *truth != Verdict::Mixed)
        .collect();
    (judged.iter().filter(|(truth, ours)| truth == ours).count(), judged.len())
}

/// Wilson's score interval at 95 % (Wilson 1927, JASA 22).
fn wilson(hits: usize, n: usize) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    let (z, n) = (1.959_964_f64, n as f64);
    let p = hits as f64 / n;
    let centre = p + z * z / (2.0 * n);
    let spread = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    ((centre - spread) / scale, (centre + spread) / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_interval_of_a_known_case() {
        // 9 of 10: 0.596 to 0.982.
        let (low, high) = wilson(9, 10);
        assert!((low - 0.596).abs() < 0.001 && (high - 0.982).abs() < 0.001, "{low} {high}");
    }
}
