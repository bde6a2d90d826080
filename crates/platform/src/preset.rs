//! The platforms that come with the program.

use crate::built_in::PRESETS;
use crate::{Draft, Platform, PlatformError, SCHEMA};

/// The platform of the preset with this name; `None` if there is none.
///
/// ```
/// let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
/// assert_eq!(card.link.width_lanes.value, 16);
/// ```
#[must_use]
pub fn preset(name: &str) -> Option<Result<Platform, PlatformError>> {
    PRESETS.iter().find(|preset| preset.name == name).map(|preset| Platform::parse(preset.file, preset.text))
}

/// A built-in host with a built-in card, each by its name; the platform is called `HOST+CARD`.
///
/// ```
/// let draft = lanemark_platform::host_with_card("epyc-milan", "gpu-h100")?;
/// // The GPU supports Gen5, the host Gen4.
/// assert_eq!(draft.complete()?.link.generation.value, 4);
/// # Ok::<(), lanemark_platform::PlatformError>(())
/// ```
///
/// # Errors
/// [`PlatformError`] if there is no such host or card.
pub fn host_with_card(host: &str, card: &str) -> Result<Draft, PlatformError> {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let name = format!("{host}+{card}");
    let file = format!("schema = {SCHEMA}\nname = {}\nhost = {}\ncard = {}\n", text(&name), text(host), text(card));
    Draft::parse(&name, &file)
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
