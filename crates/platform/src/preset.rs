//! The platforms that come with the program.

use crate::{Platform, PlatformError};

/// A built-in platform file.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name on the command line.
    pub name: &'static str,
    /// Text of the file in `platforms/`.
    pub text: &'static str,
}

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset { name: "card-gen5-x16", text: include_str!("../../../platforms/card-gen5-x16.toml") },
    Preset { name: "card-gen5-x16-iommu", text: include_str!("../../../platforms/card-gen5-x16-iommu.toml") },
    Preset { name: "card-stratix10mx", text: include_str!("../../../platforms/card-stratix10mx.toml") },
    Preset { name: "soc-noncoherent", text: include_str!("../../../platforms/soc-noncoherent.toml") },
    Preset { name: "tacc-stratix4", text: include_str!("../../../platforms/tacc-stratix4.toml") },
    Preset { name: "aws-f1", text: include_str!("../../../platforms/aws-f1.toml") },
    Preset { name: "rosta-virtex7", text: include_str!("../../../platforms/rosta-virtex7.toml") },
];

/// The platform of the preset with this name; `None` if there is none.
///
/// ```
/// let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
/// assert_eq!(card.link.width_lanes.value, 16);
/// ```
#[must_use]
pub fn preset(name: &str) -> Option<Result<Platform, PlatformError>> {
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .map(|preset| Platform::parse(&format!("platforms/{name}.toml"), preset.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_valid_and_has_its_own_name() {
        for preset in PRESETS {
            let platform = Platform::parse(preset.name, preset.text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(platform.name, preset.name);
        }
    }
}
