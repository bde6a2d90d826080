//! `lanemark doctor` on a real kernel's device tree, which it must not change.

use crate::guest::Guest;
use crate::{LARGE_BYTES, shared};
use serde_json::Value;

/// Every byte of configuration space, and whether each device is enabled.
fn state(guest: &mut Guest) -> String {
    guest.expect("cd /sys/bus/pci/devices; for f in *; do echo $f $(cat $f/enable); xxd $f/config; done")
}

pub fn the_tree_shows_the_slow_switch_and_nothing_is_changed() {
    let mut guest = shared();
    let before = state(&mut guest);
    let said = guest.expect("lanemark doctor");
    assert_eq!(state(&mut guest), before);
    let drawn = |line: &str| assert!(said.lines().any(|drawn| drawn == line), "'{line}' is not in:\n{said}");
    drawn("├─ 00:02.0 PCI bridge, root port, driver pcieport");
    drawn("│  └─ 01:00.0 RAM memory");
    drawn("│  └─ 02:00.0 PCI bridge, upstream port, driver pcieport   Gen1 x1 (Gen3 x8 above)");
    drawn("│     └─ 03:00.0 PCI bridge, downstream port, driver pcieport");
    drawn("│        └─ 04:00.0 Class 00ff");
    assert!(said.contains("00:07.0 Non-Volatile memory controller, integrated endpoint, driver nvme"), "{said}");
    assert!(said.contains("Linux 6.") && said.contains("1 IOMMU unit"), "{said}");
}

pub fn the_json_document_matches_the_kernels_bars_drivers_and_groups() {
    let mut guest = shared();
    let document: Value = serde_json::from_str(&guest.expect("lanemark doctor --json")).unwrap();
    let functions = document["functions"].as_array().unwrap();
    let listed: Vec<&str> = functions.iter().map(|function| function["address"].as_str().unwrap()).collect();
    let there = guest.expect("ls /sys/bus/pci/devices");
    assert_eq!(listed, there.split_whitespace().collect::<Vec<_>>());
    for function in functions {
        let at = format!("/sys/bus/pci/devices/{}", function["address"].as_str().unwrap());
        let driver = guest.expect(&format!("basename $(readlink {at}/driver) 2>/dev/null || true"));
        let said = function["driver"]["value"].as_str().unwrap_or("");
        assert_eq!(said, driver.trim(), "{at}");
        let group = guest.expect(&format!("basename $(readlink {at}/iommu_group)"));
        assert_eq!(function["iommu_group"]["value"].to_string(), group.trim(), "{at}");
    }
    let large = functions.iter().find(|function| function["address"] == "0000:05:00.0").unwrap();
    let bars = large["bars"]["value"].as_array().unwrap();
    let sizes: Vec<(u64, u64)> =
        bars.iter().map(|bar| (bar["index"].as_u64().unwrap(), bar["size_bytes"]["value"].as_u64().unwrap())).collect();
    assert_eq!(sizes, [(0, 256), (2, LARGE_BYTES)]);
    assert!(bars[1]["address_bytes"]["value"].as_u64() >= Some(4 << 30), "{bars:?}");
}

pub fn without_root_it_reports_unseen_facts() {
    let said = shared().run_as_somebody("lanemark", "doctor");
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stdout.contains("not visible") && said.stdout.contains("root"), "{}", said.stdout);
}
