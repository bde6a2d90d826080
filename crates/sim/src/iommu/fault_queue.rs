//! What an IOMMU keeps of the requests that it refused.
//!
//! Ports: [`FaultQueue::record`] takes one, [`FaultQueue::take`] gives the oldest to software. When all entries are full, further ones are
//! counted and not kept, as a set overflow bit tells software.
//!
//! Source: Intel Virtualization Technology for Directed I/O, section 7.3.1 (primary fault logging).

use lanemark_units::{Iova, Ticks};
use std::collections::VecDeque;
use std::fmt;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultReason {
    /// No page is mapped there.
    NotMapped,
    /// The page may not be read.
    NotReadable,
    /// The page may not be written.
    NotWritable,
    /// It came translated, and its requester has no ATS.
    NotEnabled,
}

impl fmt::Display for FaultReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultReason::NotMapped => "no page is mapped there",
            FaultReason::NotReadable => "the page may be written, and not read",
            FaultReason::NotWritable => "the page may be read, and not written",
            FaultReason::NotEnabled => "it came translated, and the device has no ATS",
        })
    }
}

/// A request that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationFault {
    /// Who asked, as requesters are numbered on the board.
    pub requester: u16,
    /// The address it named: of its first DW.
    pub at: Iova,
    /// Why it was refused.
    pub reason: FaultReason,
    /// When.
    pub when: Ticks,
}

/// Everything that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultQueue {
    entries: usize,
    faults: VecDeque<TranslationFault>,
    overflowed: u64,
}

impl FaultQueue {
    /// An empty one, of so many entries.
    #[must_use]
    pub const fn new(entries: usize) -> FaultQueue {
        FaultQueue { entries, faults: VecDeque::new(), overflowed: 0 }
    }

    /// Keeps a fault, or counts it.
    pub fn record(&mut self, fault: TranslationFault) {
        if self.faults.len() < self.entries {
            self.faults.push_back(fault);
        } else {
            self.overflowed += 1;
        }
    }

    /// The oldest that nobody has taken.
    pub fn take(&mut self) -> Option<TranslationFault> {
        self.faults.pop_front()
    }

    /// Those that nobody has taken, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &TranslationFault> {
        self.faults.iter()
    }

    /// How many found no entry.
    #[must_use]
    pub const fn overflowed(&self) -> u64 {
        self.overflowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_faults_are_kept_as_there_are_entries_and_the_others_are_counted() {
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
