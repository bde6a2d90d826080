//! Fuzzes configuration space decoding: the walk terminates, no byte outside is read, a prefix agrees with the whole.
#![no_main]

use lanemark_wire::config::{CapabilityId, ConfigSpace, LinkSpeed, Reading, Unknown};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let space = ConfigSpace::new(bytes);
    let visible = space.bytes().len();
    // Each of the 48 + 960 possible offsets is visited once, with at most two faults, and each list ends with at most
    // two more.
    let met = space.walk().count();
    assert!(met <= 3 * (48 + 960) + 4, "{met} capabilities and faults");
    for fault in space.chain_faults() {
        assert!(usize::from(fault.offset) < visible && !fault.to_string().is_empty());
    }
    for value in space.fields() {
        assert!(usize::from(value.register_offset) + usize::from(value.high / 8) < visible, "{value}");
        assert!(value.raw >> (value.high - value.low) <= 1, "{value}");
        match value.reading {
            Reading::Reserved(_) => assert!(value.to_string().contains("reserved")),
            Reading::Flag(on) => assert_eq!(u64::from(on), value.raw),
            _ => {}
        }
    }
    for capability in space.capabilities() {
        let least = if matches!(capability.id(), CapabilityId::Standard(_)) { 2 } else { 4 };
        assert!(capability.bytes().len() >= least, "{}", capability.id());
    }
    for bar in space.bars() {
        assert!(bar.index < 6 && bar.raw != 0 && bar.address() <= bar.raw);
    }
    if let Ok(windows) = space.windows() {
        for window in [windows.io, windows.memory, windows.prefetchable].into_iter().flatten() {
            assert!(window.start() <= window.end());
        }
    }
    for bar in space.resizable_bars().into_iter().flatten().flatten() {
        assert!(bar.sizes_bytes().is_sorted() && bar.bar < 8);
    }
    for speed in LinkSpeed::ALL {
        let _ = space.equalization(speed);
    }
    let _ = (
        space.error_reporting(),
        space.virtual_functions(),
        space.tag_bits(),
        space.subsystem(),
        space.serial_number(),
    );
    // Values read from the first 256 bytes equal those of the whole.
    let part = ConfigSpace::new(&bytes[..visible.min(256)]);
    let speed = |space: ConfigSpace<'_>| space.pcie().and_then(|pcie| pcie.link_speed());
    match speed(part) {
        Ok(seen) => assert_eq!(speed(space), Ok(seen)),
        Err(Unknown::NoCapability { .. }) => assert!(speed(space).is_err()),
        Err(_) => {}
    }
});
