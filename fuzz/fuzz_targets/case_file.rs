//! Fuzzes the reader of case files of `fuzz-rtl`: a refusal has one line, and an accepted case round-trips.
#![no_main]

use lanemark_adversary::{CaseFile, Target};
use lanemark_devices::DeviceFile;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// The card in `rtl/`.
static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let device = DeviceFile::parse("card.toml", include_str!("../../rtl/card.toml")).expect("the file is tested");
    Target::new(&device, 2048).expect("the card has an engine")
});

fuzz_target!(|text: &str| {
    match CaseFile::parse("fuzz.toml", text, &TARGET) {
        Ok(case) => {
            let again = case.to_toml("again");
            assert_eq!(CaseFile::parse("fuzz.toml", &again, &TARGET), Ok(case));
        }
        Err(problem) => {
            let problem = problem.to_string();
            assert!(problem.starts_with("fuzz.toml:") && problem.lines().count() == 1, "{problem}");
        }
    }
});
