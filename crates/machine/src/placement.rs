//! Where the thread of a lane runs.

/// Where the threads of a plan run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Placement {
    /// Each is held on the core of its lane.
    #[default]
    Pinned,
    /// The system puts them where it likes and moves them when it likes, as those of most programs; the cores of lanes are not looked at.
    Unpinned,
}
