//! Metrics in Prometheus' text format (exposition format 0.0.4).

use std::fmt::Write;

/// Metrics under construction.
#[derive(Debug, Default)]
pub struct Metrics(String);

impl Metrics {
    /// The text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.0
    }

    /// A metric with one value.
    pub fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.head(name, kind, help);
        self.line(format_args!("{name} {value}"));
    }

    /// A metric with a value for each value of a label.
    pub fn many(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        label: &str,
        values: &[(&str, f64)],
    ) {
        self.head(name, kind, help);
        for (of, value) in values {
            self.line(format_args!("{name}{{{label}=\"{of}\"}} {value}"));
        }
    }

    /// A metric with a value for each set of labels, which are written verbatim.
    pub fn labelled(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl Iterator<Item = (String, f64)>,
    ) {
        self.head(name, kind, help);
        for (labels, value) in values {
            self.line(format_args!("{name}{{{labels}}} {value}"));
        }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{line}");
    }
}
