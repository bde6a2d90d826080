//! Fuzzes the record reader: a record is written and read back unchanged.
#![no_main]

use lanemark_record::{RecordError, SCHEMA, file};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    match file::from_bytes(bytes, Path::new("fuzz.json")) {
        Ok(record) => {
            let again = file::from_bytes(file::to_json(&record).as_bytes(), Path::new("again.json"));
            assert_eq!(again.unwrap(), record);
        }
        Err(RecordError::Malformed { line, column, message, .. }) => {
            assert!(line >= 1 && column >= 1 && message.lines().count() == 1, "{message}");
        }
        Err(RecordError::Older { line, found, .. }) => assert!(line >= 1 && found < u64::from(SCHEMA)),
        Err(RecordError::Newer { line, found, .. }) => assert!(line >= 1 && found > u64::from(SCHEMA)),
        Err(error) => panic!("{error}"),
    }
});
