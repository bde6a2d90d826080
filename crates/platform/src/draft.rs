//! Platform files in which some numbers are still unknown.

use crate::document::{self, Document, Members, Open, no_files};
use crate::insert::{with_key, with_other_value};
use crate::lesser::Lesser;
use crate::param::{Counts, Origin, Origins};
use crate::platform::Platform;
use crate::problem::{PlatformError, Problem};
use crate::read;
use crate::text::shortest;
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
    /// The platform file, and the files that it names.
    members: Members,
    /// The platform with the start value of the search for each unknown number.
    platform: Platform,
    unknowns: Vec<Unknown>,
    lesser: Vec<Lesser>,
}

/// One value of a platform file.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueOf {
    /// Path of its key, as in [`Platform::with_text`].
    pub key: String,
    /// The value as text; `None` if it is unknown.
    pub value: Option<String>,
    /// Origin of the value.
    pub origin: Origin,
}

impl Draft {
    /// Reads a platform file from `text`; `file` is for messages. Other files can be named by built-in names only.
    ///
    /// # Errors
    /// [`PlatformError`] with every problem of the file, by line.
    pub fn parse(file: &str, text: &str) -> Result<Draft, PlatformError> {
        Draft::with_files(Document { file: file.to_owned(), text: text.to_owned() }, &no_files)
    }

    /// Reads a platform file from its bytes.
    ///
    /// # Errors
    /// As [`Draft::parse`]; bytes that are not UTF-8 are a problem of their line.
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Result<Draft, PlatformError> {
        Draft::parse(file, read::text(file, bytes)?)
    }

    /// Reads a platform file that may name other files by their paths, which `open` reads.
    ///
    /// ```
    /// use lanemark_platform::{Document, Draft};
    /// let text = "schema = 2\nname = \"mine\"\nextends = \"base.toml\"\n[link]\nsource = \"lspci\"\nwidth_lanes = 8\n";
    /// let mine = Document { file: "mine.toml".to_owned(), text: text.to_owned() };
    /// let base = include_str!("../../../platforms/card-gen5-x16.toml");
    /// let open = |_: &str, path: &str| Ok(Document { file: path.to_owned(), text: base.to_owned() });
    /// let platform = Draft::with_files(mine, &open)?.complete()?;
    /// assert_eq!((platform.link.width_lanes.value, platform.link.generation.value), (8, 5));
    /// let origins = platform.origins();
    /// assert_eq!((origins.own.given, origins.inherited.given), (1, 6));
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    ///
    /// # Errors
    /// [`PlatformError`] with every problem of the files, by line; a file that cannot be read is a problem of the line
    /// that names it.
    pub fn with_files(document: Document, open: Open<'_>) -> Result<Draft, PlatformError> {
        let (members, problems) = document::load(document, open);
        Draft::of(members, problems)
    }

    /// As [`Draft::with_files`], from the bytes of the file.
    ///
    /// # Errors
    /// As [`Draft::with_files`]; bytes that are not UTF-8 are a problem of their line.
    pub fn from_bytes_with_files(file: &str, bytes: &[u8], open: Open<'_>) -> Result<Draft, PlatformError> {
        let text = read::text(file, bytes)?.to_owned();
        Draft::with_files(Document { file: file.to_owned(), text }, open)
    }

    fn of(members: Members, problems: Vec<Problem>) -> Result<Draft, PlatformError> {
        let read::Found { platform, unknowns, lesser } = read::parse(&members, problems)?;
        Ok(Draft { members, platform, unknowns, lesser })
    }

    /// Name of the file.
    fn file(&self) -> &str {
        self.members.first().map_or("", |member| &member.document.file)
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

    /// Properties of the link that the host and the card, or the platform file, state differently: which value holds.
    #[must_use]
    pub fn lesser(&self) -> &[Lesser] {
        &self.lesser
    }

    /// Text of the file, including values filled in; not that of the files that it names.
    #[must_use]
    pub fn text(&self) -> &str {
        self.members.first().map_or("", |member| &member.document.text)
    }

    /// Number of values by origin.
    #[must_use]
    pub fn origins(&self) -> Origins {
        self.platform.origins()
    }

    /// Every value in the order of the sections, with defaults.
    #[must_use]
    pub fn values(&self) -> Vec<ValueOf> {
        let mut values = Vec::new();
        self.platform.each_value(&mut |key, _, raw, origin| {
            let is_known = !matches!(origin.stated(), Origin::Unknown(_));
            let value = is_known.then(|| raw.to_string());
            values.push(ValueOf { key: key.to_owned(), value, origin: origin.clone() });
        });
        values
    }

    /// Summary of the platform.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.platform.summary
    }

