//! The program that wrote a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The program that wrote a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
}
