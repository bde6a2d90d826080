//! Errors as exceptions of the package, by kind.

use lanemark_cli::Failure;
use lanemark_platform::PlatformError;
use lanemark_runner::{Class, RunError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Kind of an exception: a class of `lanemark.errors`.
#[derive(Clone, Copy)]
pub enum Kind {
    /// The request, or a file named in it, is invalid.
    Usage,
    /// A device, a runtime or a permission is missing.
    Absent,
    /// A target failed, or a check did.
    Failed,
}

impl Kind {
    const fn class(self) -> &'static str {
        match self {
            Kind::Usage => "UsageError",
            Kind::Absent => "AbsentError",
            Kind::Failed => "FailedError",
        }
    }
}

/// An exception of this kind.
pub fn raised(kind: Kind, message: &str) -> PyErr {
    Python::attach(|py| made(py, kind.class(), |class| class.call1((message,))).unwrap_or_else(|error| error))
}

/// The exception that `make` makes with a class of `lanemark.errors`.
pub fn made<'py>(
    py: Python<'py>,
    class: &str,
    make: impl FnOnce(Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<PyErr> {
    let class = py.import("lanemark.errors")?.getattr(class)?;
    Ok(PyErr::from_value(make(class)?))
}

/// An error of the program itself.
pub fn bug(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what}: this is an error of lanemark; please report it"))
}

/// The exception of a platform file, with its problems.
pub fn platform(error: &PlatformError) -> PyErr {
    Python::attach(|py| {
        let make = |class: Bound<'_, PyAny>| {
            let problems = error
                .problems
                .iter()
                .map(|problem| (problem.file.as_str(), problem.line, problem.key.as_str(), problem.message.as_str()));
            let problems = PyList::new(py, problems.collect::<Vec<_>>())?;
            Ok(class.call1((error.to_string(), problems))?.unbind())
        };
        let class = py.import("lanemark.errors").and_then(|errors| errors.getattr("PlatformError"));
        match class.and_then(make) {
            Ok(value) => PyErr::from_value(value.into_bound(py)),
            Err(error) => error,
        }
    })
}

/// The exception of a run, except for an interruption.
pub fn run(error: &RunError) -> PyErr {
    match error {
        RunError::Platform(error) | RunError::With(error) | RunError::Fault(error) => platform(error),
        error => raised(kind(error.class()), &as_arguments(&error.to_string())),
    }
}

/// Kind of the exception for an error class.
pub const fn kind(class: Class) -> Kind {
    match class {
        Class::Usage => Kind::Usage,
        Class::Absent => Kind::Absent,
        Class::Failed | Class::Interrupted => Kind::Failed,
    }
}

/// The exception of a failure of the command; options are called as arguments in Python.
pub fn failure(error: &Failure) -> PyErr {
    failure_of(error, &[])
}

/// The exception of a failure of the command, some of whose options have other names in Python: pairs of both names.
pub fn failure_of(error: &Failure, renamed: &[(&str, &str)]) -> PyErr {
    let kind = match error {
        Failure::Usage(_) => Kind::Usage,
        Failure::Absent(_) => Kind::Absent,
        _ => Kind::Failed,
    };
    let text = renamed.iter().fold(error.to_string(), |text, (option, argument)| text.replace(option, argument));
    raised(kind, &as_arguments(&text))
}

/// A message in which an option such as `--no-fast-forward` is called `no_fast_forward`, except for command lines such as
/// `lanemark bind ADDRESS --to lanemark`.
pub fn as_arguments(text: &str) -> String {
    let mut said = String::new();
    let mut rest = text;
    while let Some(place) = rest.find("--") {
        let (before, option) = rest.split_at(place);
        let is_start = before.chars().next_back().is_none_or(|last| last.is_whitespace() || "('\"`".contains(last));
        let len = option[2..].find(|other: char| !other.is_ascii_lowercase() && other != '-');
        let name = &option[2..2 + len.unwrap_or(option.len() - 2)];
        said.push_str(before);
        let clause = said.rsplit([';', '(', '\n']).next().unwrap_or_default();
        if is_start && !name.is_empty() && !clause.contains("lanemark ") {
            said.push_str(&name.replace('-', "_"));
        } else {
            said.push_str(&option[..2 + name.len()]);
        }
        rest = &option[2 + name.len()..];
    }
    said.push_str(rest);
    said
}
