//! The sections of a platform file, as one list.
//!
//! [`Platform`] is declared by `sections!` in `lib.rs`, one line a section: its field, how often the section
//! occurs in a file, and its type. The struct, the reader, the JSON form, the JSON Schema, the table in the guide and
//! the paths of [`Platform::with`] follow from that list.
//!
//! To add a section:
//! 1. Declare its keys with `section!`, in a file of its own under `spec/` that `spec.rs` names.
//! 2. Add one line to `sections!` in `lib.rs`, at the place where the guide shall show it.
//! 3. If a rule relates its keys to those of other sections, add a check to `check_whole` in `check.rs`.
//! 4. Add an example of it to `texts` in `tests/every_key.rs`, whose tests ask for it.

use crate::read::{Notes, at_least_one, of_defaults, one};
use crate::spec::{Key, Raw};
use crate::{Origin, Platform};
use toml::de::DeTable;

/// One section of the format: the row behind reader, schema and guide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SectionRow {
    /// Name in a file, `link` in `[link]`.
    pub path: &'static str,
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
    fn read(section: &mut crate::read::Section<'_, '_>) -> Option<Self>;
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

/// Marks a section with problems, which are in the [`Notes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted;

/// How often a section occurs: `T` once, `Option<T>` at most once, `Vec<T>` any number of times.
pub(crate) trait Occurrence: Sized {
    const IS_REPEATED: bool;

    /// Reads the section (or sections) from the table of a file.
    fn read(table: &DeTable<'_>, is_required: bool, notes: &mut Notes<'_>) -> Result<Self, Noted>;

    fn all(&self) -> Vec<&dyn AnySection>;

    fn all_mut(&mut self) -> Vec<&mut dyn AnySection>;

    /// Creates a missing optional section if all its keys have defaults. Returns whether there is one afterwards.
    fn create(&mut self) -> bool {
        true
    }
}

impl<T: SectionType> Occurrence for T {
    const IS_REPEATED: bool = false;

    fn read(table: &DeTable<'_>, _: bool, notes: &mut Notes<'_>) -> Result<T, Noted> {
        one(table, notes).ok_or(Noted)
    }

    fn all(&self) -> Vec<&dyn AnySection> {
        vec![self]
    }

    fn all_mut(&mut self) -> Vec<&mut dyn AnySection> {
        vec![self]
    }
}

impl<T: SectionType> Occurrence for Option<T> {
    const IS_REPEATED: bool = false;

    fn read(table: &DeTable<'_>, _: bool, notes: &mut Notes<'_>) -> Result<Option<T>, Noted> {
        if table.contains_key(T::PATH) { one(table, notes).map(Some).ok_or(Noted) } else { Ok(None) }
    }

    fn all(&self) -> Vec<&dyn AnySection> {
        self.iter().map(|section| section as &dyn AnySection).collect()
    }

    fn all_mut(&mut self) -> Vec<&mut dyn AnySection> {
        self.iter_mut().map(|section| section as &mut dyn AnySection).collect()
    }

    fn create(&mut self) -> bool {
        if self.is_none() {
            *self = of_defaults();
        }
        self.is_some()
    }
}

impl<T: SectionType> Occurrence for Vec<T> {
    const IS_REPEATED: bool = true;

    fn read(table: &DeTable<'_>, is_required: bool, notes: &mut Notes<'_>) -> Result<Vec<T>, Noted> {
        if is_required || table.contains_key(T::PATH) {
            at_least_one(table, notes).ok_or(Noted)
        } else {
            Ok(Vec::new())
        }
    }

    fn all(&self) -> Vec<&dyn AnySection> {
        self.iter().map(|section| section as &dyn AnySection).collect()
    }

    fn all_mut(&mut self) -> Vec<&mut dyn AnySection> {
        self.iter_mut().map(|section| section as &mut dyn AnySection).collect()
    }
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

/// The row of the section called `path`; `None` if the format has no such section.
pub(crate) fn row(path: &str) -> Option<&'static SectionRow> {
    Platform::SECTIONS.iter().find(|row| row.path == path)
}

