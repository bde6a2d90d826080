//! Platforms by the name of a preset or the path of a file.

use crate::error::RunError;
use crate::input::read_file;
use lanemark_platform::{Draft, PRESETS, Platform};
use std::path::Path;

/// The longest platform file: thousands of regions fit.
const LONGEST: u64 = 4 << 20;

/// The platform of this name: a preset, or a file.
///
/// # Errors
/// [`RunError::NoPlatform`] if there is neither; [`RunError::Platform`] with all problems of the file.
pub fn platform(name: &str) -> Result<Platform, RunError> {
    Ok(draft(name)?.complete()?)
}

/// As [`platform()`], with numbers that may be unknown.
///
/// # Errors
/// As for [`platform()`].
pub fn draft(name: &str) -> Result<Draft, RunError> {
    if let Some(found) = PRESETS.iter().find(|preset| preset.name == name) {
        return Ok(Draft::parse(&format!("platforms/{name}.toml"), found.text)?);
    }
    let bytes =
        read_file(Path::new(name), LONGEST).map_err(|source| RunError::NoPlatform { name: name.to_owned(), source })?;
    Ok(Draft::from_bytes(name, &bytes)?)
}
