//! Methods for many small copies through a runtime.

use std::fmt;

/// How a runtime copies many pieces of page-locked host memory to a device, or back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CopyBy {
    /// An asynchronous copy for each piece, and one wait (`cuMemcpyHtoDAsync`).
    Loop,
    /// One call with the list of all pieces (`cuMemcpyBatchAsync`).
    Batch,
    /// A core packs the pieces into one buffer, the runtime copies it, and a kernel distributes the pieces; from the
    /// device, a kernel gathers them, and a core unpacks them.
    Packed,
    /// A kernel that loads the pieces from host memory, or stores them there, over the link.
    InPlace,
    /// Stores of a core through a BAR, or loads.
    Stores,
}

impl CopyBy {
    /// All methods, in the order shown to users.
    pub const ALL: [CopyBy; 5] = [CopyBy::Loop, CopyBy::Batch, CopyBy::Packed, CopyBy::InPlace, CopyBy::Stores];

    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CopyBy::Loop => "loop",
            CopyBy::Batch => "batch",
            CopyBy::Packed => "packed",
            CopyBy::InPlace => "in_place",
            CopyBy::Stores => "stores",
        }
    }

    /// Description in a few words.
    ///
    /// ```
    /// assert_eq!(lanemark_method::CopyBy::InPlace.in_words(), "a kernel in place");
    /// ```
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            CopyBy::Loop => "a loop of copies",
            CopyBy::Batch => "one batch call",
            CopyBy::Packed => "one packed copy and a kernel",
            CopyBy::InPlace => "a kernel in place",
            CopyBy::Stores => "accesses of a core through a BAR",
        }
    }
}

impl fmt::Display for CopyBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

crate::name::from_name!(CopyBy, "a method for many copies");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_parsed_from_its_name() {
        for by in CopyBy::ALL {
            assert_eq!(by.to_string().parse::<CopyBy>().unwrap(), by);
        }
        let error = "memcpy".parse::<CopyBy>().unwrap_err().to_string();
        assert!(error.contains("loop, batch, packed, in_place, stores"), "{error}");
    }
}
