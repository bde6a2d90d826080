//! Platforms by preset name or file path.

use crate::error::RunError;
use crate::input::read_file;
use crate::target::Target;
use lanemark_platform::{Draft, PRESETS, Platform};
use std::path::Path;

/// Largest platform file, in bytes; holds thousands of regions.
const LONGEST: u64 = 4 << 20;

/// Loads a platform by the name of a preset or the path of a file.
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
        return Ok(Draft::parse(&format!("platforms/{name}.toml"), found.text)?);
    }
    if let Ok(target) = name.parse::<Target>()
        && target.is_real()
    {
        return Err(RunError::NotSimulated { target: name.to_owned() });
    }
    let bytes =
        read_file(Path::new(name), LONGEST).map_err(|source| RunError::NoPlatform { name: name.to_owned(), source })?;
    Ok(Draft::from_bytes(name, &bytes)?)
}
