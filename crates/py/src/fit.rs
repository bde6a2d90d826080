//! `fit` for Python: fills in the unknown numbers of a platform.

use crate::error::{self, Kind, raised};
use crate::platform::Platform;
use crate::record::Record;
use crate::wait::interruptible;
use lanemark_fit::{FillError, FillOptions, Filled, Measured, Table, Tool, fill_in};
use lanemark_platform::Origin;
use pyo3::prelude::*;

/// Measured data: a record, or text.
#[derive(FromPyObject)]
pub enum Data<'py> {
    /// A record.
    Record(PyRef<'py, Record>),
    /// A table of figures (CSV), or the output of a tool.
    Text(String),
}

/// The data, read.
enum Read {
    Record(Box<lanemark_record::Record>, Option<String>),
    Table(Table),
}

/// A platform after a fit.
#[pyclass(module = "lanemark._lanemark", frozen)]
pub struct Fitted {
    name: String,
    /// Name of the platform's file.
    file: Option<String>,
    filled: Filled,
}

#[pymethods]
impl Fitted {
    /// The platform with the numbers that the data determine.
    #[getter]
    fn platform(&self) -> Platform {
        let file = self.file.clone().unwrap_or_else(|| "fitted.toml".to_owned());
        Platform::of_draft(Some(file), self.filled.draft.clone())
    }

    /// The result as JSON.
    fn json(&self) -> String {
        lanemark_cli::fit_json(&self.name, &self.filled).to_string()
    }

    /// The result as the command prints it.
    fn text(&self) -> PyResult<String> {
        lanemark_cli::fit_text(&self.name, &self.filled).map_err(|failure| error::failure(&failure))
    }
}

/// Fits the unknown numbers of `platform` to `data`, which is called `name`; `tool` is the tool whose output it is.
#[pyfunction]
#[pyo3(signature = (platform, name, data, tool=None, of=None, assume=Vec::new(), assume_rest=false, keep_structure=false))]
#[allow(clippy::too_many_arguments, reason = "the options of the command")]
pub fn fit(
    py: Python<'_>,
    platform: &Platform,
    name: String,
    data: Data<'_>,
    tool: Option<String>,
    of: Option<String>,
    assume: Vec<(String, f64)>,
    assume_rest: bool,
    keep_structure: bool,
) -> PyResult<Fitted> {
    let mut draft = platform.draft()?.clone();
    let origin = Origin::Assumed("given to lanemark.fit with assume".to_owned());
    for (key, value) in &assume {
        draft = draft.fill(key, *value, &origin).map_err(|error| error::platform(&error))?;
    }
    let kept: Vec<String> = assume.into_iter().map(|(key, _)| key).collect();
    let read = match data {
        Data::Record(record) => Read::Record(Box::new(record.0.clone()), of),
        Data::Text(text) => Read::Table(table(&name, &text, tool.as_deref())?),
    };
    let source = name.clone();
    let (filled, stopped) = interruptible(py, None, move |cancel, _| {
        let measured = match &read {
            Read::Record(record, of) => Measured::Record(record, of.as_deref()),
            Read::Table(table) => Measured::Table(table),
        };
        fill_in(
            &source,
            &measured,
            &draft,
            FillOptions { kept: &kept, assume_rest, keep_structure, cancel: Some(cancel) },
        )
    })?;
    if let Some(stopped) = stopped {
        return Err(stopped);
    }
    let filled = filled.map_err(|problem| match problem {
        FillError::Platform(problem) => error::platform(&problem),
        FillError::Record(problem) => raised(Kind::Usage, &format!("{name}: {problem}")),
        problem => raised(Kind::Failed, &problem.to_string()),
    })?;
    Ok(Fitted { name, file: platform.file(), filled })
}

/// The figures of a CSV text, or of the output of a tool.
fn table(name: &str, text: &str, tool: Option<&str>) -> PyResult<Table> {
    let read = match tool {
        None => Table::parse(name, text),
        Some(wanted) => {
            let Some(tool) = Tool::ALL.into_iter().find(|tool| tool.name() == wanted) else {
                let known = Tool::ALL.map(Tool::name).join(", ");
                return Err(raised(Kind::Usage, &format!("tool: '{wanted}' is not known; use one of {known}")));
            };
            tool.read(name, text)
        }
    };
    read.map_err(|problem| raised(Kind::Usage, &problem.to_string()))
}
