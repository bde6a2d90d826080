//! A card as it was found and what of it was touched.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A device on a bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Vendor and device, in hexadecimal: `1af4:1110`.
    pub id: String,
    /// The driver that was bound to it, which the user said does not matter; absent if none was.
    pub driver: Option<String>,
    /// Whether this run turned memory decoding on, because the user allowed it; it stays on.
    pub was_enabled: bool,
    /// Why its times say nothing about speed; absent for a real card.
    pub emulated_because: Option<String>,
    /// The only bytes that were loaded or stored.
    pub ranges: Vec<CardRange>,
    /// What came of mapping each range with each memory type.
    pub mappings: Vec<CardMapping>,
    /// The links from the card up to the root complex before the run; those that changed stand in the warnings.
    pub links: Vec<CardLink>,
}

/// Bytes of one BAR.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CardRange {
    /// Its region's name in the answers.
    pub region: String,
    /// Which BAR.
    pub bar: u8,
    /// Offset of its first byte in the BAR.
    pub offset_bytes: u64,
    /// Its length.
    pub len_bytes: u64,
    /// `storage`, `registers`, `registers:write` or `registers:write-only`.
    pub kind: String,
    /// Whether that was taken from the BAR, because the user did not say.
    pub is_kind_assumed: bool,
}

/// A range mapped with one memory type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CardMapping {
    /// The range's region.
    pub region: String,
    /// The memory type that was asked for.
    pub memory_type: String,
    /// The file of the kernel's that was mapped.
    pub file: String,
    /// The effective type that was read back; absent where it is as asked for and could not be read back, and where there
    /// is no such mapping.
    pub effective_memory_type: Option<String>,
    /// Whether the range was measured so.
    pub is_used: bool,
    /// How the type is known, or why there is no such mapping.
    pub because: String,
}

/// A link on the way to the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CardLink {
    /// The function that reports it.
    pub device: String,
    /// Its generation: 1 to 5.
    pub generation: u8,
    /// Its width.
    pub width_lanes: u8,
}
