//! Fuzzes the platform file reader.
#![no_main]

use lanemark_platform::Platform;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Platform::from_bytes("fuzz.toml", bytes) {
        Ok(platform) => {
            assert!(platform.origins().total() > 0);
            for region in &platform.regions {
                let (bar, offset) = (region.bar.value as u8, region.offset_bytes.value);
                assert_eq!(platform.region_at(bar, offset, region.size_bytes.value), Some(region));
                assert!(platform.bar(bar).is_some());
                let path = format!("region.{}.read_ns", region.name);
                let (read_ns, origin) = platform.number(&path).unwrap();
                assert_eq!(
                    platform.with(&path, read_ns, origin.clone()).unwrap().number(&path),
                    Some((read_ns, origin))
                );
            }
            assert!(platform.to_json().is_object());
        }
        Err(error) => {
            assert!(!error.problems.is_empty());
            assert!(error.problems.is_sorted_by_key(|problem| problem.line));
            for problem in &error.problems {
                assert!(problem.line >= 1 && problem.to_string().lines().count() == 1, "{problem}");
            }
        }
    }
});
