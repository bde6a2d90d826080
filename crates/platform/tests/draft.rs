//! Drafts with unknown numbers, which are never platforms.

use lanemark_platform::{Draft, Origin, PRESETS, Platform, preset, schema};

const CARD: &str = include_str!("card.toml");

/// `card.toml` with the entry of `key` replaced.
fn with(key: &str, entry: &str) -> String {
    let line =
        |line: &str| if line.starts_with(&format!("{key} =")) { format!("{key} = {entry}") } else { line.to_owned() };
    CARD.lines().map(|text| line(text) + "\n").collect()
}

fn unknown(key: &str) -> String {
    with(key, "{ unknown = \"measure it\" } # who knows")
}

fn refusals(text: &str) -> String {
    Draft::parse("card.toml", text)
        .map_or_else(|error| error.to_string(), |draft| format!("read: {:?}", draft.unknowns()))
}

#[test]
fn a_draft_without_unknown_numbers_is_a_platform() {
    for row in PRESETS {
        let draft = Draft::parse(row.name, row.text).unwrap();
        assert_eq!(draft.unknowns(), []);
        assert_eq!(draft.origins().own.unknown, 0);
        assert_eq!(draft.text(), row.text);
        assert_eq!(draft.complete().unwrap(), Platform::parse(row.name, row.text).unwrap());
    }
}

#[test]
fn an_unknown_number_is_counted_printed_and_reported() {
    let text = unknown("latency_ns");
    let draft = Draft::parse("card.toml", &text).unwrap();
    let of_card = Draft::parse("card.toml", CARD).unwrap().origins();
    assert_eq!(draft.origins().own.unknown, 1);
    assert_eq!(draft.origins().total(), of_card.total());
    assert_eq!(draft.to_json()["link"]["latency_ns"], serde_json::json!({"unknown": "measure it"}));
    let line = text.lines().position(|line| line.starts_with("latency_ns")).unwrap() + 1;
    let message = format!(
        "card.toml:{line}: link.latency_ns: is unknown (measure it); \
         fill it in: lanemark fit RECORD --on card.toml --write FILE, or write its value in the file"
    );
    assert_eq!(Platform::parse("card.toml", &text).unwrap_err().to_string(), message);
}

#[test]
fn all_unknown_numbers_are_reported_together() {
    let mut text = unknown("latency_ns");
    text = text.replace("ingress_ns = {", "ingress_ns = { unknown = \"a\" } # {");
    let error = Platform::parse("card.toml", &text).unwrap_err();
    let keys: Vec<&str> = error.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["link.latency_ns", "endpoint.ingress_ns"]);
}

#[test]
fn limits_replace_the_ends_of_the_search_and_no_value_beyond_them_is_filled_in() {
    let bounds = |entry: &str| {
        let draft = Draft::parse("card.toml", &with("latency_ns", entry)).unwrap();
        (draft.unknowns()[0].bounds, draft.unknowns()[0].start)
    };
    assert_eq!(bounds("{ unknown = \"x\" }"), ((20.0, 1000.0), 20_000f64.sqrt()));
    assert_eq!(bounds("{ unknown = \"x\", at_most = 500 }"), ((20.0, 500.0), 100.0));
    assert_eq!(bounds("{ unknown = \"x\", at_least = 100.0, at_most = 400 }"), ((100.0, 400.0), 200.0));
    assert_eq!(bounds("{ unknown = \"x\", at_most = 4000 }").0, (20.0, 4000.0), "a fact, beyond the usual range");
    let entry = "{ unknown = \"x\", at_least = 100, at_most = 400 }";
    let draft = Draft::parse("card.toml", &with("latency_ns", entry)).unwrap();
    let json = &draft.to_json()["link"]["latency_ns"];
    assert_eq!(json, &serde_json::json!({"unknown": "x", "at_least": 100.0, "at_most": 400.0}));
    let fill = |value: f64| draft.fill("link.latency_ns", value, &Origin::Given("x".to_owned()));
    assert!(fill(100.0).is_ok() && fill(400.0).is_ok());
    let error = fill(400.5).unwrap_err().to_string();
    assert!(error.contains("cannot be 400.5: the file states at_least = 100, at_most = 400"), "{error}");
    assert!(fill(99.5).is_err());
}

#[test]
fn limits_without_values_between_them_are_refused() {
    for (entry, says) in [
        ("{ unknown = \"x\", at_least = 4, at_most = 4 }", "is searched from 4 to 4, which leaves nothing"),
        ("{ unknown = \"x\", at_most = 20 }", "is searched from 20 to 20, which leaves nothing"),
        ("{ unknown = \"x\", at_least = 0 }", "is searched from 0 to 1000, which leaves nothing"),
        ("{ unknown = \"x\", at_most = \"4\" }", "at_most is \"4\"; must be nanoseconds"),
        ("{ unknown = \"x\", at_most = -1 }", "at_most is -1; must be nanoseconds"),
        ("{ value = 3, source = \"x\", at_most = 4 }", "with a value, omit them"),
    ] {
        let found = refusals(&with("latency_ns", entry));
        assert!(found.contains(says), "{entry}: {found}");
    }
    assert!(refusals(&with("latency_ns", "{ unknown = \"x\", at_most = 20.5 }")).starts_with("read: "));
}

#[test]
fn where_a_value_is_inherited_from_cannot_be_claimed() {
    let found = refusals(&with("latency_ns", "{ value = 3, source = \"x\", inherited_from = \"y\" }"));
    assert!(found.contains("unknown key inherited_from beside the value"), "{found}");
}

