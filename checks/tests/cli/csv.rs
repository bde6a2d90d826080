//! `--csv`: the answers as a table, with what was varied.

use crate::folder::{Folder, small};
use std::fs;

#[test]
fn answers_are_written_as_a_table_with_what_was_changed_as_columns() {
    let folder = Folder::new();
    for command in ["bench", "predict"] {
        let asked = small(command, "card-gen5-x16", &["--with", "link.mps_bytes=128", "--csv", "a.csv", "--json"]);
        let record: serde_json::Value = serde_json::from_str(&folder.good(&asked)).unwrap();
        let answers = record["answers"].as_array().unwrap();
        assert_eq!(answers[0]["varied"], serde_json::json!({"link.mps_bytes": "128"}), "{command}");
        let text = fs::read_to_string(folder.path("a.csv")).unwrap();
        let heads: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        assert_eq!(text.lines().count(), 1 + answers.len(), "{command}");
        for column in
            ["question", "kind", "memory_type", "size_bytes", "share_of_ceiling_percent", "varied.link.mps_bytes"]
        {
            assert!(heads.contains(&column), "{command}: {column}");
        }
        assert!(text.lines().skip(1).all(|row| row.ends_with(",128")), "{command}: {text}");
    }
}
