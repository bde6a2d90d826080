//! Advanced Error Reporting (AER).

use crate::{Seen, Why};

/// Advanced Error Reporting of a function: counters of the kernel and status bits of the device.
#[derive(Clone, PartialEq, Debug)]
pub struct Aer {
    /// Correctable errors since boot or hot plug, by the kernel (`aer_dev_correctable`).
    pub correctable: Seen<Vec<ErrorCount>>,
    /// Non-fatal errors: a transaction was lost (`aer_dev_nonfatal`).
    pub nonfatal: Seen<Vec<ErrorCount>>,
    /// Fatal errors: the link is unreliable (`aer_dev_fatal`).
    pub fatal: Seen<Vec<ErrorCount>>,
    /// Correctable Error Status register: bits that were not cleared.
    pub correctable_status: Seen<u32>,
    /// Uncorrectable Error Status register: bits that were not cleared.
    pub uncorrectable_status: Seen<u32>,
}

impl Aer {
    /// A value with every field unseen, for `why`.
    #[must_use]
    pub fn unseen(why: &Why) -> Aer {
        Aer {
            correctable: Seen::Unseen(why.clone()),
            nonfatal: Seen::Unseen(why.clone()),
            fatal: Seen::Unseen(why.clone()),
            correctable_status: Seen::Unseen(why.clone()),
            uncorrectable_status: Seen::Unseen(why.clone()),
        }
    }
}

/// Counter of one kind of error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ErrorCount {
    /// Name by the kernel, such as `BadTLP`; the total is `TOTAL_ERR_COR`, `TOTAL_ERR_NONFATAL` or `TOTAL_ERR_FATAL`.
    pub name: String,
    /// Number of errors.
    pub count: u64,
}
