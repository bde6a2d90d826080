//! A platform file as JSON Schema, as Markdown tables, and as JSON.

use crate::document::Reference;
use crate::section::ORIGINS;
use crate::sections::AnySection;
use crate::spec::{Key, Kind, Raw};
use crate::{Fault, Origin, Platform, Port, SCHEMA, SectionRow};
use serde_json::{Map, Value, json};
use std::fmt::Write;

fn value_schema(kind: Kind) -> Value {
    match kind {
        Kind::Ns(max) => json!({"type": "number", "minimum": 0, "maximum": max}),
        Kind::Number(min, max) => json!({"type": "number", "minimum": min, "maximum": max}),
        Kind::ZeroOrNumber(min, max) => json!({"oneOf": [
            {"const": 0},
            {"type": "number", "minimum": min, "maximum": max},
        ]}),
        Kind::Count(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::OneOf(these) => json!({"enum": these}),
        Kind::Size(min, max) => json!({"oneOf": [
            {"type": "integer", "minimum": min, "maximum": max},
            {"type": "string", "pattern": "^\\s*[0-9]+(\\.[0-9]{1,12})?\\s*([bB]|[kmgtKMGT]([iI]?[bB])?)?\\s*$"},
        ]}),
        Kind::Choice(words) => json!({"enum": words}),
        Kind::Flag => json!({"type": "boolean"}),
    }
}

/// Text that is not blank.
const TEXT: &str = "\\S";
/// A name that can be part of a path such as `region.sram.read_ns`.
const PLAIN: &str = "^[A-Za-z0-9_-]+$";
/// Name of a port.
const OF_PORT: &str = "^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)?$";
/// A control character, without the classes of Unicode that some validators lack.
const CONTROL: &str = "[\\x00-\\x1f\\x7f-\\x9f]";

fn text_schema(pattern: &str) -> Value {
    json!({"type": "string", "pattern": pattern})
}

/// One line of text. The end of a pattern alone would let a final newline pass in Python.
fn line_schema(pattern: &str) -> Value {
    json!({"type": "string", "pattern": pattern, "not": {"pattern": CONTROL}})
}

/// Keys of the limits of an unknown number.
const LIMITS: [&str; 2] = ["at_least", "at_most"];

fn key_schema(key: &Key) -> Value {
    let text = text_schema(TEXT);
    let mut schema = json!({
        "type": "object",
        "properties": {
            "value": value_schema(key.kind),
            "source": text,
            "assumed": text,
            "fitted_to": {"type": "array", "items": text, "minItems": 1},
        },
        "oneOf": [
            {"required": ["value", "source"]},
            {"required": ["value", "assumed"]},
            {"required": ["value", "fitted_to"]},
        ],
        "additionalProperties": false,
    });
    if key.searched.is_some() {
        schema["properties"]["unknown"] = text;
        for limit in LIMITS {
            schema["properties"][limit] = value_schema(key.kind);
        }
        if let Some(forms) = schema["oneOf"].as_array_mut() {
            forms.push(json!({"required": ["unknown"]}));
        }
        // A number has a value or is unknown, never both.
        schema["dependentSchemas"] = json!({
            "unknown": {"propertyNames": {"enum": ["unknown", LIMITS[0], LIMITS[1]]}},
            "value": {"not": {"anyOf": [{"required": [LIMITS[0]]}, {"required": [LIMITS[1]]}]}},
        });
    }
    // A plain value has the origin of its section.
    json!({"description": key.doc.trim(), "anyOf": [schema, value_schema(key.kind)]})
}

fn section_schema(row: &SectionRow) -> Value {
    let mut properties = Map::new();
    for text in row.texts {
        let pattern = match (row.path, *text) {
            (Port::PATH, _) | (Fault::PATH, "port") => OF_PORT,
            _ if row.is_repeated => PLAIN,
            _ => TEXT,
        };
        properties.insert((*text).to_owned(), line_schema(pattern));
    }
    for key in row.keys {
        properties.insert(key.name.to_owned(), key_schema(key));
    }
    for origin in ORIGINS {
        properties.insert(origin.to_owned(), text_schema(TEXT));
    }
    let texts: Map<String, Value> = row.texts.iter().map(|text| ((*text).to_owned(), json!(true))).collect();
    let mut table = json!({
        "type": "object", "properties": properties, "additionalProperties": false,
        "not": {"required": ORIGINS},
        "anyOf": [
            {"required": [ORIGINS[0]]},
            {"required": [ORIGINS[1]]},
            {"properties": texts, "additionalProperties": {"type": "object"}},
        ],
    });
    if row.is_repeated {
        table["required"] = json!(required_keys(row));
        return json!({"type": "array", "items": table, "minItems": 1});
    }
    table
}

/// The keys of a section that have no default.
fn required_keys(row: &SectionRow) -> Vec<&'static str> {
    row.texts.iter().copied().chain(row.keys.iter().filter(|key| key.default.is_none()).map(|key| key.name)).collect()
}

