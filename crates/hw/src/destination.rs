//! Cache state of a copy's destination.

/// Cache state of a copy's destination.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Destination {
    /// Lines in a cache of this core: memory that is rewritten often.
    Hot,
    /// Lines in no cache: memory that another agent reads, or that was unused for long.
    Cold,
}
