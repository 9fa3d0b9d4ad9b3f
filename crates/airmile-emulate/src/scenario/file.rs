//! Scenarios as files: TOML with positions in errors, and causes that can be
//! taken out again.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Scenario, ScenarioError};
use crate::workload::Workload;

/// Something that a scenario does to its transfers on purpose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// A word for it, as `wireline`.
    pub label: String,
    /// What it is, in a line.
    #[serde(default)]
    pub what: String,
    /// First ms of the run that it acts in.
    #[serde(default)]
    pub from_ms: u32,
    /// First ms in which it does not act any more; absent: to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<u32>,
    /// Fields to leave out for the run without it, as `core.down.limit`.
    #[serde(default)]
    pub remove: Vec<String>,
    /// Fields to set for the run without it, in the scenario's own form.
    #[serde(default)]
    pub set: Map<String, Value>,
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// What is wrong, with its line and column.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|error| {
            let (line, column) = position(text, error.span().unwrap_or(0..0).start);
            ScenarioError::Syntax { line, column, what: error.message().to_owned() }
        })?;
        scenario.validate().map_err(|error| locate(text, error))?;
        for n in 0..scenario.causes.len() {
            scenario.without(n).map_err(|error| locate(text, error))?;
        }
        Ok(scenario)
    }

    /// The scenario as a file.
    ///
    /// # Errors
    /// A value that TOML cannot hold.
    pub fn to_toml(&self) -> Result<String, ScenarioError> {
        toml::to_string(self).map_err(|error| ScenarioError::NotToml(error.to_string()))
    }

    /// The scenario without its `n`-th cause: same seed, same everything else.
    ///
    /// # Errors
    /// The cause names a field that there is not, or its values do not fit.
    pub fn without(&self, n: usize) -> Result<Self, ScenarioError> {
        let Some(cause) = self.causes.get(n) else { return Ok(self.clone()) };
        let fail = |what: String| ScenarioError::Cause { label: cause.label.clone(), what };
        let mut value = serde_json::to_value(self).map_err(|e| fail(e.to_string()))?;
        for path in &cause.remove {
            remove(&mut value, path)
                .ok_or_else(|| fail(format!("there is no field `{path}` to remove")))?;
        }
        merge(&mut value, &Value::Object(cause.set.clone()));
        let mut without: Self = serde_json::from_value(value).map_err(|e| fail(e.to_string()))?;
        without.causes.remove(n);
        // What was read from files is no part of the text.
        without.link.dl_trace.clone_from(&self.link.dl_trace);
        without.link.ul_trace.clone_from(&self.link.ul_trace);
        without.validate()?;
        Ok(without)
    }
}

impl Scenario {
    /// Lets the measured phone's video players choose as they did in a run of
    /// it, so that another run fetches the same bytes.
    #[must_use]
    pub fn with_choices(mut self, choices: &[Vec<u64>]) -> Self {
        for (app, chosen) in self.apps.iter_mut().zip(choices) {
            if let Workload::Video(config) = &mut app.workload {
                config.chosen_bps.clone_from(chosen);
            }
        }
        self
    }
}

/// Takes the field of a dotted path out; a number is an index of a list.
fn remove(value: &mut Value, path: &str) -> Option<Value> {
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut at = value;
    for name in parents.split('.').filter(|name| !name.is_empty()) {
        at = match at {
            Value::Object(map) => map.get_mut(name)?,
            Value::Array(list) => list.get_mut(name.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    match at {
        Value::Object(map) => map.remove(last),
        Value::Array(list) => {
            let index = last.parse().ok().filter(|&index| index < list.len())?;
            Some(list.remove(index))
        }
        _ => None,
    }
}

/// Lays `patch` over `value`: tables are merged, all else is replaced.
fn merge(value: &mut Value, patch: &Value) {
    match (value, patch) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, patch) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), patch);
            }
        }
        (value, patch) => *value = patch.clone(),
    }
}

/// Line and column of a byte, both from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

/// Adds the position of the field that an error names.
fn locate(text: &str, error: ScenarioError) -> ScenarioError {
    let ScenarioError::OutOfRange { field, .. } = &error else { return error };
    let span = span_of(text, field);
    let (line, column) = position(text, span.map_or(0, |span| span.start));
    ScenarioError::Syntax { line, column, what: error.to_string() }
}

/// Where the value of a dotted path stands, or of as much of it as there is.
fn span_of(text: &str, path: &str) -> Option<Range<usize>> {
    let root = toml::de::DeTable::parse(text).ok()?;
    let mut table = root.get_ref();
    let mut span = None;
    for name in path.split('.') {
        let Some((_, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else { break };
        span = Some(value.span());
        match value.get_ref() {
            toml::de::DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_where() {
        for (text, expected) in [
            ("seed = 1\n[cell]\nn_prb = 51\n", "line 3, column 9: cell.n_prb: a bandwidth of LTE"),
            ("seed = 1\n[cell]\nnprb = 50\n", "line 3, column 1: unknown field `nprb`"),
            ("seed = \"x\"\n", "line 1, column 8: invalid type"),
            ("seed 1\n", "line 1, column 6:"),
            ("[core.down]\nloss = 2.0\n", "line 1, column 2: core: loss"),
            (
                "[[causes]]\nlabel = \"x\"\nremove = [\"core.down.limit\"]\n",
                "cause `x`: there is no field `core.down.limit` to remove",
            ),
        ] {
            let error = Scenario::from_toml(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_file_survives_and_causes_can_be_taken_out() {
        let text = "
            seed = 7
            [core.down.limit]
            rate_bps = 1_000_000
            [[causes]]
            label = \"wireline\"
            remove = [\"core.down.limit\"]
            set = { cell = { n_prb = 100 } }
        ";
        let scenario = Scenario::from_toml(text).unwrap();
        let again = Scenario::from_toml(&scenario.to_toml().unwrap()).unwrap();
        assert_eq!(scenario, again);
        let without = scenario.without(0).unwrap();
        assert_eq!((without.core.down.limit, without.cell.n_prb), (None, 100));
        assert_eq!((without.seed, without.causes.len()), (7, 0));
    }
}
