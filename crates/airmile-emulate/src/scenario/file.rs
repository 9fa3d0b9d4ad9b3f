//! Scenarios as files: TOML with positions in errors, and causes that can be removed.

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Workload;
use super::{Scenario, ScenarioError};

/// An impairment that a scenario applies to its transfers on purpose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// A short label, such as `wireline`.
    pub label: String,
    /// Description in one line.
    #[serde(default)]
    pub what: String,
    /// First ms of the run in which it acts.
    #[serde(default)]
    pub from_ms: u32,
    /// First ms in which it no longer acts; absent: until the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<u32>,
    /// Fields to remove for the run without it, such as `core.down.limit`.
    #[serde(default)]
    pub remove: Vec<String>,
    /// Fields to set for the run without it, in the scenario's format.
    #[serde(default)]
    pub set: Map<String, Value>,
}

impl Scenario {
    /// Parses a scenario file.
    ///
    /// # Errors
    /// The problem, with its line and column.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let mut scenario: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().unwrap_or(0..0).start;
            let (line, column) = position(text, at);
            let path = path_at(text, at).map_or_else(String::new, |path| path + ": ");
            ScenarioError::Syntax { line, column, what: path + error.message() }
        })?;
        if !is_written(text, "uplink.max_prb") {
            scenario.narrow_uplink();
        }
        scenario.validate().map_err(|error| locate(text, error))?;
        for n in 0..scenario.causes.len() {
            scenario.without(n).map_err(|error| locate(text, error))?;
        }
        Ok(scenario)
    }

    /// Writes the scenario as a file.
    ///
    /// # Errors
    /// A value that TOML cannot hold.
    pub fn to_toml(&self) -> Result<String, ScenarioError> {
        toml::to_string(self).map_err(|error| ScenarioError::NotToml(error.to_string()))
    }

    /// The scenario without its `n`-th cause, otherwise unchanged, with the same seed.
    ///
    /// # Errors
    /// The cause names a missing field, or its values do not fit.
    pub fn without(&self, n: usize) -> Result<Self, ScenarioError> {
        let Some(cause) = self.causes.get(n) else { return Ok(self.clone()) };
        let fail = |what: String| ScenarioError::Cause { label: cause.label.clone(), what };
        let mut value = serde_json::to_value(self).map_err(|e| fail(e.to_string()))?;
        for path in &cause.remove {
            remove(&mut value, path).ok_or_else(|| fail(format!("no field `{path}` to remove")))?;
        }
        merge(&mut value, &Value::Object(cause.set.clone()));
        let mut without: Self = serde_json::from_value(value).map_err(|e| fail(e.to_string()))?;
        without.causes.remove(n);
        if without.seed != self.seed {
            return Err(fail("may not change the seed: only the cause may differ".to_owned()));
        }
        let mut same = self.clone();
        same.causes.remove(n);
        (same.link.dl_trace, same.link.ul_trace) = (None, None);
        if without == same {
            return Err(fail(
                "changes nothing: its `remove` and `set` leave everything unchanged".to_owned(),
            ));
        }
        if without.cell.n_prb != self.cell.n_prb {
            without.narrow_uplink();
        }
        // Data read from other files is not part of the text.
        without.link.dl_trace.clone_from(&self.link.dl_trace);
        without.link.ul_trace.clone_from(&self.link.ul_trace);
        without.validate()?;
        Ok(without)
    }
}

impl Scenario {
    /// Adapts the default of the uplink's share to a narrow carrier.
    fn narrow_uplink(&mut self) {
        self.uplink.max_prb = self.uplink.max_prb.min(self.cell.n_prb);
    }

    /// Fixes the choices of the measured phone's video players to those of another run, so
    /// that this run fetches the same bytes.
    #[must_use]
    pub fn with_choices(mut self, choices: &BTreeMap<String, Vec<u64>>) -> Self {
        for app in &mut self.apps {
            if let Workload::Video(config) = &mut app.workload
                && let Some(chosen) = choices.get(&app.name)
            {
                config.chosen_bps.clone_from(chosen);
            }
        }
        self
    }
}

