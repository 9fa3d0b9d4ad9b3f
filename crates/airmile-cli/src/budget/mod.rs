//! Budgets for continuous integration: `--fail-if 'link_demand >= 0.9'`.
//!
//! A field belongs to a transfer (`link_demand`), a page (`page.load_ms`) or the session
//! (`session.verdict`), in a comparison to all of it (`verdict`), a group (`group.restarts.value`), a pair
//! (`pair.log_throughput.p`) or a page's load after the first run (`page.difference_ms`); `shares.CAUSE` is a fraction of its time, `ms.CAUSE` that time,
//! `suspects.NAME` a probability by packets alone, `rate_bps` a transfer's bytes over its duration; a
//! value is a number or a word. A budget is exceeded if the whole expression holds for the session, or for
//! any one transfer or page. A comparison with an absent value is neither true nor false; where the
//! expression depends on one, the budget cannot be evaluated, which is a failure of its own. Fields
//! and words are checked against the document's schema, so that an expression that can never hold is
//! refused.

mod expression;
mod fields;
mod report;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use airmile::Result;
use airmile::model::{Cause, PageCause};
use serde_json::Value;

use self::expression::{Literal, Test};
pub use self::report::BudgetReport;

/// The word of a verdict that could not be given.
const UNKNOWN: &str = "unknown";
/// The words of what could not be decided: a transfer's verdict, a comparison's.
const OPEN: [&str; 2] = [UNKNOWN, "cannot_tell"];
const SESSION: &str = "session";
const PAGE: &str = "page";
const GROUP: &str = "group";
const PAIR: &str = "pair";
/// What only the document of a comparison has.
const PAIRS: &str = "pairs";
const SUSPECTS: &str = "suspects";
/// A transfer's rate, which is no field of the document.
const RATE: &str = "rate_bps";
/// What a session without transfers and pages lacks: nothing in it can keep a budget.
const NOTHING: &str = "any transfer or page";

/// A parsed budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    text: String,
    any_of: Vec<Vec<Test>>,
    scope: Scope,
}

/// What a budget applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Session,
    Transfers,
    Pages,
    Groups,
    Pairs,
}

impl Scope {
    /// The scope that the first word of a field gives.
    fn of(test: &Test) -> Option<Self> {
        match test.path.first()?.as_str() {
            PAGE => Some(Self::Pages),
            GROUP => Some(Self::Groups),
            PAIR => Some(Self::Pairs),
            _ => None,
        }
    }
}

/// Whether a budget is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetState {
    /// The expression does not hold.
    Within,
    /// The expression holds.
    Exceeded,
    /// The expression depends on an absent value.
    NotEvaluable,
}

/// The result of a budget for a transfer, a page or the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Id of the transfer or page, or `session`.
    pub id: String,
    /// The URL or name that the application requested, if known.
    pub name: Option<String>,
    /// What came of the budget.
    pub state: BudgetState,
    /// Fields of the budget with their values, in order.
    pub found: Vec<(String, String)>,
    /// Fields of the budget without a value here.
    pub unknown: Vec<String>,
}

impl Held {
    /// The values, in words.
    #[must_use]
    pub fn found_text(&self) -> String {
        let each = self.found.iter().map(|(field, value)| format!("{field} is {value}"));
        each.collect::<Vec<_>>().join(", ")
    }

    /// The fields without a value, in words.
    #[must_use]
    pub fn unknown_text(&self) -> String {
        let each = self.unknown.iter().map(|field| format!("{field} is absent"));
        each.collect::<Vec<_>>().join(", ")
    }

