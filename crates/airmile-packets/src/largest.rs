//! The flows of a study's document: the largest ones.

use std::borrow::Cow;
use std::cmp::Reverse;

use airmile_model::flow::FlowRow;
use airmile_model::row::{ColumnType, Row};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Maximum number of flows in a document (chosen here: some 200 KB of it).
pub(super) const MOST_FLOWS: usize = 100;

/// A row of the table `flows` in a document.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowEntry(FlowRow);

impl FlowEntry {
    /// The row.
    #[must_use]
    pub const fn row(&self) -> &FlowRow {
        &self.0
    }
}

impl Serialize for FlowEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut values = Vec::new();
        self.0.values(&mut |value| values.push(value.to_json()));
        let mut map = serializer.serialize_map(Some(values.len()))?;
        for (column, value) in FlowRow::columns().iter().zip(&values) {
            map.serialize_entry(column.name, value)?;
        }
        map.end()
    }
}

impl JsonSchema for FlowEntry {
    fn schema_name() -> Cow<'static, str> {
        "FlowEntry".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let columns = FlowRow::columns();
        let properties: serde_json::Map<_, _> = columns
            .iter()
            .map(|column| {
                let kind = match column.kind {
                    ColumnType::Int => "integer",
                    ColumnType::Float => "number",
                    ColumnType::Bool => "boolean",
                    ColumnType::Text | ColumnType::Bytes => "string",
                };
                let kind =
                    if column.nullable { serde_json::json!([kind, "null"]) } else { kind.into() };
                let described = serde_json::json!({ "type": kind, "description": column.doc });
                (column.name.to_owned(), described)
            })
            .collect();
        let required: Vec<&str> = columns.iter().map(|column| column.name).collect();
        json_schema!({
            "type": "object",
            "description": FlowRow::DOC,
            "properties": properties,
            "required": required,
        })
    }
}

/// Keeps the flows with the most payload; of equal ones, the earlier.
#[derive(Debug, Default)]
pub(super) struct Largest {
    rows: Vec<FlowRow>,
    /// Payload of the smallest flow that can still enter.
    least: u64,
    n: u64,
}

impl Largest {
    pub(super) fn push(&mut self, row: &FlowRow) {
        self.n += 1;
        if self.rows.len() < MOST_FLOWS || payload(row) > self.least {
            self.rows.push(row.clone());
        }
        if self.rows.len() >= 2 * MOST_FLOWS {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.rows.sort_by_key(|row| (Reverse(payload(row)), row.flow));
        self.rows.truncate(MOST_FLOWS);
        self.least = self.rows.last().map_or(0, payload);
    }

    /// The flows in their order, and the number of other flows.
    pub(super) fn finish(mut self) -> (Vec<FlowEntry>, u64) {
        self.cut();
        self.rows.sort_by_key(|row| row.flow);
        let left_out = self.n - self.rows.len() as u64;
        (self.rows.into_iter().map(FlowEntry).collect(), left_out)
    }
}

const fn payload(row: &FlowRow) -> u64 {
    row.dl_bytes + row.ul_bytes
}
