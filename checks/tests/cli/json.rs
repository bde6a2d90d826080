//! What programs read: one document, keys with units, the schema.

use crate::folder::{Folder, small};
use lanemark_record::Record;
use serde_json::Value;

/// Units a key may end in; a statistic may follow.
const UNITS: &[&str] = &["_ns", "_bytes", "_bytes_per_s", "_percent", "_ghz", "_lanes", "_cycles", "_s"];

/// Statistics: of the unit of the key around them, or behind a unit.
const STATISTICS: &[&str] = &["min", "p1", "median", "p99", "max", "mad"];

/// Numbers without a unit of their own, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("schema", "a version"),
    ("generation", "a name"),
    ("index", "a name"),
    ("bar", "a name"),
    ("count", "samples, counted"),
    ("passes", "counted"),
    ("given", "numbers, counted"),
    ("assumed", "numbers, counted"),
    ("fitted", "numbers, counted"),
    ("writes", "TLPs, counted"),
    ("reads", "TLPs, counted"),
    ("completions", "TLPs, counted"),
    ("rows", "counted"),
    ("cores", "counted"),
    ("store_buffer_entries", "counted"),
    ("posted_queue_entries", "counted"),
    ("fifo_entries", "counted"),
    ("wc_buffers", "counted"),
    ("streaming_load_buffers", "counted"),
    ("fill_buffers", "counted"),
    ("ddio_ways", "counted"),
    ("cached_lines", "counted"),
    ("full_completion_lines", "lines, counted"),
    ("wc_loads_in_flight", "counted"),
    ("posted_header_credits", "counted"),
    ("tags", "counted"),
    ("peer_tags", "counted"),
    ("peer_requester_id", "bus, device and function"),
    ("slow_read_every", "reads, counted"),
    ("outstanding", "transfers, counted"),
    ("channels", "channels, counted"),
    ("send_buffers", "counted"),
    ("replay_tlps", "TLPs, counted"),
    ("tlps_per_error", "TLPs, counted"),
    ("prefetch_descriptors", "counted"),
    ("ats_entries", "translations, counted"),
    ("ports", "counted"),
    ("unit_words", "counted"),
    ("burst_words", "counted"),
    ("most_kernels", "counted"),
    ("completion_header_credits", "counted"),
    ("completion_data_credits", "counted"),
    ("posted_data_credits", "counted"),
    ("nonposted_header_credits", "counted"),
    ("place", "a place in a list"),
    ("round", "counted"),
    ("copies", "counted"),
    ("whole_copies", "counted"),
    ("runs", "counted"),
    ("socket", "a name"),
    ("sockets", "counted"),
    ("cpus", "names"),
    ("first_threads", "names"),
    ("cpu", "a name"),
    ("core", "a name"),
    ("samples", "counted"),
    ("one_minute", "threads, counted"),
    ("five_minutes", "threads, counted"),
    ("fifteen_minutes", "threads, counted"),
    ("runnable", "threads, counted"),
    ("threads", "counted"),
    ("context_switches", "samples, counted"),
    ("clock_steps", "samples, counted"),
    ("r_squared", "a share"),
    ("ratio", "a ratio"),
    ("times_the_slowest", "a ratio"),
    ("published", "the unit is in its row"),
    ("corrected", "the unit is in its row"),
    ("simulated", "the unit is in its row"),
    ("formula", "the unit is in its row"),
    ("platform_value", "the parameter's name ends in the unit"),
    ("leave_one_out", "the parameter's name ends in the unit"),
    ("within_95", "the parameter's name ends in the unit"),
];

fn document(text: &str) -> Value {
    assert!(text.starts_with('{') && text.ends_with("}\n"), "nothing stands around the document");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("not one document: {error}"))
}

fn ends_in_unit(key: &str) -> bool {
    let key = STATISTICS.iter().find_map(|of| key.strip_suffix(of)?.strip_suffix('_')).unwrap_or(key);
    UNITS.iter().any(|unit| key.ends_with(unit))
}

/// The keys of numbers that do not say their unit; `keys` lead to `value`.
fn without_unit<'a>(value: &'a Value, keys: &mut Vec<&'a str>, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => {
            let known = |key: &str| ends_in_unit(key) || WITHOUT.iter().any(|(name, _)| *name == key);
            let is_right = match keys.as_slice() {
                // An interval is of what it stands in: of a summary, or of a ratio.
                [.., of, "ci95", "low" | "high"] => ends_in_unit(of),
                [.., "ratio_ci95", "low" | "high"] => true,
                [.., of, key] if STATISTICS.contains(key) => ends_in_unit(of),
                // The axes of a picture have their units in `along` and `shows`; a platform's number is a table of value and
                // origin.
                [.., "pictures", "at"] | [.., "pictures", "lines", "values"] | [.., "parameters", "value"] => true,
                [.., of, "value"] => known(of),
                [.., key] => known(key),
                [] => false,
            };
            if !is_right {
                found.push(keys.join("."));
            }
        }
        Value::Array(list) => list.iter().for_each(|item| without_unit(item, keys, found)),
        Value::Object(map) => {
            for (key, value) in map {
                keys.push(key);
                without_unit(value, keys, found);
                keys.pop();
            }
        }
        _ => {}
    }
}

