//! Several transfers.

use super::*;

/// Several transfers: the mean over their time. If they differ, what has most of it is more certain than its
/// share.
#[test]
fn transfers_are_judged_together_by_their_time() {
    let list = phone(&[(0, 50, 300)]);
    let features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    let of = |p: &[(Suspect, f64)]| -> Vec<Suspicion> {
        p.iter()
            .map(|(suspect, probability)| Suspicion {
                suspect: *suspect,
                probability: *probability,
            })
            .collect()
    };
    let radio = of(&[(Suspect::Radio, 0.9), (Suspect::Other, 0.1)]);
    let other = of(&[(Suspect::Other, 0.8), (Suspect::Radio, 0.2)]);
    let one = |ns, suspects: &'static [Suspicion]| {
        let first = suspects.first().copied();
        let named = first.filter(|first| first.suspect == Suspect::Radio);
        JudgedTransfer { ns, features: Some(&features), suspects, named }
    };
    let (radio, other): (&'static [Suspicion], &'static [Suspicion]) = (radio.leak(), other.leak());
    let check = |each: &[JudgedTransfer<'_>], expected: f64, named: bool| {
        let (all, first) = Model::judge_together(each);
        let sum: f64 = all.iter().map(|one| one.probability).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{all:?}");
        assert_eq!(all[0].suspect, if expected > 0.0 { Suspect::Radio } else { Suspect::Other });
        assert!(expected == 0.0 || (all[0].probability - expected).abs() < 1e-9, "{all:?}");
        assert_eq!(first, named.then_some(all[0]));
    };
    check(&[one(5, radio)], 0.9, true);
    check(&[one(5, radio), one(500, radio)], 0.9, true);
    // Three quarters of the time: 0.9 * 0.75 + 0.2 * 0.25.
    let share: f64 = 0.725;
    let sharper = share.powf(1.5) / (share.powf(1.5) + (1.0 - share).powf(1.5));
    check(&[one(30, radio), one(10, other)], sharper, true);
    check(&[one(10, radio), one(30, other)], 0.0, false);
    // Nothing is known of the longest.
    check(&[one(10, radio), one(90, &[])], 0.0, false);
    // No transfer names it by itself.
    check(&[JudgedTransfer { named: None, ..one(5, radio) }], 0.9, false);
    assert_eq!(Model::judge_together(&[one(5, &[])]), (Vec::new(), None));
}
