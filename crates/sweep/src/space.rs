//! A space: platforms, changed keys and questions, from a TOML file.

use crate::error::SpaceError;
use crate::options::{Asking, OPTIONS, QuestionOption};
use crate::settings::{Combine, Settings};
use crate::values::{MOST, value_list};
use lanemark_record::SweptBy;
use lanemark_units::did_you_mean;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Version of the format.
pub(crate) const SCHEMA: i64 = 1;

/// Keys of a space.
const KEYS: [&str; 7] = ["schema", "platforms", "by", "combine", "no_fast_forward", "with", "question"];

/// Largest number of combinations of options of all questions. Each has its cases, which are all listed.
const MOST_COMBINATIONS: u64 = 65_536;

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
        known_keys(file, "", &table, &KEYS)?;
        match table.get("schema") {
            Some(Value::Integer(SCHEMA)) => {}
            Some(_) => return Err(wrong("schema", format!("this program reads schema = {SCHEMA}"))),
            None => return Err(wrong("schema", format!("is missing; write schema = {SCHEMA}"))),
        }
        let platforms = texts(file, "platforms", table.get("platforms"), true)?;
        let is_name = |value: &Value| value.as_str().is_some_and(|name| !name.is_empty());
        let are_names = |value: &Value| value.as_array().map_or(is_name(value), |all| all.iter().all(is_name));
        if !table.get("platforms").is_some_and(are_names) {
            return Err(wrong(
                "platforms",
                "must be a platform name or a list of names, in quotes, such as \"card-gen5-x16\"".to_owned(),
            ));
        }
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
        let (mut keys, mut left) = (Vec::new(), MOST);
        match table.get("with") {
            None => {}
            Some(Value::Table(with)) => flatten(file, "", with, &mut keys, &mut left)?,
            Some(_) => return Err(wrong("with", "is a section: write [with] and one key per line".to_owned())),
        }
        let settings = Settings { keys, combine };
        settings.check().map_err(|(key, message)| wrong(&format!("with.{key}"), message))?;
        let questions = match table.get("question") {
            Some(Value::Array(questions)) if !questions.is_empty() => questions.as_slice(),
            _ => return Err(wrong("question", "is missing: write [[question]] with a name".to_owned())),
        };
        let mut left = MOST_COMBINATIONS;
        let questions = questions.iter().enumerate().map(|(place, asked)| Asked::parse(file, place, asked, &mut left));
        let questions = questions.collect::<Result<Vec<Asked>, SpaceError>>()?;
        let folder = Path::new(file).parent().unwrap_or(Path::new("")).to_owned();
        Ok(Space { file: file.to_owned(), folder, platforms, by, no_fast_forward, settings, questions })
    }
}

impl Asked {
    /// Parses a question. Subtracts its combinations of options from those that are `left`.
    fn parse(file: &str, place: usize, value: &Value, left: &mut u64) -> Result<Asked, SpaceError> {
        let at = format!("question.{}", place + 1);
        let Value::Table(table) = value else { return Err(SpaceError::key(file, at, "write [[question]]")) };
        let known: Vec<&str> = std::iter::once("name").chain(OPTIONS.iter().map(|option| option.name)).collect();
        known_keys(file, &at, table, &known)?;
        let Some(Value::String(question)) = table.get("name") else {
            return Err(SpaceError::key(file, format!("{at}.name"), "is missing; `lanemark questions` lists them"));
        };
        lanemark_runner::question(question)
            .map_err(|error| SpaceError::key(file, format!("{at}.name"), error.to_string()))?;
        let (mut options, mut combinations) = (Vec::new(), 1_u64);
        for option in OPTIONS {
            let Some(value) = table.get(option.name) else { continue };
            let key = format!("{at}.{}", option.name);
            let values = values_of(option, &key, file, value)?;
            combinations = combinations.saturating_mul(values.len() as u64);
            if combinations > *left {
                let message = format!(
                    "the options of all questions have more than {MOST_COMBINATIONS} combinations; use fewer values"
                );
                return Err(SpaceError::key(file, key, message));
            }
            for value in &values {
                (option.set)(&mut Asking::default(), value)
                    .map_err(|message| SpaceError::key(file, key.as_str(), message))?;
            }
            let mut seen = HashSet::new();
            if let Some(again) = values.iter().find(|value| !seen.insert(value.as_str())) {
                return Err(SpaceError::key(file, key, format!("lists {again} twice; keep one of them")));
            }
            options.push((option.name.to_owned(), values));
        }
        *left = left.checked_sub(combinations).ok_or_else(|| {
            SpaceError::key(file, at, format!("has too many combinations: options of all questions may have at most {MOST_COMBINATIONS}; use fewer values"))
        })?;
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
        if texts.len() > MOST {
            break;
        }
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
                let message = format!("has a value of type {}; use numbers, texts, true or false", other.type_str());
                return Err(SpaceError::key(file, key, message));
            }
        }
    }
    match texts.len() {
        0 => Err(SpaceError::key(file, key, "has no value")),
        count if count > MOST => Err(SpaceError::key(file, key, "has more than a million values; use fewer")),
        _ => Ok(texts),
    }
}

