//! Values and names of a platform file: their rules, and their form in messages.

use toml::de::DeValue;

/// Maximum number of characters of a file that a message quotes.
const SHOWN: usize = 60;

pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

pub(crate) fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{:?}", cut(text)),
        DeValue::Integer(integer) => cut(&integer.to_string()),
        DeValue::Float(float) => cut(float.as_str()),
        DeValue::Boolean(flag) => flag.to_string(),
        other => format!("a TOML {}", other.type_str()),
    }
}

/// Whether `name` can be part of a path such as `region.sram.read_ns`.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Whether `name` can name a port: a device, or `ABOVE/BELOW`.
pub(crate) fn is_port(name: &str) -> bool {
    name.split_once('/').map_or_else(|| is_plain(name), |(above, below)| is_plain(above) && is_plain(below))
}

pub(crate) fn shown_name(name: &str) -> String {
    if is_plain(name) { cut(name) } else { format!("{:?}", cut(name)) }
}

/// Whether `text` is not blank.
pub(crate) fn said(text: &str) -> bool {
    !text.trim().is_empty()
}

pub(crate) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => whole(value).map(|whole| whole as f64),
    }
}

pub(crate) fn whole(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Control characters, characters without width, and those that change the direction of text.
pub(crate) fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

/// The value with at most six significant digits, more than any measurement has.
pub(crate) fn shortest(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { 5 - value.abs().log10().floor() as i64 };
    let text = format!("{value:.*}", digits.clamp(0, 12) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
