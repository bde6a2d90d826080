//! Fuzzes the reader of device files: an accepted file keeps the rules that a run relies on.
#![no_main]

use lanemark_devices::DeviceFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let device = match DeviceFile::parse("fuzz.toml", text) {
        Ok(device) => device,
        Err(error) => {
            return assert!(error.problems.iter().all(|problem| problem.to_string().starts_with("fuzz.toml:")));
        }
    };
    let len = |bar: u8| device.bars.iter().find(|of| of.number == bar).map_or(0, |of| of.len_bytes);
    for (bar, at, width) in device.registers() {
        assert!(at.is_multiple_of(u64::from(width)) && at + u64::from(width) <= len(bar));
    }
    for range in &device.harmless {
        assert!(range.from < range.to && range.to <= len(range.bar));
    }
    if let Some(engine) = &device.engine {
        assert!(
            engine.limits.most_bytes <= engine.limits.memory_bytes && engine.limits.alignment_bytes.is_power_of_two()
        );
        assert!(engine.limits.memory_start.checked_add(engine.limits.memory_bytes - 1).is_some());
        assert!((12..=64).contains(&engine.limits.address_bits) && engine.done_value & !engine.done_mask == 0);
    }
});
