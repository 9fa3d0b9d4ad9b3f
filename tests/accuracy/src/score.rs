//! Errors and their tables.

use std::collections::BTreeMap;

use airmile_model::{Verdict, VerdictThresholds};
use airmile_radio::burst::EvidenceChoice;

/// Kind of evidence for an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// All evidence in the log.
    Auto,
    /// Poll bits and pauses.
    Poll,
    /// Padding.
    Padding,
    /// Allocations alone.
    Grants,
    /// BurstTracker's literal rule.
    Paper,
    /// The baseline: scheduled TTIs.
    Active,
}

impl Kind {
    /// All, in the tables' order.
    pub const ALL: [Self; 6] =
        [Self::Auto, Self::Poll, Self::Padding, Self::Grants, Self::Paper, Self::Active];

    /// The column's heading.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Poll => "poll",
            Self::Padding => "padding",
            Self::Grants => "grants",
            Self::Paper => "paper",
            Self::Active => "active",
        }
    }

    /// The tracker's option.
    pub const fn evidence(self) -> EvidenceChoice {
        match self {
            Self::Auto | Self::Active => EvidenceChoice::Auto,
            Self::Poll => EvidenceChoice::Poll,
            Self::Padding => EvidenceChoice::Padding,
            Self::Grants => EvidenceChoice::Grants,
            Self::Paper => EvidenceChoice::Paper,
        }
    }
}

/// One transfer with one kind of evidence.
#[derive(Debug, Clone)]
pub struct Score {
    /// The run's name: `WORKLOAD_SCHEDULER_TAG`.
    pub run: String,
    /// Name of the transfer.
    pub transfer: String,
    /// Kind of evidence.
    pub kind: Kind,
    /// `None`: the run lacks this evidence.
    pub estimate_ms: Option<f64>,
    /// True throughput time.
    pub truth_ms: f64,
    /// The transfer's duration.
    pub duration_ms: f64,
    /// The verdict given.
    pub verdict: Verdict,
    /// Its stated confidence.
    pub confidence: f64,
}

impl Score {
    /// Error in percent: relative to the truth, or points of the duration
    /// where the true link demand is under 10 % (see docs/glossary.md).
    pub fn error_percent(&self) -> Option<f64> {
        let off = (self.estimate_ms? - self.truth_ms).abs();
        let of =
            if self.truth_ms < 0.1 * self.duration_ms { self.duration_ms } else { self.truth_ms };
        Some(100.0 * off / of)
    }

    /// Error in percentage points of the duration.
    pub fn error_points(&self) -> Option<f64> {
        Some(100.0 * (self.estimate_ms? - self.truth_ms).abs() / self.duration_ms)
    }

    /// True link demand.
    pub fn true_demand(&self) -> f64 {
        self.truth_ms / self.duration_ms
    }

    /// The scheduler, from the run's name.
    pub fn scheduler(&self) -> &'static str {
        const TRIMMED: [&str; 4] = ["pf_trim", "rr_trim", "tdbet_trim", "fdmt_trim"];
        let name = self.run.as_str();
        if let Some(trimmed) = TRIMMED.into_iter().find(|s| name.contains(s)) {
            return trimmed;
        }
        match name {
            _ if name.starts_with("case") || name.contains("_comm") => "comm",
            _ if name.contains("_pf") => "pf",
            _ if name.contains("_rr") => "rr",
            _ => "other",
        }
    }

    /// The workload, from the run's name; runs with a slow wire are separate.
    pub fn workload(&self) -> String {
        let workload = self.run.split('_').next().unwrap_or_default();
        let wired = self.run.contains("_w8") || self.run.contains("wired8");
        if wired { format!("{workload}+w8") } else { workload.to_owned() }
    }

    /// A part of an emulated run's name: `WORKLOAD_SCHEDULER_USERS_POLL_SEED`.
    pub fn part(&self, n: usize) -> &str {
        self.run.split('_').nth(n).unwrap_or_default()
    }

    /// Whether the bottleneck was upstream of the cell.
    pub fn upstream_limited(&self) -> bool {
        self.run.contains("_w8") || self.run.contains("wired8") || self.run.starts_with("srvlimit")
    }
}

