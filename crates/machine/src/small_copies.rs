//! Copies of many pieces by a runtime.

use crate::{CopyBy, Verb};

/// Pieces of equal size, copied between page-locked host memory and a device through the queue of a runtime.
///
/// The program continues when all pieces have arrived; a sample begins with its first call. The pieces are apart from
/// each other in host memory, so that no method can copy them as one.
///
/// ```
/// use lanemark_machine::{CopyBy, SmallCopies, Verb};
/// let copies = SmallCopies { verb: Verb::Store, bytes: 100, count: 3, by: CopyBy::Loop };
/// assert_eq!((copies.distance_bytes(), copies.memory_bytes(), copies.bytes_in_all()), (256, 768, 300));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SmallCopies {
    /// Direction as seen by the program: `Store` copies to the device, `Load` from it.
    pub verb: Verb,
    /// Bytes of one piece; at least 1.
    pub bytes: u64,
    /// Number of pieces; at least 1.
    pub count: u32,
    /// The way the pieces are copied.
    pub by: CopyBy,
}

impl SmallCopies {
    /// Maximum number of pieces: as many places of 8 B as fit in the parameters of a CUDA kernel, which are 4 KiB, with
    /// 96 B for the others.
    pub const MOST_COPIES: u32 = 500;
    /// Maximum number of bytes of host memory with all pieces.
    pub const MOST_BYTES: u64 = 256 << 20;

    /// Bytes from the start of a piece to that of the next one in host memory: a power of two, with a gap at least as
    /// long as a piece.
    #[must_use]
    pub fn distance_bytes(&self) -> u64 {
        self.bytes.saturating_mul(2).checked_next_power_of_two().unwrap_or(u64::MAX).max(128)
    }

    /// Bytes of host memory from the start of the first piece to the end of the last gap.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.distance_bytes().saturating_mul(self.count.into())
    }

    /// Bytes of all pieces.
    #[must_use]
    pub fn bytes_in_all(&self) -> u64 {
        self.bytes.saturating_mul(self.count.into())
    }
}
