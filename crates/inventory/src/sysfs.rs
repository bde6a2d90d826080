//! Reads a machine from its `/sys` and `/proc`, or from a copy of them.

mod function;
mod machine;

pub(crate) use function::FUNCTIONS;
pub(crate) use machine::processors as processors_of;

use crate::files::{Files, join};
use crate::{Address, Inventory, InventoryError, Note, Source, interrupt, parents};

/// Maximum number of functions; the largest machines have a few thousand.
const MOST_FUNCTIONS: usize = 65_536;

/// Reads everything below a root. On a running machine (`live`), a function in `D3cold` is not woken.
///
/// # Errors
/// If the folder of functions is missing, or has too many entries.
pub(crate) fn read(files: &Files<'_>, source: Source, live: bool) -> Result<Inventory, InventoryError> {
    let names = files.names(FUNCTIONS).map_err(|trouble| InventoryError::Malformed {
        place: source.to_string(),
        line: 1,
        problem: trouble.why(FUNCTIONS).because(),
    })?;
    if names.len() > MOST_FUNCTIONS {
        let what = format!("the number of functions ({})", names.len());
        return Err(InventoryError::TooLarge { place: source.to_string(), what, most: MOST_FUNCTIONS as u64 });
    }
    let names_of_ids = function::IdNames::read(files);
    let mut inventory = machine::read(files, source, live);
    let some_has = |file: &str| names.iter().any(|name| files.exists(&format!("{FUNCTIONS}/{name}/{file}")));
    let reader = function::Reader {
        files,
        live,
        names: names_of_ids,
        interrupts: files.fact("proc", "interrupts", interrupt::counts),
        present: function::FilesPresent {
            links: some_has("max_link_speed"),
            drivers: live || some_has("driver"),
            groups: live || some_has("iommu_group"),
        },
    };
    for name in names {
        match name.parse::<Address>() {
            Ok(address) => inventory.functions.push(reader.read(address, &name, &mut inventory.notes)),
            Err(error) => inventory.notes.push(Note { at: join(FUNCTIONS, &name), what: error.to_string() }),
        }
    }
    finish(&mut inventory);
    Ok(inventory)
}

/// Final steps of every reader: sort, remove duplicates, set parents, gather unseen facts.
pub(crate) fn finish(inventory: &mut Inventory) {
    inventory.functions.sort_by_key(|function| function.address);
    // Names such as 00:00.0 beside 0000:00:00.0 do not come from a kernel.
    let notes = &mut inventory.notes;
    inventory.functions.dedup_by(|again, first| {
        let same = again.address == first.address;
        if same {
            let what = "duplicate function; the first one is kept".to_owned();
            notes.push(Note { at: first.address.to_string(), what });
        }
        same
    });
    parents::place(&mut inventory.functions, &mut inventory.notes);
    inventory.gather_unseen();
}
