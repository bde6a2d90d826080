//! Names of enumerations in files and on the command line.

/// An unknown name, with the list of known names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not {what}: use one of {known}")]
pub struct UnknownName {
    /// The text that was read.
    pub name: String,
    /// The kind of name that was expected, with its article.
    pub what: &'static str,
    /// The known names, separated by commas.
    pub known: String,
}

/// Serializes `$type` by its name, and describes it in JSON Schema as the list of all names.
///
/// `$type` has `ALL` and `FromStr`, whose error lists the names.
macro_rules! by_name {
    ($type:ty, $name:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let name: fn(&$type) -> String = $name;
                serializer.serialize_str(&name(self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let name = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                name.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let name: fn(&$type) -> String = $name;
                let names: Vec<String> = <$type>::ALL.iter().map(name).collect();
                schemars::json_schema!({ "type": "string", "enum": names })
            }
        }
    };
}
pub(crate) use by_name;

/// Parses `$type` by `name`; the error lists all names.
macro_rules! from_name {
    ($type:ty, $what:literal) => {
        impl std::str::FromStr for $type {
            type Err = crate::UnknownName;

            fn from_str(text: &str) -> Result<$type, crate::UnknownName> {
                let known = || <$type>::ALL.map(<$type>::name).join(", ");
                let found = <$type>::ALL.into_iter().find(|one| one.name() == text);
                found.ok_or_else(|| crate::UnknownName { name: text.to_owned(), what: $what, known: known() })
            }
        }

        crate::name::by_name!($type, |one: &$type| one.name().to_owned());
    };
}
pub(crate) use from_name;