/// Removes the field at a dotted path; a number is an index of a list.
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

/// Merges `patch` into `value`: tables are merged, everything else is replaced.
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

/// Adds the position of the field named in an error.
fn locate(text: &str, error: ScenarioError) -> ScenarioError {
    let ScenarioError::OutOfRange { field, .. } = &error else { return error };
    let span = span_of(text, field).map(|(span, _)| span);
    let (line, column) = position(text, span.map_or(0, |span| span.start));
    ScenarioError::Syntax { line, column, what: error.to_string() }
}

/// Whether a file sets the value at a dotted path.
fn is_written(text: &str, path: &str) -> bool {
    span_of(text, path).is_some_and(|(_, whole)| whole)
}

/// Position of the value at a dotted path, or of its longest existing prefix, and whether
/// it is the whole path. A number is an index of a list.
fn span_of(text: &str, path: &str) -> Option<(Range<usize>, bool)> {
    use toml::de::DeValue;
    let root = toml::de::DeTable::parse(text).ok()?;
    let mut span = None;
    let mut names = path.split('.');
    let first = names.next()?;
    let mut at = root.get_ref().iter().find(|(key, _)| key.get_ref() == first).map(|(_, v)| v);
    loop {
        let Some(value) = at else { return span.map(|span| (span, false)) };
        span = Some(value.span());
        let Some(name) = names.next() else { return span.map(|span| (span, true)) };
        at = match value.get_ref() {
            DeValue::Table(table) => {
                table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)
            }
            DeValue::Array(list) => name.parse().ok().and_then(|index: usize| list.get(index)),
            _ => None,
        };
    }
}

