//! Page directory entries for many small objects, mapped one by one or packed in a page.

use super::mapped_board::{AT, MappedBoard, PAGE};
use crate::rule::as_text;
use lanemark_dma::{Hints, Pool};
use lanemark_units::HostVirt;

/// Number of objects in the paper's example.
const OBJECTS: u64 = 128;
/// Size of an object.
const OBJECT_BYTES: u64 = 32;

/// Entries of the page directory for objects that are mapped one by one.
pub(crate) fn one_by_one() -> Result<f64, String> {
    let mut machine = MappedBoard::coherent()?;
    for object in 0..OBJECTS {
        let _ = machine.map(HostVirt(0x10_0000 + object * 2 * PAGE), OBJECT_BYTES, Hints::NONE)?;
    }
    Ok(machine.board().directory_entries() as f64)
}

/// Entries of the page directory for objects in one mapped page; the device writes each, and the place is checked.
pub(crate) fn packed() -> Result<f64, String> {
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
