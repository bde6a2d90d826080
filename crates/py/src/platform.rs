//! Platforms for Python.

use crate::error::{self, Kind, raised};
use crate::listing::toml;
use lanemark_platform::{Draft, Origin};
use lanemark_runner::{draft, draft_of, is_built_in, origins_of};
use pyo3::prelude::*;

/// A platform, in which some numbers may be unknown.
#[pyclass(module = "lanemark._lanemark", frozen)]
#[derive(Clone)]
pub struct Platform {
    /// Name of its file, for messages and for the files that it names; none for a built-in platform.
    file: Option<String>,
    draft: Draft,
    /// The platform with changed keys, if there are any.
    changed: Option<lanemark_platform::Platform>,
    changes: Vec<(String, String)>,
}

impl Platform {
    /// A platform of a file that is called `file`, or a built-in one.
    pub fn of_draft(file: Option<String>, draft: Draft) -> Platform {
        Platform { file, draft, changed: None, changes: Vec::new() }
    }

    /// Name of its file.
    pub fn file(&self) -> Option<String> {
        self.file.clone()
    }

    /// The draft; it has no changed keys.
    ///
    /// # Errors
    /// `UsageError` if keys were changed.
    pub fn draft(&self) -> PyResult<&Draft> {
        if self.changed.is_none() {
            return Ok(&self.draft);
        }
        let message = "platform: its keys were changed: fit a platform file, or write the values in it";
        Err(raised(Kind::Usage, message))
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
        let draft = draft(name).map_err(|error| error::run(&error))?;
        Ok(Platform::of_draft((!is_built_in(name)).then(|| name.to_owned()), draft))
    }

    /// The platform of a file with this text; `file` is its name, and other files are found relative to it.
    #[staticmethod]
    fn parse(file: &str, text: &str) -> PyResult<Platform> {
        let draft = draft_of(file, text.as_bytes()).map_err(|error| error::run(&error))?;
        Ok(Platform::of_draft(Some(file.to_owned()), draft))
    }

    /// The platform of a JSON document in the shape of a platform file.
    #[staticmethod]
    fn from_json(file: &str, json: &str) -> PyResult<Platform> {
        Platform::parse(file, &toml(json)?)
    }

    /// What makes the same platform again: the name of its file, the text of the file or the built-in name, and the changes.
    fn parts(&self) -> (Option<String>, String, Vec<(String, String)>) {
        let text = if self.file.is_some() { self.draft.text() } else { self.draft.name() };
        (self.file.clone(), text.to_owned(), self.changes.clone())
    }

    /// A copy with these keys changed, each with its value as text; an unknown number becomes known.
    fn with_texts(&self, changes: Vec<(String, String)>) -> PyResult<Platform> {
        let origin = Origin::Assumed("given in Python".to_owned());
        let is_unknown = |key: &str| self.draft.unknowns().iter().any(|unknown| unknown.key == key);
        let (known, others): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|(key, _)| self.changed.is_none() && is_unknown(key));
        let mut draft = self.draft.clone();
        for (key, text) in &known {
            let number = text.parse().map_err(|_| raised(Kind::Usage, &format!("{key}: '{text}' is not a number")))?;
            draft = draft.fill(key, number, &origin).map_err(|error| error::platform(&error))?;
        }
        let filled = Platform { draft, ..self.clone() };
        if others.is_empty() {
            return Ok(filled);
        }
        let platform = filled.complete()?;
        let texts = others.iter().map(|(key, value)| (key.as_str(), value.as_str(), origin.clone()));
        let mut with = platform.with_texts(texts).map_err(|error| error::platform(&error))?;
        // As a target of the command with several values of a key: records tell the platforms apart.
        with.name = others.iter().fold(platform.name, |name, (key, value)| format!("{name}, {key}={value}"));
        let changes = [&self.changes[..], &others[..]].concat();
        Ok(Platform { changed: Some(with), changes, ..filled })
    }

    #[getter]
    fn name(&self) -> &str {
        self.changed.as_ref().map_or_else(|| self.draft.name(), |platform| &platform.name)
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
