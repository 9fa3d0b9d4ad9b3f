use super::super::growth::{Growth, Start};
use super::*;

const MS: i64 = 1_000_000;

/// A transfer of 400 kB of duration `ms`, of which its sender's growth cost `lag_ms`,
/// with this throughput time.
fn sample(turn: usize, ms: i64, lag_ms: i64, late_mbps: f64, queued_ms: Option<i64>) -> Sample {
    let wobble = (turn as i64 * 7) % 5;
    let start = if lag_ms > 60 { Start::SlowStart } else { Start::Open };
    Sample {
        start_ns: turn as i64 * 10_000 * MS,
        duration_ns: (ms + wobble) * MS,
        bytes: 400_000,
        wait_ns: Some(90 * MS),
        queued_ns: queued_ms.map(|ms| (ms + wobble) * MS),
        pause_ns: (turn > 0).then_some(3_000 * MS),
        growth: Some(Growth {
            first_round_bytes: 14_600,
            late_bps: (late_mbps + wobble as f64 * 0.01) * 1e6,
            lag_ns: (lag_ms + wobble) * MS,
            unevenness: Some(0.2),
            start,
        }),
        rtt_ns: Some(80 * MS),
        link_bps: Some(14e6),
        others_load: Some(0.5),
        rsrp_dbm: Some(-94.0),
        is_timeless: false,
        turn,
    }
}

fn group(n: usize, of: impl Fn(usize) -> Sample) -> Vec<Sample> {
    (0..n).map(of).collect()
}

fn restarting(turn: usize) -> Sample {
    sample(turn, 600, 200, 12.0, Some(220))
}

fn open(turn: usize) -> Sample {
    sample(turn, 330, 10, 13.0, Some(230))
}

fn capped(turn: usize) -> Sample {
    sample(turn, 1_600, 0, 2.0, Some(300))
}

/// The groups' transfers alternate: 3 s from one to the next.
fn by_turns(groups: &[Vec<Sample>]) -> Vec<Vec<Sample>> {
    let later = |n: usize, one: &Sample| Sample {
        start_ns: one.start_ns + n as i64 * 3_000 * MS,
        ..one.clone()
    };
    let groups = groups.iter().enumerate();
    groups.map(|(n, group)| group.iter().map(|one| later(n, one)).collect()).collect()
}

fn check(groups: &[Vec<Sample>], outcome: ComparisonOutcome, about: &[usize]) -> Judgement {
    let judgement = judge(&by_turns(groups), 1);
    assert_eq!((judgement.outcome, &judgement.about[..]), (outcome, about), "{judgement:#?}");
    judgement
}

#[test]
fn verdicts() {
    let three = [group(12, restarting), group(12, restarting), group(12, open)];
    let judgement = check(&three, ComparisonOutcome::Restarts, &[0, 1]);
    assert_eq!(judgement.against, [2]);
    assert!(judgement.confidence > 0.95 && judgement.by_turns);
    check(&[group(12, capped), group(12, open)], ComparisonOutcome::Throttling, &[0]);
    check(&[group(12, open), group(12, open)], ComparisonOutcome::NoDifference, &[]);
    let judgement = check(
        &[group(12, restarting), group(12, restarting)],
        ComparisonOutcome::NoDifference,
        &[],
    );
    assert!(judgement.notes[0].contains("all of them restart"), "{:?}", judgement.notes);
}

