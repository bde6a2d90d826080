//! The device files that come with the program.

use crate::{DeviceFile, DeviceFileError};

/// A built-in device file.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Name on the command line.
    pub name: &'static str,
    /// Its file in the repository.
    pub file: &'static str,
    /// Text of that file.
    pub text: &'static str,
}

/// The built-in device files.
pub const DEVICES: &[BuiltIn] = &[
    BuiltIn { name: "edu", file: "devices/edu.toml", text: include_str!("../../../devices/edu.toml") },
    BuiltIn { name: "axi-cdma", file: "devices/axi-cdma.toml", text: include_str!("../../../devices/axi-cdma.toml") },
    BuiltIn { name: "xdma", file: "devices/xdma.toml", text: include_str!("../../../devices/xdma.toml") },
];

/// The built-in device file of this name; `None` if there is none.
#[must_use]
pub fn built_in(name: &str) -> Option<Result<DeviceFile, DeviceFileError>> {
    DEVICES.iter().find(|device| device.name == name).map(|device| DeviceFile::parse(device.file, device.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_file_is_valid_and_has_its_own_name() {
        for device in DEVICES {
            let parsed = DeviceFile::parse(device.file, device.text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(parsed.name, device.name);
        }
    }
}
