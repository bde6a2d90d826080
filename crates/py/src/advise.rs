//! `advise`, `compare` and `fleet` for Python: the documents of the command, as JSON and as text.

use crate::error::{self, Kind, raised};
use crate::platform::Platform;
use crate::record::Record;
use crate::wait::{interruptible, or_left};
use lanemark_advise::{FleetMember, MIN_EFFECT_PERCENT, Named, WorkloadRequest, built_in_corpus, neighbours};
use lanemark_cli::Failure;
use lanemark_method::CopyDirection;
use lanemark_record::guidance::Workload;
use lanemark_record::{Criteria, file};
use lanemark_runner::RunError;
use pyo3::prelude::*;

/// Advice for a workload on a platform.
#[pyfunction]
#[pyo3(signature = (platform, with_texts, directions, sizes_bytes, rate_bytes_per_s=None, latency_below_ns=None))]
pub fn advise(
    py: Python<'_>,
    platform: &Platform,
    with_texts: Vec<(String, String)>,
    directions: Vec<String>,
    sizes_bytes: Vec<u64>,
    rate_bytes_per_s: Option<f64>,
    latency_below_ns: Option<f64>,
) -> PyResult<(String, String)> {
    let directions = directions.iter().map(|name| {
        [CopyDirection::ToDevice, CopyDirection::FromDevice].into_iter().find(|known| known.name() == name).ok_or_else(
            || {
                let [one, other] = [CopyDirection::ToDevice, CopyDirection::FromDevice].map(CopyDirection::name);
                raised(Kind::Usage, &format!("direction: '{name}' is not known; use {one} or {other}"))
            },
        )
    });
    let workload =
        Workload { directions: directions.collect::<PyResult<_>>()?, sizes_bytes, rate_bytes_per_s, latency_below_ns };
    let command = vec!["lanemark (Python)".to_owned()];
    let request = WorkloadRequest { platform: platform.complete()?, with: with_texts, workload, command };
    let (guidance, stopped) = interruptible(py, None, move |cancel, _| lanemark_advise::advise(&request, cancel))?;
    match (guidance, stopped) {
        (_, Some(stopped)) => Err(stopped),
        (Ok(guidance), None) => Ok((file::to_json(&guidance), lanemark_report::guidance(&guidance, None))),
        // The sizes do not fit the platform, as in the command.
        (Err(RunError::NothingToAsk { because }), None) => Err(error::failure(&Failure::Usage(because))),
        (Err(problem), None) => Err(error::failure(&problem.into())),
    }
}

/// Comparison of base records with new records, each with its name.
#[pyfunction]
#[pyo3(signature = (base, new, min_effect_percent=None, between_runs_percent=None))]
pub fn compare(
    py: Python<'_>,
    base: Vec<(String, PyRef<'_, Record>)>,
    new: Vec<(String, PyRef<'_, Record>)>,
    min_effect_percent: Option<f64>,
    between_runs_percent: Option<f64>,
) -> PyResult<(String, String)> {
    let usual = Criteria::default();
    let criteria = Criteria {
        min_effect_percent: min_effect_percent.or(usual.min_effect_percent),
        between_runs_percent: between_runs_percent.unwrap_or(usual.between_runs_percent),
        ..usual
    };
    let (base, new) = (owned(base), owned(new));
    or_left(py, move || {
        let comparison = lanemark_advise::compare(&side(&base), &side(&new), &criteria)
            .map_err(|error| raised(Kind::Usage, &format!("the records cannot be compared: {error}")))?;
        let text = lanemark_report::comparison_table(&comparison, ["base", "new"], None);
        Ok((file::to_json(&comparison), text))
    })?
}

/// Nearest machines of the built-in corpus in the table.
const NEAREST: usize = 5;

/// The machines of the built-in corpus that are nearest to a record, and the differences from the nearest.
#[pyfunction]
pub fn compare_to_corpus(py: Python<'_>, name: String, record: PyRef<'_, Record>) -> PyResult<(String, String)> {
    let record = record.0.clone();
    or_left(py, move || {
        let corpus = built_in_corpus().map_err(|error| error::bug(&error))?;
        let found = neighbours(&Named { name: &name, record: &record }, &corpus)
            .map_err(|error| raised(Kind::Usage, &format!("{name} cannot be compared with the corpus: {error}")))?;
        Ok((file::to_json(&found), lanemark_report::neighbours_table(&found, &name, NEAREST, None)))
    })?
}

/// Machines of a fleet that differ from the others: each with its name, its record, and its diagnosis as JSON.
#[pyfunction]
pub fn fleet(
    py: Python<'_>,
    machines: Vec<(String, PyRef<'_, Record>, Option<String>)>,
    min_effect_percent: Option<f64>,
) -> PyResult<(String, String)> {
    let members = machines.into_iter().map(|(name, record, diagnosis)| {
        let diagnosis = diagnosis.map(|json| serde_json::from_str(&json)).transpose();
        let diagnosis = diagnosis.map_err(|error| raised(Kind::Usage, &format!("diagnosis of {name}: {error}")))?;
        let diagnosis = diagnosis.map(Ok);
        Ok(FleetMember { name, record: Some(record.0.clone()), diagnosis, problem: None })
    });
    let members: Vec<FleetMember> = members.collect::<PyResult<_>>()?;
    or_left(py, move || {
        let fleet = lanemark_advise::fleet(&members, min_effect_percent.unwrap_or(MIN_EFFECT_PERCENT));
        (file::to_json(&fleet), lanemark_report::fleet_table(&fleet, None))
    })
}

/// Copies of records with their names, for another thread.
fn owned(records: Vec<(String, PyRef<'_, Record>)>) -> Vec<(String, lanemark_record::Record)> {
    records.into_iter().map(|(name, record)| (name, record.0.clone())).collect()
}

/// Records with their names.
fn side(records: &[(String, lanemark_record::Record)]) -> Vec<Named<'_>> {
    records.iter().map(|(name, record)| Named { name, record }).collect()
}
