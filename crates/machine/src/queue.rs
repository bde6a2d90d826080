//! Requests to the queue of a runtime.

use crate::{Compute, Launch, Placement, RuntimeCopy, SmallCopies};

/// A request that a thread makes of the queue of a runtime in each iteration, and waits for.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueWork {
    /// Core of the calling thread, counted from 0.
    pub core: u32,
    /// Whether the calling thread is pinned to that core.
    pub placement: Placement,
    /// The request.
    pub request: QueueRequest,
}

/// A request to the queue of a runtime.
#[derive(Clone, PartialEq, Debug)]
pub enum QueueRequest {
    /// Launches of empty kernels.
    Launch(Launch),
    /// A copy between host and device.
    Copy(RuntimeCopy),
    /// Copies of many pieces, with one wait.
    SmallCopies(SmallCopies),
    /// Launches of kernels that compute.
    Compute(Compute),
}

impl QueueRequest {
    /// Bytes moved by one request.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            QueueRequest::Launch(_) => 0,
            QueueRequest::Copy(copy) => copy.bytes,
            QueueRequest::SmallCopies(copies) => copies.bytes_in_all(),
            QueueRequest::Compute(compute) => compute.work.bytes(),
        }
    }
}
