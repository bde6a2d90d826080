//! The text of a new platform file.

use crate::platform::{Platform, SCHEMA};
use std::fmt::Write;

/// Files whose values a new platform file inherits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Like<'a> {
    /// A preset, or the path of another platform file.
    Platform(&'a str),
    /// A host and a card, each built in or a path.
    Pair {
        /// The host.
        host: &'a str,
        /// The card.
        card: &'a str,
    },
}

/// Keys of a new file: the first that differ between two machines, and what shows them.
const FIRST: [(&str, &str, &[&str]); 2] = [
    ("link", "LnkSta and DevCtl in lspci -vvv", &["generation", "width_lanes", "mps_bytes", "mrrs_bytes"]),
    ("dma", "the manual of its DMA engine", &["tags", "channels"]),
];

/// The text of a short platform file called `name`, which inherits from `like`. It states the values of `platform`, which
/// `like` describes, for the keys that differ first between two machines; the author replaces them.
///
/// ```
/// use lanemark_platform::{Like, Platform, new_file, preset};
/// let card = preset("card-gen5-x16").unwrap()?;
/// let text = new_file("mine", Like::Platform("card-gen5-x16"), &card);
/// let mine = Platform::parse("mine.toml", &text)?;
/// assert_eq!((mine.name.as_str(), mine.link.width_lanes.value), ("mine", 16));
/// assert_eq!(mine.origins().own.assumed, 6);
/// # Ok::<(), lanemark_platform::PlatformError>(())
/// ```
#[must_use]
pub fn new_file(name: &str, like: Like<'_>, platform: &Platform) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut text = format!("schema = {SCHEMA}\nname = {}\n", quoted(name));
    // Writing to a String cannot fail.
    let like = match like {
        Like::Platform(base) => {
            let _ = writeln!(text, "extends = {}", quoted(base));
            base.to_owned()
        }
        Like::Pair { host, card } => {
            let _ = writeln!(text, "host = {}\ncard = {}", quoted(host), quoted(card));
            format!("{host} and {card}")
        }
    };
    for (section, shown_by, keys) in FIRST {
        let values = keys.iter().filter_map(|key| Some((key, platform.value_text(&format!("{section}.{key}"))?)));
        let values: Vec<_> = values.collect();
        if !values.is_empty() {
            let _ = writeln!(text, "\n[{section}]");
            let _ = writeln!(text, "assumed = {}", quoted(&format!("as in {like}; replace by {shown_by}")));
            for (key, value) in values {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
    }
    text
}
