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
