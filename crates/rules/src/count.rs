//! Named numbers that are counted on a board.

use crate::coherent::packed_objects;

/// The number named `name`.
///
/// # Errors
/// A message if there is no such number, or an access of the board fails.
pub fn count(name: &str) -> Result<f64, String> {
    match name {
        "entries_of_objects_mapped_one_by_one" => packed_objects::one_by_one(),
        "entries_of_objects_packed_in_a_page" => packed_objects::packed(),
        _ => Err(format!("there is no count named '{name}'")),
    }
}
