//! The format of device files as JSON Schema and as a Markdown table.

use crate::spec::{Fallback, Key, Kind, SECTIONS, Section};
use lanemark_units::format_size;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The JSON Schema of a device file (TOML read as JSON), as text with a final newline.
///
/// It describes single keys. The rules of several keys are checked by [`DeviceFile::parse`](crate::DeviceFile::parse) only.
#[must_use]
pub fn schema() -> String {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for section in SECTIONS {
        if section.name.is_empty() {
            for key in section.keys {
                properties.insert(key.name.to_owned(), key_schema(key));
                required.push(key.name);
            }
            continue;
        }
        let table = section_schema(section);
        let schema = if section.is_repeated {
            json!({"description": section.doc, "type": "array", "items": table, "minItems": 1})
        } else {
            table
        };
        properties.insert(section.name.to_owned(), schema);
        if section.is_required {
            required.push(section.name);
        }
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lanemark device",
        "description": "A real device: identity, BARs, registers of its DMA engine, interrupts.",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    format!("{schema:#}\n")
}

fn section_schema(section: &Section) -> Value {
    let properties: Map<String, Value> =
        section.keys.iter().map(|key| (key.name.to_owned(), key_schema(key))).collect();
    let required: Vec<&str> = section.keys.iter().filter(|key| key.default.is_none()).map(|key| key.name).collect();
    json!({
        "description": section.doc, "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

fn key_schema(key: &Key) -> Value {
    let number = |least: u64, most: u64| json!({"type": "integer", "minimum": least, "maximum": most});
    let mut schema = match key.kind {
        Kind::Text => json!({"type": "string", "pattern": "\\S", "not": {"pattern": "[\\x00-\\x1f\\x7f-\\x9f]"}}),
        Kind::Number(least, most) if least == most => json!({"const": least}),
        Kind::Number(least, most) => number(least, most),
        Kind::Size(least, most) => json!({"oneOf": [number(least, most), {"type": "string", "pattern": "\\S"}]}),
        Kind::Choice(words) => json!({"enum": words}),
    };
    schema["description"] = json!(key.doc);
    schema
}

/// The keys as a Markdown table, for the guide.
#[must_use]
pub fn key_table() -> String {
    let mut table = "| key | value | meaning |\n| --- | --- | --- |\n".to_owned();
    for section in SECTIONS {
        for key in section.keys {
            let name = match (section.name, section.is_repeated) {
                ("", _) => key.name.to_owned(),
                (section, false) => format!("{section}.{}", key.name),
                (section, true) => format!("{section}[].{}", key.name),
            };
            let mut value = match key.kind {
                Kind::Text => "text".to_owned(),
                Kind::Number(least, most) if least == most => least.to_string(),
                Kind::Number(least, most) if most < 1 << 16 => format!("{least} to {most}"),
                Kind::Number(..) => "number".to_owned(),
                Kind::Size(least, _) => format!("size, at least {}", format_size(least)),
                Kind::Choice(words) => words.join(", "),
            };
            match key.default {
                None => {}
                Some(Fallback::Nothing) => value.push_str("; optional"),
                Some(Fallback::Number(number)) => _ = write!(value, "; default {number}"),
            }
            _ = writeln!(table, "| `{name}` | {value} | {} |", key.doc);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEVICES;

    #[test]
    fn built_in_files_conform_to_the_schema_and_an_unknown_key_does_not() {
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        for device in DEVICES {
            let table: toml::Table = device.text.parse().unwrap();
            let mut document = serde_json::to_value(table).unwrap();
            assert!(validator.is_valid(&document), "{}", device.name);
            let section = if document.get("engine").is_some() { "engine" } else { "descriptors" };
            document[section]["colour"] = json!(1);
            assert!(!validator.is_valid(&document));
        }
    }

    #[test]
    fn every_key_is_in_the_table_and_none_is_in_it_twice() {
        let table = key_table();
        for section in SECTIONS {
            for key in section.keys {
                let name = if section.name.is_empty() { format!("`{}`", key.name) } else { format!(".{}`", key.name) };
                assert!(table.contains(&name), "{name}");
            }
        }
        let lines: Vec<&str> = table.lines().skip(2).map(|line| line.split('|').nth(1).unwrap()).collect();
        assert!((1..lines.len()).all(|place| !lines[..place].contains(&lines[place])));
    }
}
