//! Records for Python.

use crate::error::{Kind, bug, raised};
use crate::table::Table;
use crate::wait::or_left;
use lanemark_record::{answers_table, file, samples_table};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// Largest record, in bytes: about a hundred times a typical one.
const LONGEST: u64 = 256 << 20;

/// The answers of one request.
#[pyclass(module = "lanemark._lanemark", frozen)]
pub struct Record(pub lanemark_record::Record);

#[pymethods]
impl Record {
    /// Reads a record file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Record> {
        let read = or_left(py, move || {
            let bytes = lanemark_runner::read_file(&path, LONGEST)
                .map_err(|error| format!("reading {}: {error}", path.display()))?;
            let record = file::from_bytes(&bytes, &path).map_err(|error| error.to_string())?;
            record.refuse_impossible(&path)?;
            Ok(Record(record))
        })?;
        read.map_err(|text: String| raised(Kind::Usage, &text))
    }

    /// Reads the JSON of a record.
    #[staticmethod]
    fn from_json(py: Python<'_>, json: &str) -> PyResult<Record> {
        let read = py.detach(|| file::from_bytes(json.as_bytes(), Path::new("record")));
        read.map(Record).map_err(|error| raised(Kind::Usage, &error.to_string()))
    }

    /// Writes a record file, completely or not at all.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| file::write(&self.0, &path)).map_err(|error| raised(Kind::Usage, &error.to_string()))
    }

    fn json(&self, py: Python<'_>) -> String {
        py.detach(|| file::to_json(&self.0))
    }

    /// The tables of the command, for a terminal of this width.
    #[pyo3(signature = (width=None))]
    fn text(&self, py: Python<'_>, width: Option<u16>) -> String {
        py.detach(|| lanemark_report::tables(&self.0, width))
    }

    /// The HTML report.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        let record = self.0.clone();
        let page = or_left(py, move || lanemark_cli::record_page(&record, &[]))?;
        page.map_err(|error| bug(&error.to_string()))
    }

    /// A plot of the bandwidths against the size, as SVG; None without two sizes.
    fn svg(&self) -> Option<String> {
        lanemark_report::bandwidth_plot(&self.0)
    }

    /// One row per answer.
    fn table(&self, py: Python<'_>) -> Table {
        Table(py.detach(|| answers_table(&self.0)))
    }

    /// One row per sample.
    fn samples(&self, py: Python<'_>) -> Table {
        Table(py.detach(|| samples_table(&self.0)))
    }
}
