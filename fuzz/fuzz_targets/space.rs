//! Fuzzes the space reader: an accepted space has consistent values, and its points are numbered and distinct.
#![no_main]

use lanemark_platform::PRESETS;
use lanemark_sweep::{Points, Space};
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;

fuzz_target!(|text: &str| {
    // The option `matrix` reads a file or generates a matrix, which is no part of the input.
    if text.contains("matrix") {
        return;
    }
    let space = match Space::parse("fuzz.toml", text) {
        Ok(space) => space,
        Err(error) => return assert!(error.to_string().starts_with("fuzz.toml: ")),
    };
    assert!(!space.platforms.is_empty() && !space.questions.is_empty());
    assert_eq!(space.settings.check(), Ok(()));
    let options = || space.questions.iter().flat_map(|asked| &asked.options);
    assert!(space.settings.keys.iter().chain(options()).all(|(_, values)| !values.is_empty()));
    let Some(len) = space.settings.len() else { return };
    assert_eq!(space.settings.combination(len - 1).len(), space.settings.keys.len());
    // Only small spaces of built-in platforms are listed: other files are no part of the input.
    let is_preset = |name: &String| PRESETS.iter().any(|preset| preset.name == name);
    let counts = options().map(|(_, values)| values.len() as u64);
    if len > 4 || counts.fold(1, u64::saturating_mul) > 8 || !space.platforms.iter().all(is_preset) {
        return;
    }
    match Points::of(&space) {
        Ok(points) => {
            let numbers = 0..points.len();
            let keys: HashSet<u128> = numbers.clone().map(|index| points.key(index).unwrap()).collect();
            assert_eq!(keys.len() as u64, points.len());
            for index in numbers.take(16) {
                let point = points.point(index).unwrap();
                assert_eq!((point.index, Some(point.key)), (index, points.key(index)));
            }
            assert_eq!(points.point(points.len()), None);
        }
        Err(error) => assert!(error.to_string().starts_with("fuzz.toml: ")),
    }
});
