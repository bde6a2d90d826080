//! Fuzzes the parsers of a size and of a list of sizes.
#![no_main]

use lanemark_units::{SizeRange, format_size, parse_size};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse_size(text) {
        Ok(bytes) => assert_eq!(parse_size(&format_size(bytes)), Ok(bytes)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match text.parse::<SizeRange>() {
        Ok(sizes) => {
            let bytes = sizes.bytes();
            assert!(!bytes.is_empty() && bytes[0] > 0 && bytes.is_sorted_by(|a, b| a < b));
            let list: Vec<String> = bytes.iter().map(|bytes| format_size(*bytes)).collect();
            assert_eq!(list.join(",").parse(), Ok(sizes));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
