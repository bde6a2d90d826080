//! The sections of a platform file, as one list.
//!
//! [`Platform`](crate::Platform) is declared by `sections!` in `platform.rs`, one line a section: its field, how often the section
//! occurs in a file, its type, and the part of a machine that it describes. The struct, the reader, the JSON form, the JSON Schema, the table in the guide and
//! the paths of [`Platform::with`](crate::Platform::with) follow from that list.
//!
//! To add a section:
//! 1. Declare its keys with `section!`, in a file of its own under `spec/` that `spec.rs` names.
//! 2. Add one line to `sections!` in `platform.rs`, at the place where the guide shall show it, and its name to the
//!    `pub use` of `spec` in `lib.rs`.
//! 3. If a rule relates its keys to those of other sections, add a check to `check_whole` in `check.rs`.
//! 4. Add an example of it to `texts` in `tests/every_key.rs`, whose tests ask for it.

use crate::key::{Key, Raw};
use crate::param::Origin;
use crate::section::Section;

/// The part of a machine that a section describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionPart {
    /// The host: cores, driver, root complex, memory.
    Host,
    /// The card and its link.
    Card,
    /// The machine that connects hosts and cards: switches, slots, ports.
    Machine,
}

/// One section of the format: the row behind reader, schema and guide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SectionRow {
    /// Name in a file, `link` in `[link]`.
    pub path: &'static str,
    /// Part of a machine that it describes.
    pub part: SectionPart,
    /// Keys whose values are plain text, without an origin.
    pub texts: &'static [&'static str],
    /// All other keys.
    pub keys: &'static [Key],
    /// Whether the section may occur several times: `[[slot]]`.
    pub is_repeated: bool,
    /// Whether a file must have the section.
    pub is_required: bool,
}

/// A type that `section!` declares.
pub(crate) trait SectionType: AnySection + Sized {
    const PATH: &'static str;

    /// Reads the section. Notes every problem in it and returns `None` if there is one.
    fn read(section: &mut Section<'_, '_>) -> Option<Self>;
}

/// The values of one section, whatever its type.
pub(crate) trait AnySection {
    /// Keys of plain text, with their values.
    fn texts(&self) -> Vec<(&'static str, &str)>;

    /// Calls `visit` with name, value and origin of every other key.
    fn each(&self, visit: &mut dyn FnMut(&'static str, Raw, &Origin));

    /// Replaces one value. Returns whether the key exists and accepts the value.
    fn set(&mut self, key: &str, raw: &Raw, origin: Origin) -> bool;
}

/// Name of one of several sections in paths: its `name`, or the number in its `index`.
pub(crate) fn label(section: &dyn AnySection) -> Option<String> {
    if let Some((_, name)) = section.texts().into_iter().find(|(key, _)| *key == "name") {
        return Some(name.to_owned());
    }
    let mut index = None;
    section.each(&mut |key, raw, _| {
        if key == "index" {
            index = Some(raw.to_string());
        }
    });
    index
}
