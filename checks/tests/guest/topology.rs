//! The guest has the devices that the other tests assume.

use crate::{BEFORE, STORAGE_BYTES, shared};
use std::fs;

pub fn devices_have_the_expected_addresses() {
    let mut guest = shared();
    for (address, vendor_and_device) in [
        ("0000:01:00.0", "0x1af4 0x1110"),
        ("0000:02:00.0", "0x104c 0x8232"),
        ("0000:03:00.0", "0x104c 0x8233"),
        ("0000:04:00.0", "0x1234 0x11e8"),
        ("0000:05:00.0", "0x1af4 0x1110"),
        ("0000:00:06.0", "0x1b36 0x0005"),
    ] {
        let said = guest.expect(&format!("cd /sys/bus/pci/devices/{address} && echo $(cat vendor device)"));
        assert_eq!(said.trim(), vendor_and_device, "{address}");
    }
}

pub fn the_switch_is_a_degraded_link_of_its_root_port() {
    let mut guest = shared();
    let of = "cd /sys/bus/pci/devices/0000:00:03.0 && cat max_link_speed current_link_speed; echo $(cat max_link_width current_link_width)";
    assert_eq!(guest.expect(of), "8.0 GT/s PCIe\n2.5 GT/s PCIe\n8 1\n");
}

pub fn the_large_bar_is_above_4_gib_and_the_iommu_is_on() {
    let mut guest = shared();
    let resource = guest.expect("sed -n 3p /sys/bus/pci/devices/0000:05:00.0/resource");
    let numbers: Vec<u64> =
        resource.split_whitespace().map(|number| u64::from_str_radix(&number[2..], 16).unwrap()).collect();
    assert!(numbers[0] >= 4 << 30 && numbers[1] - numbers[0] + 1 == 8 << 30, "{resource}");
    guest.expect("test -d /sys/bus/pci/devices/0000:01:00.0/iommu_group/devices/0000:01:00.0");
}

pub fn bytes_written_outside_are_visible_through_the_bar() {
    let mut guest = shared();
    let storage = guest.file("storage");
    assert_eq!(fs::metadata(&storage).unwrap().len(), STORAGE_BYTES as u64);
    // busybox cannot mmap an arbitrary file; devmem takes the bus address, which the kernel allows here.
    let read = "address=$(sed -n '3s/ .*//p' /sys/bus/pci/devices/0000:01:00.0/resource); \
                echo 1 >/sys/bus/pci/devices/0000:01:00.0/enable; devmem $((address + 0x3ffff0)) 32";
    assert_eq!(guest.expect(read).trim(), format!("0x{BEFORE:X}{BEFORE:X}{BEFORE:X}{BEFORE:X}"));
}

pub fn a_failing_command_reports_status_and_both_outputs() {
    let said = shared().run("echo one; echo two >&2; exit 3");
    assert_eq!((said.status, said.stdout.as_str(), said.stderr.as_str()), (3, "one\n", "two\n"));
}
