//! The x86 memory types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An x86 memory type of a page, as determined by MTRR and PAT.
///
/// | type | reads | stores | speculation |
/// | --- | --- | --- | --- |
/// | UC | uncached, one at a time, exact width | one at a time, exact width | never |
/// | WC | uncached | combined in 64 B buffers, weakly ordered | reads may be speculative |
/// | WT | cached | to the device, and to the cached line | reads may be speculative |
/// | WP | cached | to the device; the cached line is invalidated | reads may be speculative |
/// | WB | cached | cached | yes |
///
/// Source: Intel SDM volume 3, section "Methods of Caching Available"; AMD64 APM volume 2, section "Memory Types".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryType {
    /// Strong uncacheable.
    Uc,
    /// Write combining.
    Wc,
    /// Write through.
    Wt,
    /// Write protected.
    Wp,
    /// Write back: ordinary memory.
    Wb,
}

impl MemoryType {
    /// Every memory type, in the order of messages and help texts.
    pub const ALL: [MemoryType; 5] = [MemoryType::Uc, MemoryType::Wc, MemoryType::Wt, MemoryType::Wp, MemoryType::Wb];

    /// Name in files and on the command line: `uc`, `wc`, `wt`, `wp`, `wb`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MemoryType::Uc => "uc",
            MemoryType::Wc => "wc",
            MemoryType::Wt => "wt",
            MemoryType::Wp => "wp",
            MemoryType::Wb => "wb",
        }
    }

    /// Whether a load may hit in a cache.
    #[must_use]
    pub const fn caches_loads(self) -> bool {
        matches!(self, MemoryType::Wt | MemoryType::Wp | MemoryType::Wb)
    }
}

impl fmt::Display for MemoryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().to_uppercase())
    }
}

/// A name that is not a memory type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a memory type: use uc, wc, wt, wp or wb")]
pub struct UnknownMemoryType(pub String);

impl FromStr for MemoryType {
    type Err = UnknownMemoryType;

    fn from_str(text: &str) -> Result<MemoryType, UnknownMemoryType> {
        let wanted = text.to_ascii_lowercase();
        MemoryType::ALL.into_iter().find(|kind| kind.name() == wanted).ok_or_else(|| UnknownMemoryType(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_memory_type_name_parses_back_and_others_are_refused() {
        for kind in MemoryType::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("uc-".parse::<MemoryType>().is_err());
    }
}
