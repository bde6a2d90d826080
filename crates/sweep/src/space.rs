//! A space: platforms, changed keys and questions, from a TOML file.

use crate::error::SpaceError;
use crate::options::{Asking, OPTIONS, QuestionOption};
use crate::settings::{Combine, Settings};
use crate::values::value_list;
use lanemark_record::SweptBy;
use lanemark_units::did_you_mean;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Version of the format.
const SCHEMA: i64 = 1;

/// Platforms, changed keys and questions of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// Name of its file, for messages.
    pub file: String,
    /// Folder to which names of platform files are relative.
    pub folder: PathBuf,
    /// Built-in platforms and platform files.
    pub platforms: Vec<String>,
    /// Source of the figures.
    pub by: SweptBy,
    /// Disables the steady-state fast-forward of simulations.
    pub no_fast_forward: bool,
    /// Changed keys of the platforms.
    pub settings: Settings,
    /// The questions.
    pub questions: Vec<Asked>,
}

/// One question of a space, with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Name of the question.
    pub question: String,
    /// Options and their values, in the order of [`OPTIONS`].
    pub options: Vec<(String, Vec<String>)>,
}

impl Space {
    /// Parses the text of the file called `file`. Names of platform files are relative to its folder.
    ///
    /// # Errors
    /// [`SpaceError`] with the key that is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Space, SpaceError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| SpaceError::Toml {
            file: file.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        let wrong = |key: &str, message: String| SpaceError::key(file, key, message);
        known_keys(file, "", &table, &["schema", "platforms", "by", "combine", "no_fast_forward", "with", "question"])?;
        match table.get("schema") {
            Some(Value::Integer(SCHEMA)) => {}
            Some(_) => return Err(wrong("schema", format!("this program reads schema = {SCHEMA}"))),
            None => return Err(wrong("schema", format!("is missing; write schema = {SCHEMA}"))),
        }
        let platforms = texts(file, "platforms", table.get("platforms"), true)?;
        let by = match word(file, "by", table.get("by"))? {
            None | Some("formulas") => SweptBy::Formulas,
            Some("simulation") => SweptBy::Simulation,
            Some(other) => return Err(wrong("by", format!("is \"{other}\"; use \"formulas\" or \"simulation\""))),
        };
        let combine = match word(file, "combine", table.get("combine"))? {
            None | Some("product") => Combine::Product,
            Some("zip") => Combine::Zip,
            Some(other) => return Err(wrong("combine", format!("is \"{other}\"; use \"product\" or \"zip\""))),
        };
        let no_fast_forward = match table.get("no_fast_forward") {
            None => false,
            Some(Value::Boolean(flag)) => *flag,
            Some(_) => return Err(wrong("no_fast_forward", "use true or false".to_owned())),
        };
        let mut keys = Vec::new();
        match table.get("with") {
            None => {}
            Some(Value::Table(with)) => flatten(file, "", with, &mut keys)?,
            Some(_) => return Err(wrong("with", "is a section: write [with] and one key per line".to_owned())),
        }
        let settings = Settings { keys, combine };
        settings.check().map_err(|(key, message)| wrong(&format!("with.{key}"), message))?;
        let questions = match table.get("question") {
            Some(Value::Array(questions)) => questions.as_slice(),
            _ => return Err(wrong("question", "is missing: write [[question]] with a name".to_owned())),
        };
        let questions = questions.iter().enumerate().map(|(place, asked)| Asked::parse(file, place, asked));
        let folder = Path::new(file).parent().unwrap_or(Path::new("")).to_owned();
        let questions = questions.collect::<Result<Vec<Asked>, SpaceError>>()?;
        Ok(Space { file: file.to_owned(), folder, platforms, by, no_fast_forward, settings, questions })
    }
}

impl Asked {
    fn parse(file: &str, place: usize, value: &Value) -> Result<Asked, SpaceError> {
        let at = format!("question.{}", place + 1);
        let Value::Table(table) = value else { return Err(SpaceError::key(file, at, "write [[question]]")) };
        let known: Vec<&str> = std::iter::once("name").chain(OPTIONS.iter().map(|option| option.name)).collect();
        known_keys(file, &at, table, &known)?;
        let Some(Value::String(question)) = table.get("name") else {
            return Err(SpaceError::key(file, format!("{at}.name"), "is missing; `lanemark questions` lists them"));
        };
        lanemark_runner::question(question)
            .map_err(|error| SpaceError::key(file, format!("{at}.name"), error.to_string()))?;
        let mut options = Vec::new();
        for option in OPTIONS {
            let Some(value) = table.get(option.name) else { continue };
            let key = format!("{at}.{}", option.name);
            let values = values_of(option, &key, file, value)?;
            for value in &values {
                (option.set)(&mut Asking::default(), value)
                    .map_err(|message| SpaceError::key(file, key.as_str(), message))?;
            }
            if let Some(again) = values.iter().enumerate().find(|(place, value)| values[..*place].contains(value)) {
                return Err(SpaceError::key(file, key, format!("lists {} twice; keep one of them", again.1)));
            }
            options.push((option.name.to_owned(), values));
        }
        Ok(Asked { question: question.clone(), options })
    }
}

/// The values of an option; sizes one by one.
fn values_of(option: &QuestionOption, key: &str, file: &str, value: &Value) -> Result<Vec<String>, SpaceError> {
    let wrong = |message: String| SpaceError::key(file, key, message);
    let is_sizes = option.name == "sizes";
    let texts = texts(file, key, Some(value), option.is_one_text || is_sizes)?;
    if is_sizes {
        let mut sizes = Vec::new();
        for text in texts {
            let range: lanemark_units::SizeRange = text.parse().map_err(|error| wrong(format!("{error}")))?;
            sizes.extend(range.bytes().iter().map(u64::to_string));
        }
        return Ok(sizes);
    }
    Ok(texts)
}

