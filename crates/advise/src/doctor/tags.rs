//! Number of tags of a function.

use lanemark_inventory::Express;
use lanemark_wire::config::TagBits;

/// Number of tags a function may use; below Gen4, 10-bit tags do not count.
pub(crate) fn tags(express: &Express, generation: u8) -> Option<TagBits> {
    let extended = express.extended_tags.enabled.get()?;
    if generation >= 4 && express.ten_bit_tags.enabled.get()? {
        return Some(TagBits::Ten);
    }
    Some(if extended { TagBits::Eight } else { TagBits::Five })
}
