//! The fault queue of an IOMMU: records of refused requests.
//!
//! Ports: [`FaultQueue::record`] adds a record, [`FaultQueue::take`] returns the oldest one to software. A record
//! that finds the queue full is only counted, as the overflow bit shows.
//!
//! Source: Intel Virtualization Technology for Directed I/O, section 7.3.1 (primary fault logging).

use lanemark_units::{Iova, Ticks};
use std::collections::VecDeque;
use std::fmt;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultReason {
    /// The page is not mapped.
    NotMapped,
    /// The page is not readable.
    NotReadable,
    /// The page is not writable.
    NotWritable,
    /// A translated request of a requester without ATS.
    NotEnabled,
}

impl fmt::Display for FaultReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultReason::NotMapped => "the page is not mapped",
            FaultReason::NotReadable => "the page is mapped for writes only",
            FaultReason::NotWritable => "the page is mapped for reads only",
            FaultReason::NotEnabled => "the request is translated, but the device has no ATS",
        })
    }
}

/// A refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationFault {
    /// Requester ID, as numbered on the board.
    pub requester: u16,
    /// Untranslated address of its first DW.
    pub at: Iova,
    /// The reason.
    pub reason: FaultReason,
    /// Time of the fault.
    pub when: Ticks,
}

/// State of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultQueue {
    entries: usize,
    faults: VecDeque<TranslationFault>,
    overflowed: u64,
}

impl FaultQueue {
    /// Creates an empty queue with `entries` entries.
    #[must_use]
    pub const fn new(entries: usize) -> FaultQueue {
        FaultQueue { entries, faults: VecDeque::new(), overflowed: 0 }
    }

    /// Records a fault, or counts it if the queue is full.
    pub fn record(&mut self, fault: TranslationFault) {
        if self.faults.len() < self.entries {
            self.faults.push_back(fault);
        } else {
            self.overflowed += 1;
        }
    }

    /// Removes and returns the oldest fault.
    pub fn take(&mut self) -> Option<TranslationFault> {
        self.faults.pop_front()
    }

    /// Iterates over the recorded faults, the oldest one first.
    pub fn iter(&self) -> impl Iterator<Item = &TranslationFault> {
        self.faults.iter()
    }

    /// Returns the number of faults that found the queue full.
    #[must_use]
    pub const fn overflowed(&self) -> u64 {
        self.overflowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_beyond_the_capacity_are_counted_only() {
        let fault =
            |at| TranslationFault { requester: 1, at: Iova(at), reason: FaultReason::NotMapped, when: Ticks(at) };
        let mut queue = FaultQueue::new(2);
        (1..=4).for_each(|at| queue.record(fault(at)));
        assert_eq!((queue.take(), queue.overflowed()), (Some(fault(1)), 2));
        queue.record(fault(5));
        assert_eq!(queue.iter().copied().collect::<Vec<_>>(), [fault(2), fault(5)]);
        assert_eq!(queue.overflowed(), 2);
    }
}