/// The section that `path` and, if it is repeated, `name` denote.
pub(crate) fn find<'a>(platform: &'a Platform, path: &str, name: &str) -> Option<&'a dyn AnySection> {
    let (row, sections) = platform.sections().into_iter().find(|(row, _)| row.path == path)?;
    sections.into_iter().find(|section| !row.is_repeated || label(*section).as_deref() == Some(name))
}

/// As [`find`], to change the section.
pub(crate) fn find_mut<'a>(platform: &'a mut Platform, path: &str, name: &str) -> Option<&'a mut dyn AnySection> {
    let (row, sections) = platform.sections_mut().into_iter().find(|(row, _)| row.path == path)?;
    sections.into_iter().find(|section| !row.is_repeated || label(&**section).as_deref() == Some(name))
}

/// Declares [`Platform`] and everything that lists its sections. A section occurs `once`, is `optional`, or there are
/// `any_number` or `at_least_one` of it.
macro_rules! sections {
    (
        $(#[$doc:meta])*
        pub struct $platform:ident {
            text { $($(#[$tdoc:meta])* $text:ident,)* }
            $($(#[$sdoc:meta])* $field:ident: $occurs:ident $section:ident,)*
        }
    ) => {
        pub use spec::{$($section,)*};

        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $platform {
            $($(#[$tdoc])* pub $text: String,)*
            $($(#[$sdoc])* pub $field: sections!(@type $occurs $section),)*
        }

        impl $platform {
            /// Keys of a file that are plain text and stand before its sections.
            pub const TEXTS: &'static [&'static str] = &[$(stringify!($text),)*];

            /// All sections of the format, in the order in which the guide lists them.
            pub const SECTIONS: &'static [spec::SectionRow] = &[$(spec::SectionRow {
                path: $section::PATH,
                texts: $section::TEXTS,
                keys: $section::KEYS,
                is_repeated: <sections!(@type $occurs $section) as sections::Occurrence>::IS_REPEATED,
                is_required: sections!(@is_required $occurs),
            },)*];

            /// The sections of this platform, by row.
            pub(crate) fn sections(&self) -> Vec<(&'static spec::SectionRow, Vec<&dyn sections::AnySection>)> {
                Self::SECTIONS.iter().zip([$(sections::Occurrence::all(&self.$field),)*]).collect()
            }

            fn sections_mut(&mut self) -> Vec<(&'static spec::SectionRow, Vec<&mut dyn sections::AnySection>)> {
                Self::SECTIONS.iter().zip([$(sections::Occurrence::all_mut(&mut self.$field),)*]).collect()
            }

            /// Creates a missing optional section if all its keys have defaults. Returns whether there is one afterwards.
            pub(crate) fn create_section(&mut self, path: &str) -> bool {
                match path {
                    $($section::PATH => sections::Occurrence::create(&mut self.$field),)*
                    _ => false,
                }
            }
        }

        /// The sections of a file, as far as they could be read.
        pub(crate) struct Sections {
            $(pub(crate) $field: Result<sections!(@type $occurs $section), sections::Noted>,)*
        }

        impl Sections {
            pub(crate) fn read(table: &toml::de::DeTable<'_>, notes: &mut read::Notes<'_>) -> Sections {
                Sections {
                    $($field: sections::Occurrence::read(table, sections!(@is_required $occurs), notes),)*
                }
            }

            /// The platform, if no section has problems.
            pub(crate) fn complete(self, $($text: String,)*) -> Option<$platform> {
                Some($platform { $($text,)* $($field: self.$field.ok()?,)* })
            }
        }
    };
    (@type once $section:ident) => { $section };
    (@type optional $section:ident) => { Option<$section> };
    (@type any_number $section:ident) => { Vec<$section> };
    (@type at_least_one $section:ident) => { Vec<$section> };
    (@is_required once) => { true };
    (@is_required optional) => { false };
    (@is_required any_number) => { false };
    (@is_required at_least_one) => { true };
}
