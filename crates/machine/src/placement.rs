//! Placement of threads on cores.

/// Placement of the threads of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Placement {
    /// Each thread is pinned to the core of its lane.
    #[default]
    Pinned,
    /// The scheduler places and migrates threads; the cores of the lanes are ignored.
    Unpinned,
}
