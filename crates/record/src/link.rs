//! Links: where they are, and what they carried.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A link of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its name: that of the switch or the card below it.
    pub name: String,
    /// What is above it: `root`, or a switch by the name of the link above that.
    pub above: String,
    /// PCIe generation it trained at.
    pub generation: u32,
    /// Lanes it trained at.
    pub width_lanes: u32,
}

/// What one direction of a link carried while the samples were taken, or while all of several flows went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkUse {
    /// The link, by its name in the target's `links`.
    pub link: String,
    /// Which way.
    pub direction: Direction,
    /// Share of the time in which the line carried TLPs with their framing, in percent.
    pub tlp_share_percent: f64,
    /// Share of the time of DLLPs that a TLP could have waited for, in percent.
    pub dllp_share_percent: f64,
    /// Bytes of payload a second.
    pub payload_rate_bytes_per_s: f64,
}

/// Which way on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Away from the root.
    Down,
    /// Towards the root.
    Up,
}

impl Direction {
    /// One word, as people say it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Down => "down",
            Direction::Up => "up",
        }
    }
}
