//! Trees from consistent and inconsistent bus numbers.

use lanemark_inventory::Inventory;
use std::fmt::Write;
use std::path::Path;

/// An inventory of bridges (address, primary, secondary, subordinate) and of other functions.
fn read(bridges: &[(&str, u8, u8, u8)], others: &[&str]) -> Inventory {
    let mut text = String::new();
    for (address, primary, secondary, subordinate) in bridges {
        write!(
            text,
            "{address} PCI bridge: Device 8086:0001\n\tFlags: fast devsel\n\
             \tBus: primary={primary:02x}, secondary={secondary:02x}, subordinate={subordinate:02x}, sec-latency=0\n"
        )
        .unwrap();
    }
    for address in others {
        writeln!(text, "{address} Ethernet controller: Device 8086:0002\n\tFlags: fast devsel").unwrap();
    }
    Inventory::from_lspci(&text, Path::new("here.txt")).unwrap()
}

fn parent(inventory: &Inventory, address: &str) -> Option<String> {
    let function = inventory.function(address.parse().unwrap()).unwrap();
    function.parent.known().unwrap().map(|parent| parent.to_string())
}

fn notes(inventory: &Inventory) -> Vec<(&str, &str)> {
    inventory.notes.iter().map(|note| (note.at.as_str(), note.what.as_str())).collect()
}

#[test]
fn a_switch_is_between_the_root_port_and_its_cards() {
    let bridges = [("00:01.0", 0, 1, 4), ("01:00.0", 1, 2, 4), ("02:00.0", 2, 3, 3), ("02:01.0", 2, 4, 4)];
    let inventory = read(&bridges, &["03:00.0", "04:00.0", "80:00.0"]);
    let parents = ["00:01.0", "01:00.0", "02:01.0", "04:00.0", "80:00.0"].map(|address| parent(&inventory, address));
    let of = |address: &str| Some(address.to_owned());
    assert_eq!(parents, [None, of("0000:00:01.0"), of("0000:01:00.0"), of("0000:02:01.0"), None]);
    assert_eq!(notes(&inventory), []);
    let tree = inventory.tree();
    let roots: Vec<_> = tree.roots.iter().map(|root| root.bus).collect();
    assert_eq!(roots, [0, 0x80]);
}

#[test]
fn domains_are_separate_trees() {
    let inventory = read(&[("0000:00:01.0", 0, 1, 1), ("10000:00:01.0", 0, 1, 1)], &["0000:01:00.0", "10000:01:00.0"]);
    assert_eq!(parent(&inventory, "10000:01:00.0").as_deref(), Some("10000:00:01.0"));
    assert_eq!(notes(&inventory), []);
}

#[test]
fn a_virtual_function_on_a_further_bus_is_below_the_bridge_whose_range_contains_it() {
    let inventory = read(&[("00:01.0", 0, 1, 2)], &["01:00.0", "02:00.1"]);
    assert_eq!(parent(&inventory, "02:00.1").as_deref(), Some("0000:00:01.0"));
    assert!(notes(&inventory)[0].1.contains("no bridge has secondary bus 02"));
}

#[test]
fn a_bridge_to_a_lower_bus_number_is_ignored() {
    let inventory = read(&[("01:00.0", 1, 2, 2), ("02:00.0", 2, 1, 1), ("03:00.0", 3, 3, 3)], &[]);
    let said: Vec<_> = notes(&inventory).into_iter().map(|(at, _)| at).collect();
    assert_eq!(said, ["0000:02:00.0", "0000:03:00.0"]);
    assert_eq!(parent(&inventory, "01:00.0"), None);
    assert_eq!(parent(&inventory, "02:00.0").as_deref(), Some("0000:01:00.0"));
}

#[test]
fn a_bus_that_two_bridges_claim_belongs_to_the_first() {
    let inventory = read(&[("00:01.0", 0, 1, 1), ("00:02.0", 0, 1, 1)], &["01:00.0"]);
    assert_eq!(parent(&inventory, "01:00.0").as_deref(), Some("0000:00:01.0"));
    assert_eq!(notes(&inventory)[0].0, "0000:00:02.0");
}

#[test]
fn overlapping_bus_ranges_are_noted_and_nested_or_adjacent_ranges_are_not() {
    let touching = read(&[("00:01.0", 0, 1, 3), ("00:02.0", 0, 4, 6)], &[]);
    assert_eq!(notes(&touching), []);
    let overlapping = read(&[("00:01.0", 0, 1, 4), ("00:02.0", 0, 4, 6)], &[]);
    assert_eq!(notes(&overlapping), [("0000:00:02.0", "its buses 04-06 overlap 01-04 of 0000:00:01.0")]);
    let side_by_side = read(&[("00:01.0", 0, 1, 6), ("00:02.0", 0, 4, 5)], &[]);
    assert_eq!(notes(&side_by_side).len(), 1);
}

#[test]
fn inconsistent_bus_numbers_are_noted() {
    let inventory = read(&[("00:01.0", 5, 1, 1), ("00:02.0", 0, 3, 2)], &["03:00.0"]);
    assert!(notes(&inventory)[0].1.contains("primary bus is 05, but the bridge is on bus 00"));
    assert!(notes(&inventory)[1].1.contains("subordinate bus 02 is below secondary bus 03"));
    assert_eq!(parent(&inventory, "03:00.0").as_deref(), Some("0000:00:02.0"));
}

#[test]
fn an_unconfigured_bridge_has_no_children_and_no_note() {
    let inventory = read(&[("00:01.0", 0, 0, 0)], &["01:00.0"]);
    assert_eq!((parent(&inventory, "01:00.0"), notes(&inventory)), (None, vec![]));
}

#[test]
fn no_function_is_lost_with_random_bus_numbers() {
    // Pseudo-random bus numbers, inconsistent at every bridge.
    let bridges: Vec<(String, u8, u8, u8)> = (0..=255_u8)
        .map(|n| (format!("{n:02x}:00.0"), n.wrapping_mul(7), n.wrapping_mul(91).wrapping_add(3), n.wrapping_mul(53)))
        .collect();
    let bridges: Vec<_> =
        bridges.iter().map(|(at, first, second, third)| (at.as_str(), *first, *second, *third)).collect();
    let inventory = read(&bridges, &[]);
    let tree = inventory.tree();
    let below: usize = (0..256).map(|at| tree.children(at).len()).sum();
    assert_eq!(below + tree.roots.iter().map(|root| root.functions.len()).sum::<usize>(), 256);
}
