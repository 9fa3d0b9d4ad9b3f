use serde_json::json;

use super::*;

fn schema() -> Value {
    let of =
        |name: &str| airmile::schemas().into_iter().find(|(known, _)| *known == name).unwrap().1;
    of("diagnose")
}

fn document() -> Value {
    json!({
        "session": {"verdict": "radio", "confidence": 0.8, "shares": {}},
        "transfers": [
            {"id": "a", "verdict": "radio", "link_demand": 0.95, "bytes": 5, "overlapped": true,
             "shares": {"radio": 950.0, "not_radio": 50.0}},
            {"id": "b", "name": "https://b/", "verdict": "not_radio", "link_demand": null,
             "shares": {"radio_signal": 50.0, "radio_contention": 150.0, "sender_limited": 300.0}},
        ],
        "pages": [{"id": "page-1", "url": "https://p/", "load_ms": 2000.0,
                   "shares": {"server": 800.0, "radio": 1200.0}}],
    })
}

fn held(expression: &str) -> Vec<Held> {
    let budget = Budget::parse(expression).unwrap();
    budget.check(&schema()).unwrap();
    budget.judge(&document())
}

fn exceeded(expression: &str) -> Vec<String> {
    with_state(expression, BudgetState::Exceeded)
}

fn with_state(expression: &str, state: BudgetState) -> Vec<String> {
    held(expression).into_iter().filter(|one| one.state == state).map(|one| one.id).collect()
}

#[test]
fn an_absent_value_cannot_be_evaluated_unless_the_rest_decides() {
    let not_evaluable = |text: &str| with_state(text, BudgetState::NotEvaluable);
    // Of `b`, the link demand is absent; `a` is within this budget.
    assert_eq!(not_evaluable("link_demand < 0.9"), ["b"]);
    assert_eq!(exceeded("link_demand < 0.9"), [""; 0]);
    assert_eq!(not_evaluable("link_demand != 0.9"), ["b"]);
    // "and" with a false comparison and "or" with a true one do not depend on it.
    assert_eq!(not_evaluable("verdict == radio and link_demand < 0.9"), [""; 0]);
    assert_eq!(not_evaluable("verdict == not_radio and link_demand < 0.9"), ["b"]);
    assert_eq!(exceeded("verdict == not_radio or link_demand < 0.9"), ["b"]);
    assert_eq!(not_evaluable("verdict == not_radio or link_demand < 0.9"), [""; 0]);
    assert_eq!(not_evaluable("verdict == radio or link_demand < 0.9"), ["b"]);
    // A cause that did not occur has no time; one that is not separated from others is absent.
    assert_eq!(not_evaluable("shares.wireline > 0.1"), ["a"]);
    assert_eq!(not_evaluable("page.shares.dns > 0.1"), [""; 0]);
    assert_eq!(not_evaluable("page.first_paint_ms > 100"), ["page-1"]);
    assert_eq!(held("link_demand < 0.9")[1].unknown_text(), "link_demand is absent");
}

#[test]
fn without_pages_a_page_s_budget_cannot_be_evaluated() {
    let document = json!({"session": {"verdict": "radio"}, "transfers": [], "pages": []});
    for text in ["page.shares.server > 0.3", "link_demand < 0.5"] {
        let held = Budget::parse(text).unwrap().judge(&document);
        assert_eq!(held.len(), 1, "{text}");
        assert_eq!(held[0].state, BudgetState::NotEvaluable, "{text}");
    }
    let budget = Budget::parse("page.load_ms > 3000").unwrap();
    let judged = [(&budget, budget.judge(&document))];
    let junit = Budget::junit(&judged, &[]);
    assert!(junit.contains("tests=\"1\" failures=\"0\" errors=\"1\""), "{junit}");
    assert!(junit.contains("<error message=\"cannot be evaluated: page.load_ms is absent\"/>"));
    assert_eq!(
        Budget::github(&judged, &[]),
        ["::error title=cannot be evaluated%3A session::page.load_ms > 3000: page.load_ms is \
          absent"]
    );
}

