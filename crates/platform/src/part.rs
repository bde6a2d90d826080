//! Files of a host or a card alone, which are no platforms.

use crate::built_in::{CARDS, HOSTS};
use crate::document::{Document, Open, is_path};
use crate::draft::{Draft, ValueOf};
use crate::param::{Counts, Origin};
use crate::platform::SCHEMA;
use crate::problem::PlatformError;
use crate::spec::{Core, Endpoint};
use crate::unknown::Unknown;
use toml::Table;

/// File of a host or a card alone, with the values that it gives to a platform.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// `host` or `card`: also the key by which a platform file names it.
    pub kind: &'static str,
    /// Name that a platform file in the same folder writes.
    pub reference: String,
    /// Name that it states.
    pub name: String,
    /// Summary that it states; empty without one.
    pub summary: String,
    /// Its name in the draft.
    named: String,
    /// The part with a built-in other part.
    draft: Draft,
}

/// Host beside a card, and card beside a host, that complete a part.
const OTHERS: [&str; 2] = ["xeon-spr", "gpu-h100"];

impl Part {
    /// Reads a host or a card; `None` for any other file. A file is a host if it has `[core]` but no `[endpoint]` and names
    /// no other file, or extends a built-in host; a card likewise. `open` reads the files that it names.
    ///
    /// ```
    /// use lanemark_platform::{Document, HOSTS, Part};
    /// let host = HOSTS.iter().find(|host| host.name == "xeon-spr").unwrap();
    /// let document = Document { file: "my-host.toml".to_owned(), text: host.text.to_owned() };
    /// let part = Part::read(&document, &|_, path| Err(path.to_owned())).unwrap()?;
    /// assert_eq!((part.kind, part.reference.as_str()), ("host", "my-host.toml"));
    /// assert!(part.values().iter().any(|value| value.key == "root_complex.core_round_trip_ns"));
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    ///
    /// # Errors
    /// [`PlatformError`] with every problem of the file.
    pub fn read(document: &Document, open: Open<'_>) -> Option<Result<Part, PlatformError>> {
        let table: Table = document.text.parse().ok()?;
        let kind = kind(&table)?;
        let text = |key: &str| table.get(key).and_then(|text| text.as_str()).unwrap_or_default().to_owned();
        let is_named = is_path(&document.file);
        let reference = if is_named { document.file.clone() } else { format!("./{}", document.file) };
        Some(complete(kind, &reference, document, open).map(|draft| Part {
            kind,
            named: reference.clone(),
            reference,
            name: text("name"),
            summary: text("summary"),
            draft,
        }))
    }

    /// A built-in host or card; `None` if there is none of this name.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Result<Part, PlatformError>> {
        let row = HOSTS.iter().chain(CARDS).find(|row| row.name == name)?;
        let document = Document { file: row.file.to_owned(), text: row.text.to_owned() };
        let part = Part::read(&document, &|_, path| Err(format!("{path} is no built-in file")))?;
        Some(part.map(|part| Part { reference: name.to_owned(), ..part }))
    }

    /// Values that the part gives to a platform, with defaults of its sections.
    #[must_use]
    pub fn values(&self) -> Vec<ValueOf> {
        let [host, card] = OTHERS;
        let other = if self.kind == "host" { card } else { host };
        let mut values = self.draft.values();
        values.retain_mut(|value| {
            let Origin::Inherited { from, origin } = &value.origin else { return false };
            let (is_of_other, is_own) = (from == other, *from == self.named);
            if is_own {
                // The file itself is not another one.
                value.origin = (**origin).clone();
            }
            !is_of_other
        });
        values
    }

    /// The unknown numbers of the part.
    #[must_use]
    pub fn unknowns(&self) -> &[Unknown] {
        self.draft.unknowns()
    }

    /// Number of these values by their stated origin.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.values().iter().for_each(|value| counts.add(&value.origin));
        counts
    }
}

/// Kind of a file by its sections and its base.
fn kind(table: &Table) -> Option<&'static str> {
    if let Some(base) = table.get("extends") {
        let is_one_of = |rows: &[crate::Preset]| rows.iter().any(|row| Some(row.name) == base.as_str());
        return if is_one_of(HOSTS) { Some("host") } else { is_one_of(CARDS).then_some("card") };
    }
    if table.contains_key("host") || table.contains_key("card") {
        return None;
    }
    match (table.contains_key(Core::PATH), table.contains_key(Endpoint::PATH)) {
        (true, false) => Some("host"),
        (false, true) => Some("card"),
        _ => None,
    }
}

/// The part with a built-in other part. Messages name the file of the part.
fn complete(kind: &str, reference: &str, document: &Document, open: Open<'_>) -> Result<Draft, PlatformError> {
    let [host, card] = OTHERS;
    let quoted = toml::Value::String(reference.to_owned());
    let other = if kind == "host" { format!("card = \"{card}\"") } else { format!("host = \"{host}\"") };
    let whole = format!("schema = {SCHEMA}\nname = \"part\"\n{kind} = {quoted}\n{other}\n");
    // Only this file, which has no name, refers to the part.
    let open_part = |from: &str, path: &str| if from.is_empty() { Ok(document.clone()) } else { open(from, path) };
    Draft::with_files(Document { file: String::new(), text: whole }, &open_part)
}
