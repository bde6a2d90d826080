//! `bench`, `simulate` and `predict` for Python.

use crate::error::{self, as_arguments, made};
use crate::platform::Platform;
use crate::record::Record;
use crate::wait::{Step, Steps, interruptible};
use lanemark_cli::options;
use lanemark_runner::{Answerer, Event, Outcome, Request, RunError, Target};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// A target as given: a platform or a name.
#[derive(FromPyObject)]
pub enum Named<'py> {
    /// A platform.
    Platform(PyRef<'py, Platform>),
    /// The name of a target.
    Name(String),
}

impl Named<'_> {
    /// The target.
    ///
    /// # Errors
    /// `UsageError` for an invalid name, `PlatformError` for unknown numbers.
    pub fn target(&self) -> PyResult<Target> {
        match self {
            Named::Platform(platform) => Ok(Target::Platform(Box::new(platform.complete()?))),
            Named::Name(name) => name.parse().map_err(|error: RunError| error::run(&error)),
        }
    }
}

/// Asks questions of targets: by formulas, or by machines.
#[pyfunction]
#[pyo3(signature = (targets, words, by_formulas, progress=None))]
pub fn run(
    py: Python<'_>,
    targets: Vec<Named<'_>>,
    words: Vec<String>,
    by_formulas: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Record> {
    let targets = targets.iter().map(Named::target).collect::<PyResult<Vec<_>>>()?;
    let answerer = if by_formulas { Answerer::Formulas } else { Answerer::Machines };
    let request = options::request(&words, targets, answerer).map_err(|failure| error::failure(&failure))?;
    let request = Request { command: vec!["lanemark (Python)".to_owned()], ..request };
    let (outcome, stopped) = interruptible(py, progress.as_ref(), move |cancel, steps| {
        let outcome = lanemark_runner::run(&request, &mut |event| tell(&steps, event), cancel);
        outcome.map(|Outcome { mut record, problem }| {
            let judged = lanemark_advise::interpret(&mut record);
            (record, problem, judged.impossible)
        })
    })?;
    let (record, problem, impossible) = match (outcome, stopped) {
        (Ok((record, _, _)), Some(stopped)) if stopped.is_instance_of::<PyKeyboardInterrupt>(py) => {
            return Err(ended(py, "Interrupted", "interrupted", record, Some(stopped)));
        }
        (_, Some(stopped)) => return Err(stopped),
        (Err(problem), None) => return Err(error::run(&problem)),
        (Ok(done), None) => done,
    };
    if !impossible.is_empty() {
        return Err(ended(py, "FailedError", &impossible.join("\n"), record, None));
    }
    match problem {
        None => Ok(Record(record)),
        Some(problem) => {
            let class =
                if matches!(problem.class(), lanemark_runner::Class::Absent) { "AbsentError" } else { "FailedError" };
            Err(ended(py, class, &as_arguments(&problem.to_string()), record, None))
        }
    }
}

/// An exception that has the record so far.
fn ended(py: Python<'_>, class: &str, message: &str, record: lanemark_record::Record, cause: Option<PyErr>) -> PyErr {
    let error = made(py, class, |class| class.call1((message, Py::new(py, Record(record))?)));
    let error = error.unwrap_or_else(|error| error);
    error.set_cause(py, cause);
    error
}

fn tell(steps: &Steps, event: Event<'_>) {
    let none = Step { done: None, all: None, what: None };
    match event {
        Event::Begun { cases } => steps.tell(Step { all: Some(cases as f64), ..none }),
        Event::Asking { question, target } => {
            steps.tell(Step { what: Some(format!("{question} on {target}")), ..none });
        }
        Event::Done { cases } => steps.tell(Step { done: Some(cases), ..none }),
        _ => {}
    }
}
