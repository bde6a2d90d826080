//! Platform files in which some numbers are still unknown.

use crate::param::Origin;
use crate::platform::Platform;
use crate::problem::{PlatformError, Problem};
use crate::read;
use crate::unknown::Unknown;

/// A platform file whose numbers may be marked unknown. It can be read, printed and filled in.
///
/// Only a complete draft becomes a [`Platform`], which simulation and formulas require. An unknown number is
/// therefore never used as if it were known.
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
    /// The platform with the start value of the search for each unknown number.
    platform: Platform,
    unknowns: Vec<Unknown>,
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

    /// Name of the platform.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.platform.name
    }

    /// The unknown numbers, in the order of the sections.
    #[must_use]
    pub fn unknowns(&self) -> &[Unknown] {
        &self.unknowns
    }

    /// Text of the file, including values filled in.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number of values that are given, assumed (including defaults), fitted and unknown.
    #[must_use]
    pub fn origins(&self) -> [u32; 4] {
        origins(&self.platform)
    }

    /// The platform as JSON in the shape of its file, with defaults filled in.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        self.platform.to_json()
    }

    /// Converts the draft to a platform, if no number is unknown.
    ///
    /// # Errors
    /// [`PlatformError`] with every unknown number and the command that determines it.
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

    /// Returns a copy with one unknown number filled in; the rest of the text is unchanged. `origin` is a source, an
    /// assumption, or the figures it was fitted to.
    ///
    /// # Errors
    /// [`PlatformError`] if `key` is not unknown, the value is out of range or inconsistent with other keys, the
    /// origin is empty, or the entry is not a one-line inline table.
    pub fn fill(&self, key: &str, value: f64, origin: &Origin) -> Result<Draft, PlatformError> {
        let refused = |line, message: &str| {
            let (file, key, message) = (self.file.clone(), key.to_owned(), message.to_owned());
            PlatformError { problems: vec![Problem { file, line, key, message }] }
        };
        let unknown = self.unknowns.iter().find(|unknown| unknown.key == key);
        let unknown = unknown.ok_or_else(|| refused(0, "is not unknown in this file; change it there"))?;
        // Checked first, so that problems refer to the value and not to a text the user has never seen.
        self.platform.with(key, value, origin.clone())?;
        let braces = self.text.get(unknown.span.clone()).filter(|text| text.starts_with('{') && text.ends_with('}'));
        if braces.is_none() {
            return Err(refused(unknown.line, "write it as one table in braces: { unknown = \"...\" }"));
        }
        let (before, after) = (&self.text[..unknown.span.start], &self.text[unknown.span.end..]);
        Draft::parse(&self.file, &format!("{before}{}{after}", entry(value, origin)))
    }
}

impl Platform {
    /// Reads a platform from `text`; `file` is its name in messages.
    ///
    /// # Errors
    /// [`PlatformError`] with every problem of the file, by line. A file without problems but with unknown numbers is
    /// an error, too; [`Draft`] reads it.
    pub fn parse(file: &str, text: &str) -> Result<Platform, PlatformError> {
        Draft::parse(file, text)?.complete()
    }

    /// Reads a platform from the bytes of a file.
    ///
    /// # Errors
    /// As [`Platform::parse`]; bytes that are not UTF-8 are a problem of their line.
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Result<Platform, PlatformError> {
        Draft::from_bytes(file, bytes)?.complete()
    }
}

impl Platform {
    /// Number of values that are given, assumed (including defaults) and fitted.
    #[must_use]
    pub fn origins(&self) -> [u32; 3] {
        let [given, assumed, fitted, _] = origins(self);
        [given, assumed, fitted]
    }
}

/// Number of values that are given, assumed, fitted and unknown.
fn origins(platform: &Platform) -> [u32; 4] {
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

/// A value with its origin, as written in a file.
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

/// The value with at most six significant digits, more than any measurement has.
fn shortest(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { 5 - value.abs().log10().floor() as i64 };
    let text = format!("{value:.*}", digits.clamp(0, 12) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
