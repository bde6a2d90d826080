//! Detection of the delivery of stored data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Detection of the end of a transfer to a device that the target cannot observe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// Evidence of delivery.
    pub known_by: KnownBy,
    /// Median time of the load that detects delivery. It is included in every delivered time and
    /// not subtracted, so such a time is an upper bound, and such a rate a lower bound.
    pub read_round_trip_ns: Option<f64>,
}

/// Evidence of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// A load from the stored address completed; it cannot pass posted writes.
    ReadBack,
    /// None: the address may not be loaded, so only issue times exist.
    Nothing,
}