/// A list of values: an array, or one value. A text may hold several, unless it `is_one`.
fn texts(file: &str, key: &str, value: Option<&Value>, is_one: bool) -> Result<Vec<String>, SpaceError> {
    let Some(value) = value else { return Err(SpaceError::key(file, key, "is missing")) };
    let single = std::slice::from_ref(value);
    let items = value.as_array().map_or(single, Vec::as_slice);
    let mut texts = Vec::new();
    for item in items {
        match item {
            Value::String(text) if is_one => texts.push(text.clone()),
            Value::String(text) => {
                let list = value_list(text);
                texts.extend(list.map_err(|error| SpaceError::key(file, key, error.to_string()))?);
            }
            Value::Integer(number) => texts.push(number.to_string()),
            Value::Float(number) if number.is_finite() => texts.push(number.to_string()),
            Value::Boolean(flag) => texts.push(flag.to_string()),
            other => {
                let message = format!("has a {}; use numbers, texts, true or false", other.type_str());
                return Err(SpaceError::key(file, key, message));
            }
        }
    }
    if texts.is_empty() {
        return Err(SpaceError::key(file, key, "has no value"));
    }
    Ok(texts)
}

fn word<'a>(file: &str, key: &str, value: Option<&'a Value>) -> Result<Option<&'a str>, SpaceError> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(SpaceError::key(file, key, "is not a text")),
    }
}

/// Collects the keys of `[with]`: `dma.tags` may be written as a dotted key, as a quoted key or in a section.
fn flatten(file: &str, above: &str, table: &Table, keys: &mut Vec<(String, Vec<String>)>) -> Result<(), SpaceError> {
    for (name, value) in table {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value {
            Value::Table(table) => flatten(file, &key, table, keys)?,
            value => {
                let values = texts(file, &format!("with.{key}"), Some(value), false)?;
                keys.push((key, values));
            }
        }
    }
    Ok(())
}

fn known_keys(file: &str, at: &str, table: &Table, known: &[&str]) -> Result<(), SpaceError> {
    let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
    let hint = did_you_mean(unknown, known.iter().copied());
    let hint = hint.unwrap_or_else(|| format!("known keys: {}", known.join(", ")));
    let key = if at.is_empty() { unknown.clone() } else { format!("{at}.{unknown}") };
    Err(SpaceError::key(file, key, format!("is unknown; {hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
schema = 1
platforms = ["card-gen5-x16", "mine.toml"]
by = "simulation"
combine = "zip"
[with]
dma.tags = "8..32*2"
"link.mps_bytes" = [128, 256, 512]
[[question]]
name = "dma_read_bandwidth"
sizes = "4K..64K*4"
flows = ["host:0", "host:0,0:host"]
outstanding = [1, 2]
random = true
"#;

    #[test]
    fn every_key_of_a_space_is_read() {
        let space = Space::parse("spaces/a.toml", GOOD).unwrap();
        assert_eq!((space.by, space.settings.combine), (SweptBy::Simulation, Combine::Zip));
        assert_eq!(space.folder, Path::new("spaces"));
        let names: Vec<&str> = space.settings.keys.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(names, ["dma.tags", "link.mps_bytes"]);
        assert_eq!(space.settings.keys[1].1, ["128", "256", "512"]);
        let options = &space.questions[0].options;
        assert_eq!(options[0], ("sizes".to_owned(), ["4096", "16384", "65536"].map(str::to_owned).to_vec()));
        assert_eq!(options[1].1, ["host:0", "host:0,0:host"]);
    }

    #[test]
    fn a_wrong_key_is_named_with_what_to_write() {
        for (old, new, says) in [
            ("schema = 1", "schema = 2", "a.toml: schema: this program reads schema = 1"),
            ("schema = 1", "", "schema: is missing"),
            ("platforms = [\"card-gen5-x16\", \"mine.toml\"]", "", "platforms: is missing"),
            ("by = \"simulation\"", "by = \"guess\"", "by: is \"guess\"; use \"formulas\""),
            ("by =", "bye =", "bye: is unknown; did you mean by"),
            ("\"zip\"", "\"sum\"", "combine: is \"sum\""),
            ("8..32*2", "32..8", "with.dma.tags: the range"),
            ("[128, 256, 512]", "[128, 256]", "with.link.mps_bytes: has 2 values"),
            ("[128, 256, 512]", "[]", "with.link.mps_bytes: has no value"),
            ("[128, 256, 512]", "[[1]]", "with.link.mps_bytes: has a array"),
            ("dma_read_bandwidth", "dma_read", "question.1.name: 'dma_read' is not a question"),
            ("sizes = \"4K..64K*4\"", "sizes = \"64K..4K\"", "question.1.sizes: the sizes"),
            ("outstanding = [1, 2]", "outstanding = [1, 0]", "question.1.outstanding: '0' is not"),
            ("outstanding = [1, 2]", "outstanding = [1, 1]", "question.1.outstanding: lists 1 twice"),
            ("outstanding", "outstandin", "question.1.outstandin: is unknown; did you mean outstanding"),
            ("random = true", "random = \"yes\"", "question.1.random: "),
        ] {
            assert!(GOOD.contains(old), "{old}");
            let error = Space::parse("a.toml", &GOOD.replace(old, new)).unwrap_err().to_string();
            assert!(error.contains(says), "{old}: {error}");
        }
        let error = Space::parse("a.toml", "schema = ").unwrap_err().to_string();
        assert!(error.starts_with("a.toml: ") && error.contains("line 1"), "{error}");
    }
}
