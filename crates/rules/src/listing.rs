//! BARs of a card, as `lspci` lists them.

use crate::rule::{Outcome, as_text, hold};
use lanemark_inventory::Inventory;
use lanemark_platform::Platform;
use lanemark_units::format_size;
use lanemark_wire::config::BarKind;
use std::path::Path;

/// Listings of one card in two machines; the first one is that of the platform.
const LISTINGS: [(&str, &str); 2] = [
    ("f1-2xlarge.txt", include_str!("../../inventory/tests/vectors/f1-2xlarge.txt")),
    ("f1-16xlarge.txt", include_str!("../../inventory/tests/vectors/f1-16xlarge.txt")),
];

/// A BAR in a listing.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Listed {
    bar: u8,
    address: u64,
    bytes: u64,
    is_64_bit: bool,
    is_prefetchable: bool,
}

/// The BARs of the only function of a listing.
fn listed(name: &str, text: &str) -> Result<Vec<Listed>, String> {
    let inventory = Inventory::from_lspci(text, Path::new(name)).map_err(as_text)?;
    let [card] = &inventory.functions[..] else {
        return Err(format!("{name}: {} functions instead of one", inventory.functions.len()));
    };
    if let Some(note) = inventory.notes.first() {
        return Err(format!("{name}: {note:?}"));
    }
    let bars = (0..6).filter_map(|bar| card.bar(bar).map(|region| (bar, region)));
    let row = |(bar, region): (u8, &lanemark_inventory::Region)| {
        let unseen = |what: &str| format!("{name}: BAR {bar} has no {what}");
        Ok(Listed {
            bar,
            address: region.base.present().ok_or_else(|| unseen("address"))?.0,
            bytes: region.bytes.get().ok_or_else(|| unseen("size"))?,
            is_64_bit: region.space == BarKind::Memory64,
            is_prefetchable: region.prefetchable,
        })
    };
    bars.map(row).collect()
}

/// Reads the listings: the first has the BARs of the platform, and the second the same BARs at other addresses.
pub(crate) fn lspci_lists_the_bars_of_the_platform(platform: &Platform) -> Outcome {
    let [first, second] = LISTINGS.map(|(name, text)| listed(name, text));
    let (first, second) = (first?, second?);
    let has = |bar: &lanemark_platform::Bar| {
        first.iter().any(|row| {
            (u32::from(row.bar), row.address, row.bytes, row.is_prefetchable)
                == (bar.index.value, bar.address_bytes.value, bar.size_bytes.value, bar.prefetchable.value)
        })
    };
    if let Some(missing) = platform.bars.iter().find(|bar| !has(bar)) {
        let (size, address) = (format_size(missing.size_bytes.value), missing.address_bytes.value);
        return Err(format!(
            "BAR {} of the platform, {size} at {address:#x}, is not in the listing",
            missing.index.value
        ));
    }
    let unplaced = |rows: &[Listed]| rows.iter().map(|row| Listed { address: 0, ..*row }).collect::<Vec<Listed>>();
    let bars: Vec<String> = first.iter().map(|row| format!("{} of {}", row.bar, format_size(row.bytes))).collect();
    let moved = first.iter().zip(&second).filter(|(one, other)| one.address != other.address).count();
    let is_same = unplaced(&first) == unplaced(&second) && moved == first.len();
    hold(is_same, format!("both listings have the BARs {}; {moved} are at other addresses", bars.join(", ")))
}