#[test]
fn fields_of_transfers_pages_and_session() {
    assert_eq!(exceeded("link_demand >= 0.9"), ["a"]);
    assert_eq!(exceeded("link_demand<0.9"), [""; 0]);
    assert_eq!(exceeded("verdict == not_radio"), ["b"]);
    assert_eq!(exceeded("verdict != radio or link_demand > 0.94"), ["a", "b"]);
    assert_eq!(exceeded("session.verdict == 'radio'"), ["session"]);
    assert_eq!(exceeded("session.verdict == radio and bytes > 4"), ["a"]);
    assert_eq!(exceeded("overlapped == true"), ["a"]);
    assert_eq!(exceeded("page.load_ms > 1999"), ["page-1"]);
}

/// Captures name the cause in place of `radio` or `not_radio`: the same budget holds.
#[test]
fn a_verdict_covers_the_causes_that_part_it() {
    let holds = |text: &str, verdict: &str| {
        let document = json!({"transfers": [{"id": "a", "verdict": verdict}]});
        Budget::parse(text).unwrap().judge(&document)[0].state == BudgetState::Exceeded
    };
    let check = |word: &str, verdicts: &[&str], expected: bool| {
        for verdict in verdicts {
            assert_eq!(holds(&format!("verdict == {word}"), verdict), expected, "{word} {verdict}");
            assert_eq!(
                holds(&format!("verdict != {word}"), verdict),
                !expected,
                "{word} {verdict}"
            );
        }
    };
    check("radio", &["radio", "radio_contention", "radio_signal"], true);
    check("radio", &["not_radio", "mixed", "wireline", "loss_recovery_radio"], false);
    check("not_radio", &["not_radio", "wireline", "sender_limited", "loss_recovery_radio"], true);
    check("not_radio", &["radio", "radio_signal", "mixed"], false);
    check("radio_signal", &["radio", "radio_contention"], false);
    assert!(!holds("verdict == not_radio", "unknown"));
    // Names that the user chose are compared letter by letter.
    let is_named = |text: &str, id: &str| {
        let document = json!({"transfers": [{"id": id, "verdict": "mixed"}]});
        Budget::parse(text).unwrap().judge(&document)[0].state == BudgetState::Exceeded
    };
    assert!(is_named("id == radio", "radio") && !is_named("id == radio", "radio_station"));
    assert!(!is_named("id == not_radio", "wireline") && is_named("id != radio", "radio_station"));
}

#[test]
fn shares_are_fractions_and_ms_times() {
    assert_eq!(exceeded("shares.radio > 0.9"), ["a"]);
    assert_eq!(exceeded("ms.radio >= 200"), ["a", "b"]);
    assert_eq!(exceeded("shares.sender_limited > 0.5"), ["b"]);
    assert_eq!(exceeded("shares.wireline < 0.1"), ["b"], "of `a`, causes are not parted");
    assert_eq!(exceeded("page.shares.server > 0.3"), ["page-1"]);
    assert_eq!(exceeded("page.ms.server > 900"), [""; 0]);
}

/// Captures alone do not show which link's queue held the data: its time is unknown.
#[test]
fn a_queue_of_an_unknown_link_is_no_time_of_another() {
    let shares =
        json!({"first_slow_start": 20.0, "loss_recovery_congestion": 1.0, "unknown": 979.0});
    let document = |link_demand: Value| {
        let session = json!({"link_demand": link_demand, "shares": shares});
        json!({"session": session, "transfers": [{"link_demand": link_demand, "shares": shares}]})
    };
    let held = |text: &str, link_demand| {
        Budget::parse(text).unwrap().judge(&document(link_demand)).remove(0)
    };
    for cause in [
        "radio",
        "not_radio",
        "radio_contention",
        "radio_signal",
        "wireline",
        "uplink_queue",
        "loss_recovery_radio",
    ] {
        for field in ["ms.", "shares.", "session.ms."] {
            let one = held(&format!("{field}{cause} > 0.5"), Value::Null);
            assert_eq!(one.state, BudgetState::NotEvaluable, "{field}{cause}");
            assert_eq!(one.unknown_text(), format!("{field}{cause} is absent"));
        }
    }
    // Packets show what else a sender waited for.
    for cause in ["receive_window", "first_slow_start", "loss_recovery_congestion", "unknown"] {
        let one = held(&format!("shares.{cause} == 2"), Value::Null);
        assert_eq!(one.state, BudgetState::Within, "{cause}");
    }
    // A page's data at the rate of the slowest link.
    let pages = json!({"pages": [{"shares": {"transfer": 210.0, "server": 49.0}}]});
    for (text, state) in [
        ("page.shares.radio > 0.5", BudgetState::NotEvaluable),
        ("page.ms.wireline > 5", BudgetState::NotEvaluable),
        ("page.ms.server > 5", BudgetState::Exceeded),
        ("page.ms.dns > 5", BudgetState::Within),
    ] {
        assert_eq!(Budget::parse(text).unwrap().judge(&pages)[0].state, state, "{text}");
    }
    // Beside a modem log, none of the unknown time is the radio's.
    let one = held("shares.radio < 0.5", json!(0.0));
    assert_eq!(
        (one.state, one.found_text().as_str()),
        (BudgetState::Exceeded, "shares.radio is 0")
    );
}