/// Parameters of `fit` whose name does not say their unit.
fn parameters_without_unit(value: &Value) -> Vec<String> {
    let fits = value["fits"].as_array().into_iter().flatten();
    let parameters = fits.flat_map(|fit| fit["parameters"].as_array().unwrap());
    let names = parameters.map(|parameter| parameter["key"].as_str().unwrap().to_owned());
    names.filter(|name| !ends_in_unit(name)).collect()
}

#[test]
fn json_is_one_document_whose_numbers_say_their_units() {
    let folder = Folder::new();
    let fast = ["--sizes", "64,4KiB", "--memory-type", "uc,wc", "--json"];
    let bench = [&["bench", "--on", "tacc-stratix4"], &fast[..]].concat();
    let predict = [&["predict", "--on", "aws-f1", "--on", "card-gen5-x16"], &fast[..]].concat();
    let host =
        ["bench", "--on", "host", "--question", "mmio_read_bandwidth", "--access", "8", "--sizes", "64", "--json"];
    let commands =
        [&bench[..], &predict, &host, &["reproduce", "tacc-tr-14-10", "--json"], &["fit", "tacc-tr-14-10", "--json"]];
    for command in commands {
        let outcome = folder.run(command);
        if command == host && outcome.code == Some(77) {
            continue;
        }
        assert_eq!(outcome.code, Some(0), "{command:?}: {}", outcome.err);
        assert_eq!(outcome.err, "", "{command:?}");
        let mut found = Vec::new();
        without_unit(&document(&outcome.out), &mut Vec::new(), &mut found);
        found.dedup();
        found.extend(parameters_without_unit(&document(&outcome.out)));
        assert!(found.is_empty(), "{command:?}: {found:?}");
    }
    assert!(folder.content().is_empty(), "with --json a page is written where it is asked for only");
}

#[test]
fn a_number_without_a_unit_is_found() {
    let value = serde_json::json!({"a_ns": {"median": 1, "value": 2}, "wc_buffers": 3, "b": [4], "c": {"value": 5}, "d_ns_p99": 6});
    let mut found = Vec::new();
    without_unit(&value, &mut Vec::new(), &mut found);
    assert_eq!(found, ["b", "c.value"]);
}

#[test]
fn a_record_is_what_its_schema_says() {
    let folder = Folder::new();
    let schema = document(&folder.good(&["schema", "record"]));
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    for command in
        [small("bench", "card-gen5-x16", &["--record", "r.json", "--json"]), small("predict", "aws-f1", &["--json"])]
    {
        let text = folder.good(&command);
        if let Err(error) = schema.validate(&document(&text)) {
            panic!("{command:?}: {error}");
        }
        let record: Record = serde_json::from_str(&text).unwrap();
        assert!(!record.answers.is_empty() && !record.interrupted);
        assert_eq!(record.command[1..], command[..], "it says what was asked");
    }
    let printed = folder.good(&small("bench", "card-gen5-x16", &["--record", "r.json", "--json"]));
    assert!(folder.content()["r.json"] == printed.as_bytes(), "the file is what is printed");
}

#[test]
fn what_is_simulated_is_the_same_every_time_and_has_no_date() {
    let folder = Folder::new();
    let command = ["bench", "--on", "card-gen5-x16", "--sizes", "64,1KiB", "--memory-type", "wc,wt", "--json"];
    let first = folder.good(&command);
    assert!(first == folder.good(&command), "two runs differ");
    assert_eq!(document(&first)["written_unix_s"], Value::Null);
}

#[test]
fn reproduced_rows_carry_what_scripts_need() {
    let folder = Folder::new();
    let found = document(&folder.good(&["reproduce", "tacc-tr-14-10", "--json"]));
    let rows = found["reproductions"][0]["rows"].as_array().unwrap();
    assert!(rows.len() >= 26, "T1 to T26 have a row each");
    for row in rows {
        for key in ["id", "published", "simulated", "formula", "class", "error_percent", "unit", "verdict"] {
            assert!(row.get(key).is_some(), "{key} is missing in {row}");
        }
        let classes = ["unanswered", "rule", "given", "fitted", "identity", "predicted"];
        assert!(classes.contains(&row["class"].as_str().unwrap()), "{row}");
    }
}
