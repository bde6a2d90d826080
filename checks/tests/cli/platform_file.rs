//! `new` and `check`: a short platform file, written once and read back.

use crate::folder::Folder;
use serde_json::Value;

/// The error output of a command that is refused.
fn refusal(folder: &Folder, arguments: &[&str]) -> String {
    let outcome = folder.run(arguments);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{}", outcome.err);
    outcome.err
}

#[test]
fn a_new_file_is_short_and_a_platform() {
    let folder = Folder::new();
    for (like, head) in [
        (vec!["card-gen5-x16"], "extends = \"card-gen5-x16\""),
        (vec!["gpu-h100", "--host", "epyc-milan"], "host = \"epyc-milan\"\ncard = \"gpu-h100\""),
        (vec!["xeon-spr+nvme-gen4"], "host = \"xeon-spr\"\ncard = \"nvme-gen4\""),
    ] {
        let command = [vec!["new", "-o", "my.toml", "--force", "--like"], like].concat();
        folder.good(&command);
        let text = String::from_utf8(std::fs::read(folder.path("my.toml")).unwrap()).unwrap();
        assert!(text.contains(head) && text.lines().count() <= 16, "{text}");
        let checked = folder.good(&["check", "my.toml"]);
        assert!(
            checked.starts_with("my: ") && checked.contains("\nnumbers: 0 given, 6 assumed, 0 fitted, "),
            "{checked}"
        );
        let json: Value = serde_json::from_str(&folder.good(&["check", "my.toml", "--json"])).unwrap();
        let own = json["values"].as_array().unwrap().iter().filter(|value| value["inherited_from"].is_null()).count();
        assert_eq!((own, json["origins"]["assumed"].as_u64()), (6, Some(6)), "{json}");
    }
}

#[test]
fn a_file_that_exists_is_kept_unless_force_is_given() {
    let folder = Folder::with(&[("my.toml", b"mine")]);
    let new = ["new", "--like", "card-gen5-x16", "-o", "my.toml"];
    let refused = refusal(&folder, &new);
    assert!(refused.contains("my.toml exists: use another name, or --force to replace it"), "{refused}");
    assert_eq!(std::fs::read(folder.path("my.toml")).unwrap(), b"mine");
    let unknown = refusal(&folder, &["new", "--like", "card-gen5-x61", "-o", "my.toml", "--force"]);
    assert!(unknown.contains("card-gen5-x61"), "{unknown}");
    assert_eq!(std::fs::read(folder.path("my.toml")).unwrap(), b"mine", "written whole or not at all");
    folder.good(&[&new[..], &["--force"]].concat());
    assert_ne!(std::fs::read(folder.path("my.toml")).unwrap(), b"mine");
}

#[test]
fn a_path_is_relative_to_the_file_that_names_it() {
    let base = b"schema = 2\nname = \"base\"\nextends = \"aws-f1\"\n";
    let mine =
        b"schema = 2\nname = \"mine\"\nextends = \"../base.toml\"\n[link]\nsource = \"lspci\"\nwidth_lanes = 4\n";
    let folder = Folder::with(&[("base.toml", base)]);
    std::fs::create_dir(folder.path("below")).unwrap();
    std::fs::write(folder.path("below/mine.toml"), mine).unwrap();
    let checked = folder.good(&["check", "below/mine.toml", "--all"]);
    assert!(checked.contains("link.width_lanes = 4 (source: lspci)"), "{checked}");
    assert!(checked.contains("link.generation = 3 (aws-f1; source: "), "{checked}");
    let absent = refusal(&folder, &["check", "below"]);
    assert!(absent.contains("below"), "{absent}");
    std::fs::remove_file(folder.path("base.toml")).unwrap();
    let gone = refusal(&folder, &["check", "below/mine.toml"]);
    assert!(gone.contains("below/mine.toml:3: extends: is \"../base.toml\", which cannot be read"), "{gone}");
}

#[test]
fn a_cycle_through_a_folder_above_is_named() {
    let file = |next: &str| format!("schema = 2\nname = \"a\"\nextends = \"{next}\"\n").into_bytes();
    let folder = Folder::with(&[("a.toml", &file("below/b.toml"))]);
    std::fs::create_dir(folder.path("below")).unwrap();
    std::fs::write(folder.path("below/b.toml"), file("../a.toml")).unwrap();
    let refused = refusal(&folder, &["check", "a.toml"]);
    assert!(refused.contains("below/b.toml:3: extends: is \"../a.toml\", which leads back to this file"), "{refused}");
}

