//! Results as Arrow tables: records by their columns, rows of a document by its JSON
//! schema. Each is defined once, and a new field becomes a new column.

pub mod csv;
pub mod parquet;

use std::collections::HashMap;
use std::sync::Arc;

use airmile_model::Record;
use airmile_model::flow::PacketRow;
use airmile_model::row::{Column, ColumnType, Value};
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder,
};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::error::{Error, Result};

/// Number of rows in a batch.
pub const BATCH_ROWS: usize = 64 * 1024;

/// A table: its columns, with their documentation as field metadata `doc`,
/// and its rows in batches.
#[derive(Debug, Clone)]
pub struct ArrowTable {
    /// The row type: a record type, or an array of a document.
    pub name: &'static str,
    /// The columns.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

impl ArrowTable {
    /// A document's array as a table. Nested objects become structs, arrays lists, maps
    /// lists of `key` and `value`.
    ///
    /// # Errors
    /// A row does not match its own schema.
    pub fn of_rows<T: Serialize + JsonSchema>(name: &'static str, rows: &[T]) -> Result<Self> {
        let root = schemars::schema_for!(T).to_value();
        let schema = Arc::new(Schema::new(fields_of(&root, &root)));
        let rows = rows.iter().map(serde_json::to_value).collect::<serde_json::Result<Vec<_>>>();
        let rows = rows.map_err(|e| refused(name, &e))?;
        let rows: Vec<&Json> = rows.iter().collect();
        let arrays = columns_of(schema.fields(), &rows).map_err(|e| refused(name, &e))?;
        let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|e| refused(name, &e))?;
        Ok(Self { name, schema, batches: vec![batch] })
    }

    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

fn refused(table: &'static str, what: &dyn std::fmt::Display) -> Error {
    Error::Arrow { table, what: what.to_string() }
}

/// The Arrow schema of a record type: its columns, with their documentation
/// as field metadata.
#[must_use]
pub fn arrow_schema(columns: &[Column]) -> SchemaRef {
    let fields = columns.iter().map(|column| {
        let kind = match column.kind {
            ColumnType::Int => DataType::Int64,
            ColumnType::Float => DataType::Float64,
            ColumnType::Bool => DataType::Boolean,
            ColumnType::Text => DataType::Utf8,
            ColumnType::Bytes => DataType::Binary,
        };
        documented(Field::new(column.name, kind, column.nullable), Some(column.doc))
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn documented(field: Field, doc: Option<&str>) -> Field {
    match doc {
        Some(doc) => field.with_metadata(HashMap::from([("doc".to_owned(), doc.to_owned())])),
        None => field,
    }
}

/// A row with its table.
pub trait TableRow {
    /// The table.
    fn table(&self) -> &'static str;
    /// Its values, in the columns' order.
    fn values<'a>(&'a self, sink: &mut dyn FnMut(Value<'a>));
}

impl TableRow for Record {
    fn table(&self) -> &'static str {
        self.name()
    }
    fn values<'a>(&'a self, sink: &mut dyn FnMut(Value<'a>)) {
        self.values(sink);
    }
}

impl TableRow for PacketRow {
    fn table(&self) -> &'static str {
        self.name()
    }
    fn values<'a>(&'a self, sink: &mut dyn FnMut(Value<'a>)) {
        self.values(sink);
    }
}

/// Gathers records of one type into batches.
pub struct RecordColumns {
    schema: SchemaRef,
    builders: Vec<Builder>,
    pending: usize,
}

impl RecordColumns {
    /// Without rows.
    #[must_use]
    pub fn new(schema: SchemaRef) -> Self {
        let builders = schema.fields().iter().map(|f| Builder::of(f.data_type())).collect();
        Self { schema, builders, pending: 0 }
    }

    /// The columns.
    #[must_use]
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows since the last batch.
    #[must_use]
    pub const fn pending(&self) -> usize {
        self.pending
    }

    /// Adds a row.
    pub fn push(&mut self, row: &impl TableRow) {
        let mut builders = self.builders.iter_mut();
        row.values(&mut |value| {
            if let Some(builder) = builders.next() {
                builder.append(value);
            }
        });
        self.pending += 1;
    }

    /// Takes the rows pushed since the last batch.
    ///
    /// # Errors
    /// Arrow rejects the columns.
    pub fn batch(&mut self) -> std::result::Result<RecordBatch, ArrowError> {
        self.pending = 0;
        let arrays = self.builders.iter_mut().map(Builder::finish).collect();
        RecordBatch::try_new(self.schema.clone(), arrays)
    }
}

enum Builder {
    Int(Int64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

impl Builder {
    fn of(kind: &DataType) -> Self {
        match kind {
            DataType::Int64 => Self::Int(Int64Builder::new()),
            DataType::Float64 => Self::Float(Float64Builder::new()),
            DataType::Boolean => Self::Bool(BooleanBuilder::new()),
            DataType::Binary => Self::Bytes(BinaryBuilder::new()),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    fn append(&mut self, value: Value<'_>) {
        match (self, value) {
            (Self::Int(b), Value::Int(x)) => b.append_value(x),
            (Self::Int(b), _) => b.append_null(),
            (Self::Float(b), Value::Float(x)) => b.append_value(x),
            (Self::Float(b), _) => b.append_null(),
            (Self::Bool(b), Value::Bool(x)) => b.append_value(x),
            (Self::Bool(b), _) => b.append_null(),
            (Self::Text(b), Value::Text(x)) => b.append_value(x),
            (Self::Text(b), _) => b.append_null(),
            (Self::Bytes(b), Value::Bytes(x)) => b.append_value(x),
            (Self::Bytes(b), _) => b.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Int(b) => Arc::new(b.finish()),
            Self::Float(b) => Arc::new(b.finish()),
            Self::Bool(b) => Arc::new(b.finish()),
            Self::Text(b) => Arc::new(b.finish()),
            Self::Bytes(b) => Arc::new(b.finish()),
        }
    }
}

/// The fields of an object by its JSON schema.
fn fields_of(schema: &Json, root: &Json) -> Fields {
    let properties = schema.get("properties").and_then(Json::as_object);
    let required = schema.get("required").and_then(Json::as_array);
    let is_required = |name: &str| required.is_some_and(|r| r.iter().any(|x| x == name));
    properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let field = field_of(name, property, root);
            let nullable = field.is_nullable() || !is_required(name);
            Arc::new(field.with_nullable(nullable))
        })
        .collect()
}

/// One field by its JSON schema. Anything but a number, boolean, array or object is text.
/// A number may be null, as JSON has no NaN.
fn field_of(name: &str, property: &Json, root: &Json) -> Field {
    let (schema, null) = resolve(property, root);
    let (kind, null) = match type_of(schema) {
        (Some("integer"), or_null) => (DataType::Int64, null || or_null),
        (Some("number"), _) => (DataType::Float64, true),
        (Some("boolean"), or_null) => (DataType::Boolean, null || or_null),
        (Some("array"), or_null) => {
            let item = field_of("item", schema.get("items").unwrap_or(&Json::Null), root);
            (DataType::List(Arc::new(item)), null || or_null)
        }
        (Some("object"), or_null) => {
            let kind = match map_value(schema) {
                Some(value) => map_kind(field_of("value", value, root)),
                None => DataType::Struct(fields_of(schema, root)),
            };
            (kind, null || or_null)
        }
        (_, or_null) => (DataType::Utf8, null || or_null),
    };
    let doc = property.get("description").and_then(Json::as_str);
    documented(Field::new(name, kind, null), doc)
}

/// The schema of a map's values; schemars writes number keys as a pattern.
fn map_value(schema: &Json) -> Option<&Json> {
    let pattern = || schema.get("patternProperties")?.as_object()?.values().next();
    schema.get("additionalProperties").filter(|x| x.is_object()).or_else(pattern)
}

fn map_kind(value: Field) -> DataType {
    let key = Field::new("key", DataType::Utf8, false);
    let entry = DataType::Struct(Fields::from(vec![key, value]));
    DataType::List(Arc::new(Field::new("item", entry, false)))
}

/// Follows `$ref`, and an `anyOf` of something and null.
fn resolve<'a>(schema: &'a Json, root: &'a Json) -> (&'a Json, bool) {
    if let Some(target) = schema.get("$ref").and_then(Json::as_str) {
        let found = root.pointer(target.trim_start_matches('#')).unwrap_or(&Json::Null);
        return resolve(found, root);
    }
    let Some(choices) = schema.get("anyOf").and_then(Json::as_array) else {
        return (schema, false);
    };
    let is_null = |s: &&Json| s.get("type").is_some_and(|t| t == "null");
    let null = choices.iter().any(|s| is_null(&s));
    match choices.iter().find(|s| !is_null(s)) {
        Some(choice) => {
            let (schema, inner) = resolve(choice, root);
            (schema, null || inner)
        }
        None => (schema, true),
    }
}

/// The type of a schema, and whether it may be null.
fn type_of(schema: &Json) -> (Option<&str>, bool) {
    match schema.get("type") {
        Some(Json::String(kind)) => (Some(kind), false),
        Some(Json::Array(kinds)) => {
            let mut names = kinds.iter().filter_map(Json::as_str);
            (names.clone().find(|k| *k != "null"), names.any(|k| k == "null"))
        }
        _ => (None, false),
    }
}

fn columns_of(fields: &Fields, rows: &[&Json]) -> std::result::Result<Vec<ArrayRef>, ArrowError> {
    let column = |field: &FieldRef| {
        let values: Vec<&Json> =
            rows.iter().map(|row| row.get(field.name()).unwrap_or(&Json::Null)).collect();
        array_of(field.data_type(), &values)
    };
    fields.iter().map(column).collect()
}

fn array_of(kind: &DataType, values: &[&Json]) -> std::result::Result<ArrayRef, ArrowError> {
    let nulls = || NullBuffer::from_iter(values.iter().map(|v| !v.is_null()));
    Ok(match kind {
        DataType::Int64 => Arc::new(Int64Array::from_iter(values.iter().map(|v| integer(v)))),
        DataType::Float64 => Arc::new(Float64Array::from_iter(values.iter().map(|v| v.as_f64()))),
        DataType::Boolean => Arc::new(BooleanArray::from_iter(values.iter().map(|v| v.as_bool()))),
        DataType::List(item) => {
            let mut entries: Vec<Json> = Vec::new();
            let mut lengths = Vec::with_capacity(values.len());
            for value in values {
                let before = entries.len();
                match value {
                    Json::Array(items) => entries.extend(items.iter().cloned()),
                    Json::Object(map) => entries.extend(map.iter().map(entry)),
                    _ => {}
                }
                lengths.push(entries.len() - before);
            }
            let entries: Vec<&Json> = entries.iter().collect();
            let child = array_of(item.data_type(), &entries)?;
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(ListArray::try_new(item.clone(), offsets, child, Some(nulls()))?)
        }
        DataType::Struct(fields) => {
            let children = columns_of(fields, values)?;
            Arc::new(StructArray::try_new(fields.clone(), children, Some(nulls()))?)
        }
        _ => Arc::new(StringArray::from_iter(values.iter().map(|v| v.as_str()))),
    })
}

/// As in records: a value over `i64` becomes its maximum.
fn integer(value: &Json) -> Option<i64> {
    value.as_i64().or_else(|| value.as_u64().map(|_| i64::MAX))
}

fn entry((key, value): (&String, &Json)) -> Json {
    serde_json::json!({ "key": key, "value": value })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};

    use super::*;

    #[derive(Serialize, JsonSchema)]
    struct Row {
        /// Its name.
        id: String,
        dir: Option<airmile_model::Direction>,
        bytes: Option<u64>,
        share: f64,
        notes: Vec<String>,
        parts: BTreeMap<&'static str, f64>,
        by_sim: BTreeMap<u8, u64>,
        inner: Vec<Inner>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Inner {
        tti: airmile_model::TtiIndex,
        sure: bool,
    }

    fn row(id: &str, bytes: Option<u64>) -> Row {
        Row {
            id: id.into(),
            dir: bytes.map(|_| airmile_model::Direction::Ul),
            bytes,
            share: if id == "b" { f64::NAN } else { 0.5 },
            notes: vec![id.into(); 2],
            parts: BTreeMap::from([("radio", 1.5)]),
            by_sim: BTreeMap::from([(1, 2)]),
            inner: bytes
                .map(|_| Inner { tti: airmile_model::TtiIndex(7), sure: true })
                .into_iter()
                .collect(),
        }
    }

    #[test]
    fn rows_become_columns_with_types_nulls_and_words() {
        let rows = [row("a", None), row("b", Some(u64::MAX)), row("c", Some(3))];
        let table = ArrowTable::of_rows("row", &rows).unwrap();
        let kinds: Vec<String> = table
            .schema
            .fields()
            .iter()
            .map(|f| {
                format!("{}: {}{}", f.name(), f.data_type(), if f.is_nullable() { "?" } else { "" })
            })
            .collect();
        assert_eq!(kinds[..4], ["id: Utf8", "dir: Utf8?", "bytes: Int64?", "share: Float64?"]);
        assert_eq!(table.schema.field(0).metadata()["doc"], "Its name.");
        let batch = &table.batches[0];
        let bytes = batch["bytes"].as_primitive::<Int64Type>();
        assert_eq!(bytes.iter().collect::<Vec<_>>(), [None, Some(i64::MAX), Some(3)]);
        let share = batch["share"].as_primitive::<Float64Type>();
        assert_eq!(share.iter().collect::<Vec<_>>(), [Some(0.5), None, Some(0.5)]);
        assert_eq!(batch["dir"].as_string::<i32>().value(1), "ul");
        let notes = batch["notes"].as_list::<i32>();
        assert_eq!(notes.value(2).as_string::<i32>().value(1), "c");
        let parts = batch["parts"].as_list::<i32>().value(0);
        assert_eq!(
            parts.as_struct().column_by_name("key").unwrap().as_string::<i32>().value(0),
            "radio"
        );
        let by_sim = batch["by_sim"].as_list::<i32>().value(0);
        let count = by_sim.as_struct().column_by_name("value").unwrap();
        assert_eq!(count.as_primitive::<Int64Type>().value(0), 2);
        let inner = batch["inner"].as_list::<i32>();
        assert_eq!((inner.value(0).len(), inner.value(1).len()), (0, 1));
    }

    #[test]
    fn no_rows_still_have_columns() {
        let table = ArrowTable::of_rows::<Row>("row", &[]).unwrap();
        assert_eq!((table.n_rows(), table.schema.fields().len()), (0, 8));
    }

    #[test]
    fn every_array_of_the_documents_has_a_table() {
        ArrowTable::of_rows::<airmile_model::Burst>("bursts", &[]).unwrap();
        ArrowTable::of_rows::<airmile_model::TransferFinding>("transfers", &[]).unwrap();
        ArrowTable::of_rows::<crate::FileReport>("files", &[]).unwrap();
    }
}
