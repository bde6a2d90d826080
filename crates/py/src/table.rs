//! Tables for Python: exported by the Arrow C stream interface, which other libraries of Python read.

use crate::error::bug;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{DataType, Field, Schema, ffi::FFI_ArrowSchema};
use lanemark_record::{Cell, Column, Values};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Kinds of values, as they are pickled.
const TEXT: &str = "text";
const WHOLE: &str = "whole";
const NUMBER: &str = "number";

/// A pickled column: name, kind of values, and values.
type Packed<'py> = (String, &'static str, Vec<Bound<'py, PyAny>>);

/// Name of a column, and its first values.
type Head<'name, 'py> = (&'name str, Vec<Bound<'py, PyAny>>);

/// A table of results.
#[pyclass(module = "lanemark._lanemark", frozen)]
pub struct Table(pub lanemark_record::Table);

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.0.rows()
    }

    /// A table of columns: name, kind of values, and values.
    #[staticmethod]
    fn of(columns: Vec<(String, String, Vec<Bound<'_, PyAny>>)>) -> PyResult<Table> {
        let column = |(name, kind, cells): (String, String, Vec<Bound<'_, PyAny>>)| {
            let values = match kind.as_str() {
                WHOLE => Values::Whole(read(&cells)?),
                NUMBER => Values::Number(read(&cells)?),
                _ => texts(read(&cells)?),
            };
            Ok(Column { name, values })
        };
        Ok(Table(lanemark_record::Table::of(columns.into_iter().map(column).collect::<PyResult<_>>()?)))
    }

    /// For `pickle`: the function that makes the table again, and its arguments.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Vec<Packed<'py>>,))> {
        let mut columns = Vec::new();
        for column in self.0.columns() {
            let kind = match column.values {
                Values::Text { .. } => TEXT,
                Values::Whole(_) => WHOLE,
                Values::Number(_) => NUMBER,
            };
            columns.push((column.name.clone(), kind, self.column(py, &column.name)?.unwrap_or_default()));
        }
        Ok((py.get_type::<Table>().getattr("of")?, (columns,)))
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.0.columns().iter().map(|column| column.name.as_str()).collect()
    }

    /// Values of a column; None if there is no such column.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let column = self.0.column(name);
        column.map(|column| values(py, column, self.0.rows())).transpose()
    }

    /// The columns that have a value, each with its values in the first rows, at most `most`.
    fn head<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Vec<Head<'_, 'py>>> {
        let columns = self.0.columns().iter().filter(|column| !column.is_empty());
        columns.map(|column| Ok((column.name.as_str(), values(py, column, most.min(self.0.rows()))?))).collect()
    }

    /// The table as CSV.
    fn csv(&self, py: Python<'_>) -> PyResult<String> {
        let text = py.detach(|| self.0.csv().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        Ok(text?)
    }

    /// The table as the bytes of a Parquet file.
    fn parquet(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        py.detach(|| self.0.parquet("lanemark")).map_err(|error| bug(&error.to_string()))
    }

    /// The columns as a capsule called `arrow_schema`.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(schema(&self.0)).map_err(|error| bug(&error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows as a capsule called `arrow_array_stream`; types are not converted to those of `requested_schema`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore it.
        drop(requested_schema);
        let schema = Arc::new(schema(&self.0));
        let arrays = self.0.columns().iter().map(array).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(|error| bug(&error.to_string()))?;
        let batches = RecordBatchIterator::new([Ok(batch)], schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}

/// Values of a column in its first rows.
fn values<'py>(py: Python<'py>, column: &Column, rows: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let cells = (0..rows).map(|row| {
        Ok(match column.cell(row) {
            Cell::Absent => py.None().into_bound(py),
            Cell::Text(text) => text.into_pyobject(py)?.into_any(),
            Cell::Whole(whole) => whole.into_pyobject(py)?.into_any(),
            Cell::Number(number) => number.into_pyobject(py)?.into_any(),
        })
    });
    cells.collect()
}

/// Values of a column; None where there is none.
fn read<'py, T: for<'a> FromPyObject<'a, 'py>>(cells: &[Bound<'py, PyAny>]) -> PyResult<Vec<Option<T>>> {
    cells
        .iter()
        .map(|cell| if cell.is_none() { Ok(None) } else { cell.extract().map(Some).map_err(Into::into) })
        .collect()
}

/// Texts, each distinct one once.
fn texts(texts: Vec<Option<String>>) -> Values {
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    let mut words = Vec::new();
    let cells = texts.into_iter().map(|text| {
        text.map_or(0, |text| {
            *places.entry(text).or_insert_with_key(|text| {
                words.push(text.clone());
                words.len() as u32
            })
        })
    });
    let cells = cells.collect();
    Values::Text { words, cells }
}

fn schema(table: &lanemark_record::Table) -> Schema {
    let field = |column: &Column| {
        let kind = match column.values {
            Values::Text { .. } => DataType::Utf8,
            Values::Whole(_) => DataType::Int64,
            Values::Number(_) => DataType::Float64,
        };
        Field::new(&column.name, kind, true)
    };
    Schema::new(table.columns().iter().map(field).collect::<Vec<_>>())
}

fn array(column: &Column) -> ArrayRef {
    match &column.values {
        Values::Text { words, cells } => {
            let text = |cell: &u32| cell.checked_sub(1).and_then(|word| words.get(word as usize)).map(String::as_str);
            Arc::new(cells.iter().map(text).collect::<StringArray>())
        }
        Values::Whole(cells) => Arc::new(Int64Array::from(cells.clone())),
        Values::Number(cells) => Arc::new(Float64Array::from(cells.clone())),
    }
}
