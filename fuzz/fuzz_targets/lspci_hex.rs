//! Fuzzes the parser of `lspci -xxxx` dumps.
#![no_main]

use lanemark_inventory::{Inventory, InventoryError};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|text: &str| {
    match Inventory::from_lspci(text, Path::new("fuzz.txt")) {
        Ok(inventory) => {
            assert!(inventory.functions.is_sorted_by(|a, b| a.address < b.address));
            let tree = inventory.tree();
            for at in 0..inventory.functions.len() {
                assert!(tree.path_up(at).count() <= inventory.functions.len());
            }
            for function in &inventory.functions {
                if let Some(config) = function.config.known() {
                    assert!(!config.is_empty() && config.len() <= 4096);
                }
            }
        }
        Err(InventoryError::Malformed { line, problem, .. }) => {
            assert!(line >= 1 && line <= text.lines().count() && !problem.is_empty());
        }
        Err(InventoryError::Unrecognised { tried, .. }) => assert!(!tried.is_empty()),
        Err(error) => panic!("{error}"),
    }
});
