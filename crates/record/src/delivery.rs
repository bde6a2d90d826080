//! How it is known that what was stored had arrived.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the end of a transfer to a device is known, where the target cannot see the device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// What showed it.
    pub known_by: KnownBy,
    /// The median time of that load alone, which is inside every time to delivery and not subtracted: such a time is an
    /// upper bound, and such a rate a lower one.
    pub read_round_trip_ns: Option<f64>,
}

/// What showed that bytes had arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// A load from where was stored came back; it cannot pass posted writes.
    ReadBack,
    /// Nothing: the place may not be loaded, so that there is a time of issue only.
    Nothing,
}
