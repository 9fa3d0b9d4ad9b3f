//! Several transfers.

use super::*;

/// Durations with the probability of the radio; the rest is another's.
fn judged(each: &[(i64, Option<f64>)], names_radio: bool) -> (Vec<Suspicion>, Option<Suspicion>) {
    let list = phone(&[(0, 50, 300)]);
    let features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    let suspects: Vec<Vec<Suspicion>> = each
        .iter()
        .map(|(_, radio)| {
            let Some(radio) = *radio else { return Vec::new() };
            let mut list = vec![
                Suspicion { suspect: Suspect::Radio, probability: radio },
                Suspicion { suspect: Suspect::Other, probability: 1.0 - radio },
            ];
            list.sort_by(|a, b| b.probability.total_cmp(&a.probability));
            list
        })
        .collect();
    let each: Vec<JudgedTransfer<'_>> = each
        .iter()
        .zip(&suspects)
        .map(|((ns, _), suspects)| {
            let first = suspects.first().copied();
            let named = first.filter(|one| names_radio && one.suspect == Suspect::Radio);
            JudgedTransfer { ns: *ns, features: Some(&features), suspects, named }
        })
        .collect();
    Model::judge_together(&each)
}

#[track_caller]
fn check(each: &[(i64, Option<f64>)], radio: f64, named: bool) {
    let (all, first) = judged(each, true);
    let sum: f64 = all.iter().map(|one| one.probability).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{all:?}");
    let found = all.iter().find(|one| one.suspect == Suspect::Radio).unwrap().probability;
    assert!((found - radio).abs() < 1e-9, "{found} {radio}");
    assert_eq!(first, named.then_some(all[0]));
}

/// The mean over their time. If they differ, what has most of it is more certain than its share.
#[test]
fn transfers_are_judged_together_by_their_time() {
    check(&[(5, Some(0.9))], 0.9, true);
    check(&[(5, Some(0.9)), (500, Some(0.9))], 0.9, true);
    let sharper = |share: f64, exponent: f64| {
        let [with, without] = [share, 1.0 - share].map(|one| one.powf(exponent));
        with / (with + without)
    };
    // Three quarters of the time, and nine tenths.
    check(&[(30, Some(0.9)), (10, Some(0.2))], sharper(0.725, 1.5), true);
    check(&[(90, Some(0.9)), (10, Some(0.2))], sharper(0.83, 1.2), true);
    // What names nothing is the share itself, which the limit is of.
    check(&[(10, Some(0.9)), (30, Some(0.2))], 0.375, false);
    // Its share is too small for a name, however certain it is that no other is larger.
    check(&[(60, Some(0.8)), (40, Some(0.2))], 0.56, false);
    // As it is printed, of evidence without time stamps: 70 %.
    check(&[(70, Some(0.81)), (30, Some(0.43))], sharper(0.696, 1.5), true);
    check(&[(70, Some(0.81)), (30, Some(0.42))], 0.693, false);
    // It is first, but in less than half of the time.
    check(&[(30, Some(0.99)), (31, Some(0.49))], (0.99 * 30.0 + 0.49 * 31.0) / 61.0, false);
}

#[test]
fn transfers_without_evidence_make_nothing_more_certain() {
    check(&[(90, Some(0.9)), (10, None)], 0.81, true);
    check(&[(999_999, Some(0.9)), (1, None)], 0.9 * 0.999_999, true);
    check(&[(10, Some(0.9)), (90, None)], 0.09, false);
    assert_eq!(judged(&[(5, None)], true), (Vec::new(), None));
    assert_eq!(judged(&[], true), (Vec::new(), None));
    // No transfer names it by itself.
    let (all, named) = judged(&[(5, Some(0.9))], false);
    assert_eq!((all[0].suspect, named), (Suspect::Radio, None));
}

/// Probabilities of all suspects, in descending order: those given, and equal ones of the rest.
fn suspects(given: &[(Suspect, f64)]) -> Vec<Suspicion> {
    let rest = 1.0 - given.iter().map(|(_, probability)| probability).sum::<f64>();
    let each = rest / (Suspect::ALL.len() - given.len()) as f64;
    let of = |suspect| given.iter().find(|(one, _)| *one == suspect).map_or(each, |(_, p)| *p);
    let mut all: Vec<Suspicion> = Suspect::ALL
        .into_iter()
        .map(|suspect| Suspicion { suspect, probability: of(suspect) })
        .collect();
    all.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    all
}

/// Both show the same packets: a second capture makes the phone's first suspect less probable where
/// they disagree, and never more.
#[test]
fn a_second_capture_makes_nothing_more_certain() {
    use Suspect::{FirstSlowStart, Radio, Wireline};
    // A line of 1 Mbit/s: geometric means of these are 93 % for the radio.
    let phone = suspects(&[(Radio, 0.489), (FirstSlowStart, 0.28), (Wireline, 0.111)]);
    let server = suspects(&[(Radio, 0.99), (Wireline, 0.003)]);
    assert_eq!(Model::pool(&phone, &server), phone);
    let sure = suspects(&[(Radio, 0.9), (Wireline, 0.05)]);
    assert_eq!(Model::pool(&sure, &sure), sure);
    let doubtful = suspects(&[(Radio, 0.5), (Wireline, 0.4)]);
    let pooled = Model::pool(&sure, &doubtful);
    assert!(pooled[0].suspect == Radio && (0.5..0.9).contains(&pooled[0].probability));
    let line = suspects(&[(Wireline, 0.97), (Radio, 0.01)]);
    let pooled = Model::pool(&doubtful, &line);
    assert!(pooled[0].suspect == Wireline && pooled[0].probability > 0.7);
}
