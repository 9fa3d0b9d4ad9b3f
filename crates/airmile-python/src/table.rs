//! Tables for Python: Arrow's PyCapsule interface, so that other libraries read the same memory,
//! and plain values for use without a data frame library.
//!
//! For other libraries times are timestamps in UTC, and shares of causes a struct; plain values are
//! those of the document.

use std::sync::Arc;

use airmile::ArrowTable;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    Float64Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, TimeUnit};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

/// A table of the library.
#[pyclass(frozen, module = "airmile._airmile")]
pub struct Table {
    /// As the document has it.
    plain: ArrowTable,
    /// For other libraries, over the same memory.
    shown: ArrowTable,
}

const UTC: &str = "UTC";

/// The columns that are times since the Unix epoch, with their units.
pub const TIMES: [(&str, &str); 10] = [
    ("at_us", "us"),
    ("end_ns", "ns"),
    ("end_us", "us"),
    ("query_ns", "ns"),
    ("request_ns", "ns"),
    ("response_ns", "ns"),
    ("start_ns", "ns"),
    ("start_us", "us"),
    ("time_ns", "ns"),
    ("time_us", "us"),
];

impl Table {
    /// A table whose times are integers for other libraries, too.
    pub fn raw(table: ArrowTable) -> Self {
        Self { shown: table.clone(), plain: table }
    }

    /// A table whose times are timestamps for other libraries.
    pub fn new(table: ArrowTable) -> PyResult<Self> {
        Self::raw(table).with_columns(|field, array| {
            let unit = TIMES.iter().find(|(name, _)| name == field.name()).map(|(_, unit)| *unit);
            if field.data_type() != &DataType::Int64 {
                return (field.clone(), array.clone());
            }
            let integers = array.as_primitive::<Int64Type>();
            let (unit, times): (_, ArrayRef) = match unit {
                Some("us") => {
                    let times = integers.reinterpret_cast::<TimestampMicrosecondType>();
                    (TimeUnit::Microsecond, Arc::new(times.with_timezone(UTC)))
                }
                Some(_) => {
                    let times = integers.reinterpret_cast::<TimestampNanosecondType>();
                    (TimeUnit::Nanosecond, Arc::new(times.with_timezone(UTC)))
                }
                None => return (field.clone(), array.clone()),
            };
            (field.clone().with_data_type(DataType::Timestamp(unit, Some(UTC.into()))), times)
        })
    }

    /// With the time by cause as a struct, whose fields are in this order: `coarse` has the two parts
    /// without captures, which are null with them, as are the `causes` without. A cause that took no
    /// time is 0. With captures, the first part has a value where the radio's causes are not separated,
    /// which are then null.
    pub fn with_shares(self, column: &str, coarse: &[&str], causes: &[&str]) -> PyResult<Self> {
        let keys: Vec<&str> = coarse.iter().chain(causes).copied().collect();
        let parts = keys.iter().map(|key| Field::new(*key, DataType::Float64, true));
        let parts: Fields = parts.collect();
        self.with_columns(|field, array| {
            if field.name() != column {
                return (field.clone(), array.clone());
            }
            let maps = array.as_list::<i32>();
            let some = |row: usize| !maps.is_null(row) && maps.value_length(row) > 0;
            let get = |row: usize, key: &str| {
                let entries = maps.value(row);
                let entries = entries.as_struct();
                let names = entries.column(0).as_string::<i32>();
                let at = (0..names.len()).find(|at| names.value(*at) == key)?;
                Some(entries.column(1).as_primitive::<Float64Type>().value(at))
            };
            let value = |row: usize, key: &str| {
                let is_named = |cause: &&&str| **cause != "unknown" && get(row, cause).is_some();
                let is_coarse = causes.iter().find(is_named).is_none();
                let is_joint = coarse.iter().any(|key| get(row, key).is_some());
                let is_known = match coarse.contains(&key) {
                    true => is_coarse,
                    false => !(is_coarse || is_joint && key.starts_with("radio")),
                };
                some(row).then(|| get(row, key).or_else(|| is_known.then_some(0.0)))?
            };
            let values = |key: &&str| -> ArrayRef {
                Arc::new(Float64Array::from_iter((0..maps.len()).map(|row| value(row, key))))
            };
            let nulls = NullBuffer::from_iter((0..maps.len()).map(some));
            let children = keys.iter().map(values).collect();
            let made = StructArray::new(parts.clone(), children, Some(nulls));
            let kind = DataType::Struct(parts.clone());
            (field.clone().with_data_type(kind).with_nullable(true), Arc::new(made))
        })
    }

