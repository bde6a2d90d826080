//! Refusals name the obstacle and the remedy.

use crate::guest::Guest;
use crate::shared;
use crate::storage::{bound_to, with_decoding_off};

/// Message of a step that must be refused.
fn refused(guest: &mut Guest, arguments: &str) -> String {
    let output = guest.run(&format!("touch-card {arguments}"));
    assert_eq!(output.status, 1, "{arguments}: {output:?}");
    output.stderr
}

pub fn missing_devices_missing_bars_and_ranges_beyond_a_bar_are_named() {
    let mut guest = shared();
    for (arguments, words) in [
        ("0000:1f:00.0 2:0..4KiB uc", ["0000:1f:00.0 does not exist", "lspci -D"]),
        ("0000:01:00.0 3:0..4KiB uc", ["has no BAR3", "BAR2"]),
        ("0000:01:00.0 2:0..0x400001 uc", ["ends beyond BAR2", "0x400000 B long"]),
        ("0000:01:00.0 2:0..4KiB uc poke:4096:1:0", ["1 B at BAR2+0x1000", "outside the named range 2:0..4KiB"]),
        ("0000:01:00.0 2:0..4KiB uc poke:4093:4:0", ["4 B at BAR2+0xffd", "a multiple of it"]),
        ("0000:01:00.0 2:0..4KiB wt", ["UC or WC", "WT"]),
    ] {
        let said = refused(&mut guest, arguments);
        assert!(words.iter().all(|word| said.contains(word)), "{arguments}: {said}");
    }
    // The last byte is inside.
    guest.expect("touch-card 0000:01:00.0 2:0x3fffff..0x400000 uc peek:0x3fffff:1");
}

pub fn a_device_with_a_driver_is_refused_with_the_name_of_the_driver() {
    let mut guest = shared();
    for driver in ["uio_pci_generic", "vfio-pci"] {
        bound_to(&mut guest, driver, |guest| {
            let said = refused(guest, "0000:01:00.0 2:0..4KiB uc peek:0:4");
            assert!(
                said.contains(&format!("bound to the driver '{driver}'")) && said.contains("--i-own-this-device"),
                "{said}"
            );
        });
    }
    guest.expect("touch-card 0000:01:00.0 2:0..4KiB uc peek:0:4");
}

pub fn a_device_without_memory_decoding_is_not_accessed() {
    let mut guest = shared();
    with_decoding_off(&mut guest, |guest| {
        let said = refused(guest, "0000:01:00.0 2:0..4KiB uc peek:0:4");
        assert!(said.contains("memory decoding is off") && said.contains("echo 1 >"), "{said}");
    });
    guest.expect("touch-card 0000:01:00.0 2:0..4KiB uc peek:0:4");
}

pub fn opening_a_bar_needs_root() {
    let said = shared().run_as_somebody("touch-card", "0000:01:00.0 2:0..4KiB uc peek:0:4");
    assert!(said.status == 1 && said.stderr.contains("run as root"), "{said:?}");
}
