//! A card, its state, and its accessed ranges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A device on a bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Vendor and device, in hexadecimal: `1af4:1110`.
    pub id: String,
    /// The driver that was bound, which the user declared harmless; absent without a driver.
    pub driver: Option<String>,
    /// Whether this run enabled memory decoding, with the user's permission; it stays enabled.
    pub was_enabled: bool,
    /// Reason why timings are not meaningful; absent for a real card.
    pub emulated_because: Option<String>,
    /// The only bytes that were accessed.
    pub ranges: Vec<CardRange>,
    /// Results of mapping each range with each memory type.
    pub mappings: Vec<CardMapping>,
    /// The links from the card up to the root complex before the run; changes are in the warnings.
    pub links: Vec<CardLink>,
    /// The other card of transfers between cards; absent without one.
    #[serde(default)]
    pub peer: Option<CardPeer>,
}

/// Memory of another card, for transfers between cards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CardPeer {
    /// Its address on the bus.
    pub device: String,
    /// Its vendor and device, in hexadecimal.
    pub id: String,
    /// Number of its BAR.
    pub bar: u8,
    /// Offset in the BAR.
    pub offset_bytes: u64,
    /// Length. These are the only bytes of that card that were accessed.
    pub len_bytes: u64,
}

/// A range of one BAR.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CardRange {
    /// Name of its region in the answers.
    pub region: String,
    /// Number of the BAR.
    pub bar: u8,
    /// Offset in the BAR.
    pub offset_bytes: u64,
    /// Length.
    pub len_bytes: u64,
    /// `storage`, `registers`, `registers:write` or `registers:write-only`.
    pub kind: String,
    /// Whether the kind was derived from the BAR, because the user gave none.
    pub is_kind_assumed: bool,
}

/// A range mapped with one memory type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CardMapping {
    /// Region of the range.
    pub region: String,
    /// Requested memory type.
    pub memory_type: String,
    /// The mapped sysfs file.
    pub file: String,
    /// Effective memory type that was read back; absent if it could not be read back and is
    /// assumed, and without a mapping.
    pub effective_memory_type: Option<String>,
    /// Whether the range was measured with this type.
    pub is_used: bool,
    /// Evidence of the type, or the reason why there is no mapping.
    pub because: String,
}

/// A link between root complex and card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CardLink {
    /// The function that reports it.
    pub device: String,
    /// Generation, 1 to 5.
    pub generation: u8,
    /// Width.
    pub width_lanes: u8,
}
