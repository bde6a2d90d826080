//! Copies between host and device by a runtime.

use crate::{Allocation, HostWait, Verb};

/// A buffer copied between program and device through the queue of a runtime.
///
/// With [`HostWait::Finish`], the copy call returns when the program may reuse its buffer; that ends the *issue* time
/// of a sample. The copy may still be in progress. A second call, which returns when the queue is empty, ends the
/// *delivered* time. With [`HostWait::Event`], the program starts the copy and waits for its event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RuntimeCopy {
    /// Direction as seen by the program: `Store` copies to the device, `Load` from it.
    pub verb: Verb,
    /// Bytes of one copy; at least 1.
    pub bytes: u64,
    /// How the program waits for the copy.
    pub wait: HostWait,
    /// Kind of memory on both sides.
    pub allocation: Allocation,
}

impl RuntimeCopy {
    /// Maximum length of a copy.
    pub const MOST_BYTES: u64 = 256 << 20;
}
