//! Agreement of the JSON Schema with the reader.

use lanemark_platform::{PRESETS, Platform, schema};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

const CARD: &str = include_str!("card.toml");

fn validator() -> jsonschema::Validator {
    jsonschema::draft202012::new(&serde_json::from_str(&schema()).unwrap()).unwrap()
}

/// TOML as JSON, with whole numbers up to 2^64 - 1.
fn json(text: &str) -> Value {
    table(DeTable::parse(text).unwrap().get_ref())
}

fn table(table: &DeTable<'_>) -> Value {
    Value::Object(
        table.iter().map(|(key, item)| (key.get_ref().to_string(), value(item.get_ref()))).collect::<Map<_, _>>(),
    )
}

fn value(toml: &DeValue<'_>) -> Value {
    match toml {
        DeValue::String(text) => json!(text),
        DeValue::Boolean(flag) => json!(flag),
        DeValue::Float(float) => json!(float.as_str().parse::<f64>().unwrap()),
        DeValue::Integer(integer) => {
            let whole = i128::from_str_radix(integer.as_str(), integer.radix()).unwrap();
            u64::try_from(whole).map_or_else(|_| json!(whole as f64), |whole| json!(whole))
        }
        DeValue::Datetime(datetime) => json!(datetime.to_string()),
        DeValue::Array(array) => array.iter().map(|item| value(item.get_ref())).collect(),
        DeValue::Table(inner) => table(inner),
    }
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/platform.json");
    let committed = std::fs::read_to_string(committed).unwrap_or_default();
    assert!(committed == schema(), "schemas/platform.json is out of date: run `make schemas`");
}

#[test]
fn the_schema_is_valid() {
    jsonschema::draft202012::meta::validate(&serde_json::from_str(&schema()).unwrap()).unwrap();
}

/// Every `pattern` in a schema.
fn patterns<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("pattern").and_then(Value::as_str));
            map.values().for_each(|value| patterns(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| patterns(value, found)),
        _ => {}
    }
}

#[test]
fn patterns_use_only_what_every_validator_has() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let mut found = Vec::new();
    patterns(&schema, &mut found);
    found.sort_unstable();
    found.dedup();
    assert!(found.len() >= 5, "{found:?}");
    for pattern in found {
        // Not classes of Unicode (Python), lookaround and references (Rust, Go), inline flags and names (ECMAScript).
        for special in ["\\p", "\\P", "(?", "\\1", "\\h", "\\u", "\\A", "\\z", "++", "*+", "[[:"] {
            assert!(!pattern.contains(special), "{special} in {pattern}");
        }
    }
}

#[test]
fn every_preset_conforms_to_the_schema() {
    let validator = validator();
    for preset in PRESETS {
        validator.validate(&json(preset.text)).unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        let platform = Platform::parse(preset.name, preset.text).unwrap();
        validator.validate(&platform.to_json()).unwrap_or_else(|error| panic!("{}: {error}", preset.name));
    }
}