fn word<'a>(file: &str, key: &str, value: Option<&'a Value>) -> Result<Option<&'a str>, SpaceError> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(SpaceError::key(file, key, "is not a text")),
    }
}

/// Collects the keys of `[with]`: `dma.tags` may be written as a dotted key, as a quoted key or in a section. Subtracts
/// the number of values from those that are `left`.
fn flatten(
    file: &str,
    above: &str,
    table: &Table,
    keys: &mut Vec<(String, Vec<String>)>,
    left: &mut usize,
) -> Result<(), SpaceError> {
    for (name, value) in table {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value {
            Value::Table(table) => flatten(file, &key, table, keys, left)?,
            value => {
                let at = format!("with.{key}");
                let values = texts(file, &at, Some(value), false)?;
                let too_many = || {
                    SpaceError::key(
                        file,
                        at,
                        "has too many values: all keys together may have at most 1 000 000; use fewer",
                    )
                };
                *left = left.checked_sub(values.len()).ok_or_else(too_many)?;
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
            ("\"mine.toml\"", "5", "platforms: must be a platform name or a list of names"),
            ("\"mine.toml\"", "\"\"", "platforms: must be a platform name or a list of names"),
            ("by = \"simulation\"", "by = \"guess\"", "by: is \"guess\"; use \"formulas\""),
            ("by =", "bye =", "bye: is unknown; did you mean by"),
            ("\"zip\"", "\"sum\"", "combine: is \"sum\""),
            ("8..32*2", "32..8", "with.dma.tags: the range"),
            ("[128, 256, 512]", "[128, 256]", "with.link.mps_bytes: has 2 values"),
            ("[128, 256, 512]", "[]", "with.link.mps_bytes: has no value"),
            ("[128, 256, 512]", "\"1..999998+1\"", "with.link.mps_bytes: has too many values: all keys"),
            ("[128, 256, 512]", "[[1]]", "with.link.mps_bytes: has a value of type array"),
            ("dma_read_bandwidth", "dma_read", "question.1.name: 'dma_read' is not a question"),
            ("sizes = \"4K..64K*4\"", "sizes = \"64K..4K\"", "question.1.sizes: the sizes"),
            ("outstanding = [1, 2]", "outstanding = [1, 0]", "question.1.outstanding: '0' is not"),
            ("outstanding = [1, 2]", "outstanding = [1, 1]", "question.1.outstanding: lists 1 twice"),
            ("outstanding", "outstandin", "question.1.outstandin: is unknown; did you mean outstanding"),
            ("random = true", "random = \"yes\"", "question.1.random: "),
            ("[1, 2]", "\"1..10923+1\"", "question.1.outstanding: the options of all questions have more than 65536"),
        ] {
            assert!(GOOD.contains(old), "{old}");
            let error = Space::parse("a.toml", &GOOD.replace(old, new)).unwrap_err().to_string();
            assert!(error.contains(says), "{old}: {error}");
        }
        let most = GOOD.replace("[1, 2]", "\"1..10922+1\"");
        assert!(Space::parse("a.toml", &most).is_ok(), "3 sizes and 2 flows with 10922 values are 65532 combinations");
        let none = format!("question = []\n{}", GOOD.split("[[question]]").next().unwrap());
        let error = Space::parse("a.toml", &none).unwrap_err().to_string();
        assert!(error.contains("question: is missing"), "{error}");
        let error = Space::parse("a.toml", "schema = ").unwrap_err().to_string();
        assert!(error.starts_with("a.toml: ") && error.contains("line 1"), "{error}");
    }
}
