//! The platform format as JSON Schema, as a table for people, and a platform as JSON.

use crate::spec::{Key, Kind, Raw};
use crate::{
    Bar, Coherence, Core, DeviceMemory, Dma, DmaRead, DmaWrite, Driver, Endpoint, Fault, Fifos, Iommu, Kernel, Link,
    Memory, MsiX, Origin, Platform, Port, Region, Registers, RootComplex, Runtime, SCHEMA, Slot, Switch,
};
use serde_json::{Map, Value, json};
use std::fmt::Write;

struct Part {
    path: &'static str,
    texts: &'static [&'static str],
    keys: &'static [Key],
    repeated: bool,
    required: bool,
}

const PARTS: &[Part] = &[
    Part { path: Core::PATH, texts: Core::TEXTS, keys: Core::KEYS, repeated: false, required: true },
    Part { path: Driver::PATH, texts: Driver::TEXTS, keys: Driver::KEYS, repeated: false, required: false },
    Part { path: Runtime::PATH, texts: Runtime::TEXTS, keys: Runtime::KEYS, repeated: false, required: false },
    Part {
        path: RootComplex::PATH,
        texts: RootComplex::TEXTS,
        keys: RootComplex::KEYS,
        repeated: false,
        required: true,
    },
    Part { path: Memory::PATH, texts: Memory::TEXTS, keys: Memory::KEYS, repeated: false, required: false },
    Part { path: Iommu::PATH, texts: Iommu::TEXTS, keys: Iommu::KEYS, repeated: false, required: false },
    Part { path: Coherence::PATH, texts: Coherence::TEXTS, keys: Coherence::KEYS, repeated: false, required: false },
    Part { path: Link::PATH, texts: Link::TEXTS, keys: Link::KEYS, repeated: false, required: true },
    Part { path: Endpoint::PATH, texts: Endpoint::TEXTS, keys: Endpoint::KEYS, repeated: false, required: true },
    Part { path: Dma::PATH, texts: Dma::TEXTS, keys: Dma::KEYS, repeated: false, required: false },
    Part { path: DmaRead::PATH, texts: DmaRead::TEXTS, keys: DmaRead::KEYS, repeated: false, required: false },
    Part { path: DmaWrite::PATH, texts: DmaWrite::TEXTS, keys: DmaWrite::KEYS, repeated: false, required: false },
    Part { path: Fifos::PATH, texts: Fifos::TEXTS, keys: Fifos::KEYS, repeated: false, required: false },
    Part {
        path: DeviceMemory::PATH,
        texts: DeviceMemory::TEXTS,
        keys: DeviceMemory::KEYS,
        repeated: false,
        required: false,
    },
    Part { path: Kernel::PATH, texts: Kernel::TEXTS, keys: Kernel::KEYS, repeated: false, required: false },
    Part { path: MsiX::PATH, texts: MsiX::TEXTS, keys: MsiX::KEYS, repeated: false, required: false },
    Part { path: Registers::PATH, texts: Registers::TEXTS, keys: Registers::KEYS, repeated: false, required: false },
    Part { path: Switch::PATH, texts: Switch::TEXTS, keys: Switch::KEYS, repeated: true, required: false },
    Part { path: Slot::PATH, texts: Slot::TEXTS, keys: Slot::KEYS, repeated: true, required: false },
    Part { path: Port::PATH, texts: Port::TEXTS, keys: Port::KEYS, repeated: true, required: false },
    Part { path: Fault::PATH, texts: Fault::TEXTS, keys: Fault::KEYS, repeated: true, required: false },
    Part { path: Bar::PATH, texts: Bar::TEXTS, keys: Bar::KEYS, repeated: true, required: true },
    Part { path: Region::PATH, texts: Region::TEXTS, keys: Region::KEYS, repeated: true, required: true },
];

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
            {"type": "string", "pattern": "^\\s*[0-9]+(\\.[0-9]{1,12})?\\s*(B|[KMGT]iB|kB|MB|GB|TB)?\\s*$"},
        ]}),
        Kind::Choice(words) => json!({"enum": words}),
        Kind::Flag => json!({"type": "boolean"}),
    }
}