#[test]
fn a_host_and_a_card_alone_say_what_they_are_and_give() {
    let host = include_bytes!("../../../platforms/hosts/epyc-milan.toml");
    let card = include_bytes!("../../../platforms/cards/gpu-h100.toml");
    let folder = Folder::with(&[("h.toml", host), ("c.toml", card), ("own", b"schema = 2\nname = \"o\"\nsummary = \"s\"\nextends = \"epyc-milan\"\n[core]\nsource = \"x\"\nclock_ghz = 2\n")]);
    for (name, kind, key, absent) in [
        ("h.toml", "host", "root_complex.core_round_trip_ns = ", "dma.tags"),
        ("epyc-milan", "host", "root_complex.core_round_trip_ns = ", "dma.tags"),
        ("c.toml", "card", "link.generation = 5", "core.clock_ghz"),
        ("gpu-h100", "card", "link.generation = 5", "core.clock_ghz"),
        ("own", "host", "core.clock_ghz = 2 (source: x)", "dma.tags"),
    ] {
        let checked = folder.good(&["check", name]);
        assert!(checked.contains(&format!(": a {kind}, not a whole platform: ")), "{checked}");
        assert!(checked.contains(key) && !checked.contains(absent), "{name}: {checked}");
        let json: Value = serde_json::from_str(&folder.good(&["check", name, "--json"])).unwrap();
        assert_eq!(json["kind"], kind);
        let known = json["values"].as_array().unwrap().len() as u64;
        let counts = ["given", "assumed", "fitted", "unknown"].map(|origin| json["origins"][origin].as_u64().unwrap());
        assert_eq!(counts.iter().sum::<u64>(), known, "{json}");
    }
    let wrong = String::from_utf8(host.to_vec()).unwrap().replace("store_buffer_entries", "store_entries");
    std::fs::write(folder.path("h.toml"), wrong).unwrap();
    assert!(refusal(&folder, &["check", "h.toml"]).contains("h.toml:"));
}

#[test]
fn a_record_is_no_platform_and_one_line_says_so() {
    let folder = Folder::new();
    folder.good(&["bench", "--question", "mmio_read_latency", "--sizes", "8", "--record", "r.json"]);
    // `check` takes it for what it is, and applies the rules of records.
    assert!(folder.good(&["check", "r.json"]).contains("every rule of reference records is kept"));
    for command in ["bench --on", "predict --on"] {
        let arguments: Vec<&str> = command.split(' ').chain(["r.json"]).collect();
        let refused = refusal(&folder, &arguments);
        assert!(refused.contains("'r.json' is JSON, such as a record of lanemark bench"), "{refused}");
        assert_eq!(refused.lines().count(), 1, "{refused}");
    }
}

#[test]
fn a_wrong_name_of_a_host_or_a_card_is_named_with_similar_ones() {
    let folder = Folder::new();
    let refused = |name: &str| refusal(&folder, &["bench", "--on", name]);
    let host = refused("xeon-sp+gpu-h100");
    assert!(host.contains("there is no built-in host 'xeon-sp', did you mean xeon-spr?"), "{host}");
    let card = refused("xeon-spr+gpu-h10");
    assert!(card.contains("there is no built-in card 'gpu-h10', did you mean gpu-h100?"), "{card}");
    assert!(!card.contains("built-in host 'xeon-spr'"), "{card}");
}

#[test]
fn a_new_file_can_be_printed() {
    let folder = Folder::new();
    let printed = folder.good(&["new", "--like", "card-gen5-x16", "-o", "-"]);
    assert!(printed.contains("name = \"mine\"\nextends = \"card-gen5-x16\""), "{printed}");
    assert!(folder.content().is_empty());
}

#[test]
fn check_says_which_end_of_a_link_holds() {
    let folder = Folder::new();
    let checked = folder.good(&["check", "epyc-milan+gpu-h100"]);
    let line = "link.generation = 4 holds, from epyc-milan: the lower one; gpu-h100 supports 5";
    assert!(checked.contains(line), "{checked}");
}
