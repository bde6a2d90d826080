//! Named numbers that are counted on a board.

use super::as_text;
use super::mapped_board::{AT, MappedBoard, PAGE};
use lanemark_dma::{Hints, Pool};
use lanemark_units::HostVirt;

/// The number named `name`.
pub(crate) fn measured(name: &str) -> Result<f64, String> {
    match name {
        "entries_of_objects_mapped_one_by_one" => one_by_one(),
        "entries_of_objects_packed_in_a_page" => packed(),
        _ => Err(format!("there is no count named '{name}'")),
    }
}

/// Number of objects in the paper's example.
const OBJECTS: u64 = 128;
/// Size of an object.
const OBJECT_BYTES: u64 = 32;

/// Entries of the page directory for objects that are mapped one by one.
fn one_by_one() -> Result<f64, String> {
    let mut machine = MappedBoard::coherent()?;
    for object in 0..OBJECTS {
        let _ = machine.map(HostVirt(0x10_0000 + object * 2 * PAGE), OBJECT_BYTES, Hints::NONE)?;
    }
    Ok(machine.board().directory_entries() as f64)
}

/// Entries of the page directory for objects in one mapped page; the device writes each, and the place is checked.
fn packed() -> Result<f64, String> {
    let mut machine = MappedBoard::coherent()?;
    let page = machine.map(AT, PAGE, Hints::NONE)?;
    let mut pool = Pool::over(page.range(), OBJECT_BYTES).map_err(as_text)?;
    for object in 0..OBJECTS {
        let at = pool.take().map_err(as_text)?.at;
        machine.device_write(at, &[object as u8; OBJECT_BYTES as usize])?;
        let seen = machine.load(0, HostVirt(AT.0 + (at.0 - page.iova().0)))?;
        if seen != [object as u8; OBJECT_BYTES as usize] {
            return Err(format!("object {object} was written to another place"));
        }
    }
    Ok(machine.board().directory_entries() as f64)
}
