//! Tables for Python: Arrow's PyCapsule interface, so that other libraries read the same memory,
//! and plain values for use without a data frame library.

use airmile::ArrowTable;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

/// A table of the library.
#[pyclass(frozen, module = "airmile._airmile")]
pub struct Table(pub ArrowTable);

#[pymethods]
impl Table {
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn __len__(&self) -> usize {
        self.0.n_rows()
    }

    /// Column name, Arrow type and documentation, in order.
    #[getter]
    fn columns(&self) -> Vec<(String, String, Option<String>)> {
        let fields = self.0.schema.fields().iter();
        fields
            .map(|f| {
                (f.name().clone(), f.data_type().to_string(), f.metadata().get("doc").cloned())
            })
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
        let batches: Vec<_> = self.0.batches.iter().cloned().map(Ok).collect();
        let reader: Box<dyn RecordBatchReader + Send> =
            Box::new(RecordBatchIterator::new(batches, self.0.schema.clone()));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema.as_ref()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The first `limit` rows as dictionaries; all by default.
    #[pyo3(signature = (limit=None))]
    fn to_pylist<'py>(
        &self,
        py: Python<'py>,
        limit: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut rows = Vec::new();
        let limit = limit.unwrap_or(usize::MAX);
        for batch in &self.0.batches {
            for row in 0..batch.num_rows().min(limit - rows.len()) {
                let dict = PyDict::new(py);
                for (field, array) in self.0.schema.fields().iter().zip(batch.columns()) {
                    dict.set_item(field.name(), value(py, array, row)?)?;
                }
                rows.push(dict);
            }
        }
        Ok(rows)
    }

    /// A column's values; `None` if there is no such column.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyList>>> {
        if self.0.schema.column_with_name(name).is_none() {
            return Ok(None);
        }
        let list = PyList::empty(py);
        for array in self.0.batches.iter().filter_map(|batch| batch.column_by_name(name)) {
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
