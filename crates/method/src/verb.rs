//! Load or store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Direction of the data, as seen by the requester.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// From the device (or memory) to the requester.
    Load,
    /// From the requester to the device (or memory).
    Store,
}

impl Verb {
    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Verb::Load => "load",
            Verb::Store => "store",
        }
    }
}
