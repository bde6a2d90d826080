//! Bytes that a runtime moves between a program and a device.

use crate::{Allocation, HostWait, Verb};

/// A buffer of the program's copied to one of the device's, or back, by the queue of a runtime.
///
/// By [`HostWait::Finish`] the copy is asked for by a call that returns when the program may use its own buffer again: that is the *issue*
/// time of a sample. It need not have come to an end by then; a second call that returns when the queue is empty ends the *delivered* time.
/// By [`HostWait::Event`] the program asks, and waits for the event of the copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MovedByRuntime {
    /// As the program sees it: a store goes to the device, a load comes from there.
    pub verb: Verb,
    /// Bytes of one copy; at least 1.
    pub bytes: u64,
    /// By what it is known that it is over.
    pub told: HostWait,
    /// What the memory is, at either end.
    pub allocation: Allocation,
}

impl MovedByRuntime {
    /// The longest copy.
    pub const MOST_BYTES: u64 = 256 << 20;
}
