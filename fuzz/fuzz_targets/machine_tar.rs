//! Fuzzes the reader of tar archives of a machine's `/sys`, with arbitrary bytes.
#![no_main]

use lanemark_inventory::Inventory;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    match Inventory::from_bytes(bytes, Path::new("fuzz.tar")) {
        Ok(inventory) => {
            assert!(inventory.functions.is_sorted_by(|a, b| a.address < b.address));
            let tree = inventory.tree();
            for at in 0..inventory.functions.len() {
                assert!(tree.path_up(at).count() <= inventory.functions.len());
            }
        }
        Err(error) => assert!(error.to_string().contains("fuzz.tar")),
    }
});