/// The dotted path of the value at a byte; a number is an index of a list. `None`: a key or
/// nothing is there, or the text is not TOML.
fn path_at(text: &str, at: usize) -> Option<String> {
    use toml::de::{DeTable, DeValue};
    fn find(value: &DeValue<'_>, at: usize) -> Option<String> {
        let entries: Vec<(String, &toml::Spanned<DeValue<'_>>)> = match value {
            DeValue::Table(table) => {
                table.iter().map(|(key, value)| (key.get_ref().to_string(), value)).collect()
            }
            DeValue::Array(list) => {
                list.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect()
            }
            _ => return None,
        };
        entries.into_iter().find_map(|(name, value)| match find(value.get_ref(), at) {
            Some(rest) => Some(format!("{name}.{rest}")),
            // The span of a table may be only that of its header.
            None => (value.span().start == at).then_some(name),
        })
    }
    let root = DeTable::parse(text).ok()?;
    find(&DeValue::Table(root.into_inner()), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_where() {
        let app = "[[apps]]\nname = \"a\"\n[apps.workload]\nkind =";
        let video = |field: &str| format!("{app} \"video\"\n{field}\n");
        let cause = |rest: &str| format!("[[causes]]\nlabel = \"x\"\n{rest}\n");
        for (text, expected) in [
            (
                "seed = 1\n[cell]\nn_prb = 60\n",
                "line 3, column 9: cell.n_prb: must be 6, 15, 25, 50, 75 or 100",
            ),
            ("seed = 1\n[cell]\nnprb = 50\n", "line 3, column 1: unknown field `nprb`"),
            ("seed = \"x\"\n", "line 1, column 8: seed: invalid type"),
            ("[core]\nrtt_ms = \"x\"\n", "line 2, column 10: core.rtt_ms: invalid type"),
            ("[core.down.limit]\nrate_bps = -1\n", "line 2, column 12: core.down.limit.rate_bps: "),
            ("[proxy]\nports = [{ port = true }]\n", "line 2, column 19: proxy.ports.0.port: "),
            ("cell = 3\n", "line 1, column 8: cell: invalid type"),
            ("seed 1\n", "line 1, column 6:"),
            ("[core.down]\nloss = 5.0\n", "line 2, column 8: core.down.loss: must be 0 to 1"),
            ("[core.up]\njitter_ms = -5.0\n", "line 2, column 13: core.up.jitter_ms: must be 0 to"),
            ("[core.up]\njitter_ms = inf\n", "line 2, column 13: core.up.jitter_ms: must be 0 to"),
            ("[core.up]\njitter_ms = 1e9\n", "line 2, column 13: core.up.jitter_ms: must be 0 to"),
            (
                "[core.up.limit]\nrate_bps = 9\nfrom_ms = 5\nto_ms = 5\n",
                "line 4, column 9: core.up.limit.to_ms: must be after from_ms",
            ),
            (
                "[rrc]\ndrx = { on_ms = 50, cycle_ms = 40 }\n",
                "line 2, column 17: rrc.drx.on_ms: must be 1 to cycle_ms, which is 40",
            ),
            ("duration_ms = 86_400_001\n", "line 1, column 15: duration_ms: must be 1 to 86400000"),
            ("tail_ms = 86_400_001\n", "line 1, column 11: tail_ms: must be 0 to 86400000"),
            ("[phone_tcp]\nmss_bytes = 87\n", "line 2, column 13: phone_tcp.mss_bytes: must be 88"),
            (
                "[link]\nrsrp_mean_dbm = -43.0\n",
                "line 2, column 17: link.rsrp_mean_dbm: must be -140",
            ),
            ("[cell]\nn_prb = 25\n[uplink]\nmax_prb = 26\n", "line 4, column 11: uplink.max_prb:"),
            (
                &video("bitrates_bps = []"),
                "line 5, column 16: apps.0.workload.bitrates_bps: must be",
            ),
            (&video("bitrates_bps = [2, 1]"), "line 5, column 16: apps.0.workload.bitrates_bps: "),
            (&video("segment_ms = 0"), "line 5, column 14: apps.0.workload.segment_ms: must be at"),
            (&video("variation = 1.5"), "line 5, column 13: apps.0.workload.variation: must be 0"),
            (
                &format!("{app} \"paced\"\nbytes = 1\nrate_bps = 0\n"),
                "line 6, column 12: apps.0.workload.rate_bps: must be at least 1",
            ),
            (
                &format!("{0}\n{0}", video("segment_ms = 1").replace("\"a\"", "\"b\"")),
                "line 8, column 8: apps.1.name: must be different from `b`",
            ),
            (
                &video("").replace("\"a\"", "\"\""),
                "line 2, column 8: apps.0.name: must be not empty",
            ),
            (
                &cause("from_ms = 5\nto_ms = 4\nremove = [\"cell\"]"),
                "line 4, column 9: causes.0.to_ms: must be after from_ms",
            ),
            (&cause("set = { seed = 9 }"), "cause `x`: may not change the seed"),
            (&cause("set = { seed = 1 }"), "cause `x`: changes nothing"),
            (&cause(""), "cause `x`: changes nothing"),
            (
                &cause("remove = [\"core.down.limit\"]"),
                "cause `x`: no field `core.down.limit` to remove",
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

    #[test]
    fn the_uplink_follows_a_narrow_carrier() {
        for (n_prb, expected) in [(6, 6), (15, 15), (25, 20), (100, 20)] {
            let scenario = Scenario::from_toml(&format!("[cell]\nn_prb = {n_prb}\n")).unwrap();
            assert_eq!(scenario.uplink.max_prb, expected);
        }
    }

    #[test]
    fn what_is_hardly_meant_is_told() {
        let text = "
            duration_ms = 1_000
            [[apps]]
            name = \"late\"
            start_ms = 1_000
            workload = { kind = \"file\", bytes = 1 }
            [proxy]
            ports = [{ port = 80, slow_start_after_idle = true }]
        ";
        let warnings = Scenario::from_toml(text).unwrap().warnings();
        assert!(warnings[0].contains("no app uses port 80"), "{warnings:?}");
        assert!(warnings[1].contains("`late` would start at 1000 ms"), "{warnings:?}");
        let nothing = Scenario::default().warnings();
        assert!(nothing[0].contains("no transfers"), "{nothing:?}");
    }
}