#[test]
fn a_platform_round_trips_through_json() {
    for preset in PRESETS {
        let platform = Platform::parse(preset.name, preset.text).unwrap();
        let text = toml::to_string(&platform.to_json()).unwrap();
        let back = Platform::parse(preset.name, &text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(back.origins(), platform.origins());
        // A default becomes an assumption with its reason.
        let again = back.to_json();
        let same = again.to_string().replace("\"default: ", "\"")
            == platform.to_json().to_string().replace("\"default: ", "\"");
        assert!(same, "{}", preset.name);
    }
}

/// Changes of `card.toml` that both reject.
const REFUSED: &[(&str, &str)] = &[
    ("name = \"card\"", "name = \"card\"\nauthor = \"me\""),
    ("name = \"card\"", "name = \"\""),
    ("name = \"card\"", "name = \"a\\u0085b\""),
    ("name = \"queue\"", "name = \"queue\\n\""),
    ("name = \"card\"", "name = \"card\\n\""),
    ("name = \"card\"", "name = \" \""),
    ("name = \"card\"", "name = \"a\\nb\""),
    ("name = \"card\"", "name = 3"),
    ("name = \"card\"\n", ""),
    ("name = \"queue\"", "name = \"a.b\""),
    ("schema = 2", "schema = 3"),
    ("schema = 2", "schema = 0"),
    ("schema = 2", "schema = -1"),
    ("schema = 2", "schema = \"2\""),
    ("schema = 2\n", ""),
    ("[endpoint]", "[endpoint]\nspeed = 3"),
    ("[endpoint]", "[[endpoint]]"),
    ("[root_complex]", "[root_komplex]"),
    ("width_lanes = { value = 8, source = \"lspci\" }", "width_lanes = 8"),
    ("width_lanes = { value = 8, source = \"lspci\" }", "width_lanes = {}"),
    ("width_lanes = { value = 8, source = \"lspci\" }", "width_lanes = { source = \"lspci\" }"),
    ("width_lanes = { value = 8, source = \"lspci\" }", "width_lanes = { value = 8 }"),
    ("width_lanes = { value = 8, source = \"lspci\" }", "width_lanes = { value = 8, source = \"\" }"),
    ("width_lanes = { value = 8, source = \"lspci\" }", "width_lanes = { value = 8, assumed = \"\\t\" }"),
    ("width_lanes = { value = 8, source = \"lspci\" }", "width_lanes = { value = 8, source = \"a\", assumed = \"b\" }"),
    ("width_lanes = { value = 8, source = \"lspci\" }", "width_lanes = { value = 8, source = \"a\", unit = \"b\" }"),
    ("width_lanes = { value = 8", "width_lanes = { value = 3"),
    ("width_lanes = ", "width = "),
    ("generation = { value = 3", "generation = { value = 7"),
    ("latency_ns = { value = 100", "latency_ns = { value = -1"),
    ("latency_ns = { value = 100", "latency_ns = { value = 1000000001"),
    ("latency_ns = { value = 100", "latency_ns = { value = \"100\""),
    ("fitted_to = [\"X1\", \"X2\"]", "fitted_to = []"),
    ("fitted_to = [\"X1\", \"X2\"]", "fitted_to = [5]"),
    ("fitted_to = [\"X1\", \"X2\"]", "fitted_to = [\"\"]"),
    ("index = { value = 2", "index = { value = 6"),
    ("size_bytes = { value = \"64KiB\"", "size_bytes = { value = 0"),
    ("size_bytes = { value = \"64KiB\"", "size_bytes = { value = \"64Q\""),
    ("size_bytes = { value = \"64KiB\"", "size_bytes = { value = \"KiB\""),
    ("size_bytes = { value = \"64KiB\"", "size_bytes = { value = \".5KiB\""),
    ("size_bytes = { value = \"64KiB\"", "size_bytes = { value = 9223372036854775809"),
    ("prefetchable = { value = true", "prefetchable = { value = 1"),
    ("kind = { value = \"fifo\"", "kind = { value = \"FIFO\""),
];

/// Changes of `card.toml` that both accept.
const ACCEPTED: &[(&str, &str)] = &[
    ("name = \"card\"", "name = \"k\u{e4}rtchen, \u{540d}\""),
    ("latency_ns = { value = 100", "latency_ns = { value = 0"),
    ("latency_ns = { value = 100", "latency_ns = { value = 1e9"),
    ("width_lanes = { value = 8", "width_lanes = { value = 32"),
    ("size_bytes = { value = \"64KiB\"", "size_bytes = { value = 65536"),
    ("size_bytes = { value = \"64KiB\"", "size_bytes = { value = \" 64  KiB \""),
    ("size_bytes = { value = \"64KiB\"", "size_bytes = { value = \"0.0625MiB\""),
    ("size_bytes = { value = \"64KiB\"", "size_bytes = { value = \"65536\""),
    ("size_bytes = { value = \"64KiB\"", "size_bytes = { value = \"64k\""),
    ("address_bytes = { value = 0x800000000", "address_bytes = { value = 9223372036854775808"),
    (
        "[endpoint]",
        "[driver]\ncall_ns = { value = 1, source = \"a\" }\ncopy_bytes = { value = 8, source = \"a\" }\n[endpoint]",
    ),
];

fn change((from, to): (&str, &str)) -> String {
    assert_eq!(CARD.matches(from).count(), 1, "{from}");
    CARD.replacen(from, to, 1)
}

#[test]
fn schema_and_reader_reject_the_same_files() {
    let validator = validator();
    for pair in REFUSED {
        let text = change(*pair);
        assert!(Platform::parse("card.toml", &text).is_err(), "the reader takes {}", pair.1);
        assert!(!validator.is_valid(&json(&text)), "the schema takes {}", pair.1);
    }
}

#[test]
fn schema_and_reader_accept_the_same_files() {
    let validator = validator();
    for pair in ACCEPTED {
        let text = change(*pair);
        Platform::parse("card.toml", &text).unwrap_or_else(|error| panic!("{error}"));
        validator.validate(&json(&text)).unwrap_or_else(|error| panic!("{}: {error}", pair.1));
    }
}

#[test]
fn the_schema_enforces_the_range_of_every_key() {
    let validator = validator();
    let mut edge = json(CARD);
    for (key, top, beyond) in [
        ("address_bytes", json!(1_u64 << 63), json!((1_u64 << 63) + 1)),
        ("address_bytes", json!(0), json!(-1)),
        ("size_bytes", json!(16), json!(15)),
        ("index", json!(5), json!(6)),
    ] {
        edge["bar"][0][key]["value"] = top;
        assert!(validator.is_valid(&edge), "{key}");
        edge["bar"][0][key]["value"] = beyond;
        assert!(!validator.is_valid(&edge), "{key}");
        edge = json(CARD);
    }
}

#[test]
fn schema_and_reader_agree_on_zero_or_a_valid_clock() {
    let validator = validator();
    let mut card =
        PRESETS.iter().find(|preset| preset.name == "card-stratix10mx").map(|preset| json(preset.text)).unwrap();
    for (clock, is_right) in
        [(0.0, true), (0.1, true), (10.0, true), (1e-6, false), (0.099, false), (10.1, false), (-1.0, false)]
    {
        card["runtime"]["clock_ghz"] = json!({"value": clock, "source": "a test"});
        assert_eq!(validator.is_valid(&card), is_right, "the schema, of {clock}");
        let read = Platform::parse("card.toml", &toml::to_string(&card).unwrap());
        assert_eq!(read.is_ok(), is_right, "the reader, of {clock}");
        if let Err(error) = read {
            assert!(error.to_string().contains("runtime.clock_ghz: is "), "{error}");
            assert!(error.to_string().ends_with("; must be 0 or a number from 0.1 to 10"), "{error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_refused_with_a_line(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let error = Platform::from_bytes("x", &bytes).unwrap_err();
        prop_assert!(error.problems.iter().all(|problem| problem.line >= 1));
        prop_assert!(!error.problems.is_empty());
    }

    #[test]
    fn a_mutated_file_is_read_or_refused_with_its_line(
        changes in proptest::collection::vec((0..CARD.len(), any::<u8>()), 1..4),
        length in 0..=CARD.len(),
        cut in any::<bool>(),
    ) {
        let mut bytes = CARD.as_bytes().to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(length);
        }
        let lines = bytes.split(|byte| *byte == b'\n').count();
        match Platform::from_bytes("x", &bytes) {
            Ok(platform) => prop_assert!(validator().is_valid(&platform.to_json())),
            Err(error) => {
                prop_assert!(!error.problems.is_empty());
                prop_assert!(error.problems.is_sorted_by_key(|problem| problem.line));
                for problem in &error.problems {
                    prop_assert!((1..=lines).contains(&problem.line), "{problem}");
                    prop_assert_eq!(problem.to_string().lines().count(), 1, "{}", problem);
                }
            }
        }
    }

    #[test]
    fn what_the_reader_takes_the_schema_takes(from in 0..CARD.len(), len in 0_usize..4, with in "[ -~\n]{0,3}") {
        let end = (from + len).min(CARD.len());
        let text = format!("{}{with}{}", &CARD[..from], &CARD[end..]);
        if Platform::parse("x", &text).is_ok() {
            prop_assert!(validator().is_valid(&json(&text)), "{}", text);
        }
    }
}