/// The JSON Schema of a platform file (TOML read as JSON), as text with a final newline.
#[must_use]
pub fn schema() -> String {
    let mut properties = Map::new();
    properties.insert("schema".to_owned(), json!({"const": SCHEMA}));
    for text in Platform::TEXTS {
        properties.insert((*text).to_owned(), line_schema(TEXT));
    }
    for row in Platform::SECTIONS {
        properties.insert(row.path.to_owned(), section_schema(row));
    }
    let mut references = Vec::new();
    for reference in Reference::ALL {
        properties.insert(reference.key().to_owned(), text_schema(TEXT));
        references.push(json!({"required": [reference.key()]}));
    }
    let required: Vec<&str> = Platform::TEXTS
        .iter()
        .copied()
        .chain(Platform::SECTIONS.iter().filter(|row| row.is_required).map(|row| row.path))
        .collect();
    let of_sections: Map<String, Value> = Platform::SECTIONS
        .iter()
        .filter(|row| !row.is_repeated)
        .map(|row| (row.path.to_owned(), json!({"required": required_keys(row)})))
        .collect();
    // What a file leaves out may be in a file that it names.
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lanemark platform file",
        "type": "object", "properties": properties, "required": ["schema", "name"], "additionalProperties": false,
        "if": {"anyOf": references},
        "else": {"required": required, "properties": of_sections},
    });
    format!("{schema:#}\n")
}

/// The keys as Markdown tables, one per section, for the guide.
#[must_use]
pub fn key_table() -> String {
    let mut text = String::new();
    for row in Platform::SECTIONS {
        let (open, close) = if row.is_repeated { ("[[", "]]") } else { ("[", "]") };
        let optional = if row.is_required { "" } else { " (optional)" };
        let _ = write!(text, "### `{open}{}{close}`{optional}\n\n", row.path);
        for name in row.texts {
            let _ = writeln!(text, "`{name}` is plain text in quotes.\n");
        }
        text.push_str(
            "| key | description | value | default | search range if unknown |\n| --- | --- | --- | --- | --- |\n",
        );
        for key in row.keys {
            let wanted = key.kind.wanted();
            let wanted = wanted.strip_prefix("must be ").unwrap_or(&wanted);
            let default =
                key.default.map_or("none: required".to_owned(), |(value, because)| format!("{value}: {because}"));
            let sought = match (key.kind, key.searched) {
                (_, None) => "must be known".to_owned(),
                (Kind::Flag, Some(_)) => "false, true".to_owned(),
                (_, Some((low, high))) => format!("{low} to {high}"),
            };
            let _ = writeln!(text, "| `{}` | {} | {wanted} | {default} | {sought} |", key.name, key.doc.trim());
        }
        text.push('\n');
    }
    text
}

fn param_json(raw: Raw, origin: &Origin) -> Value {
    let value = match raw {
        Raw::Number(number) => json!(number),
        Raw::Whole(whole) => json!(whole),
        Raw::Word(word) => json!(word),
        Raw::Flag(flag) => json!(flag),
    };
    let mut json = match origin.stated() {
        Origin::Given(source) => json!({"value": value, "source": source}),
        Origin::Assumed(why) => json!({"value": value, "assumed": why}),
        Origin::FittedTo(ids) => json!({"value": value, "fitted_to": ids}),
        Origin::Default(why) => json!({"value": value, "assumed": format!("default: {why}")}),
        Origin::Unknown(how) => json!({"unknown": how}),
        // The stated origin is never inherited.
        Origin::Inherited { from, .. } => json!({"value": value, "assumed": from}),
    };
    if let Origin::Inherited { from, .. } = origin {
        json["inherited_from"] = json!(from);
    }
    json
}

fn section_json(section: &dyn AnySection) -> Value {
    let mut map: Map<String, Value> =
        section.texts().into_iter().map(|(key, text)| (key.to_owned(), json!(text))).collect();
    section.each(&mut |key, raw, origin| {
        map.insert(key.to_owned(), param_json(raw, origin));
    });
    Value::Object(map)
}

impl Platform {
    /// The platform as JSON in the shape of its file, with defaults filled in.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut file = json!({"schema": SCHEMA, "name": self.name, "summary": self.summary});
        for (row, sections) in self.sections() {
            let mut sections = sections.into_iter().map(section_json);
            if row.is_repeated {
                if row.is_required || sections.len() > 0 {
                    file[row.path] = sections.collect();
                }
            } else if let Some(section) = sections.next() {
                file[row.path] = section;
            }
        }
        file
    }
}
