//! Sweeps for Python: the points of a space, one process or many, and the log of the command.

use crate::error::{Kind, as_arguments, raised};
use crate::table::Table;
use crate::wait::{interruptible, or_left};
use lanemark_record::{RecordError, SweepRow, SweepTableBuilder, read_sweep_log};
use lanemark_sweep::Space;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

fn usage(error: &dyn std::fmt::Display) -> PyErr {
    raised(Kind::Usage, &as_arguments(&error.to_string()))
}

/// The points of a space.
#[pyclass(module = "lanemark._lanemark", frozen)]
pub struct Points(Arc<lanemark_sweep::Points>);

#[pymethods]
impl Points {
    /// The points of the space in this text; `file` is its name, and platform files are found relative to it.
    #[new]
    fn new(file: &str, text: &str) -> PyResult<Points> {
        let space = Space::parse(file, text).map_err(|error| usage(&error))?;
        let points = lanemark_sweep::Points::of(&space).map_err(|error| usage(&error))?;
        Ok(Points(Arc::new(points)))
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.0.len()).unwrap_or(usize::MAX)
    }

    /// Source of the figures: formulas or simulation.
    #[getter]
    fn by(&self) -> &'static str {
        self.0.by().name()
    }

    /// Rows of these points, as lines of a log.
    fn rows(&self, py: Python<'_>, indices: Vec<u64>) -> PyResult<Vec<String>> {
        let points = Arc::clone(&self.0);
        let (rows, stopped) = interruptible(py, None, move |cancel, _| {
            points.answers(&indices, cancel).map(|row| serde_json::to_string(&row)).collect::<Result<Vec<_>, _>>()
        })?;
        if let Some(stopped) = stopped {
            return Err(stopped);
        }
        rows.map_err(|error| usage(&error))
    }
}

/// The log of a sweep, which one process has open at a time.
#[pyclass(module = "lanemark._lanemark", frozen)]
pub struct SweepLog(Mutex<Option<lanemark_record::SweepLog>>);

#[pymethods]
impl SweepLog {
    /// Opens the log of this path, or creates it.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<SweepLog> {
        let log = or_left(py, move || lanemark_record::SweepLog::open(&path))?;
        Ok(SweepLog(Mutex::new(Some(log.map_err(|error| usage(&error))?))))
    }

    /// Numbers of the points that are not in the log, each as an unsigned 64-bit integer in native byte order.
    fn left<'py>(&self, py: Python<'py>, points: &Points) -> Bound<'py, PyBytes> {
        let points = Arc::clone(&points.0);
        let left: Vec<u8> = py.detach(|| {
            let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let is_done = |key: u128| log.as_ref().is_some_and(|log| log.done().contains(&key));
            let left = (0..points.len()).filter(|index| points.key(*index).is_some_and(|key| !is_done(key)));
            left.flat_map(u64::to_ne_bytes).collect()
        });
        PyBytes::new(py, &left)
    }

    /// Appends rows, as lines.
    fn append(&self, py: Python<'_>, rows: Vec<String>) -> PyResult<()> {
        py.detach(|| {
            let rows: Result<Vec<SweepRow>, _> = rows.iter().map(|row| serde_json::from_str(row)).collect();
            let rows = rows.map_err(|error| usage(&error))?;
            let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(log) = log.as_mut() else { return Err(raised(Kind::Usage, "the log is closed")) };
            log.append(&rows).map_err(|error: RecordError| usage(&error))
        })
    }

    /// Writes all lines to the disk and closes the log.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let synced = py.detach(|| {
            let log = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            log.map_or(Ok(()), |log| log.sync())
        });
        synced.map_err(|error| usage(&error))
    }
}

/// The rows of a log as a table; with points, only theirs. The second value are the names of varied columns.
#[pyfunction]
#[pyo3(signature = (path, points=None))]
pub fn sweep_table(py: Python<'_>, path: PathBuf, points: Option<PyRef<'_, Points>>) -> PyResult<(Table, Vec<String>)> {
    let points = points.map(|points| Arc::clone(&points.0));
    or_left(py, move || {
        let keys = points.map(|points| (0..points.len()).filter_map(|index| points.key(index)).collect::<HashSet<_>>());
        let mut table = SweepTableBuilder::default();
        let read = read_sweep_log(&path, |row| {
            let key = u128::from_str_radix(&row.key, 16);
            if keys.as_ref().is_none_or(|keys| key.is_ok_and(|key| keys.contains(&key))) {
                table.push(&row);
            }
        });
        read.map_err(|error| usage(&error))?;
        let (table, axes) = table.finish().into_parts();
        Ok((Table(table), axes))
    })?
}