    fn is(&self, state: BudgetState) -> bool {
        self.state == state
    }
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Budget {
    /// Parses an expression.
    ///
    /// # Errors
    /// A syntax error; the message gives its place.
    pub fn parse(text: &str) -> Result<Self> {
        let any_of = expression::parse(text)?;
        let tests = || any_of.iter().flatten();
        let is_of_session = |test: &Test| test.path.first().is_some_and(|one| one == SESSION);
        let scope = tests().find_map(Scope::of).unwrap_or_else(|| {
            if tests().all(is_of_session) { Scope::Session } else { Scope::Transfers }
        });
        Ok(Self { text: text.to_owned(), any_of, scope })
    }

    /// Checks that the expression can hold for a document with this schema.
    ///
    /// # Errors
    /// It names a field or cause that the document never has, or compares a number with a word, or
    /// with a word that the field never has.
    pub fn check(&self, schema: &Value) -> Result<()> {
        self.tests().try_for_each(|test| fields::check(test, self.scope, schema))
    }

    /// Evaluates it on a document with `transfers` and, for a diagnosis, `session` and `pages`; or on
    /// that of a comparison, which counts as its own session.
    #[must_use]
    pub fn judge(&self, document: &Value) -> Vec<Held> {
        let whole = document.get(PAIRS).map_or(&Value::Null, |_| document);
        let session = document.get(SESSION).unwrap_or(whole);
        let list = |name| document.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let subjects = match self.scope {
            Scope::Session => Vec::new(),
            Scope::Transfers => list("transfers"),
            Scope::Pages => list("pages").into_iter().flat_map(loads).collect(),
            Scope::Groups => list("groups"),
            Scope::Pairs => list(PAIRS),
        };
        // Without transfers or pages, the session alone is tested.
        if subjects.is_empty() {
            let mut held = self.hold(session, &Value::Null);
            let nothing = ["transfers", "pages"].iter().all(|name| list(name).is_empty());
            if nothing && whole.is_null() && held.is(BudgetState::Within) {
                held.state = BudgetState::NotEvaluable;
                held.unknown.push(NOTHING.into());
            }
            return vec![held];
        }
        subjects.iter().map(|subject| self.hold(session, subject)).collect()
    }

    fn hold(&self, session: &Value, subject: &Value) -> Held {
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        for test in self.tests() {
            let field = test.field();
            match test.lookup(session, subject) {
                Some(value) => found.push((field, value.to_string())),
                None => unknown.push(field),
            }
        }
        found.dedup();
        unknown.dedup();
        let text = |name: &str| subject.get(name).and_then(Value::as_str).map(str::to_owned);
        let pair = text("second").zip(text("first")).map(|(b, a)| format!("{b} against {a}"));
        let whole = if session.get(PAIRS).is_some() { "comparison" } else { SESSION };
        Held {
            id: text("id").or(text("run")).or(pair).unwrap_or_else(|| whole.into()),
            name: text("name").or_else(|| text("url")),
            state: match self.holds(session, subject) {
                Some(true) => BudgetState::Exceeded,
                Some(false) => BudgetState::Within,
                None => BudgetState::NotEvaluable,
            },
            found,
            unknown,
        }
    }

    fn tests(&self) -> impl Iterator<Item = &Test> {
        self.any_of.iter().flatten()
    }

    /// Whether the expression holds; `None` if that depends on an absent value.
    fn holds(&self, session: &Value, subject: &Value) -> Option<bool> {
        let terms = self
            .any_of
            .iter()
            .map(|term| join(term.iter().map(|test| test.holds(session, subject)), false));
        join(terms, true)
    }
}

/// A page; of one that several runs loaded, its loads after the first run's.
fn loads(page: Value) -> Vec<Value> {
    let Some(loads) = page.get("loads").and_then(Value::as_array) else { return vec![page] };
    let mut rest: Vec<Value> = loads.iter().skip(1).cloned().collect();
    rest.iter_mut().for_each(|load| load["url"] = page["url"].clone());
    rest
}

/// Joins results of which one that equals `decisive` decides: `true` for "or", `false` for "and".
fn join(results: impl Iterator<Item = Option<bool>>, decisive: bool) -> Option<bool> {
    let mut joined = Some(!decisive);
    for result in results {
        match result {
            Some(is) if is == decisive => return Some(decisive),
            None => joined = None,
            Some(_) => {}
        }
    }
    joined
}

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
enum Found {
    Number(f64),
    Word(String),
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // Four digits separate a value from a limit close to it.
            Self::Number(number) if number.fract() != 0.0 && number.abs() < 1e4 => {
                let text = format!("{number:.4}");
                f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
            }
            Self::Number(number) => write!(f, "{number:.0}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

fn is_share(field: &str) -> bool {
    matches!(field, "shares" | "ms")
}

/// Whether a cause or verdict is the radio's: captures part it.
fn is_radio(name: &str) -> bool {
    name == "radio" || name.starts_with("radio_")
}

/// Whether a word says what a budget's word does: a verdict may name the cause, too.
fn covers(word: &str, found: &str) -> bool {
    let is_cause = |name: &str| Cause::ALL.iter().any(|cause| cause.as_str() == name);
    word == "radio" && is_radio(found)
        || word == "not_radio" && is_cause(found) && !is_radio(found) && found != UNKNOWN
}

/// Names of the parts of a time.
fn share_names(of_page: bool) -> Vec<&'static str> {
    if of_page {
        return PageCause::ALL.iter().map(|cause| cause.as_str()).collect();
    }
    let causes = Cause::ALL.iter().map(|cause| cause.as_str());
    ["radio", "not_radio"].into_iter().chain(causes).collect()
}

impl Literal {
    fn is(&self, other: &str) -> bool {
        matches!(self, Self::Word(word) if word == other)
    }
}

impl Test {
    fn lookup(&self, session: &Value, subject: &Value) -> Option<Found> {
        let (first, rest) = self.path.split_first()?;
        let (of, path) = match first.as_str() {
            SESSION => (session, rest),
            PAGE | GROUP | PAIR => (subject, rest),
            _ if session.get(PAIRS).is_some() => (session, self.path.as_slice()),
            _ => (subject, self.path.as_slice()),
        };
        if let [kind, name] = path
            && is_share(kind)
        {
            let is_page = first.as_str() == PAGE;
            return share(of, kind == "shares", name, is_page).map(Found::Number);
        }
        match path {
            [kind, name] if kind == SUSPECTS => return suspect(of, name).map(Found::Number),
            [kind] if kind == RATE => return rate_bps(of).map(Found::Number),
            _ => {}
        }
        match path.iter().try_fold(of, |at, name| at.get(name))? {
            Value::Number(number) => number.as_f64().map(Found::Number),
            // What could not be decided is no other word.
            Value::String(word) if OPEN.contains(&word.as_str()) && !self.value.is(word) => None,
            Value::String(word) => Some(Found::Word(word.clone())),
            Value::Bool(is) => Some(Found::Word(is.to_string())),
            _ => None,
        }
    }

