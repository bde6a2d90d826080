//! A platform file in which some numbers are unknown still.

use crate::{Origin, Platform, PlatformError, Problem, read};
use std::ops::Range;

/// A platform file that may say of numbers that they are unknown: it can be read, printed and filled in.
/// What is complete is a [`Platform`]; nothing else can be simulated or computed with, so no unknown number
/// is ever taken for a known one.
///
/// ```
/// use lanemark_platform::{Draft, Origin, Platform, preset};
/// let text = include_str!("../../../platforms/card-gen5-x16.toml")
///     .replace("latency_ns = { value = 120, assumed", "latency_ns = { unknown");
/// let draft = Draft::parse("card.toml", &text)?;
/// assert_eq!(draft.unknowns()[0].key, "link.latency_ns");
/// assert!(Platform::parse("card.toml", &text).is_err());
/// let filled = draft.fill("link.latency_ns", 118.5, &Origin::Given("a scope".to_owned()))?;
/// assert_eq!(filled.complete()?.link.latency_ns.value.as_ns(), 118.5);
/// # Ok::<(), lanemark_platform::PlatformError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    file: String,
    text: String,
    /// With a search's start in the place of each unknown number.
    platform: Platform,
    unknowns: Vec<Unknown>,
}

/// A number that a file says is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    /// Its path, as in [`Platform::with`].
    pub key: String,
    /// How it may be found, as the file says.
    pub reason: String,
    /// The line it stands in.
    pub line: usize,
    /// Between which values a fit looks for it: those of the key, whatever the machine.
    pub bounds: (f64, f64),
    /// Where the search begins.
    pub start: f64,
    /// Whether it is a whole number, which a fit cannot find.
    pub is_whole: bool,
    /// The bytes of the file after its `=`.
    pub(crate) span: Range<usize>,
}

impl Draft {
    /// Reads a platform file from `text`; `file` is for messages.
    ///
    /// # Errors
    /// [`PlatformError`] with every problem of the file, by line.
    pub fn parse(file: &str, text: &str) -> Result<Draft, PlatformError> {
        let (platform, unknowns) = read::parse(file, text)?;
        Ok(Draft { file: file.to_owned(), text: text.to_owned(), platform, unknowns })
    }

    /// Reads a platform file from its bytes.
    ///
    /// # Errors
    /// As [`Draft::parse`]; bytes that are not UTF-8 are a problem of their line.
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Result<Draft, PlatformError> {
        Draft::parse(file, read::text(file, bytes)?)
    }

    /// The platform's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.platform.name
    }

    /// What is unknown, in the order of the file's sections.
    #[must_use]
    pub fn unknowns(&self) -> &[Unknown] {
        &self.unknowns
    }

    /// The file's text, with what was filled in.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many numbers are given, assumed (defaults too), fitted and unknown.
    #[must_use]
    pub fn origins(&self) -> [u32; 4] {
        origins(&self.platform)
    }

    /// As JSON in the shape of its file, defaults filled in.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        self.platform.to_json()
    }

    /// The platform, if nothing is unknown.
    ///
    /// # Errors
    /// [`PlatformError`] with every unknown number and what would fill it.
    pub fn complete(self) -> Result<Platform, PlatformError> {
        if self.unknowns.is_empty() {
            return Ok(self.platform);
        }
        let problem = |unknown: &Unknown| Problem {
            file: self.file.clone(),
            line: unknown.line,
            key: unknown.key.clone(),
            message: self.missing(unknown),
        };
        let mut problems: Vec<Problem> = self.unknowns.iter().map(problem).collect();
        problems.sort_by_key(|problem| problem.line);
        Err(PlatformError { problems })
    }

    fn missing(&self, unknown: &Unknown) -> String {
        let fill = if unknown.is_whole {
            "write value and source, or value and assumed".to_owned()
        } else {
            format!("fill it in: lanemark fit RECORD --on {} --write FILE", self.file)
        };
        format!("is unknown ({}); {fill}", unknown.reason)
    }

    /// A copy with one unknown number filled in; the rest of the text stays as it is. `origin` is a source, an
    /// assumption or what it was fitted to.
    ///
    /// # Errors
    /// [`PlatformError`] if `key` is not unknown, the value is out of its range or does not fit the other
    /// keys, the origin says nothing, or the number does not stand in one line in braces.
    pub fn fill(&self, key: &str, value: f64, origin: &Origin) -> Result<Draft, PlatformError> {
        let refused = |line, message: &str| {
            let (file, key, message) = (self.file.clone(), key.to_owned(), message.to_owned());
            PlatformError { problems: vec![Problem { file, line, key, message }] }
        };
        let unknown = self.unknowns.iter().find(|unknown| unknown.key == key);
        let unknown = unknown.ok_or_else(|| refused(0, "is not unknown in this file; change it there"))?;
        // What the value must keep to is said about the value, not about a text the user never saw.
        self.platform.with(key, value, origin.clone())?;
        let braces = self.text.get(unknown.span.clone()).filter(|text| text.starts_with('{') && text.ends_with('}'));
        if braces.is_none() {
            return Err(refused(unknown.line, "write it as one table in braces: { unknown = \"...\" }"));
        }
        let (before, after) = (&self.text[..unknown.span.start], &self.text[unknown.span.end..]);
        Draft::parse(&self.file, &format!("{before}{}{after}", entry(value, origin)))
    }
}

/// How many numbers are given, assumed, fitted and unknown.
pub(crate) fn origins(platform: &Platform) -> [u32; 4] {
    let mut counts = [0; 4];
    platform.each_origin(&mut |origin| {
        counts[match origin {
            Origin::Given(_) => 0,
            Origin::Assumed(_) | Origin::Default(_) => 1,
            Origin::FittedTo(_) => 2,
            Origin::Unknown(_) => 3,
        }] += 1;
    });
    counts
}

/// A number and its origin as they stand in a file.
fn entry(value: f64, origin: &Origin) -> String {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let value = shortest(value);
    match origin {
        Origin::Given(source) => format!("{{ value = {value}, source = {} }}", text(source)),
        Origin::Assumed(why) | Origin::Default(why) => format!("{{ value = {value}, assumed = {} }}", text(why)),
        Origin::FittedTo(ids) => {
            let ids: Vec<String> = ids.iter().map(|id| text(id)).collect();
            format!("{{ value = {value}, fitted_to = [{}] }}", ids.join(", "))
        }
        Origin::Unknown(how) => format!("{{ unknown = {} }}", text(how)),
    }
}

/// At most six significant digits, which is more than any measurement has.
fn shortest(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { 5 - value.abs().log10().floor() as i64 };
    let text = format!("{value:.*}", digits.clamp(0, 12) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
