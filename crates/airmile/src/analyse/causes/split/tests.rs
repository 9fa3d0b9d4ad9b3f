use airmile_model::{Evidence, Verdict};

use super::*;

impl Split {
    /// Parts in ms; 1 MB at 8 Mbit/s, and a round trip of 100 ms.
    pub(in super::super) fn example(parts: &[(Cause, i64)]) -> Self {
        let by_cause: BTreeMap<Cause, i64> =
            parts.iter().map(|(cause, ms)| (*cause, ms * 1_000_000)).collect();
        Self {
            errors: by_cause.keys().map(|cause| (*cause, (20e6, 30e6))).collect(),
            total_ns: by_cause.values().sum(),
            by_cause,
            shares: Shares::default(),
            others: Some(0.5),
            efficiency: Some(0.25),
            start_ns: 0,
            link_bps: Some(8e6),
            bytes: Some(100_000),
            fastest_bps: None,
            windows: Vec::new(),
            round_trip_ns: 100_000_000,
            empty_round_trip_ns: 100_000_000,
        }
    }
}

impl Split {
    /// The same, with the longest span of a cause.
    pub(in super::super) fn longest_at(mut self, cause: Cause, ms: i64) -> Self {
        self.shares.longest.insert(cause, (0, ms * 1_000_000));
        self
    }

    pub(in super::super) fn with(mut self, reason: Reason, ms: i64) -> Self {
        self.shares.by_reason.insert(reason, ms * 1_000_000);
        self
    }
}

pub(in super::super::super) fn example_finding() -> TransferFinding {
    TransferFinding {
        id: "one".into(),
        dir: Direction::Dl,
        start_us: Some(0),
        end_us: Some(1_000_000),
        start_tti: TtiIndex(0),
        end_tti: TtiIndex(1_000),
        duration_ms: 1_000.0,
        bytes: Some(100_000),
        throughput_time_ms: Some(500.0),
        sched_wait_ms: None,
        limited_ms: Some(500.0),
        granted_ms: None,
        active_time_ms: None,
        unknown_ms: 0.0,
        link_demand: Some(0.5),
        link_throughput_bps: None,
        burst_throughput_bps: None,
        evidence: Some(Evidence::Fused),
        verdict: Verdict::NotRadio,
        confidence: 0.9,
        overlapped: false,
        notes: Vec::new(),
    }
}

/// Parts in ms; the cause, and the duration without it with its minimum and maximum.
#[track_caller]
fn check(parts: &[(Cause, i64)], cause: Cause, expected_ms: (f64, f64, f64)) {
    let (split, finding, wire) = (Split::example(parts), example_finding(), Wire::example());
    let seen = Context { split: &split, finding: &finding, wire: &wire };
    let without = split.without(cause, &seen);
    let got = (without.ms, without.low_ms, without.high_ms);
    assert!(
        (got.0 - expected_ms.0).abs() < 0.5
            && (got.1 - expected_ms.1).abs() < 0.5
            && (got.2 - expected_ms.2).abs() < 0.5,
        "{got:?}"
    );
}

#[test]
fn without_a_cause_the_link_still_takes_its_time() {
    use Cause::{RadioContention, RadioSignal, SenderLimited, Setup, Wireline};
    // 100 kB at 8 Mbit/s take 100 ms, the setup remains.
    check(&[(SenderLimited, 900), (Setup, 100)], SenderLimited, (200.0, 110.0, 295.0));
    check(&[(SenderLimited, 300), (Wireline, 700)], SenderLimited, (700.0, 600.0, 790.0));
    // Alone in the cell the link is twice as fast.
    check(&[(RadioContention, 500), (RadioSignal, 500)], RadioContention, (500.0, 400.0, 590.0));
    // At the best MCS a quarter of the own time remains.
    check(&[(RadioSignal, 800), (Setup, 200)], RadioSignal, (400.0, 307.5, 485.0));
}

#[test]
fn what_is_unknown_may_be_any_cause() {
    let split = Split::example(&[(Cause::Wireline, 500), (Cause::Unknown, 500)]);
    assert_eq!(split.share_bounds(Cause::Wireline), (0.48, 1.0));
    let lead = |parts: &[(Cause, i64)]| Split::example(parts).leading(|_| true);
    assert_eq!(lead(&[(Cause::Wireline, 500), (Cause::Unknown, 501)]), None);
    assert_eq!(
        lead(&[(Cause::Wireline, 500), (Cause::Setup, 500), (Cause::Unknown, 1)]),
        Some(Cause::Wireline)
    );
}
