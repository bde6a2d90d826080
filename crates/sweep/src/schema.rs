//! The JSON Schema of a space.

use crate::options::{OPTIONS, QuestionOption};
use crate::space::SCHEMA;
use serde_json::{Map, Value, json};

/// The JSON Schema of a space (TOML read as JSON), as text with a final newline.
///
/// It describes the structure. The grammar of values, such as `8..256*2`, and the keys of platforms are checked by
/// [`Space::parse`](crate::Space::parse) and [`Points::of`](crate::Points::of) only.
#[must_use]
pub fn schema() -> String {
    let any_values = json!({"$ref": "#/$defs/values"});
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lanemark space",
        "description": "Platforms, changed keys and questions of a sweep.",
        "type": "object",
        "properties": {
            "schema": {"const": SCHEMA},
            "platforms": platforms(),
            "by": {
                "description": "Source of the figures: closed formulas (default), or simulation with formulas beside it.",
                "enum": ["formulas", "simulation"],
            },
            "combine": {
                "description": "Every value of a key with every other (default), or values of all keys by position.",
                "enum": ["product", "zip"],
            },
            "no_fast_forward": {"description": "Simulates every transfer.", "type": "boolean"},
            "with": {"description": "Changed keys of the platforms, with their values.", "$ref": "#/$defs/keys"},
            "question": {
                "description": "The questions, with their options.",
                "type": "array",
                "minItems": 1,
                "items": question(),
            },
        },
        "required": ["schema", "platforms", "question"],
        "additionalProperties": false,
        "$defs": {
            "keys": {"type": "object", "additionalProperties": {"anyOf": [any_values, {"$ref": "#/$defs/keys"}]}},
            "values": values(),
        },
    });
    format!("{schema:#}\n")
}

fn question() -> Value {
    let names: Vec<&str> = lanemark_bench::CATALOGUE.iter().map(|question| question.name).collect();
    let mut properties = Map::new();
    properties.insert("name".to_owned(), json!({"description": "Name of the question.", "enum": names}));
    for option in OPTIONS {
        properties.insert(option.name.to_owned(), self::option(option));
    }
    json!({"type": "object", "properties": properties, "required": ["name"], "additionalProperties": false})
}

fn option(option: &QuestionOption) -> Value {
    let several = if option.is_one_text { "; an array has alternatives" } else { "" };
    json!({"description": format!("{}{several}.", option.values), "$ref": "#/$defs/values"})
}

/// A text, or several different ones.
fn platforms() -> Value {
    let name = json!({"type": "string", "minLength": 1});
    let several = json!({"type": "array", "items": name, "minItems": 1, "uniqueItems": true});
    json!({
        "description": "Built-in platforms and platform files, relative to the folder of the space.",
        "anyOf": [name, several],
    })
}

/// A value, or several different ones: texts with lists or ranges, numbers, true or false.
fn values() -> Value {
    let value = json!({"type": ["string", "number", "boolean"], "minLength": 1});
    let several = json!({"type": "array", "items": value, "minItems": 1, "uniqueItems": true});
    json!({"anyOf": [value, several]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Space;

    /// Whether the schema and the reader accept a space.
    fn accepted(text: &str) -> (bool, bool) {
        let table: toml::Table = text.parse().unwrap();
        let schema = jsonschema::draft202012::new(&serde_json::from_str(&schema()).unwrap()).unwrap();
        (schema.is_valid(&serde_json::to_value(table).unwrap()), Space::parse("a.toml", text).is_ok())
    }

    #[test]
    fn the_committed_schema_is_current() {
        let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/space.json");
        let committed = std::fs::read_to_string(committed).unwrap_or_default();
        assert!(committed == schema(), "schemas/space.json is out of date: run `make schemas`");
        jsonschema::draft202012::meta::validate(&serde_json::from_str(&schema()).unwrap()).unwrap();
    }

    #[test]
    fn schema_and_reader_agree_on_the_structure() {
        const GOOD: &str = "schema = 1\nplatforms = [\"card-gen5-x16\", \"mine.toml\"]\nby = \"simulation\"\n\
            combine = \"zip\"\nno_fast_forward = true\n[with]\ndma.tags = \"8..32*2\"\n\"link.mps_bytes\" = [128, 256, 512]\n\
            [with.link]\nskp = false\n[[question]]\nname = \"dma_read_bandwidth\"\nsizes = \"4K..64K*4\"\n\
            flows = [\"host:0\", \"host:0,0:host\"]\noutstanding = [1, 2]\nrandom = true\nalign = 0\n";
        assert_eq!(accepted(GOOD), (true, true));
        assert_eq!(
            accepted("schema = 1\nplatforms = \"a.toml\"\nquestion = [{ name = \"fence_cost\" }]"),
            (true, true)
        );
        for (old, new) in [
            ("schema = 1", "schema = 2"),
            ("schema = 1", ""),
            ("[\"card-gen5-x16\", \"mine.toml\"]", "[]"),
            ("[\"card-gen5-x16\", \"mine.toml\"]", "true"),
            ("[\"card-gen5-x16\", \"mine.toml\"]", "[\"\"]"),
            ("by = \"simulation\"", "by = \"guess\""),
            ("by =", "bye ="),
            ("combine = \"zip\"", "combine = 1"),
            ("no_fast_forward = true", "no_fast_forward = \"true\""),
            ("[128, 256, 512]", "[]"),
            ("[128, 256, 512]", "[128, 256, 256]"),
            ("[128, 256, 512]", "[[128]]"),
            ("\"8..32*2\"", "\"\""),
            ("dma_read_bandwidth", "dma_read"),
            ("name = ", "nam = "),
            ("outstanding = ", "outstandin = "),
            ("outstanding = [1, 2]", "outstanding = { least = 1 }"),
            ("[[question]]", "[question]"),
        ] {
            assert!(GOOD.contains(old), "{old}");
            assert_eq!(accepted(&GOOD.replacen(old, new, 1)), (false, false), "{old} -> {new}");
        }
    }
}
