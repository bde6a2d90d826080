//! Changes that a slider makes: a key of the platform, or a parameter of the methods.

use crate::error::LiveError;
use lanemark_bench::Case;
use lanemark_method::Method;
use lanemark_units::MemoryType;
use serde::{Deserialize, Serialize};

/// A changed key and its value, as text. In JSON it is a list of two texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change(pub String, pub String);

/// Name of the change of the memory type of all loads and stores.
pub const MEMORY_TYPE: &str = "method.memory_type";
/// Name of the change of the number of outstanding transfers of all DMA.
pub const OUTSTANDING: &str = "method.outstanding";

/// Changes of methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfMethods {
    memory_type: Option<MemoryType>,
    outstanding: Option<u32>,
}

impl OfMethods {
    /// The changes of methods, and those of keys.
    pub(crate) fn split(changes: &[Change]) -> Result<(OfMethods, Vec<&Change>), LiveError> {
        let (mut methods, mut keys) = (OfMethods::default(), Vec::new());
        for change in changes {
            let Change(key, value) = change;
            let refused = |takes| LiveError::Method { key: key.clone(), value: value.clone(), takes };
            match &**key {
                MEMORY_TYPE => {
                    let kind = value.parse().map_err(|_| refused("uc, wc, wt, wp or wb"))?;
                    methods.memory_type = Some(kind);
                }
                OUTSTANDING => {
                    let count = value.parse().ok().filter(|count| *count > 0);
                    methods.outstanding = Some(count.ok_or_else(|| refused("a whole number from 1"))?);
                }
                _ => keys.push(change),
            }
        }
        Ok((methods, keys))
    }

    /// The case with the changed method.
    pub(crate) fn apply(self, case: &mut Case) {
        match &mut case.method {
            Method::Core(core) => core.memory_type = self.memory_type.unwrap_or(core.memory_type),
            Method::Dma { outstanding, .. } => *outstanding = self.outstanding.or(*outstanding),
            Method::DmaUnderLoad { outstanding, .. } => *outstanding = self.outstanding.unwrap_or(*outstanding),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_no_method_takes_is_refused_with_those_that_it_does() {
        let one = |key: &str, value: &str| OfMethods::split(&[Change(key.to_owned(), value.to_owned())]).map(|it| it.0);
        assert_eq!(one(OUTSTANDING, "1").unwrap().outstanding, Some(1));
        assert!(one(OUTSTANDING, "0").unwrap_err().to_string().ends_with("a whole number from 1"));
        assert_eq!(one(MEMORY_TYPE, "wc").unwrap().memory_type, Some(MemoryType::Wc));
        assert!(one(MEMORY_TYPE, "wx").unwrap_err().to_string().contains("wx is not possible"));
        assert_eq!(one("dma.tags", "8").unwrap(), OfMethods::default());
    }
}