/// One line of text that says something.
const LINE: &str = "^\\P{Cc}*[^\\s\\p{Cc}]\\P{Cc}*$";
/// A name that can stand in a path such as `region.sram.read_ns`.
const PLAIN: &str = "^[A-Za-z0-9_-]+$";
/// A name of a port.
const OF_PORT: &str = "^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)?$";

fn text_schema(pattern: &str) -> Value {
    json!({"type": "string", "pattern": pattern})
}

fn key_schema(key: &Key) -> Value {
    let text = text_schema("\\S");
    let mut schema = json!({
        "description": key.doc.trim(),
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
        if let Some(forms) = schema["oneOf"].as_array_mut() {
            forms.push(json!({"required": ["unknown"]}));
        }
        // A number is known or it is not.
        schema["dependentSchemas"] = json!({"unknown": {"maxProperties": 1}});
    }
    schema
}

fn part_schema(part: &Part) -> Value {
    let mut properties = Map::new();
    for text in part.texts {
        let pattern = match (part.path, *text) {
            (Port::PATH, _) | (Fault::PATH, "port") => OF_PORT,
            _ if part.repeated => PLAIN,
            _ => LINE,
        };
        properties.insert((*text).to_owned(), text_schema(pattern));
    }
    for key in part.keys {
        properties.insert(key.name.to_owned(), key_schema(key));
    }
    let required: Vec<&str> = part
        .texts
        .iter()
        .copied()
        .chain(part.keys.iter().filter(|key| key.default.is_none()).map(|key| key.name))
        .collect();
    let table = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    if part.repeated { json!({"type": "array", "items": table, "minItems": 1}) } else { table }
}

/// The JSON Schema of a platform file (TOML read as JSON), as text with a final newline.
#[must_use]
pub fn schema() -> String {
    let mut properties = Map::new();
    properties.insert("schema".to_owned(), json!({"const": SCHEMA}));
    for text in ["name", "summary"] {
        properties.insert(text.to_owned(), text_schema(LINE));
    }
    for part in PARTS {
        properties.insert(part.path.to_owned(), part_schema(part));
    }
    let required: Vec<&str> = ["schema", "name", "summary"]
        .into_iter()
        .chain(PARTS.iter().filter(|part| part.required).map(|part| part.path))
        .collect();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lanemark platform file",
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    format!("{schema:#}\n")
}

/// The keys as Markdown tables, one a section: for the guide, which a test compares.
#[must_use]
pub fn key_table() -> String {
    let mut text = String::new();
    for part in PARTS {
        let (open, close) = if part.repeated { ("[[", "]]") } else { ("[", "]") };
        let optional = if part.required { "" } else { " (may be left out)" };
        let _ = write!(text, "### `{open}{}{close}`{optional}\n\n", part.path);
        for name in part.texts {
            let _ = writeln!(text, "`{name}` is a plain text in quotes.\n");
        }
        text.push_str("| key | meaning | value | default | unknown: sought from |\n| --- | --- | --- | --- | --- |\n");
        for key in part.keys {
            let wanted = key.kind.wanted();
            let wanted = wanted.strip_prefix("must be ").unwrap_or(&wanted);
            let default =
                key.default.map_or("none: must be there".to_owned(), |(value, because)| format!("{value}: {because}"));
            let sought = key.searched.map_or("may not be".to_owned(), |(low, high)| format!("{low} to {high}"));
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
    match origin {
        Origin::Given(source) => json!({"value": value, "source": source}),
        Origin::Assumed(why) => json!({"value": value, "assumed": why}),
        Origin::FittedTo(ids) => json!({"value": value, "fitted_to": ids}),
        Origin::Default(why) => json!({"value": value, "assumed": format!("default: {why}")}),
        Origin::Unknown(how) => json!({"unknown": how}),
    }
}

type Visit<'a> = dyn FnMut(&'static str, Raw, &Origin) + 'a;

fn section_json(texts: &[(&str, &str)], each: impl Fn(&mut Visit<'_>)) -> Value {
    let mut map: Map<String, Value> = texts.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect();
    each(&mut |key, raw, origin| {
        map.insert(key.to_owned(), param_json(raw, origin));
    });
    Value::Object(map)
}

impl Platform {
    /// The platform as JSON in the shape of its file, defaults filled in.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut file = json!({
            "schema": SCHEMA,
            "name": self.name,
            "summary": self.summary,
            "core": section_json(&[("name", &self.core.name)], |visit| self.core.each(visit)),
            "root_complex": section_json(&[], |visit| self.root_complex.each(visit)),
            "link": section_json(&[], |visit| self.link.each(visit)),
            "endpoint": section_json(&[("name", &self.endpoint.name)], |visit| self.endpoint.each(visit)),
            "bar": self.bars.iter().map(|bar| section_json(&[], |visit| bar.each(visit))).collect::<Vec<_>>(),
            "region": self.regions.iter()
                .map(|region| section_json(&[("name", &region.name)], |visit| region.each(visit)))
                .collect::<Vec<_>>(),
        });
        if let Some(driver) = &self.driver {
            file["driver"] = section_json(&[], |visit| driver.each(visit));
        }
        if let Some(memory) = &self.memory {
            file["memory"] = section_json(&[], |visit| memory.each(visit));
        }
        if let Some(runtime) = &self.runtime {
            file["runtime"] = section_json(&[], |visit| runtime.each(visit));
        }
        if let Some(iommu) = &self.iommu {
            file["iommu"] = section_json(&[], |visit| iommu.each(visit));
        }
        if let Some(coherence) = &self.coherence {
            file["coherence"] = section_json(&[], |visit| coherence.each(visit));
        }
        if let Some(dma) = &self.dma {
            file["dma"] = section_json(&[], |visit| dma.each(visit));
        }
        if let Some(way) = &self.dma_read {
            file["dma_read"] = section_json(&[], |visit| way.each(visit));
        }
        if let Some(way) = &self.dma_write {
            file["dma_write"] = section_json(&[], |visit| way.each(visit));
        }
        if let Some(fifos) = &self.fifos {
            file["fifos"] = section_json(&[("ep_rx", &fifos.ep_rx)], |visit| fifos.each(visit));
        }
        if let Some(memory) = &self.device_memory {
            file["device_memory"] = section_json(&[], |visit| memory.each(visit));
        }
        if let Some(kernel) = &self.kernel {
            file["kernel"] = section_json(&[], |visit| kernel.each(visit));
        }
        if let Some(msi_x) = &self.msi_x {
            file["msi_x"] = section_json(&[], |visit| msi_x.each(visit));
        }
        if let Some(registers) = &self.registers {
            file["registers"] = section_json(&[("region", &registers.region)], |visit| registers.each(visit));
        }
        if !self.switches.is_empty() {
            let switch = |switch: &Switch| {
                section_json(&[("name", &switch.name), ("below", &switch.below)], |visit| switch.each(visit))
            };
            file["switch"] = self.switches.iter().map(switch).collect();
        }
        if !self.slots.is_empty() {
            let slot =
                |slot: &Slot| section_json(&[("name", &slot.name), ("below", &slot.below)], |visit| slot.each(visit));
            file["slot"] = self.slots.iter().map(slot).collect();
        }
        if !self.ports.is_empty() {
            let port = |port: &Port| section_json(&[("name", &port.name)], |visit| port.each(visit));
            file["port"] = self.ports.iter().map(port).collect();
        }
        if !self.faults.is_empty() {
            let fault = |fault: &Fault| {
                section_json(&[("name", &fault.name), ("port", &fault.port)], |visit| fault.each(visit))
            };
            file["fault"] = self.faults.iter().map(fault).collect();
        }
        file
    }
}
