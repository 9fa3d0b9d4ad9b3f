//! Budgets for continuous integration: `--fail-if 'link_demand >= 0.9'`.
//!
//! Grammar: `EXPR := TERM { "or" TERM }`, `TERM := TEST { "and" TEST }`,
//! `TEST := FIELD OP VALUE`, `OP := < <= > >= == !=`. A field is one of a
//! transfer (`link_demand`, `shares.radio`) or of the session
//! (`session.verdict`); a value is a number or a word. A budget is exceeded
//! where the whole expression holds for the session or for any one transfer.
//! A comparison with a value that is not known does not hold.

use std::cmp::Ordering;

use airmile_model::Verdict;
use serde_json::Value;

use airmile_io::error::{Error, Result};

/// A parsed budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    text: String,
    any_of: Vec<Vec<Test>>,
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Test {
    path: Vec<String>,
    op: Op,
    value: Literal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Number(f64),
    Word(String),
}

impl Budget {
    /// Parses an expression.
    ///
    /// # Errors
    /// It is not one; the message says where.
    pub fn parse(text: &str) -> Result<Self> {
        let tokens = tokens(text)?;
        let mut any_of = Vec::new();
        for term in tokens.split(|t| t == "or") {
            let tests = term.split(|t| t == "and").map(|t| Test::parse(t, text));
            any_of.push(tests.collect::<Result<Vec<_>>>()?);
        }
        Ok(Self { text: text.to_owned(), any_of })
    }

    /// Names of what exceeds it in a document with `transfers` and, of a
    /// diagnosis, `session`: the ids of transfers, or `session`.
    ///
    /// # Errors
    /// The expression names a field that neither has, or compares a number
    /// with a word.
    pub fn exceeded_by(&self, document: &Value) -> Result<Vec<String>> {
        let session = document.get("session").unwrap_or(&Value::Null);
        let empty = Vec::new();
        let transfers = document.get("transfers").and_then(Value::as_array).unwrap_or(&empty);
        self.check_fields(session, transfers)?;
        let mut over: Vec<String> = transfers
            .iter()
            .filter(|transfer| self.holds(session, transfer))
            .map(|transfer| transfer.get("id").map_or_else(String::new, id_text))
            .collect();
        // Without transfers, what is said of the session alone still counts.
        let about_session = self.tests().all(Test::is_about_session);
        if (transfers.is_empty() || about_session) && self.holds(session, &Value::Null) {
            over = vec!["session".into()];
        }
        Ok(over)
    }

    fn tests(&self) -> impl Iterator<Item = &Test> {
        self.any_of.iter().flatten()
    }

    fn check_fields(&self, session: &Value, transfers: &[Value]) -> Result<()> {
        for test in self.tests() {
            let (of, place) = if test.is_about_session() {
                (Some(session), "the session")
            } else {
                (transfers.first(), "a transfer")
            };
            let Some(of) = of else { continue };
            if of.is_null() {
                return Err(Error::Option(
                    "--fail-if: `session` is known to `airmile diagnose` only".into(),
                ));
            }
            // A share that a transfer lacks is a share of nothing, not a slip.
            let known = test.lookup(session, of).is_some()
                || test.path.first().is_some_and(|p| p == "shares");
            if !known {
                let names: Vec<&str> = of
                    .as_object()
                    .map(|o| o.iter().filter(|(_, v)| !v.is_array()).map(|(k, _)| k.as_str()))
                    .map(Iterator::collect)
                    .unwrap_or_default();
                return Err(Error::Option(format!(
                    "--fail-if: no field `{}`; {place} has {}",
                    test.path.join("."),
                    names.join(", ")
                )));
            }
            let all = if test.is_about_session() { &[][..] } else { transfers };
            for found in std::iter::once(of).chain(all).filter_map(|t| test.lookup(session, t)) {
                test.check_kind(found)?;
            }
        }
        Ok(())
    }

    fn holds(&self, session: &Value, transfer: &Value) -> bool {
        self.any_of.iter().any(|term| term.iter().all(|test| test.holds(session, transfer)))
    }
}

fn id_text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

impl Test {
    fn parse(tokens: &[String], whole: &str) -> Result<Self> {
        let [field, op, value] = tokens else {
            return Err(Error::Option(format!(
                "--fail-if {whole:?}: expected `FIELD OP VALUE`, such as `link_demand >= 0.9`, \
                 got `{}`",
                tokens.join(" ")
            )));
        };
        let op = match op.as_str() {
            "<" => Op::Less,
            "<=" => Op::LessOrEqual,
            ">" => Op::Greater,
            ">=" => Op::GreaterOrEqual,
            "==" | "=" => Op::Equal,
            "!=" => Op::NotEqual,
            other => {
                return Err(Error::Option(format!(
                    "--fail-if {whole:?}: `{other}` is not one of < <= > >= == !="
                )));
            }
        };
        let value = match value.parse::<f64>() {
            Ok(number) => Literal::Number(number),
            Err(_) => Literal::Word(value.trim_matches(['"', '\'']).to_owned()),
        };
        let path = field.trim_start_matches("transfers.").split('.').map(str::to_owned).collect();
        Ok(Self { path, op, value })
    }

    fn is_about_session(&self) -> bool {
        self.path.first().is_some_and(|p| p == "session")
    }