    /// Whether a word of the document is what this one asks for.
    fn asks_for(&self, word: &str, found: &str) -> bool {
        let is_of_cause =
            self.path.last().is_some_and(|name| matches!(name.as_str(), "verdict" | "leading"));
        word == found || is_of_cause && covers(word, found)
    }

    /// Whether the comparison holds; `None` if the value is absent.
    fn holds(&self, session: &Value, subject: &Value) -> Option<bool> {
        let order: Option<Ordering> = match (self.lookup(session, subject), &self.value) {
            (Some(Found::Number(found)), Literal::Number(number)) => found.partial_cmp(number),
            (Some(Found::Word(found)), Literal::Word(word)) => {
                let is_it = self.asks_for(word, &found);
                Some(if is_it { Ordering::Equal } else { found.as_str().cmp(word) })
            }
            _ => None,
        };
        order.map(|order| self.op.holds(order))
    }
}

/// A suspect's probability; none if the radio was logged.
fn suspect(of: &Value, name: &str) -> Option<f64> {
    let all = of.get(SUSPECTS)?.as_array()?;
    let one = all.iter().find(|one| one.get("suspect").and_then(Value::as_str) == Some(name))?;
    one.get("probability")?.as_f64()
}

/// The bytes of a transfer over its duration.
fn rate_bps(of: &Value) -> Option<f64> {
    let (bytes, ms) = (of.get("bytes")?.as_f64()?, of.get("duration_ms")?.as_f64()?);
    (ms > 0.0).then_some(bytes * 8e3 / ms)
}

/// A part of a time, as a fraction of it or in ms. The radio's parts count as the radio; a cause
/// that is not separated from others is unknown.
fn share(of: &Value, as_fraction: bool, name: &str, is_page: bool) -> Option<f64> {
    let parts: Vec<(&str, f64)> = of
        .get("shares")
        .or_else(|| of.get("shares_ms"))?
        .as_object()?
        .iter()
        .filter_map(|(name, ms)| Some((name.as_str(), ms.as_f64()?)))
        .collect();
    let total: f64 = parts.iter().map(|(_, ms)| ms).sum();
    if parts.is_empty() || total <= 0.0 {
        return None;
    }
    // A page's radio is one cause among others, a transfer's may be all that is known.
    let is_parted =
        is_page || parts.iter().all(|(part, _)| *part != "radio" && *part != "not_radio");
    // A sum of no floats is -0.
    let sum = |wanted: &dyn Fn(&str) -> bool| {
        parts.iter().filter(|(part, _)| wanted(part)).fold(0.0, |sum, (_, ms)| sum + ms)
    };
    let has = |name: &str| parts.iter().any(|(part, ms)| *part == name && *ms > 0.0);
    // Without records of the radio, time in a queue is unknown, and losses have one cause.
    let is_blind = !is_page && of.get("link_demand").is_none_or(Value::is_null);
    let hidden = match name {
        "radio" | "radio_contention" | "radio_signal" => !parts.iter().any(|one| is_radio(one.0)),
        "not_radio" | "wireline" | "uplink_queue" => !has(name),
        _ => false,
    };
    // A page has a cause for data at the rate of an unknown link.
    let is_of_page =
        is_page && matches!(name, "radio" | "wireline") && !has(name) && has("transfer");
    let is_lost = name == "loss_recovery_radio" && !has(name) && has("loss_recovery_congestion");
    if is_of_page || is_blind && (hidden && has("unknown") || is_lost) {
        return None;
    }
    let ms = match name {
        "radio" => sum(&|part| is_radio(part)),
        "not_radio" => sum(&|part| !is_radio(part) && part != "unknown"),
        name if parts.iter().any(|(part, _)| *part == name) => sum(&|part| part == name),
        name if is_parted || name == "unknown" => sum(&|part| part == name),
        _ => return None,
    };
    Some(if as_fraction { ms / total } else { ms })
}
