//! Fuzzes the reader of the log of a sweep: a damaged log is refused and unchanged, or continued without losing or
//! repeating a row.
#![no_main]

use lanemark_record::{RecordError, SweepLog, SweepRow, SweepTable, SweptBy, read_sweep_log};
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static LOG: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("lanemark-fuzz-{}.jsonl", std::process::id())));

fn rows(path: &Path) -> Result<Vec<SweepRow>, RecordError> {
    let mut rows = Vec::new();
    read_sweep_log(path, |row| rows.push(row))?;
    Ok(rows)
}

fuzz_target!(|bytes: &[u8]| {
    let path = LOG.as_path();
    std::fs::write(path, bytes).unwrap();
    let found = rows(path);
    let mut log = match SweepLog::open(path) {
        Ok(log) => log,
        Err(RecordError::Malformed { line, column, message, .. }) => {
            assert!(line >= 1 && column >= 1 && message.lines().count() == 1, "{message}");
            assert!(found.is_err());
            assert!(std::fs::read(path).unwrap() == bytes, "a refused log was changed");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let found = found.unwrap();
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    assert!(std::fs::read(path).unwrap() == bytes[..whole], "more or less than an incomplete last line was removed");
    assert_eq!(found.len(), bytes.iter().filter(|byte| **byte == b'\n').count());
    let keys: HashSet<u128> = found.iter().map(|row| u128::from_str_radix(&row.key, 16).unwrap()).collect();
    assert_eq!(*log.done(), keys);
    // All rows, and one with a new key, are continued and written again.
    let new = (0..).find(|key| !keys.contains(key)).unwrap();
    let new = SweepRow::without_figure(format!("{new:032x}"), "card".to_owned(), "q".to_owned(), SweptBy::Formulas);
    log.append(std::slice::from_ref(&new)).unwrap();
    let all: Vec<SweepRow> = found.into_iter().chain([new]).collect();
    assert_eq!(rows(path).unwrap(), all);
    drop(log);
    std::fs::remove_file(path).unwrap();
    let mut log = SweepLog::open(path).unwrap();
    log.append(&all).unwrap();
    drop(log);
    assert_eq!(rows(path).unwrap(), all);
    let table = SweepTable::of(&all);
    assert_eq!(table.rows(), keys.len() + 1);
    assert_eq!(table.table().json_lines().unwrap().iter().filter(|byte| **byte == b'\n').count(), table.rows());
    assert!(!table.table().csv().unwrap().is_empty() && !table.table().parquet("sweep").unwrap().is_empty());
});