/// The interpolated quantile `p` of the values.
pub fn percentile(values: &[f64], p: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = p * last as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// Errors in percent of the scores accepted by `keep`.
pub fn errors(scores: &[Score], kind: Kind, keep: impl Fn(&Score) -> bool) -> Vec<f64> {
    scores.iter().filter(|s| s.kind == kind && keep(s)).filter_map(Score::error_percent).collect()
}

/// The error tables of the simulated cells: per scheduler, per workload, all.
pub fn print_tables(scores: &[Score]) {
    println!("Error of throughput time in %, median / 75th percentile");
    println!("(paper: BurstTracker's literal rule; active: scheduled TTIs, its baseline;");
    println!(" the paper reports a median of 7 % for its rule and about 60 % for the baseline)\n");
    print_by("scheduler", scores, &|s| s.scheduler().to_owned());
    print_by("workload", scores, &Score::workload);
    println!("Error in percentage points of the duration, median / 75th percentile\n");
    print_points("limited", scores, &|s| {
        if s.upstream_limited() { "upstream".into() } else { "radio".into() }
    });
}

/// Errors in percent by group.
pub fn print_by(title: &str, scores: &[Score], key: &dyn Fn(&Score) -> String) {
    print_grouped(title, scores, key, &Score::error_percent);
}

/// Prints the two-layer runs separately: a block of two layers has no padding of its own
/// there, so only poll bits are available.
pub fn print_two_layers(scores: &[Score]) {
    let of = |kind| errors(scores, kind, |s| s.run.contains("_mimo"));
    let (auto, poll) = (of(Kind::Auto), of(Kind::Poll));
    println!("Two layers, padding not known: error in %, median / 75th percentile");
    println!("(a prototype with a plain pause rule had a median of 6 to 9 % there)");
    for (name, errors) in [("auto", auto), ("poll", poll)] {
        let (median, upper) = (percentile(&errors, 0.5), percentile(&errors, 0.75));
        println!("  {name:<10}{median:>6.2} / {upper:.2}   n={}", errors.len());
    }
    println!();
}

/// Prints the stated confidence of verdicts against the share of right ones, and the number
/// that named the opposite of the truth.
pub fn print_reliability(title: &str, scores: &[Score]) {
    const BANDS: [(f64, f64); 4] = [(0.0, 0.6), (0.6, 0.75), (0.75, 0.9), (0.9, 1.01)];
    println!("Confidence of verdicts, {title} (n: mean stated / right in %; not checked)");
    let thresholds = VerdictThresholds::default();
    for kind in [Kind::Auto, Kind::Poll, Kind::Padding, Kind::Grants] {
        let named: Vec<(&Score, Verdict)> = scores
            .iter()
            .filter(|s| s.kind == kind && s.verdict != Verdict::Unknown)
            .map(|s| (s, thresholds.judge(s.true_demand())))
            .collect();
        print!("  {:<10}", kind.name());
        for (from, to) in BANDS {
            let band: Vec<_> =
                named.iter().filter(|(s, _)| (from..to).contains(&s.confidence)).collect();
            let right = band.iter().filter(|(s, truth)| s.verdict == *truth).count();
            let stated: f64 = band.iter().map(|(s, _)| s.confidence).sum();
            let percent = |sum: f64| 100.0 * sum / band.len().max(1) as f64;
            print!("{:>5}: {:>3.0} / {:>3.0}", band.len(), percent(stated), percent(right as f64));
        }
        let opposite = named.iter().filter(|(s, truth)| {
            matches!(
                (s.verdict, truth),
                (Verdict::Radio, Verdict::NotRadio) | (Verdict::NotRadio, Verdict::Radio)
            )
        });
        println!("   opposite {} of {}", opposite.count(), named.len());
    }
    println!();
}

/// Prints the transfers with the largest errors under `auto`.
pub fn print_worst(scores: &[Score], n: usize) {
    let mut worst: Vec<(f64, &Score)> = scores
        .iter()
        .filter(|s| s.kind == Kind::Auto)
        .filter_map(|s| Some((s.error_percent()?, s)))
        .collect();
    worst.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("Worst under auto: error in %, estimate and truth in ms");
    for (error, s) in worst.into_iter().take(n) {
        let estimate = s.estimate_ms.unwrap_or(f64::NAN);
        println!("{error:>8.2}{estimate:>8.0}{:>8.0}  {} {}", s.truth_ms, s.run, s.transfer);
    }
}

fn print_points(title: &str, scores: &[Score], key: &dyn Fn(&Score) -> String) {
    print_grouped(title, scores, key, &Score::error_points);
}

fn print_grouped(
    title: &str,
    scores: &[Score],
    key: &dyn Fn(&Score) -> String,
    error: &dyn Fn(&Score) -> Option<f64>,
) {
    let mut groups: BTreeMap<String, BTreeMap<Kind, Vec<f64>>> = BTreeMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for score in scores {
        for name in [key(score), "~all".into()] {
            *counts.entry(name.clone()).or_default() += usize::from(score.kind == Kind::Auto);
            let group = groups.entry(name).or_default().entry(score.kind).or_default();
            group.extend(error(score));
        }
    }
    let kinds = Kind::ALL.into_iter().filter(|kind| scores.iter().any(|s| s.kind == *kind));
    print!("{title:<21}{:>5}", "n");
    for kind in kinds.clone() {
        print!("{:>16}", kind.name());
    }
    println!();
    for (name, group) in &groups {
        let n = counts.get(name).copied().unwrap_or(0);
        print!("{:<21}{n:>5}", name.trim_start_matches('~'));
        for kind in kinds.clone() {
            match group.get(&kind).filter(|errors| !errors.is_empty()) {
                Some(errors) => {
                    let text =
                        format!("{:.2} / {:.2}", percentile(errors, 0.5), percentile(errors, 0.75));
                    print!("{text:>16}");
                }
                None => print!("{:>16}", "-"),
            }
        }
        println!();
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(estimate_ms: f64, truth_ms: f64) -> Score {
        Score {
            run: "file_pf_trim_w8".into(),
            transfer: "1".into(),
            kind: Kind::Auto,
            estimate_ms: Some(estimate_ms),
            truth_ms,
            duration_ms: 1_000.0,
            verdict: Verdict::Unknown,
            confidence: 0.0,
        }
    }

    #[test]
    fn a_small_demand_is_scored_in_points() {
        assert_eq!(score(550.0, 500.0).error_percent(), Some(10.0));
        assert_eq!(score(100.0, 50.0).error_percent(), Some(5.0));
    }

    #[test]
    fn names_tell_scheduler_and_workload() {
        let score = score(0.0, 1.0);
        assert_eq!((score.scheduler(), score.workload().as_str()), ("pf_trim", "file+w8"));
        assert!(score.upstream_limited());
    }

    #[test]
    fn percentiles_interpolate() {
        assert_eq!(percentile(&[3.0, 1.0], 0.5), 2.0);
        assert!(percentile(&[], 0.5).is_nan());
    }
}
