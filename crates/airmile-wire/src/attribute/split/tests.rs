use super::*;

#[test]
fn a_transfer_within_the_initial_window_has_no_slow_start() {
    let mut shares = Shares::default();
    shares.add(Cause::FirstSlowStart, Reason::FirstSlowStart, 0, 70);
    shares.add(Cause::Setup, Reason::Request, 70, 100);
    let check = |bytes, expected: &[(Cause, i64)]| {
        let got = shares.clone().of_bytes(bytes);
        assert_eq!(got.by_cause.into_iter().collect::<Vec<_>>(), expected);
        assert_eq!(got.by_reason.values().sum::<i64>(), 100);
    };
    check(Some(14_600), &[(Cause::Setup, 30), (Cause::Unknown, 70)]);
    check(Some(14_601), &[(Cause::FirstSlowStart, 70), (Cause::Setup, 30)]);
    check(None, &[(Cause::FirstSlowStart, 70), (Cause::Setup, 30)]);
}

#[test]
fn the_longest_unknown_span_may_have_been_slow_start() {
    let check = |unknown_ns: i64, expected| {
        let mut shares = Shares::default();
        shares.add(Cause::FirstSlowStart, Reason::FirstSlowStart, 0, 70);
        shares.add(Cause::Unknown, Reason::Unknown, 70, 70 + unknown_ns);
        let longest = shares.of_bytes(Some(1_000)).longest;
        assert_eq!(longest.into_iter().collect::<Vec<_>>(), [(Cause::Unknown, expected)]);
    };
    check(30, (0, 70));
    check(90, (70, 160));
}