    /// A number is compared with a number, a word with a word of its list.
    fn check_kind(&self, found: &Value) -> Result<()> {
        let field = self.path.join(".");
        match (&self.value, found) {
            (Literal::Word(word), Value::Number(_)) => Err(Error::Option(format!(
                "--fail-if: `{field}` is a number, {word:?} is none (give it plain, in the unit \
                 of the field's name: 0.5, 100000)"
            ))),
            (Literal::Number(number), Value::String(_)) => {
                Err(Error::Option(format!("--fail-if: `{field}` is a word, {number} is none")))
            }
            (Literal::Word(word), Value::String(_))
                if field.ends_with("verdict") && Verdict::parse(word).is_none() =>
            {
                let known: Vec<&str> = Verdict::ALL.iter().map(|v| v.as_str()).collect();
                Err(Error::Option(format!(
                    "--fail-if: no verdict `{word}`; there are {}",
                    known.join(", ")
                )))
            }
            _ => Ok(()),
        }
    }

    fn lookup<'a>(&self, session: &'a Value, transfer: &'a Value) -> Option<&'a Value> {
        let (first, rest) = self.path.split_first()?;
        let (mut at, path) =
            if first == "session" { (session, rest) } else { (transfer, &self.path[..]) };
        for name in path {
            at = at.get(name)?;
        }
        Some(at)
    }

    fn holds(&self, session: &Value, transfer: &Value) -> bool {
        let Some(found) = self.lookup(session, transfer) else { return false };
        let order = match &self.value {
            Literal::Number(number) => found.as_f64().and_then(|x| x.partial_cmp(number)),
            Literal::Word(word) => found.as_str().map(|text| text.cmp(word.as_str())),
        };
        let Some(order) = order else { return false };
        match self.op {
            Op::Less => order == Ordering::Less,
            Op::LessOrEqual => order != Ordering::Greater,
            Op::Greater => order == Ordering::Greater,
            Op::GreaterOrEqual => order != Ordering::Less,
            Op::Equal => order == Ordering::Equal,
            Op::NotEqual => order != Ordering::Equal,
        }
    }
}

fn tokens(text: &str) -> Result<Vec<String>> {
    let mut out: Vec<String> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        if c.is_whitespace() {
            chars.next();
        } else if "<>=!".contains(c) {
            let mut op = String::new();
            while let Some(c) = chars.next_if(|c| "<>=!".contains(*c)) {
                op.push(c);
            }
            out.push(op);
        } else {
            let mut word = String::new();
            while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !"<>=!".contains(*c)) {
                word.push(c);
            }
            out.push(word);
        }
    }
    if out.is_empty() {
        return Err(Error::Option("--fail-if: the expression is empty".into()));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn exceeded(expression: &str) -> Vec<String> {
        let document = json!({
            "session": {"verdict": "radio", "confidence": 0.8},
            "transfers": [
                {"id": "a", "verdict": "radio", "link_demand": 0.95, "shares": {"radio": 950.0}},
                {"id": "b", "verdict": "not_radio", "link_demand": null, "shares": {}},
            ],
        });
        Budget::parse(expression).unwrap().exceeded_by(&document).unwrap()
    }

    #[test]
    fn fields_of_transfers_and_session() {
        assert_eq!(exceeded("link_demand >= 0.9"), ["a"]);
        assert_eq!(exceeded("link_demand<0.9"), [""; 0]);
        assert_eq!(exceeded("verdict == not_radio"), ["b"]);
        assert_eq!(exceeded("verdict != radio or link_demand > 0.94"), ["a", "b"]);
        assert_eq!(exceeded("verdict == radio and shares.radio > 1000"), [""; 0]);
        assert_eq!(exceeded("session.verdict == 'radio'"), ["session"]);
    }

    #[test]
    fn slips_are_told() {
        for wrong in ["", "link_demand", "link_demand ~ 3", "a == b or"] {
            assert!(Budget::parse(wrong).is_err(), "{wrong}");
        }
        let document = json!({"session": {}, "transfers": [{"id": "a"}]});
        let error = Budget::parse("linkdemand > 1").unwrap().exceeded_by(&document).unwrap_err();
        assert!(error.to_string().contains("no field `linkdemand`"));
        let document = json!({
            "session": {"verdict": "unknown", "confidence": 0.0},
            "transfers": [{"id": "a", "verdict": "radio", "link_demand": 0.1, "bytes": 5}],
        });
        for wrong in [
            "link_demand < 50%",
            "bytes > 100kB",
            "verdict < 3",
            "verdict == radoi",
            "session.verdikt == unknown",
        ] {
            assert!(Budget::parse(wrong).unwrap().exceeded_by(&document).is_err(), "{wrong}");
        }
    }

    #[test]
    fn without_transfers_the_session_still_counts() {
        let document = json!({"session": {"verdict": "unknown"}, "transfers": []});
        let exceeded = |text| Budget::parse(text).unwrap().exceeded_by(&document);
        assert_eq!(exceeded("session.verdict == unknown or bytes > 5").unwrap(), ["session"]);
        assert_eq!(exceeded("bytes > 5").unwrap(), [""; 0]);
        assert!(exceeded("session.verdikt == unknown").is_err());
    }
}