#[test]
fn what_was_found_is_given() {
    let one = held("shares.sender_limited > 0.5").remove(1);
    assert_eq!(one.found_text(), "shares.sender_limited is 0.6");
    assert_eq!(held("link_demand > 0.9")[0].found_text(), "link_demand is 0.95");
    assert_eq!(held("link_demand > 0.9")[1].unknown, ["link_demand"]);
}

#[test]
fn what_can_never_hold_is_refused() {
    for wrong in ["", "link_demand", "link_demand ~ 3", "verdict == radio or"] {
        assert!(Budget::parse(wrong).is_err(), "{wrong}");
    }
    let error = Budget::parse("verdict==radio&&bytes>1||bytes<0").unwrap_err().to_string();
    assert!(error.ends_with("did you mean `verdict==radio and bytes>1 or bytes<0`?"), "{error}");
    let check = |wrong: &str, says: &str| {
        let error = Budget::parse(wrong).unwrap().check(&schema()).unwrap_err().to_string();
        assert!(error.contains(says), "{wrong}: {error}");
    };
    check("linkdemand > 1", "no field `linkdemand` (did you mean `link_demand`?)");
    check("load_ms > 1000", "no field `load_ms` (did you mean `page.load_ms`?)");
    check("session.verdikt == unknown", "no field `session.verdikt`");
    check("shares.server > 0.3", "no cause `server` in `shares.server` (a page has it");
    check("shares.bogus > 0.3", "no cause `bogus`");
    check("page.shares.bogus > 0.3", "no cause `bogus`");
    check("shares.radio > 30", "a fraction of the time, 0 to 1");
    check("shares.radio > 1", "0 to 1, so that this is never exceeded");
    check("page.shares.server < 0", "so that this is never exceeded");
    check("ms.radio < 0", "`ms.radio` is a time, 0 or more, so that this is never exceeded");
    check("confidence > 97", "`confidence` is 0 to 1; 97 is not");
    check("session.confidence >= 1.1", "`session.confidence` is 0 to 1; 1.1 is not");
    check("link_demand > 5", "`link_demand` is 0 to 1; 5 is not");
    check("leading_share > 1", "`leading_share` is 0 to 1, so that this is never exceeded");
    check("bytes < 0", "`bytes` is 0 or more, so that this is never exceeded");
    for right in ["confidence >= 1", "link_demand <= 0", "link_demand != 1", "bytes > 5000000000"] {
        assert!(Budget::parse(right).unwrap().check(&schema()).is_ok(), "{right}");
    }
    check("ms.radio > much", "is a number");
    check("link_demand < 50%", "is a number");
    check("bytes > 100kB", "is a number");
    check("bytes > nan", "is a number");
    check("verdict < radio", "compare it with == or !=");
    check("verdict < 3", "is a word");
    check("verdict == radoi", "did you mean `radio`?");
    check("leading == server", "is never `server`");
    check("overlapped == yes", "`true` or `false`");
    check("evidence == 3", "a list or a group");
    check("session == radio", "is not a field");
    check("page.load_ms > 5 and bytes > 3", "a budget for each");
    // `radio`'s document has no session.
    let radio = airmile::schemas().into_iter().find(|(name, _)| *name == "radio").unwrap().1;
    assert!(Budget::parse("session.verdict == radio").unwrap().check(&radio).is_err());
    assert!(Budget::parse("link_demand > 0.5").unwrap().check(&radio).is_ok());
    let error = Budget::parse("shares.radio > 0.5").unwrap().check(&radio).unwrap_err().to_string();
    assert!(error.contains("only `airmile diagnose` has causes"), "{error}");
}