#[test]
fn essential_keys_cannot_be_unknown() {
    for key in ["generation", "width_lanes", "mps_bytes", "mrrs_bytes", "vendor", "memcpy"] {
        let found = refusals(&with(key, "{ unknown = \"measure it\" }"));
        // Keys that the file omits cannot be replaced.
        if CARD.contains(&format!("\n{key} =")) {
            assert!(found.contains("cannot be unknown; write value and source"), "{key}: {found}");
        }
    }
    assert!(refusals(&unknown("latency_ns")).starts_with("read: "));
}

#[test]
fn an_unknown_number_has_a_hint_and_no_value() {
    for (entry, says) in [
        ("{ unknown = \"x\", value = 3 }", "is unknown and has a value: write one or the other"),
        ("{ unknown = \"x\", source = \"y\" }", "must state its origin once"),
        ("{ unknown = \" \" }", "unknown is \" \"; must be text that states"),
        ("{ unknown = 3 }", "unknown is 3; must be text that states"),
        ("{ value = 3 }", "must state its origin once"),
    ] {
        let found = refusals(&with("latency_ns", entry));
        assert!(found.contains(says), "{entry}: {found}");
    }
}

#[test]
fn filling_a_number_changes_only_its_entry() {
    let draft = Draft::parse("card.toml", &unknown("latency_ns")).unwrap();
    let ids = Origin::FittedTo(vec!["r.json: a \"way\"".to_owned(), "b".to_owned()]);
    let filled = draft.fill("link.latency_ns", 118.123_456_7, &ids).unwrap();
    let entry = "{ value = 118.123, fitted_to = ['r.json: a \"way\"', \"b\"] } # who knows";
    assert_eq!(filled.text(), with("latency_ns", entry));
    let (value, origin) = filled.complete().unwrap().number("link.latency_ns").unwrap();
    assert!((value - 118.123).abs() < 1e-3);
    assert_eq!(origin, ids);
}

#[test]
fn a_filled_number_must_be_valid_and_consistent() {
    let draft = Draft::parse("card.toml", &unknown("posted_data_credits")).unwrap();
    let why = Origin::Assumed("a test".to_owned());
    let mps = preset_mps();
    assert!(draft.fill("link.posted_data_credits", f64::from(mps / 16), &why).is_ok());
    assert!(draft.fill("link.posted_data_credits", f64::from(mps / 16 - 1), &why).is_err());
    assert!(draft.fill("link.posted_data_credits", 32_753.0, &why).is_err());
    assert!(draft.fill("link.posted_data_credits", 2047.0, &Origin::Assumed(String::new())).is_err());
    assert!(draft.fill("link.latency_ns", 100.0, &why).is_err(), "it is known");
}

fn preset_mps() -> u32 {
    Platform::parse("card.toml", CARD).unwrap().link.mps_bytes.value
}

#[test]
fn a_number_in_a_table_of_its_own_cannot_be_filled() {
    let text = CARD.replace("[endpoint]", "[endpoint.egress_ns]\nunknown = \"x\"\n\n[endpoint]");
    let text: String = {
        let kept = text.lines().filter(|line| !line.starts_with("egress_ns"));
        kept.map(|line| line.to_owned() + "\n").collect()
    };
    let draft = Draft::parse("card.toml", &text).unwrap();
    let error = draft.fill("endpoint.egress_ns", 5.0, &Origin::Given("x".to_owned())).unwrap_err().to_string();
    assert!(error.contains("write it as one table in braces"), "{error}");
}

#[test]
fn the_start_of_a_search_does_not_depend_on_the_machine() {
    let start = |text: &str| Draft::parse("x", text).unwrap().unknowns()[0].start;
    let blank = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("latency_ns")).unwrap();
        text.replace(line, "latency_ns = { unknown = \"x\" }")
    };
    let starts: Vec<f64> = PRESETS.iter().map(|preset| start(&blank(preset.text))).collect();
    assert!(starts.iter().all(|other| *other == starts[0]), "{starts:?}");
    let values: Vec<f64> =
        PRESETS.iter().map(|row| preset(row.name).unwrap().unwrap().link.latency_ns.value.as_ns()).collect();
    assert!(!values.contains(&starts[0]), "{values:?}");
}

#[test]
fn the_schema_accepts_unknown_only_without_a_value() {
    let validator = jsonschema::draft202012::new(&serde_json::from_str(&schema()).unwrap()).unwrap();
    let draft = Draft::parse("card.toml", &unknown("latency_ns")).unwrap();
    let mut file = draft.to_json();
    assert!(validator.is_valid(&file));
    file["link"]["latency_ns"]["source"] = serde_json::json!("me");
    assert!(!validator.is_valid(&file));
    file["link"]["latency_ns"] = serde_json::json!({"value": 3, "unknown": "x"});
    assert!(!validator.is_valid(&file));
    file["link"]["latency_ns"] = serde_json::json!({"value": 3, "source": "x", "at_most": 4});
    assert!(!validator.is_valid(&file));
    file["link"]["latency_ns"] = serde_json::json!({"unknown": "x", "at_most": 4});
    assert!(validator.is_valid(&file));
    file["link"]["latency_ns"] = serde_json::json!({"value": 3, "source": "x"});
    assert!(validator.is_valid(&file));
    file["link"]["generation"] = serde_json::json!({"unknown": "x"});
    assert!(!validator.is_valid(&file));
}