    /// The platform as JSON in the shape of its file, with defaults filled in.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut json = self.platform.to_json();
        for unknown in &self.unknowns {
            let Some(entry) = json_at(&mut json, &unknown.key) else { continue };
            for (name, limit) in [("at_least", unknown.limits.at_least), ("at_most", unknown.limits.at_most)] {
                match limit {
                    Some(limit) if unknown.is_whole => entry[name] = serde_json::json!(limit as u64),
                    Some(limit) => entry[name] = serde_json::json!(limit),
                    None => {}
                }
            }
        }
        json
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
            file: self.file().to_owned(),
            line: unknown.line,
            key: unknown.key.clone(),
            message: self.missing(unknown),
        };
        let mut problems: Vec<Problem> = self.unknowns.iter().map(problem).collect();
        problems.sort_by_key(|problem| problem.line);
        Err(PlatformError { problems })
    }

    fn missing(&self, unknown: &Unknown) -> String {
        format!(
            "is unknown ({}); fill it in: lanemark fit RECORD --on {} --write FILE, or write its value in the file",
            unknown.reason,
            self.file()
        )
    }

    /// Returns a copy with one unknown number filled in; the rest of the text is unchanged. `origin` is a source, an
    /// assumption, or the figures it was fitted to.
    ///
    /// # Errors
    /// [`PlatformError`] if `key` is not unknown, the value is out of range or inconsistent with other keys, the
    /// origin is empty, or the entry is not a one-line inline table.
    pub fn fill(&self, key: &str, value: f64, origin: &Origin) -> Result<Draft, PlatformError> {
        let refused = |line, message: &str| {
            let (file, key, message) = (self.file().to_owned(), key.to_owned(), message.to_owned());
            PlatformError { problems: vec![Problem { file, line, key, message }] }
        };
        let unknown = self.unknowns.iter().find(|unknown| unknown.key == key);
        let unknown = unknown.ok_or_else(|| refused(0, "is not unknown in this file; change it there"))?;
        if !unknown.limits.allow(value) {
            let message = format!("cannot be {}: the file states {}", shortest(value), unknown.limits.in_words());
            return Err(refused(unknown.line, &message));
        }
        // Checked first, so that problems refer to the value and not to a text the user has never seen.
        self.platform.with(key, value, origin.clone())?;
        let text = if let Some(span) = &unknown.span {
            let braces = self.text().get(span.clone()).filter(|text| text.starts_with('{') && text.ends_with('}'));
            if braces.is_none() {
                return Err(refused(unknown.line, "write it as one table in braces: { unknown = \"...\" }"));
            }
            let entry = entry(&self.written(key, value), origin);
            format!("{}{}{}", &self.text()[..span.start], entry, &self.text()[span.end..])
        } else {
            let added = with_key(self.text(), key, &entry(&self.written(key, value), origin));
            added.ok_or_else(|| refused(unknown.line, "is inherited; write its section in this file first"))?
        };
        self.with_own_text(text)
    }

    /// Returns a copy that states a value of which no file says anything, so that it has the default of its key, or that a
    /// file only assumes; the rest of the text is unchanged. Flags are 0 or 1.
    ///
    /// ```
    /// use lanemark_platform::{Draft, Origin};
    /// let draft = Draft::parse("card.toml", include_str!("../../../platforms/card-gen5-x16.toml"))?;
    /// let stated = draft.state("memory.odd_end_completion", 1.0, &Origin::Assumed("a trace".to_owned()))?;
    /// assert!(stated.text().contains("odd_end_completion = { value = true, assumed = \"a trace\" }"));
    /// let stated = stated.state("memory.odd_end_completion", 0.0, &Origin::Given("a manual".to_owned()))?;
    /// assert!(stated.text().contains("odd_end_completion = { value = false, source = \"a manual\" }"));
    /// assert!(stated.state("memory.odd_end_completion", 1.0, &Origin::Assumed("a trace".to_owned())).is_err());
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    ///
    /// # Errors
    /// [`PlatformError`] if a file gives `key` with a source, fitted or unknown, the value is out of range or inconsistent
    /// with other keys, the origin is empty, or the key belongs to a repeated section.
    pub fn state(&self, key: &str, value: f64, origin: &Origin) -> Result<Draft, PlatformError> {
        self.platform.with(key, value, origin.clone())?;
        let entry = entry(&self.written(key, value), origin);
        let may_change = self.has_default(key) || self.assumption(key).is_some();
        // An inherited value is not in this text.
        let changed = || with_key(self.text(), key, &entry).or_else(|| with_other_value(self.text(), key, &entry));
        let text = may_change.then(changed).flatten();
        let text = text.ok_or_else(|| {
            let (file, key) = (self.file().to_owned(), key.to_owned());
            let message = "cannot be added to this file, which states it; change it there".to_owned();
            PlatformError { problems: vec![Problem { file, line: 0, key, message }] }
        })?;
        self.with_own_text(text)
    }

    /// Returns a copy with another section at the end of the file, in the text of a platform file.
    ///
    /// ```
    /// use lanemark_platform::Draft;
    /// let draft = Draft::parse("card.toml", include_str!("../../../platforms/card-gen5-x16.toml"))?;
    /// let value = |key: &str, value: u32| format!("{key} = {{ value = {value}, assumed = \"a guess\" }}\n");
    /// let keys = [("iotlb_entries", 64), ("iotlb_ways", 4), ("lookup_ns", 10), ("walk_read_ns", 80)];
    /// let section = format!("[iommu]\n{}", keys.map(|(key, number)| value(key, number)).concat());
    /// let with_iommu = draft.with_section(&section)?;
    /// assert!(with_iommu.values().iter().any(|value| value.key == "iommu.walkers"));
    /// assert!(with_iommu.with_section(&section).is_err(), "the file has this section");
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    ///
    /// # Errors
    /// [`PlatformError`] if a file has this section already, or if the section has a problem.
    pub fn with_section(&self, section: &str) -> Result<Draft, PlatformError> {
        self.with_own_text(format!("{}\n\n{section}", self.text().trim_end()))
    }

    /// The value that a file assumes for `key`, as text, and the reason; `None` for a default and for any other origin.
    ///
    /// ```
    /// let draft = lanemark_platform::Draft::parse("card.toml", include_str!("../../../platforms/card-gen5-x16.toml"))?;
    /// assert_eq!(draft.assumption("link.latency_ns").unwrap().0, "120");
    /// assert_eq!(draft.assumption("memory.odd_end_completion"), None);
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    #[must_use]
    pub fn assumption(&self, key: &str) -> Option<(String, String)> {
        let mut found = None;
        self.platform.each_value(&mut |other, _, raw, origin| {
            if let Origin::Assumed(why) = origin.stated()
                && other == key
            {
                found = Some((raw.to_string(), why.clone()));
            }
        });
        found
    }

    /// Whether no file says anything about `key`, so that it has its default.
    #[must_use]
    pub fn has_default(&self, key: &str) -> bool {
        // Without its section, every key has its default.
        let mut found = self.platform.value_text(key).is_none();
        self.platform.each_value(&mut |other, _, _, origin| {
            found |= other == key && matches!(origin.stated(), Origin::Default(_));
        });
        found
    }

    /// The number as it is written in a file.
    fn written(&self, key: &str, value: f64) -> String {
        let is_flag = self.platform.value_text(key).is_some_and(|text| text == "true" || text == "false");
        if is_flag { (value > 0.0).to_string() } else { shortest(value) }
    }

    fn with_own_text(&self, text: String) -> Result<Draft, PlatformError> {
        let mut members = self.members.clone();
        if let Some(first) = members.first_mut() {
            first.document.text = text;
        }
        Draft::of(members, Vec::new())
    }
}

