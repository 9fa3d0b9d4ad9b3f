//! Rows as lines of CSV (RFC 4180); a row is one line, as strings are escaped.

use airmile_model::printable;
use airmile_model::row::{Value, hex};

/// A line without its end, from a function that passes the values to a sink.
#[must_use]
pub fn line<'a>(values: impl FnOnce(&mut dyn FnMut(Value<'a>))) -> String {
    let mut line = String::new();
    let mut first = true;
    values(&mut |value| {
        if !std::mem::take(&mut first) {
            line.push(',');
        }
        match value {
            Value::Null => {}
            Value::Int(i) => line.push_str(&i.to_string()),
            Value::Float(x) => line.push_str(&x.to_string()),
            Value::Bool(b) => line.push(if b { '1' } else { '0' }),
            Value::Text(s) => {
                let s = printable(s);
                // A spreadsheet would take it for a formula: hosts and URLs are strangers'.
                let s =
                    if s.starts_with(['=', '+', '-', '@']) { format!("'{s}").into() } else { s };
                if s.contains([',', '"']) {
                    line.push('"');
                    line.push_str(&s.replace('"', "\"\""));
                    line.push('"');
                } else {
                    line.push_str(&s);
                }
            }
            Value::Bytes(b) => line.push_str(&hex(b)),
        }
    });
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_formulas() {
        let written = line(|sink| {
            for text in ["=cmd|'/c calc'!A1", "@SUM(1)", "+1", "-2+3", "=A,\"x\"", "a=1", ""] {
                sink(Value::Text(text));
            }
            sink(Value::Int(-5));
        });
        assert_eq!(written, "'=cmd|'/c calc'!A1,'@SUM(1),'+1,'-2+3,\"'=A,\"\"x\"\"\",a=1,,-5");
    }
}
