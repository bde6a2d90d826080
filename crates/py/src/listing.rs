//! What there is to name: questions, platforms, options.

use crate::error::{Kind, raised};
use lanemark_bench::CATALOGUE;
use lanemark_platform::{CARDS, HOSTS, PRESETS};
use lanemark_runner::Target;
use lanemark_units::SizeRange;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Name, summary, quantity and "asked by default" of each question.
#[pyfunction]
pub fn questions() -> Vec<(&'static str, &'static str, &'static str, bool)> {
    let rows = CATALOGUE.iter();
    rows.map(|question| (question.name, question.summary, question.quantity.name(), question.is_usual)).collect()
}

/// Names of built-in platforms, hosts and cards.
#[pyfunction]
pub fn platforms() -> [Vec<&'static str>; 3] {
    [PRESETS, HOSTS, CARDS].map(|presets| presets.iter().map(|preset| preset.name).collect())
}

/// The options of a command by name, and whether each is a flag, without a value.
#[pyfunction]
pub fn option_names(command: &str) -> BTreeMap<String, bool> {
    lanemark_cli::options::names(command)
}

/// Version of the program.
#[pyfunction]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Whether a target is a real machine; false for an invalid name.
#[pyfunction]
pub fn is_real(name: &str) -> bool {
    name.parse().is_ok_and(|target: Target| target.is_real())
}

/// Bytes of a list or a range of sizes.
#[pyfunction]
pub fn sizes(text: &str) -> PyResult<Vec<u64>> {
    let sizes = text.parse::<SizeRange>();
    sizes.map(|sizes| sizes.bytes().to_vec()).map_err(|error| raised(Kind::Usage, &format!("sizes: {error}")))
}

/// A JSON document as TOML.
#[pyfunction]
pub fn toml(json: &str) -> PyResult<String> {
    let refused = |error: &dyn std::fmt::Display| raised(Kind::Usage, &error.to_string());
    let value: ::toml::Value = serde_json::from_str(json).map_err(|error| refused(&error))?;
    ::toml::to_string(&value).map_err(|error| refused(&error))
}
