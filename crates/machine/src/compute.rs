//! Kernels that a runtime is given to compute something.

use crate::HostWait;
use lanemark_compute::Work;

/// Launches all kernels of a work at once, and waits until the last of them is over.
///
/// Its inputs are on the device before the first timestamp, and what came out is looked at after the second: the bytes of a sample are those
/// of [`Work::bytes`], of memory of the device, and none of them crosses a link.
#[derive(Clone, PartialEq, Debug)]
pub struct Compute {
    /// What they do.
    pub work: Work,
    /// By what it is known that the last of them is over.
    pub told: HostWait,
}
