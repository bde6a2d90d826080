//! Numbers that are counted on a board, by name.

use super::mapped_board::{AT, MappedBoard, PAGE};
use super::told;
use lanemark_dma::{Hints, Pool};
use lanemark_units::HostVirt;

/// The number of this name.
pub(crate) fn measured(name: &str) -> Result<f64, String> {
    match name {
        "entries_of_objects_mapped_one_by_one" => one_by_one(),
        "entries_of_objects_packed_in_a_page" => packed(),
        _ => Err(format!("there is nothing to count called '{name}'")),
    }
}

/// As many as the paper takes for an example, and how long each is.
const OBJECTS: u64 = 128;
const OBJECT_BYTES: u64 = 32;

/// Entries of the page directory that they take, each in a place of its own.
fn one_by_one() -> Result<f64, String> {
    let mut machine = MappedBoard::coherent()?;
    for object in 0..OBJECTS {
        let _ = machine.map(HostVirt(0x10_0000 + object * 2 * PAGE), OBJECT_BYTES, Hints::NONE)?;
    }
    Ok(machine.board().directory_entries() as f64)
}

/// Entries that they take in a page that is mapped once; each is written by the device, and is where it should be.
fn packed() -> Result<f64, String> {
    let mut machine = MappedBoard::coherent()?;
    let page = machine.map(AT, PAGE, Hints::NONE)?;
    let mut pool = Pool::over(page.range(), OBJECT_BYTES).map_err(told)?;
    for object in 0..OBJECTS {
        let at = pool.take().map_err(told)?.at;
        machine.device_write(at, &[object as u8; OBJECT_BYTES as usize])?;
        let seen = machine.load(0, HostVirt(AT.0 + (at.0 - page.iova().0)))?;
        if seen != [object as u8; OBJECT_BYTES as usize] {
            return Err(format!("object {object} is not where it should be"));
        }
    }
    Ok(machine.board().directory_entries() as f64)
}
