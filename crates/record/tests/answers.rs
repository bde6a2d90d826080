//! The table of answers has every parameter and figure of a record.

mod whole_record;

use lanemark_method::Method;
use lanemark_record::{Answer, Record, answers_table};
use std::collections::{BTreeMap, BTreeSet};
use whole_record::{every_method, whole_record};

fn rows(record: &Record) -> Vec<BTreeMap<String, String>> {
    let text = answers_table(record).csv().unwrap();
    let mut table = csv::Reader::from_reader(text.as_slice());
    table.deserialize().map(Result::unwrap).collect()
}

#[test]
fn a_row_has_question_method_figures_and_varied_keys() {
    let rows = rows(&whole_record());
    assert_eq!(rows.len(), 1);
    for (column, cell) in [
        ("question", "mmio_write_bandwidth"),
        ("target", "card"),
        ("quantity", "bandwidth"),
        ("size_bytes", "9223372036854775807"),
        ("kind", "core"),
        ("memory_type", "wc"),
        ("access", "memcpy"),
        ("fence", "sfence"),
        ("flows", ""),
        ("label", "WC memcpy+sfence"),
        ("share_of_ceiling_percent", "99.9"),
        ("bound", "link"),
        ("bound_cause", "link_busy"),
        ("longest_wait_cause", "credit"),
        ("doubts", "two kinds"),
        ("varied.dma.tags", "64"),
    ] {
        assert_eq!(rows[0][column], cell, "{column}");
    }
    assert_eq!(rows[0]["latency_ns_median"].parse(), Ok(1.0 / 3.0));
}

#[test]
fn column_names_are_unique_and_every_method_field_has_a_column() {
    let table = answers_table(&whole_record());
    let heads: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(heads.iter().collect::<BTreeSet<_>>().len(), heads.len(), "{heads:?}");
    for method in every_method() {
        for (column, text) in method.cells() {
            assert!(Method::COLUMNS.contains(&column), "{method}: {column}");
            let is_whole = Method::WHOLE_COLUMNS.contains(&column);
            assert!(!is_whole || text.parse::<i64>().is_ok(), "{method}: {column} is {text}");
        }
    }
}

#[test]
fn different_methods_have_different_rows() {
    let mut record = whole_record();
    let answer = record.answers.remove(0);
    record.answers = every_method().into_iter().map(|method| Answer { method, ..answer.clone() }).collect();
    let distinct: BTreeSet<String> = rows(&record).iter().map(|row| format!("{row:?}")).collect();
    assert_eq!(distinct.len(), every_method().len());
}