/// The entry of a key in the JSON of a platform.
fn json_at<'a>(platform: &'a mut serde_json::Value, path: &str) -> Option<&'a mut serde_json::Value> {
    let (section, rest) = path.split_once('.')?;
    match platform.get_mut(section)? {
        serde_json::Value::Array(list) => {
            let (name, key) = rest.split_once('.')?;
            let index = name.parse::<u64>().ok();
            let is_named = |item: &serde_json::Value| {
                item["name"] == name || index.is_some_and(|index| item["index"]["value"] == index)
            };
            list.iter_mut().find(|item| is_named(item))?.get_mut(key)
        }
        table => table.get_mut(rest),
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
    /// Number of values by origin; a default counts as assumed.
    #[must_use]
    pub fn origins(&self) -> Origins {
        let mut origins = Origins::default();
        self.each_origin(&mut |origin| origins.add(origin));
        origins
    }

    /// Number of the values that are inherited from the file of this name, by their origin there.
    #[must_use]
    pub fn inherited_from(&self, file: &str) -> Counts {
        let mut origins = Origins::default();
        self.each_origin(&mut |origin| {
            if matches!(origin, Origin::Inherited { from, .. } if from == file) {
                origins.add(origin);
            }
        });
        origins.inherited
    }
}

/// A value with its origin, as written in a file.
fn entry(value: &str, origin: &Origin) -> String {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    match origin.stated() {
        Origin::Given(source) => format!("{{ value = {value}, source = {} }}", text(source)),
        Origin::Assumed(why) | Origin::Default(why) => format!("{{ value = {value}, assumed = {} }}", text(why)),
        Origin::FittedTo(ids) => {
            let ids: Vec<String> = ids.iter().map(|id| text(id)).collect();
            format!("{{ value = {value}, fitted_to = [{}] }}", ids.join(", "))
        }
        Origin::Unknown(how) => format!("{{ unknown = {} }}", text(how)),
        // The stated origin is never inherited.
        Origin::Inherited { from, .. } => format!("{{ value = {value}, assumed = {} }}", text(from)),
    }
}
