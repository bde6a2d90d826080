//! A card that is compiled from its source.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A design in a shared library, and the host and link that are simulated for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// Path of the library, as given.
    pub library: String,
    /// Length of the library, in bytes.
    pub library_bytes: u64,
    /// XXH3 of the library, 128 bits in hexadecimal. With the same one, the library file is the same; the device file, and
    /// libraries that it loads, are not included.
    pub library_xxh3: String,
    /// Bytes of a beat of its streams.
    pub beat_bytes: u64,
    /// Period of its clock, in nanoseconds.
    pub clock_ns: f64,
    /// The platform whose host, link and hard block are simulated, with all defaults. The design takes the place of its DMA
    /// engine, with the clock and the width of the stream that it states.
    pub platform: serde_json::Value,
}