#[test]
fn without_transfers_the_session_still_counts() {
    let document = json!({"session": {"verdict": "unknown"}, "transfers": []});
    let over = |text: &str| {
        let held = Budget::parse(text).unwrap().judge(&document);
        let exceeded = held.into_iter().filter(|one| one.state == BudgetState::Exceeded);
        exceeded.map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(over("session.verdict == unknown or bytes > 5"), ["session"]);
    assert_eq!(over("bytes > 5"), [""; 0]);
}

#[test]
fn an_unknown_verdict_is_no_other_one() {
    let document = json!({"session": {"verdict": "unknown"}, "transfers": [
        {"id": "a", "verdict": "unknown", "bytes": 9.0}, {"id": "b", "verdict": "radio", "bytes": 9.0}]});
    let states = |text: &str| {
        let held = Budget::parse(text).unwrap().judge(&document);
        held.into_iter().map(|one| one.state).collect::<Vec<_>>()
    };
    let [within, exceeded, open] =
        [BudgetState::Within, BudgetState::Exceeded, BudgetState::NotEvaluable];
    for text in ["session.verdict == radio", "session.verdict != radio"] {
        assert_eq!(states(text), [open], "{text}");
    }
    assert_eq!(states("session.verdict == unknown"), [exceeded]);
    assert_eq!(states("verdict == not_radio"), [open, within]);
    assert_eq!(states("verdict != unknown and bytes > 5"), [within, exceeded]);
    assert_eq!(states("verdict == radio or bytes > 5"), [exceeded, exceeded]);
}

#[test]
fn reports_for_continuous_integration() {
    let budget = Budget::parse("verdict == not_radio and shares.sender_limited > 0.5").unwrap();
    let judged = [(&budget, budget.judge(&document()))];
    let junit = Budget::junit(&judged, &[]);
    assert!(junit.contains("tests=\"2\" failures=\"1\" errors=\"0\""), "{junit}");
    assert!(junit.contains("shares.sender_limited &gt; 0.5"), "{junit}");
    assert!(junit.contains("sender_limited &gt; 0.5: b https://b/\" classname=\"airmile.budget\""));
    assert!(junit.contains("message=\"verdict is not_radio, shares.sender_limited is 0.6\""));
    assert_eq!(
        Budget::github(&judged, &[]),
        ["::error title=over budget%3A b https%3A//b/::verdict == not_radio and \
          shares.sender_limited > 0.5: verdict is not_radio, shares.sender_limited is 0.6"]
    );
    assert_eq!(BudgetReport::parse("junit=a.xml").unwrap(), BudgetReport::Junit("a.xml".into()));
    for wrong in ["junit", "junit=", "github=x", "html"] {
        assert!(BudgetReport::parse(wrong).is_err(), "{wrong}");
    }
}

/// Nothing was loaded, so no budget was kept; one that asks for that is still exceeded.
#[test]
fn a_session_without_transfers_keeps_no_budget() {
    let document = json!({"session": {"verdict": "unknown", "confidence": 0.0}, "transfers": [],
                          "pages": []});
    let held = |text: &str| Budget::parse(text).unwrap().judge(&document).remove(0);
    let one = held("session.verdict == radio");
    assert_eq!(one.state, BudgetState::NotEvaluable);
    assert_eq!(one.unknown_text(), "session.verdict is absent");
    let one = held("session.confidence > 0.5");
    assert_eq!(one.state, BudgetState::NotEvaluable);
    assert_eq!(one.unknown_text(), "any transfer or page is absent");
    assert_eq!(held("session.verdict == unknown").state, BudgetState::Exceeded);
}

#[test]
fn a_broken_input_is_an_error_of_its_own() {
    let budget = Budget::parse("verdict == radio").unwrap();
    let judged = [(&budget, Vec::new())];
    let broken = [("a.har".to_owned(), "damaged: byte 5: the file ends".to_owned())];
    let junit = Budget::junit(&judged, &broken);
    assert!(junit.contains("<testsuites name=\"airmile\" tests=\"1\" failures=\"0\" errors=\"1\""));
    assert!(junit.contains("<testcase name=\"a.har\" classname=\"airmile.input\">"), "{junit}");
    assert!(junit.contains("<error message=\"damaged: byte 5: the file ends\"/>"), "{junit}");
    assert_eq!(
        Budget::github(&judged, &broken),
        ["::error title=input%3A a.har::damaged: byte 5: the file ends"]
    );
}

#[test]
fn probabilities_and_rates() {
    let document = json!({
        "session": {"suspects": [{"suspect": "wireline", "probability": 0.7}]},
        "transfers": [
            {"id": "a", "bytes": 1_000_000, "duration_ms": 2_000.0,
             "suspects": [{"suspect": "radio", "probability": 0.9}]},
            {"id": "b", "bytes": null, "duration_ms": 10.0, "suspects": []},
        ],
    });
    let states = |text: &str| -> Vec<BudgetState> {
        let budget = Budget::parse(text).unwrap();
        budget.check(&schema()).unwrap();
        budget.judge(&document).into_iter().map(|one| one.state).collect()
    };
    use BudgetState::{Exceeded, NotEvaluable, Within};
    assert_eq!(states("suspects.radio > 0.5"), [Exceeded, NotEvaluable]);
    assert_eq!(states("rate_bps < 4000001"), [Exceeded, NotEvaluable]);
    assert_eq!(states("rate_bps < 4000000"), [Within, NotEvaluable]);
    assert_eq!(states("session.suspects.wireline > 0.6"), [Exceeded]);
    for (text, says) in [
        ("suspects.radios > 0.5", "did you mean `radio`"),
        ("suspects.radio > 50", "a probability, 0 to 1"),
        ("suspects.radio == high", "is a number"),
        ("rate_bps > fast", "is a number"),
        ("page.rate_bp > 5", "no field `page.rate_bp`; a page has"),
        ("session.rate_bps > 5", "no field `session.rate_bps`"),
        ("page.suspects.radio > 0.5", "no field `page.suspects.radio`"),
    ] {
        let error = Budget::parse(text).unwrap().check(&schema()).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

/// The number that is suggested is one that a budget takes.
#[test]
fn a_number_with_a_unit_is_an_error_with_the_field_s_number() {
    for (text, like) in [
        ("rate_bps < 5 Mbit/s", "rate_bps < 5e6"),
        ("rate_bps < 1.5 Mbit/s", "rate_bps < 1.5e6"),
        ("link_demand > 29 %", "link_demand > 0.29"),
        ("page.load_ms > 3 s", "page.load_ms > 3000"),
        ("bytes > 100 kB", "bytes > 100000"),
        ("ms.radio > 2 s", "ms.radio > 2000"),
    ] {
        let error = Budget::parse(text).unwrap_err().to_string();
        assert!(error.ends_with(&format!("did you mean `{like}`?")), "{error}");
        assert!(Budget::parse(like).unwrap().check(&schema()).is_ok(), "{like}");
        let joined = text.replace(" Mbit", "Mbit").replace(" %", "%").replace(" s", "s");
        let joined = joined.replace(" kB", "kB");
        let error = Budget::parse(&joined).unwrap().check(&schema()).unwrap_err().to_string();
        let number = like.rsplit(' ').next().unwrap();
        assert!(error.contains(&format!("field's name: {number})")), "{error}");
    }
}

/// A suggestion would be a budget that is refused, or never exceeded.
#[test]
fn a_unit_of_another_quantity_suggests_no_number() {
    for text in [
        "link_demand > 300 ms",
        "rate_bps < 50 %",
        "link_demand > 5 Mbit/s",
        "shares.radio > 300 ms",
        "bytes > 3 s",
    ] {
        let error = Budget::parse(text).unwrap_err().to_string();
        assert!(error.ends_with("; give a number in the field's unit"), "{error}");
    }
    let below = Budget::parse("group.rsrp_dbm.value < -96 dBm").unwrap_err().to_string();
    assert!(below.ends_with("did you mean `group.rsrp_dbm.value < -96`?"), "{below}");
}

#[test]
fn a_word_as_the_report_prints_it_is_an_error_with_the_field_s_word() {
    for text in ["verdict == sender limited", "verdict == \"sender limited\""] {
        let error = Budget::parse(text).unwrap_err().to_string();
        assert!(error.contains("did you mean `verdict == sender_limited`?"), "{error}");
    }
}

#[test]
fn an_open_comparison_is_no_other_verdict() {
    let document = json!({"verdict": "cannot_tell", "groups": [], "pairs": [], "pages": []});
    let state = |text: &str| Budget::parse(text).unwrap().judge(&document)[0].state;
    assert_eq!(state("verdict != no_difference"), BudgetState::NotEvaluable);
    assert_eq!(state("verdict == cannot_tell"), BudgetState::Exceeded);
}

fn comparison() -> Value {
    let pair = |second: &str, value: f64, p: f64| {
        json!({"first": "monday", "second": second,
               "log_throughput": {"estimate": {"value": value}, "p": p}, "link_demand": null})
    };
    json!({
        "verdict": "throttling", "confidence": 0.9, "by_turns": false,
        "groups": [{"name": "monday", "throughput_bps": {"value": 5e6}, "link_demand": null},
                   {"name": "tuesday", "throughput_bps": {"value": 2e6}, "link_demand": null}],
        "pairs": [pair("tuesday", -0.9, 0.01), pair("friday", 0.1, 0.6)],
        "pages": [{"url": "https://p/", "loads": [
            {"run": "monday", "load_ms": 900.0, "difference_ms": null,
             "shares_ms": {"server": 100.0, "radio": 800.0}},
            {"run": "tuesday", "load_ms": 2000.0, "difference_ms": 1100.0,
             "shares_ms": {"server": 1200.0, "radio": 800.0}}]}],
    })
}

#[test]
fn fields_of_a_comparison() {
    let compare = airmile::schemas().into_iter().find(|(name, _)| *name == "compare").unwrap().1;
    let held = |text: &str, state: BudgetState| -> Vec<String> {
        let budget = Budget::parse(text).unwrap();
        budget.check(&compare).unwrap();
        let held = budget.judge(&comparison()).into_iter();
        held.filter(|one| one.state == state)
            .map(|one| if one.id == "comparison" { one.name.unwrap_or(one.id) } else { one.id })
            .collect()
    };
    use BudgetState::{Exceeded, NotEvaluable};
    for (text, expected) in [
        ("verdict == throttling", &["comparison"][..]),
        ("verdict != no_difference and confidence > 0.95", &[]),
        ("group.throughput_bps.value < 3e6", &["tuesday"]),
        (
            "pair.log_throughput.estimate.value < -0.1 and pair.log_throughput.p < 0.05",
            &["tuesday against monday"],
        ),
        ("by_turns == false and pair.log_throughput.p > 0.5", &["friday against monday"]),
        // The first run is what the others are compared with.
        ("page.difference_ms > 300", &["tuesday"]),
        ("page.load_ms > 800", &["tuesday"]),
        ("page.shares.server > 0.5", &["tuesday"]),
        ("page.ms.server > 1300", &[]),
    ] {
        assert_eq!(held(text, Exceeded), expected, "{text}");
        assert_eq!(held(text, NotEvaluable), [""; 0], "{text}");
    }
    assert_eq!(held("pair.link_demand.p < 0.1", NotEvaluable).len(), 2);
    let refused = |text: &str, schema: &Value, words: &str| {
        let error = Budget::parse(text).unwrap().check(schema).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    };
    refused("confidence > 97", &compare, "0 to 1; 97 is not");
    refused("confidence > 1", &compare, "never exceeded");
    refused("pair.log_throughput.p > 5", &compare, "0 to 1; 5 is not");
    refused("group.link_demand.value > 5", &compare, "0 to 1; 5 is not");
    refused("pair.p < 0.1", &compare, "no field `pair.p`; a pair has");
    refused("link_demand < 0.5", &compare, "no field `link_demand`; the comparison has");
    refused("verdict == radio", &compare, "is never `radio`");
    refused("session.verdict == radio", &compare, "only `airmile diagnose` has `session`");
    refused("group.wait_ms.value > 5 and pair.growth_ms.p < 1", &compare, "exclude each other");
    refused("pair.growth_ms.p < 1", &schema(), "only `airmile compare` has `pair`");
}
