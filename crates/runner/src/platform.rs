//! Platforms by preset name or file path.

use crate::error::RunError;
use crate::input::read_file;
use crate::target::Target;
use lanemark_platform::{
    CARDS, Document, Draft, HOSTS, PRESETS, Part, Platform, PlatformError, Preset, host_with_card,
};
use lanemark_record::{Inherited, Origins};
use std::path::{Component, Path, PathBuf};

/// Largest platform file, in bytes; holds thousands of regions.
const LONGEST: u64 = 4 << 20;

/// Loads a platform by the name of a preset, by those of a built-in host and card (`xeon-spr+gpu-h100`), or by the path of a
/// file.
///
/// # Errors
/// [`RunError::NoPlatform`] if neither exists; [`RunError::NotSimulated`] if `name` is a real machine;
/// [`RunError::Platform`] with all errors of the file.
pub fn platform(name: &str) -> Result<Platform, RunError> {
    Ok(draft(name)?.complete()?)
}

/// Loads a platform like [`platform()`], but allows unknown numbers.
///
/// # Errors
/// As for [`platform()`].
pub fn draft(name: &str) -> Result<Draft, RunError> {
    if let Some(found) = PRESETS.iter().find(|preset| preset.name == name) {
        return Ok(Draft::parse(found.file, found.text)?);
    }
    if let Some((host, card)) = pair(name) {
        return Ok(host_with_card(host, card)?);
    }
    if let Ok(target) = name.parse::<Target>()
        && target.is_real()
    {
        return Err(RunError::NotSimulated { target: name.to_owned() });
    }
    let bytes =
        read_file(Path::new(name), LONGEST).map_err(|source| RunError::NoPlatform { name: name.to_owned(), source })?;
    draft_of(name, &bytes)
}

/// Reads the platform file `name`, which has these bytes, with the files that it names.
///
/// # Errors
/// [`RunError::Platform`] with all errors of the file; [`RunError::Json`] for a record.
pub fn draft_of(name: &str, bytes: &[u8]) -> Result<Draft, RunError> {
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        return Err(RunError::Json { name: name.to_owned() });
    }
    Ok(Draft::from_bytes_with_files(name, bytes, &open)?)
}

/// Whether [`platform()`] finds this name among the built-in ones: a platform, or a host and card.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    PRESETS.iter().any(|preset| preset.name == name) || pair(name).is_some()
}

/// The built-in host and card of a name such as `xeon-spr+gpu-h100`.
fn pair(name: &str) -> Option<(&str, &str)> {
    let is_one_of = |presets: &[Preset], name: &str| presets.iter().any(|preset| preset.name == name);
    name.split_once('+').filter(|(host, card)| is_one_of(HOSTS, host) && is_one_of(CARDS, card))
}

/// Reads a file that the platform file `from` names by a path relative to its own folder.
fn open(from: &str, path: &str) -> Result<Document, String> {
    let path = simplest(&Path::new(from).parent().unwrap_or(Path::new("")).join(path));
    let file = path.display().to_string();
    let bytes = read_file(&path, LONGEST).map_err(|error| error.to_string())?;
    let text =
        String::from_utf8(bytes).map_err(|error| format!("byte {} is not UTF-8", error.utf8_error().valid_up_to()))?;
    Ok(Document { file, text })
}

/// The path without `.` and `name/..`, so that a file has one name in messages and in a chain of files; an absolute path
/// if that is another file because of a link.
fn simplest(path: &Path) -> PathBuf {
    let mut simple = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(simple.components().next_back(), Some(Component::Normal(_))) => {
                simple.pop();
            }
            other => simple.push(other),
        }
    }
    match (std::fs::canonicalize(path), std::fs::canonicalize(&simple)) {
        (Ok(one), Ok(other)) if one == other => simple,
        (Ok(one), _) => one,
        // Reading it fails, and the message has the path as it is written.
        (Err(_), _) => path.to_owned(),
    }
}

/// Reads a host or a card alone, by the name of a built-in one or the path of a file; `None` for anything else.
#[must_use]
pub fn part(name: &str) -> Option<Result<Part, PlatformError>> {
    if let Some(part) = Part::built_in(name) {
        return Some(part);
    }
    let text = String::from_utf8(read_file(Path::new(name), LONGEST).ok()?).ok()?;
    Part::read(&Document { file: name.to_owned(), text }, &open)
}

/// The origins of a platform's values as a record counts them.
#[must_use]
pub fn origins_of(origins: &lanemark_platform::Origins) -> Origins {
    let (own, of_files) = (origins.own, origins.inherited);
    let inherited = Inherited { given: of_files.given, assumed: of_files.assumed, fitted: of_files.fitted };
    Origins {
        given: own.given,
        assumed: own.assumed,
        fitted: own.fitted,
        unknown: own.unknown + of_files.unknown,
        inherited: (of_files.total() > of_files.unknown).then_some(inherited),
    }
}
