//! A condition of a rule: a platform with one key changed.

use lanemark_platform::{Origin, Platform};

/// The platform with `key` set to `value`.
pub(crate) fn with(platform: &Platform, key: &str, value: f64) -> Result<Platform, String> {
    platform.with(key, value, Origin::Assumed("condition of a rule".to_owned())).map_err(|error| error.to_string())
}
