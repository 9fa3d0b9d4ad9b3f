//! The thresholds (bars) of the suite.

use std::collections::BTreeSet;

use airmile_model::{Verdict, VerdictThresholds};

use crate::emulated;
use crate::score::{Kind, Score, errors, percentile};

/// Minimum number of transfers for a threshold on percentiles.
const MIN_BARRED: usize = 20;

const SCHEDULERS: [&str; 7] = ["comm", "pf_trim", "rr_trim", "tdbet_trim", "fdmt_trim", "pf", "rr"];
const TRIMMED: [&str; 5] = ["comm", "pf_trim", "rr_trim", "tdbet_trim", "fdmt_trim"];

/// Prints thresholds as they are checked.
struct Bars {
    all_met: bool,
}

impl Bars {
    fn new() -> Self {
        println!("Bars");
        Self { all_met: true }
    }

    /// Checks that a value is at most `limit`.
    fn at_most(&mut self, what: &str, value: f64, limit: f64, n: usize) {
        self.bar(what, value, "<=", limit, n, value <= limit, true);
    }

    /// Checks that a percentile is at most `limit`, if there are enough transfers.
    fn percentile(&mut self, what: &str, errors: &[f64], p: f64, limit: f64) {
        let value = percentile(errors, p);
        let barred = errors.len() >= MIN_BARRED;
        self.bar(what, value, "<=", limit, errors.len(), value <= limit, barred);
    }

    /// Checks that a value is at least `limit`.
    fn at_least(&mut self, what: &str, value: f64, limit: f64, n: usize) {
        self.bar(what, value, ">=", limit, n, value >= limit, true);
    }

    #[allow(clippy::too_many_arguments, reason = "a line of the table")]
    fn bar(
        &mut self,
        what: &str,
        value: f64,
        sign: &str,
        limit: f64,
        n: usize,
        holds: bool,
        barred: bool,
    ) {
        let state = match (barred, holds) {
            (true, true) => "met",
            (true, false) => "MISSED",
            (false, _) => "not barred, too few",
        };
        println!("{what:<52}{value:>9.2} {sign} {limit:<7.2} n={n:<5}{state}");
        self.all_met &= holds || !barred;
    }

    /// Checks the median and upper quartile of `auto`.
    fn auto(&mut self, of: &str, errors: &[f64]) {
        self.percentile(&format!("auto, {of}: median %"), errors, 0.5, 0.5);
        self.percentile(&format!("auto, {of}: 75th percentile %"), errors, 0.75, 1.5);
    }

    /// Prints the agreement of all kinds with the true verdicts, and checks that of `auto`.
    fn verdicts(&mut self, scores: &[Score]) {
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
        self.at_least("auto: verdicts that agree %", share, 95.0, n);
    }
}

/// Thresholds of the simulated cells; returns whether all are met. The uplink's is our own:
/// the phone knows its own buffer.
pub fn print_simulated(scores: &[Score], uplink_error: f64) -> bool {
    let mut bars = Bars::new();
    let of = |kind, scheduler| errors(scores, kind, |s| s.scheduler() == scheduler);
    for scheduler in SCHEDULERS {
        bars.auto(scheduler, &of(Kind::Auto, scheduler));
    }
    let poll = errors(scores, Kind::Poll, |_| true);
    bars.at_most("poll: median %", percentile(&poll, 0.5), 3.0, poll.len());
    for scheduler in SCHEDULERS {
        let name = format!("poll, {scheduler}: median %");
        bars.percentile(&name, &of(Kind::Poll, scheduler), 0.5, 5.0);
    }
    for scheduler in TRIMMED {
        let name = format!("grants, {scheduler}: median %");
        bars.percentile(&name, &of(Kind::Grants, scheduler), 0.5, 3.0);
    }
    let points: Vec<f64> = scores
        .iter()
        .filter(|s| s.kind == Kind::Grants && s.upstream_limited())
        .filter_map(Score::error_points)
        .collect();
    let median = percentile(&points, 0.5);
    bars.at_most("grants, limited upstream: median points", median, 5.0, points.len());
    for scheduler in SCHEDULERS {
        let own = of(Kind::Grants, scheduler);
        let paper = percentile(&of(Kind::Paper, scheduler), 0.5);
        let name = format!("grants against paper, {scheduler}: median %");
        bars.at_most(&name, percentile(&own, 0.5), paper, own.len());
    }
    let own = errors(scores, Kind::Grants, |_| true);
    let paper = percentile(&errors(scores, Kind::Paper, |_| true), 0.5);
    bars.at_most("grants against paper: median %", percentile(&own, 0.5), paper, own.len());
    bars.verdicts(scores);
    if !uplink_error.is_nan() {
        bars.at_most("uplink by buffer samples: error %", uplink_error, 1.0, 1);
    }
    bars.all_met
}

/// Thresholds of the emulated cells; returns whether all are met.
pub fn print_emulated(scores: &emulated::Scores) -> bool {
    let mut bars = Bars::new();
    let downlink = &scores.downlink;
    bars.auto("all", &errors(downlink, Kind::Auto, |_| true));
    // By workload, scheduler, load and poll setting, as an average could hide each of them.
    for part in 0..4 {
        let names: BTreeSet<&str> = downlink.iter().map(|s| s.part(part)).collect();
        for name in names {
            bars.auto(name, &errors(downlink, Kind::Auto, |s| s.part(part) == name));
        }
    }
    bars.verdicts(downlink);
    let uploads: Vec<f64> = scores.uploads.iter().map(|upload| upload.by_samples).collect();
    bars.percentile("uploads by buffer samples: median %", &uploads, 0.5, 1.0);
    bars.all_met
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
pub fn wilson(hits: usize, n: usize) -> (f64, f64) {
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
