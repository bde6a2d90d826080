//! `doctor` for Python.

use crate::error::{Kind, raised};
use crate::platform::Platform;
use crate::wait::or_left;
use lanemark_advise::doctor::{DiagnosisRequest, Figures, as_platform, diagnose};
use lanemark_inventory::Inventory;
use lanemark_record::file;
use lanemark_runner::draft_of;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// Name of the file of a draft, for messages.
const DRAFT: &str = "draft.toml";

/// The machine of a listing, a folder or an archive; without one, this machine.
fn inventory(from: Option<&Path>) -> PyResult<Inventory> {
    match from {
        Some(path) => Inventory::from_path(path).map_err(|error| raised(Kind::Usage, &error.to_string())),
        None => Inventory::of_this_machine().map_err(|error| raised(Kind::Absent, &error.to_string())),
    }
}

/// Findings about a machine, as JSON and as text.
#[pyfunction]
#[pyo3(signature = (path=None))]
pub fn doctor(py: Python<'_>, path: Option<PathBuf>) -> PyResult<(String, String)> {
    or_left(py, move || {
        let inventory = inventory(path.as_deref())?;
        let ask = DiagnosisRequest { fields: true, ..DiagnosisRequest::default() };
        let diagnosis = diagnose(&inventory, &ask);
        Ok((file::to_json(&diagnosis), lanemark_report::diagnosis(&diagnosis, None)))
    })?
}

/// The platform file of a function in a listing, with its numbers still unknown.
#[pyfunction]
#[pyo3(signature = (path=None, address=None))]
pub fn draft_from_listing(py: Python<'_>, path: Option<PathBuf>, address: Option<String>) -> PyResult<Platform> {
    let usage = |text: String| raised(Kind::Usage, &text);
    let address = address.map(|text| text.parse().map_err(|error| usage(format!("address: {error}")))).transpose()?;
    let text = or_left(py, move || {
        let text = as_platform(&inventory(path.as_deref())?, address, Figures::Dma);
        text.map_err(|error| raised(Kind::Usage, &error.to_string()))
    })??;
    let draft = draft_of(DRAFT, text.as_bytes()).map_err(|error| crate::error::run(&error))?;
    Ok(Platform::of_draft(Some(DRAFT.to_owned()), draft))
}
