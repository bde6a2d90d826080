//! `import` for Python: the output of another tool as a record.

use crate::error::{self, Kind, raised};
use crate::record::Record;
use crate::wait::or_left;
use lanemark_cli::{ImportTool, above_limit, imported_record};
use pyo3::prelude::*;
use std::path::PathBuf;

/// The output of a tool in these files as a record, and the number of figures above the limit of the link, in words.
#[pyfunction]
#[pyo3(name = "import_", signature = (files, tool=None, on=None))]
pub fn import(
    py: Python<'_>,
    files: Vec<PathBuf>,
    tool: Option<String>,
    on: Option<String>,
) -> PyResult<(Record, Option<String>)> {
    let known = || ImportTool::ALL.map(ImportTool::name).join(", ");
    let tool = tool.map(|wanted| {
        let found = ImportTool::ALL.into_iter().find(|tool| tool.name() == wanted);
        found.ok_or_else(|| raised(Kind::Usage, &format!("tool: '{wanted}' is not known; use one of {}", known())))
    });
    let tool = tool.transpose()?;
    let record = or_left(py, move || imported_record(&files, tool, on.as_deref()))?;
    let record = record.map_err(|failure| error::failure_of(&failure, &[("--from", "tool")]))?;
    let problem = above_limit(&record);
    Ok((Record(record), problem))
}