#[test]
fn what_cannot_be_told() {
    let says = |groups: &[Vec<Sample>], words: &str| {
        let judgement = check(groups, ComparisonOutcome::CannotTell, &[]);
        assert!(judgement.notes.iter().any(|n| n.contains(words)), "{:?}", judgement.notes);
    };
    says(&[group(12, open)], "one group");
    says(&[group(12, open), group(3, open)], "too few");
    // A rate that is lower while the queue is as full is the radio's.
    let slow_radio = |turn| sample(turn, 1_600, 0, 2.0, Some(1_550));
    says(&[group(12, slow_radio), group(12, open)], "but not in slow-start restarts");
    // A cap, or the cell: another load.
    let elsewhere = |turn| Sample { others_load: Some(0.9), ..capped(turn) };
    says(&[group(12, elsewhere), group(12, open)], "cell load by other users");
    // Nobody saw the radio, one after the other.
    let unseen = |turn| Sample { queued_ns: None, ..capped(turn) };
    let later = |turn| {
        let open = Sample { queued_ns: None, ..open(turn) };
        Sample { start_ns: open.start_ns + 1_000_000 * MS, ..open }
    };
    says(&[group(12, unseen), group(12, later)], "by turns");
}

/// Groups from the same distribution: durations and rates vary by a factor, half of the
/// transfers restart, and there are no radio records. A verdict is an error.
#[test]
fn chance_alone_is_seldom_a_verdict() {
    use rand::{RngExt, SeedableRng};
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(11);
    let mut draw = |most: u64| random.random_range(0..most);
    let mut drawn = |restarts_of_ten: u64| {
        (0..10)
            .map(|turn| {
                let ms = 300 + draw(500) as i64;
                let lag_ms = if draw(10) < restarts_of_ten { 150 } else { 0 };
                sample(turn, ms, lag_ms, 2.0 + draw(100) as f64 / 10.0, None)
            })
            .collect::<Vec<_>>()
    };
    let mut verdicts = 0;
    for n in 0..40 {
        let restarts = if n % 2 == 0 { 5 } else { 1 };
        let outcome = judge(&by_turns(&[drawn(restarts), drawn(restarts)]), n).outcome;
        verdicts += usize::from(matches!(
            outcome,
            ComparisonOutcome::Restarts | ComparisonOutcome::Throttling
        ));
    }
    // Of 40, 5 are under the upper end of Wilson's interval around 5 %.
    assert!(verdicts <= 5, "{verdicts} of 40");
}

#[test]
fn a_full_downlink_is_no_throttling() {
    let full = |turn| sample(turn, 1_600, 0, 2.0, Some(1_580));
    let unseen = |turn| Sample { queued_ns: None, ..open(turn) };
    check(&[group(12, full), group(12, unseen)], ComparisonOutcome::CannotTell, &[]);
    // Nor is a rate of transfers that are each the first of their connection.
    let first = |turn| Sample { pause_ns: None, ..capped(turn) };
    check(&[group(12, first), group(12, open)], ComparisonOutcome::CannotTell, &[]);
}

#[test]
fn restarts_under_unlike_conditions_are_no_verdict_unless_by_turns() {
    let weak = |turn| Sample { rsrp_dbm: Some(-110.0), ..open(turn) };
    check(&[group(12, restarting), group(12, weak)], ComparisonOutcome::Restarts, &[0]);
    let later = |turn| {
        let weak = weak(turn);
        Sample { start_ns: weak.start_ns + 1_000_000 * MS, ..weak }
    };
    check(&[group(12, restarting), group(12, later)], ComparisonOutcome::CannotTell, &[]);
    // Logs without a time of day were never measured alternately.
    let timeless = |turn| Sample { is_timeless: true, ..weak(turn) };
    check(&[group(12, restarting), group(12, timeless)], ComparisonOutcome::CannotTell, &[]);
}

/// Short runs, one after the other, are no turns, although their n-th transfers begin within a
/// minute; nor are runs at the same time.
#[test]
fn turns_alternate_in_time() {
    let of = |later_ns: i64| -> Vec<Vec<Sample>> {
        let later = |turn| {
            let one = open(turn);
            Sample { start_ns: one.start_ns + later_ns, ..one }
        };
        vec![group(4, open), group(4, later)]
    };
    assert!(is_by_turns(&of(3_000 * MS)));
    assert!(!is_by_turns(&of(45_000 * MS)));
    assert!(!is_by_turns(&of(0)));
    assert!(!is_by_turns(&of(100 * MS)));
}
