//! Placement of threads on cores.

/// Placement of the threads of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Placement {
    /// The calling thread is pinned to [`QueueWork::core`](crate::QueueWork::core).
    #[default]
    Pinned,
    /// The scheduler places and migrates threads; the core is ignored.
    Unpinned,
}
