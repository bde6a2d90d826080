//! Platforms for Python.

use crate::error::{self, Kind, raised};
use crate::listing::toml;
use lanemark_platform::{Draft, Origin};
use lanemark_runner::{draft, draft_of, origins_of};
use pyo3::prelude::*;

/// A platform, in which some numbers may be unknown.
#[pyclass(module = "lanemark._lanemark", frozen)]
#[derive(Clone)]
pub struct Platform {
    draft: Draft,
    /// The platform with changed keys, if there are any.
    changed: Option<lanemark_platform::Platform>,
}

impl Platform {
    pub fn of_draft(draft: Draft) -> Platform {
        Platform { draft, changed: None }
    }

    /// The draft; it has no changed keys.
    pub fn draft(&self) -> PyResult<&Draft> {
        if self.changed.is_none() {
            return Ok(&self.draft);
        }
        Err(raised(Kind::Usage, "this platform has changed keys: fit a platform file, or write the values in it"))
    }

    /// The platform without unknown numbers.
    ///
    /// # Errors
    /// `PlatformError` with every unknown number.
    pub fn complete(&self) -> PyResult<lanemark_platform::Platform> {
        match &self.changed {
            Some(platform) => Ok(platform.clone()),
            None => self.draft.clone().complete().map_err(|error| error::platform(&error)),
        }
    }
}

#[pymethods]
impl Platform {
    /// The platform of this name: a built-in one, a host and a card, or a file.
    #[staticmethod]
    fn named(name: &str) -> PyResult<Platform> {
        draft(name).map(Platform::of_draft).map_err(|error| error::run(&error))
    }

    /// The platform of a file with this text; `file` is its name, and other files are found relative to it.
    #[staticmethod]
    fn parse(file: &str, text: &str) -> PyResult<Platform> {
        draft_of(file, text.as_bytes()).map(Platform::of_draft).map_err(|error| error::run(&error))
    }

    /// The platform of a JSON document in the shape of a platform file.
    #[staticmethod]
    fn from_json(file: &str, json: &str) -> PyResult<Platform> {
        Platform::parse(file, &toml(json)?)
    }

    /// A copy with these keys changed, each with its value as text.
    fn with_texts(&self, changes: Vec<(String, String)>) -> PyResult<Platform> {
        let origin = Origin::Assumed("given in Python".to_owned());
        let changes = changes.iter().map(|(key, value)| (key.as_str(), value.as_str(), origin.clone()));
        let with = self.complete()?.with_texts(changes).map_err(|error| error::platform(&error))?;
        Ok(Platform { draft: self.draft.clone(), changed: Some(with) })
    }

    #[getter]
    fn name(&self) -> &str {
        self.draft.name()
    }

    #[getter]
    fn summary(&self) -> &str {
        self.draft.summary()
    }

    /// Text of the platform file; None if keys were changed.
    #[getter]
    fn text(&self) -> Option<&str> {
        self.changed.is_none().then(|| self.draft.text())
    }

    /// Keys of unknown numbers.
    #[getter]
    fn unknown(&self) -> Vec<&str> {
        self.draft.unknowns().iter().map(|unknown| unknown.key.as_str()).collect()
    }

    /// Value of a key, as text; None if there is none.
    fn value(&self, key: &str) -> Option<String> {
        match &self.changed {
            Some(platform) => platform.value_text(key),
            None => self.draft.values().into_iter().find(|value| value.key == key).and_then(|value| value.value),
        }
    }

    /// Every value with its origin, as JSON in the shape of a platform file.
    fn json(&self) -> String {
        match &self.changed {
            Some(platform) => platform.to_json().to_string(),
            None => self.draft.to_json().to_string(),
        }
    }

    /// Number of values by origin, as JSON.
    fn origins(&self) -> String {
        let origins = match &self.changed {
            Some(platform) => platform.origins(),
            None => self.draft.origins(),
        };
        serde_json::json!(origins_of(&origins)).to_string()
    }
}
