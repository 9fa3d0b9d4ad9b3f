//! The grammar of a budget.
//!
//! `EXPR := TERM { "or" TERM }`, `TERM := TEST { "and" TEST }`, `TEST := FIELD OP VALUE`,
//! `OP := < <= > >= == !=`.

use std::cmp::Ordering;

use airmile::{Error, Result};

/// A comparison of a field with a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Test {
    pub(super) path: Vec<String>,
    pub(super) op: Op,
    pub(super) value: Literal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

impl Op {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            "==" | "=" => Self::Equal,
            "!=" => Self::NotEqual,
            _ => return None,
        })
    }

    /// Whether it compares order, which words do not have.
    pub(super) const fn is_of_order(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Less => order == Ordering::Less,
            Self::LessOrEqual => order != Ordering::Greater,
            Self::Greater => order == Ordering::Greater,
            Self::GreaterOrEqual => order != Ordering::Less,
            Self::Equal => order == Ordering::Equal,
            Self::NotEqual => order != Ordering::Equal,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Number(f64),
    Word(String),
}

impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => write!(f, "`{word}`"),
        }
    }
}

/// Alternatives, each a list of tests that all have to hold.
pub(super) fn parse(text: &str) -> Result<Vec<Vec<Test>>> {
    let tokens = tokens(text);
    if tokens.is_empty() {
        return Err(Error::Option("--fail-if: the expression is empty".into()));
    }
    let terms = tokens.split(|token| token == "or");
    terms
        .map(|term| {
            term.split(|token| token == "and").map(|test| Test::parse(test, text)).collect()
        })
        .collect()
}

impl Test {
    fn parse(tokens: &[String], whole: &str) -> Result<Self> {
        let [field, op, value] = tokens else {
            let like = match tokens {
                _ if whole.contains("&&") || whole.contains("||") => {
                    let words = whole.replace("&&", " and ").replace("||", " or ");
                    let words: Vec<&str> = words.split_whitespace().collect();
                    format!("; did you mean `{}`?", words.join(" "))
                }
                [field, op, words @ ..] if words.len() > 1 && Op::parse(op).is_some() => {
                    let word = in_unit_of(field, &words.concat());
                    let word = word.or_else(|| {
                        let is_number =
                            words.concat().starts_with(|c: char| c.is_ascii_digit() || c == '-');
                        (!is_number).then(|| words.join("_").replace(['"', '\''], ""))
                    });
                    let like = |word| format!("; did you mean `{field} {op} {word}`?");
                    word.map_or_else(|| "; give a number in the field's unit".to_owned(), like)
                }
                _ => String::new(),
            };
            return Err(Error::Option(format!(
                "--fail-if {whole:?}: expected `FIELD OP VALUE`, such as `link_demand >= 0.9`, \
                 got `{}`{like}",
                tokens.join(" ")
            )));
        };
        let op = Op::parse(op).ok_or_else(|| {
            Error::Option(format!("--fail-if {whole:?}: `{op}` is not one of < <= > >= == !="))
        })?;
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
        let value = number.map_or_else(
            || Literal::Word(value.trim_matches(['"', '\'']).to_owned()),
            Literal::Number,
        );
        let path = field.trim_start_matches("transfers.").split('.').map(str::to_owned).collect();
        Ok(Self { path, op, value })
    }

    /// The field as written.
    pub(super) fn field(&self) -> String {
        self.path.join(".")
    }
}

/// A number with a unit of the field's quantity (`5Mbit/s`, `50%`) as a number of the field, which is
/// in ms, bytes, bit/s, dB, dBm or a fraction; `None` if the unit is of another quantity. Its decimal
/// point is moved in the text, so that no digit is lost or added.
pub(super) fn in_unit_of(field: &str, text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-')?;
    let (number, unit) = text.split_at_checked(end)?;
    let parts = field.trim_start_matches("transfers.").split('.');
    let is_in =
        |unit: &str| parts.clone().any(|part| part == unit || part.ends_with(&format!("_{unit}")));
    let (of_field, exponent) = match unit {
        "ms" => ("ms", 0),
        "s" => ("ms", 3),
        "bit/s" | "bps" => ("bps", 0),
        "kbit/s" | "kbps" => ("bps", 3),
        "Mbit/s" | "Mbps" => ("bps", 6),
        "Gbit/s" | "Gbps" => ("bps", 9),
        "B" | "bytes" => ("bytes", 0),
        "kB" | "KB" => ("bytes", 3),
        "MB" => ("bytes", 6),
        "GB" => ("bytes", 9),
        "dBm" => ("dbm", 0),
        "dB" => ("db", 0),
        "%" => ("", -2),
        _ => return None,
    };
    let is_of_field = match of_field {
        "" => !["ms", "bps", "bytes", "dbm", "db"].into_iter().any(is_in),
        unit => is_in(unit),
    };
    if !is_of_field {
        return None;
    }
    let number = number.parse::<f64>().ok()?;
    match exponent {
        0 => Some(number.to_string()),
        // Reads as the nearest number to the decimal one, as 0.29 is not 29 * 0.01.
        _ => format!("{number}e{exponent}").parse::<f64>().ok().map(|value| match exponent {
            6.. => format!("{value:e}"),
            _ => value.to_string(),
        }),
    }
}

fn tokens(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        if c.is_whitespace() {
            chars.next();
            continue;
        }
        let is_op = |c: &char| "<>=!".contains(*c);
        let operator = is_op(&c);
        let mut token = String::new();
        while let Some(c) = chars.next_if(|c| !c.is_whitespace() && is_op(c) == operator) {
            token.push(c);
        }
        out.push(token);
    }
    out
}
