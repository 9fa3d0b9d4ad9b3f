//! Checks a budget's fields against the document's schema, so that a mistake is found whatever the
//! document holds.

use serde_json::Value;

use airmile::{Error, Result, Suspect, did_you_mean};

use super::expression::{Literal, Op, Test, in_unit_of};
use super::{GROUP, PAGE, PAIR, PAIRS, RATE, SESSION, SUSPECTS, Scope, is_share, share_names};

/// Checks a test's field and value.
pub(super) fn check(test: &Test, scope: Scope, schema: &Value) -> Result<()> {
    let (place, node, path) = place(test, scope, schema)?;
    if let Some(name) = share_name(path) {
        let has = |name: &str| node.pointer(&format!("/properties/{name}")).is_some();
        if !has("shares") && !has("shares_ms") {
            let field = test.field();
            return refuse(format!("only `airmile diagnose` has causes, such as `{field}`"));
        }
        return check_share(test, scope, name);
    }
    match path {
        [kind, name] if kind == SUSPECTS && place != "a page" => {
            return check_suspect(test, node, name);
        }
        // Of a group, a value and its interval.
        [kind, _] if kind == "link_demand" => {
            return check_number(test, (0.0, 1.0), ("a share of the time, 0 to 1", ""));
        }
        [kind] if kind == RATE && place == "a transfer" => {
            return check_number(test, (0.0, f64::INFINITY), ("a rate, 0 or more", ""));
        }
        _ => {}
    }
    let mut nodes = vec![node];
    for name in path {
        let next: Vec<&Value> =
            nodes.iter().filter_map(|node| node.get("properties")?.get(name)).collect();
        if next.is_empty() {
            return Err(unknown_field(test, place, name, &nodes, schema));
        }
        nodes = next.into_iter().flat_map(|node| alternatives(node, schema)).collect();
    }
    check_value(test, &nodes)
}

/// The subject of a field in words, its schema, and the path in it.
fn place<'a>(
    test: &'a Test,
    scope: Scope,
    schema: &'a Value,
) -> Result<(&'static str, &'a Value, &'a [String])> {
    let of = |pointer: &str| {
        schema.pointer(pointer).and_then(|node| alternatives(node, schema).into_iter().next())
    };
    let after_first = test.path.get(1..).unwrap_or_default();
    let is_comparison = schema.pointer(&format!("/properties/{PAIRS}")).is_some();
    let (what, node, path) = match test.path.first().map(String::as_str) {
        Some(SESSION) => ("the session", of("/properties/session"), after_first),
        Some(PAGE) if is_comparison => {
            ("a load of a page", of("/$defs/ComparedPage/properties/loads/items"), after_first)
        }
        Some(PAGE) => ("a page", of("/properties/pages/items"), after_first),
        Some(GROUP) => ("a group", of("/properties/groups/items"), after_first),
        Some(PAIR) => ("a pair", of("/properties/pairs/items"), after_first),
        _ if is_comparison => ("the comparison", Some(schema), test.path.as_slice()),
        _ => ("a transfer", of("/properties/transfers/items"), test.path.as_slice()),
    };
    let first = test.path.first().map_or("", String::as_str);
    let command = if [GROUP, PAIR].contains(&first) { "compare" } else { "diagnose" };
    let node = node.ok_or_else(|| {
        Error::Option(format!("--fail-if: only `airmile {command}` has `{first}`"))
    })?;
    if path.is_empty() {
        return Err(Error::Option(format!(
            "--fail-if: `{first}` is not a field; name a field in it"
        )));
    }
    if scope == Scope::Pages && what == "a transfer" {
        return Err(Error::Option(format!(
            "--fail-if: `{}` belongs to a transfer, and `page.` to a page: give a budget for each",
            test.field()
        )));
    }
    if Scope::of(test).is_some_and(|of| of != scope) {
        refuse(format!("`page.`, `group.` and `pair.` exclude each other: {first}"))?;
    }
    Ok((what, node, path))
}

/// A schema's node and what it refers to; for a nullable value, the value.
fn alternatives<'a>(node: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
        let target = schema.pointer(reference.trim_start_matches('#'));
        return target.map(|node| alternatives(node, schema)).unwrap_or_default();
    }
    match node.get("anyOf").and_then(Value::as_array) {
        Some(any) => any.iter().flat_map(|node| alternatives(node, schema)).collect(),
        None => vec![node],
    }
}

fn unknown_field(test: &Test, place: &str, name: &str, nodes: &[&Value], schema: &Value) -> Error {
    let properties = nodes.iter().filter_map(|node| node.get("properties")?.as_object());
    let mut names: Vec<&str> = properties.flatten().map(|(name, _)| name.as_str()).collect();
    names.push("ms");
    names.extend((place == "a transfer").then_some(RATE));
    let has =
        |(_, of): &(_, &str)| schema.pointer(&format!("/$defs/{of}/properties/{name}")).is_some();
    let other = [(PAGE, "Page"), (SESSION, "SessionVerdict")].into_iter().find(has);
    let like = other.map_or_else(
        || did_you_mean(name, &names),
        |(of, _)| format!(" (did you mean `{of}.{name}`?)"),
    );
    Error::Option(format!(
        "--fail-if: no field `{}`{like}; {place} has {}",
        test.field(),
        names.join(", ")
    ))
}

fn share_name(path: &[String]) -> Option<&str> {
    match path {
        [first, name] if is_share(first) => Some(name),
        _ => None,
    }
}

