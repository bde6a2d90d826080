//! The JSON Schema agrees with the reader.

mod whole_record;

use lanemark_record::{file, schema};
use serde_json::{Value, json};
use std::path::Path;
use whole_record::whole_record;

fn validator() -> jsonschema::Validator {
    jsonschema::draft202012::new(&serde_json::from_str(&schema()).unwrap()).unwrap()
}

fn is_read(record: &Value) -> bool {
    file::from_bytes(record.to_string().as_bytes(), Path::new("r.json")).is_ok()
}

#[test]
fn the_committed_record_schema_is_current() {
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/record.json");
    let committed = std::fs::read_to_string(committed).unwrap_or_default();
    assert!(committed == schema(), "schemas/record.json is out of date: run `make schemas`");
}

#[test]
fn the_committed_guidance_schema_is_current() {
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/guidance.json");
    let committed = std::fs::read_to_string(committed).unwrap_or_default();
    let made = lanemark_record::guidance::schema();
    assert!(committed == made, "schemas/guidance.json is out of date: run `make schemas`");
    jsonschema::draft202012::meta::validate(&serde_json::from_str(&made).unwrap()).unwrap();
}

#[test]
fn the_committed_diagnosis_schema_is_current() {
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/doctor.json");
    let committed = std::fs::read_to_string(committed).unwrap_or_default();
    let made = lanemark_record::diagnosis::schema();
    assert!(committed == made, "schemas/doctor.json is out of date: run `make schemas`");
    jsonschema::draft202012::meta::validate(&serde_json::from_str(&made).unwrap()).unwrap();
}

#[test]
fn the_committed_sweep_log_schema_is_current() {
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/sweep-log.json");
    let committed = std::fs::read_to_string(committed).unwrap_or_default();
    let made = lanemark_record::sweep_log_schema();
    assert!(committed == made, "schemas/sweep-log.json is out of date: run `make schemas`");
    jsonschema::draft202012::meta::validate(&serde_json::from_str(&made).unwrap()).unwrap();
}

#[test]
fn the_schema_is_valid() {
    jsonschema::draft202012::meta::validate(&serde_json::from_str(&schema()).unwrap()).unwrap();
}

#[test]
fn a_written_record_matches_the_schema() {
    let record = serde_json::from_str(&file::to_json(&whole_record())).unwrap();
    validator().validate(&record).unwrap_or_else(|error| panic!("{error}"));
    assert!(is_read(&record));
}

/// All positions in `value` as JSON pointers; platforms have their own schema and are excluded.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        _ if at.ends_with("/platform") => {}
        Value::Object(map) => map.iter().for_each(|(key, value)| places(value, &format!("{at}/{key}"), all)),
        Value::Array(list) => list.iter().enumerate().for_each(|(i, value)| places(value, &format!("{at}/{i}"), all)),
        _ => {}
    }
}

#[test]
fn reader_and_schema_agree_on_changed_values() {
    let validator = validator();
    let whole = serde_json::to_value(whole_record()).unwrap();
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    let others = [json!(null), json!(true), json!(-1), json!(1.5), json!(3), json!("x"), json!([]), json!({})];
    let (mut taken, mut refused) = (0, 0);
    // The schema allows any number as version.
    for place in all.iter().filter(|place| *place != "/schema") {
        for other in &others {
            let mut changed = whole.clone();
            *changed.pointer_mut(place).unwrap() = other.clone();
            assert_eq!(validator.is_valid(&changed), is_read(&changed), "{place} = {other}");
            *(if is_read(&changed) { &mut taken } else { &mut refused }) += 1;
        }
    }
    assert!(taken > 100 && refused > 300, "{taken} {refused}");
}

#[test]
fn reader_and_schema_agree_on_added_and_removed_keys() {
    let validator = validator();
    let whole = serde_json::to_value(whole_record()).unwrap();
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    for place in all.iter().filter(|place| !place.ends_with("/platform")) {
        let Some(map) = whole.pointer(place).and_then(Value::as_object) else { continue };
        let mut changed = whole.clone();
        changed.pointer_mut(place).unwrap()["extra"] = json!(1);
        assert!(!validator.is_valid(&changed) && !is_read(&changed), "{place}/extra");
        for key in map.keys() {
            let mut changed = whole.clone();
            changed.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(key);
            assert_eq!(validator.is_valid(&changed), is_read(&changed), "{place} without {key}");
        }
    }
}
