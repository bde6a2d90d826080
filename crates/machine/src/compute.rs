//! Compute kernels launched through a runtime.

use crate::HostWait;
use lanemark_compute::Workload;

/// Launches all kernels of a workload concurrently, and waits until the last of them has completed.
///
/// The inputs are on the device before the first timestamp, and the results are checked after the second. The bytes
/// of a sample are [`Workload::bytes`], accesses to memory of the device; none of them crosses a link.
#[derive(Clone, PartialEq, Debug)]
pub struct Compute {
    /// The workload.
    pub work: Workload,
    /// How the program waits for the last kernel.
    pub wait: HostWait,
}
