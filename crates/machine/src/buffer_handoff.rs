//! A buffer shared by a core and a device, and its cost to the core.

use crate::{Discipline, Flush, Verb};

/// A core hands a buffer over to a device, or takes over a buffer that a device has written.
///
/// The device itself is not part of the measurement. The plan contains what the core does to make its writes visible
/// to the device, or the device's writes visible to itself. Accesses are [`BufferHandoff::WIDTH_BYTES`] wide, and an
/// `MFENCE` ends each iteration.
///
/// To the device ([`Verb::Store`]), the core writes the buffer. The lines are in the state that the previous
/// iteration left: modified in the core's cache, unless that iteration flushed them.
///
/// From the device ([`Verb::Load`]), the core reads the buffer, and no cache holds a line that the device wrote. On a
/// coherent machine the device's write invalidated them. [`Discipline::Flushed`] invalidates them by software, twice:
/// before the transfer, so that no dirty line is written back over the new data, and after it, because the core may
/// have prefetched meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferHandoff {
    /// To the device ([`Verb::Store`]) or from it ([`Verb::Load`]).
    pub verb: Verb,
    /// Method that keeps the buffer coherent.
    pub discipline: Discipline,
    /// Bytes of the buffer: whole lines, line-aligned, at most [`BufferHandoff::MOST_BYTES`].
    pub bytes: u64,
}

impl BufferHandoff {
    /// Bytes of one load or store, as in kernel code, which does not save vector registers.
    pub const WIDTH_BYTES: u64 = 8;
    /// Bytes of a cache line.
    pub const LINE_BYTES: u64 = 64;
    /// Maximum buffer length: 16 MiB.
    pub const MOST_BYTES: u64 = 16 << 20;

    /// Number of lines of the buffer.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.bytes / BufferHandoff::LINE_BYTES
    }

    /// Whether no cache holds the lines at the start of an iteration, because a coherent device has written them.
    ///
    /// On a machine where no device can do so within a sample, a sample has only one such iteration.
    #[must_use]
    pub const fn finds_written_lines(&self) -> bool {
        matches!(self.verb, Verb::Load) && matches!(self.discipline, Discipline::Coherent | Discipline::Bounced)
    }

    /// Checks whether this handoff is possible.
    ///
    /// ```
    /// use lanemark_machine::{Discipline, BufferHandoff, Verb};
    /// let line = BufferHandoff { verb: Verb::Load, discipline: Discipline::Coherent, bytes: 64 };
    /// assert_eq!(line.check(), Ok(()));
    /// assert!(BufferHandoff { bytes: 65, ..line }.check().is_err());
    /// assert!(BufferHandoff { discipline: Discipline::Streaming, ..line }.check().is_err());
    /// ```
    ///
    /// # Errors
    /// The rule that is broken.
    pub const fn check(&self) -> Result<(), &'static str> {
        if self.bytes == 0 {
            return Err("nothing would be shared");
        }
        if !self.bytes.is_multiple_of(BufferHandoff::LINE_BYTES) {
            return Err("the buffer must be whole 64 B lines, because flushes affect whole lines");
        }
        if self.bytes > BufferHandoff::MOST_BYTES {
            return Err("one iteration could exceed the timeout; the maximum is 16 MiB");
        }
        match (self.verb, self.discipline) {
            (Verb::Load, Discipline::Streaming) => Err("streaming loads from WB memory are ordinary loads"),
            (Verb::Load, Discipline::Flushed(Flush::Clwb)) => {
                Err("CLWB keeps the line valid, so that reads would return stale data")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_whole_lines_up_to_the_maximum() {
        for discipline in Discipline::ALL {
            let most = BufferHandoff { verb: Verb::Store, discipline, bytes: BufferHandoff::MOST_BYTES };
            assert_eq!(most.check(), Ok(()));
            for bytes in [0, 63, 65, BufferHandoff::MOST_BYTES + 64] {
                assert!(BufferHandoff { bytes, ..most }.check().is_err(), "{discipline} {bytes}");
            }
        }
    }

    #[test]
    fn reading_what_a_device_wrote_needs_a_flush_that_invalidates() {
        let makes_sense = |discipline: &Discipline| {
            BufferHandoff { verb: Verb::Load, discipline: *discipline, bytes: 64 }.check().is_ok()
        };
        let refused: Vec<&str> = Discipline::ALL.iter().filter(|way| !makes_sense(way)).map(|way| way.name()).collect();
        assert_eq!(refused, ["flushed_by_clwb", "streaming_stores"]);
    }
}
