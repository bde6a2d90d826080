//! Links and their traffic, and the use of other resources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A link of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Name: that of the switch or the card below it.
    pub name: String,
    /// The upper end: `root`, or the name of the link above the switch.
    pub above: String,
    /// Trained PCIe generation.
    pub generation: u32,
    /// Trained width.
    pub width_lanes: u32,
}

/// Traffic of one direction of a link during the samples, or during all concurrent flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkUse {
    /// Name of the link in the target's `links`.
    pub link: String,
    /// Direction.
    pub direction: Direction,
    /// Share of the time with TLPs and their framing on the link, in percent.
    pub tlp_share_percent: f64,
    /// Share of the time with DLLPs that can delay a TLP, in percent.
    pub dllp_share_percent: f64,
    /// Payload bytes per second.
    pub payload_rate_bytes_per_s: f64,
}

/// Use of a resource other than a link during the samples, or during all concurrent flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceUse {
    /// The place, as in the critical path: a DMA engine, a card, memory, the root complex, the IOMMU or a core.
    pub place: String,
    /// Name of its work, as in the critical path.
    pub cause: String,
    /// Direction of the data, if it has a path for each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Share of the time in which the resource was occupied, in percent. For page walkers it is their mean; of several
    /// root ports, DMA channels, regions or memory ports it is that of the busiest.
    pub share_percent: f64,
}

/// Direction on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Away from the root.
    Down,
    /// Towards the root.
    Up,
}

impl Direction {
    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Down => "down",
            Direction::Up => "up",
        }
    }
}
