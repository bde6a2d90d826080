//! Advanced error reporting: what has gone wrong at a function.

use crate::{Seen, Why};

/// Advanced error reporting of a function: the kernel's counters and the device's status bits.
#[derive(Clone, PartialEq, Debug)]
pub struct Aer {
    /// Errors the hardware has mended, since the kernel saw the function (`aer_dev_correctable`).
    pub correctable: Seen<Vec<ErrorCount>>,
    /// Errors that lost a transaction (`aer_dev_nonfatal`).
    pub nonfatal: Seen<Vec<ErrorCount>>,
    /// Errors that lost the link (`aer_dev_fatal`).
    pub fatal: Seen<Vec<ErrorCount>>,
    /// Correctable Error Status: bits that nobody has cleared.
    pub correctable_status: Seen<u32>,
    /// Uncorrectable Error Status: bits that nobody has cleared.
    pub uncorrectable_status: Seen<u32>,
}

impl Aer {
    /// One of which nothing is seen yet.
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

/// How often one kind of error occurred.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ErrorCount {
    /// Its name as the kernel writes it, such as `BadTLP`; the sum is `TOTAL_ERR_COR` and the like.
    pub name: String,
    /// How often.
    pub count: u64,
}