    /// With other columns for other libraries.
    fn with_columns(
        self,
        change: impl Fn(&Field, &ArrayRef) -> (Field, ArrayRef),
    ) -> PyResult<Self> {
        let Self { plain, shown } = self;
        let changed = |batch: &RecordBatch| -> (Vec<Field>, Vec<ArrayRef>) {
            let columns = shown.schema.fields().iter().zip(batch.columns());
            columns.map(|(field, array)| change(field, array)).unzip()
        };
        let (fields, _) = changed(&RecordBatch::new_empty(shown.schema.clone()));
        let schema = Arc::new(Schema::new(fields));
        let batches = shown
            .batches
            .iter()
            .map(|batch| RecordBatch::try_new(schema.clone(), changed(batch).1).map_err(refused));
        let batches = batches.collect::<PyResult<_>>()?;
        Ok(Self { plain, shown: ArrowTable { name: shown.name, schema, batches } })
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn name(&self) -> &'static str {
        self.plain.name
    }

    fn __len__(&self) -> usize {
        self.plain.n_rows()
    }

    /// Column name, Arrow type and documentation, in order.
    #[getter]
    fn columns(&self) -> Vec<(String, String, Option<String>)> {
        let fields = self.shown.schema.fields().iter();
        fields
            .map(|f| (f.name().clone(), type_name(f.data_type()), f.metadata().get("doc").cloned()))
            .collect()
    }

    // The Arrow PyCapsule interface permits a producer to leave casts to the consumer, so
    // `requested_schema` is ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches: Vec<_> = self.shown.batches.iter().cloned().map(Ok).collect();
        let reader: Box<dyn RecordBatchReader + Send> =
            Box::new(RecordBatchIterator::new(batches, self.shown.schema.clone()));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.shown.schema.as_ref()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// At most `limit` rows after the first `offset` as dictionaries; all by default.
    #[pyo3(signature = (limit=None, offset=0))]
    fn to_pylist<'py>(
        &self,
        py: Python<'py>,
        limit: Option<usize>,
        mut offset: usize,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut rows = Vec::new();
        let limit = limit.unwrap_or(usize::MAX);
        for batch in &self.plain.batches {
            let from = offset.min(batch.num_rows());
            offset -= from;
            let count = (batch.num_rows() - from).min(limit - rows.len());
            for row in from..from + count {
                let dict = PyDict::new(py);
                for (field, array) in self.plain.schema.fields().iter().zip(batch.columns()) {
                    dict.set_item(field.name(), value(py, array, row)?)?;
                }
                rows.push(dict);
            }
        }
        Ok(rows)
    }

    /// A column's values; `None` if there is no such column.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyList>>> {
        if self.plain.schema.column_with_name(name).is_none() {
            return Ok(None);
        }
        let list = PyList::empty(py);
        for array in self.plain.batches.iter().filter_map(|batch| batch.column_by_name(name)) {
            for row in 0..array.len() {
                list.append(value(py, array, row)?)?;
            }
        }
        Ok(Some(list))
    }
}

fn refused(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// An Arrow type as text, without the documentation of its parts.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::List(item) => format!("List({})", type_name(item.data_type())),
        DataType::Struct(fields) => {
            let part = |f: &Arc<Field>| format!("{}: {}", f.name(), type_name(f.data_type()));
            format!("Struct({})", fields.iter().map(part).collect::<Vec<_>>().join(", "))
        }
        _ => kind.to_string(),
    }
}

/// Whether a list's items are a map's.
fn is_entry(item: &Field) -> bool {
    let DataType::Struct(fields) = item.data_type() else { return false };
    matches!(&**fields, [key, value] if key.name() == "key" && value.name() == "value")
}

/// One value, of the types in `airmile::ArrowTable`.
fn value<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match array.data_type() {
        DataType::Int64 => {
            array.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Float64 => {
            array.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Boolean => array.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any(),
        DataType::Binary => PyBytes::new(py, array.as_binary::<i32>().value(row)).into_any(),
        DataType::List(item) if is_entry(item) => {
            let entries = array.as_list::<i32>().value(row);
            let (keys, values) = (entries.as_struct().column(0), entries.as_struct().column(1));
            let dict = PyDict::new(py);
            for at in 0..entries.len() {
                dict.set_item(value(py, keys, at)?, value(py, values, at)?)?;
            }
            dict.into_any()
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            let values = (0..items.len()).map(|i| value(py, &items, i));
            PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        DataType::Struct(fields) => {
            let dict = PyDict::new(py);
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                dict.set_item(field.name(), value(py, column, row)?)?;
            }
            dict.into_any()
        }
        _ => array.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
    })
}
