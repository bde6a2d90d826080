//! Device files by name.

use crate::error::RunError;
use crate::input::read_file;
use lanemark_devices::{DEVICES, DeviceFile, built_in};
use lanemark_units::did_you_mean;
use std::path::Path;

/// Largest device file, in bytes.
const LONGEST: u64 = 1 << 20;

/// Returns a device file by name: a built-in one, or a file.
///
/// # Errors
/// [`RunError::DeviceFile`] or [`RunError::NoDeviceFile`].
///
/// ```
/// assert_eq!(lanemark_runner::device_file("edu").unwrap().name, "edu");
/// assert!(lanemark_runner::device_file("eddu").unwrap_err().to_string().contains("did you mean edu?"));
/// ```
pub fn device_file(name: &str) -> Result<DeviceFile, RunError> {
    if let Some(device) = built_in(name) {
        return Ok(device?);
    }
    let failed = |because: String| RunError::NoDeviceFile { name: name.to_owned(), because };
    let bytes = read_file(Path::new(name), LONGEST).map_err(|error| {
        let known = || DEVICES.iter().map(|device| device.name);
        let hint = did_you_mean(name, known())
            .unwrap_or_else(|| format!("built in: {}", known().collect::<Vec<_>>().join(", ")));
        failed(format!("{hint}; reading it as a file failed: {error}"))
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        failed(format!("byte {at} is not UTF-8; a device file is TOML, which is UTF-8 text"))
    })?;
    Ok(DeviceFile::parse(name, &text)?)
}
