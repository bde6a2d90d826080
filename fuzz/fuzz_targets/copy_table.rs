//! Fuzzes the reader of tables of copies: a refusal has one line; an accepted table round-trips, and every choice is the
//! method of one of its points.
#![no_main]

use lanemark_copy_plan::{CopyPlan, CopyTable};
use lanemark_method::CopyDirection;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let table = match CopyTable::from_json(text) {
        Ok(table) => table,
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
            return;
        }
    };
    let again = serde_json::to_string(&table).expect("a table is written");
    assert_eq!(CopyTable::from_json(&again), Ok(table.clone()));
    let plan = CopyPlan::new(&table);
    for direction in [CopyDirection::ToDevice, CopyDirection::FromDevice] {
        let methods = table.methods(direction);
        for (bytes, count) in [(0, 0), (1, 1), (100, 7), (u64::MAX, u32::MAX)] {
            let chosen = plan.choose(bytes, count, direction);
            assert_eq!(chosen.is_some(), !methods.is_empty(), "{bytes} {count}");
            assert!(chosen.is_none_or(|by| methods.contains(&by)));
        }
    }
});