/// A probability by packets alone.
fn check_suspect(test: &Test, node: &Value, name: &str) -> Result<()> {
    let field = test.field();
    if node.pointer("/properties/suspects").is_none() {
        return refuse(format!("only `airmile diagnose` has suspects, such as `{field}`"));
    }
    let known = Suspect::ALL.map(Suspect::as_str);
    if !known.contains(&name) {
        let like = did_you_mean(name, &known);
        return refuse(format!("no suspect `{name}`{like}; there are {}", known.join(", ")));
    }
    check_number(test, (0.0, 1.0), ("a probability, 0 to 1", ""))
}

/// A part of the time: its cause is known, and a fraction is between 0 and 1.
fn check_share(test: &Test, scope: Scope, name: &str) -> Result<()> {
    let of_page = scope == Scope::Pages && test.path.first().is_some_and(|first| first == PAGE);
    let known = share_names(of_page);
    let field = test.field();
    if !known.contains(&name) {
        let other = if !of_page && share_names(true).contains(&name) {
            format!(" (a page has it: `page.{field}`)")
        } else {
            did_you_mean(name, &known)
        };
        return Err(Error::Option(format!(
            "--fail-if: no cause `{name}` in `{field}`{other}; there are {}",
            known.join(", ")
        )));
    }
    let is_fraction = test.path.iter().any(|part| part == "shares");
    if is_fraction {
        let hint = format!(" (times in ms are `{}`)", field.replace("shares.", "ms."));
        return check_number(test, (0.0, 1.0), ("a fraction of the time, 0 to 1", &hint));
    }
    check_number(test, (0.0, f64::INFINITY), ("a time, 0 or more", ""))
}

/// Refuses a word, and a number as [`check_range`] does.
fn check_number(test: &Test, bounds: (f64, f64), words: (&str, &str)) -> Result<()> {
    match &test.value {
        Literal::Word(word) => Err(not_a_number(&test.field(), word)),
        Literal::Number(number) => check_range(test, *number, bounds, words),
    }
}

/// Refuses a number that the field never has, and a comparison that never holds within its range;
/// the range is given in words, too, with a hint.
fn check_range(
    test: &Test,
    number: f64,
    (least, most): (f64, f64),
    (words, hint): (&str, &str),
) -> Result<()> {
    let field = test.field();
    if !(least..=most).contains(&number) {
        return refuse(format!("`{field}` is {words}; {number} is not{hint}"));
    }
    if test.op == Op::Less && number <= least || test.op == Op::Greater && number >= most {
        return refuse(format!("`{field}` is {words}, so that this is never exceeded{hint}"));
    }
    Ok(())
}

fn refuse(what: String) -> Result<()> {
    Err(Error::Option(format!("--fail-if: {what}")))
}

fn not_a_number(field: &str, word: &str) -> Error {
    let like = in_unit_of(field, word).unwrap_or_else(|| "0.5, 100000".to_owned());
    Error::Option(format!(
        "--fail-if: `{field}` is a number, {word:?} is not (give it without a unit, in that of \
         the field's name: {like})"
    ))
}

/// A number is compared with a number, a word with a word of its list.
fn check_value(test: &Test, nodes: &[&Value]) -> Result<()> {
    let field = test.field();
    let is_of_type = |wanted: &str| {
        nodes.iter().any(|node| match node.get("type") {
            Some(Value::String(one)) => one == wanted,
            Some(Value::Array(types)) => types.iter().any(|one| one == wanted),
            _ => false,
        })
    };
    let words: Vec<&str> = nodes
        .iter()
        .filter_map(|node| node.get("oneOf").or_else(|| node.get("enum"))?.as_array())
        .flatten()
        .filter_map(|one| one.get("const").unwrap_or(one).as_str())
        .collect();
    let is_word = !words.is_empty() || is_of_type("string");
    let is_number = is_of_type("number") || is_of_type("integer");
    let wrong = |what: String| refuse(format!("`{field}` {what}"));
    match &test.value {
        Literal::Number(number) if is_number => {
            // JSON Schema's names.
            let bound = |name| nodes.iter().find_map(|node| node.get(name).and_then(Value::as_f64));
            let least = bound("minimum").unwrap_or(f64::NEG_INFINITY);
            let words = match bound("maximum") {
                Some(most) => format!("{least} to {most}"),
                None => format!("{least} or more"),
            };
            let most = bound("maximum").unwrap_or(f64::INFINITY);
            check_range(test, *number, (least, most), (&words, ""))
        }
        Literal::Word(word) if is_number => Err(not_a_number(&field, word)),
        Literal::Word(word) if is_word => {
            if !words.is_empty() && !words.contains(&word.as_str()) {
                let like = did_you_mean(word, &words);
                return wrong(format!("is never `{word}`{like}; it is {}", words.join(", ")));
            }
            if test.op.is_of_order() {
                return wrong("is a word: compare it with == or !=".into());
            }
            Ok(())
        }
        Literal::Word(word) if is_of_type("boolean") => {
            if matches!(word.as_str(), "true" | "false") && !test.op.is_of_order() {
                Ok(())
            } else {
                wrong(format!("is `true` or `false`, compared with == or !=; not `{word}`"))
            }
        }
        value if is_word || is_of_type("boolean") => wrong(format!("is a word, {value} is not")),
        _ => wrong("is a list or a group of fields; name one number or word of it".into()),
    }
}
