//! A buffer that a core and a device share, as the core pays for it.

use crate::{Discipline, Flush, Verb};

/// A core hands a buffer to a device, or takes one over that a device has written.
///
/// No device has a part in it: what is asked about is what the core does so that the device sees what it wrote, or that it
/// sees what the device wrote. All bytes go by [`BufferHandoff::WIDTH_BYTES`], and an `MFENCE` ends each pass.
///
/// To a device ([`Verb::Store`]) the core writes the buffer, finding its lines where the pass before left them: in its
/// cache, written, unless that pass flushed them out. From a device ([`Verb::Load`]) it reads the buffer, and no cache has a
/// line of what the device wrote: a coherent machine saw to that when the device wrote it, and [`Discipline::Flushed`] does
/// it by itself, once before the transfer, so that nothing old is written over it, and once behind it, because a processor
/// may have prefetched meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferHandoff {
    /// To the device ([`Verb::Store`]) or from it.
    pub verb: Verb,
    /// What the core does for it.
    pub discipline: Discipline,
    /// Bytes of the buffer, which starts with a line: whole lines, up to [`BufferHandoff::MOST_BYTES`].
    pub bytes: u64,
}

impl BufferHandoff {
    /// Bytes of one load or store: as many as code of a kernel moves that saves no vector registers.
    pub const WIDTH_BYTES: u64 = 8;
    /// Bytes of a line.
    pub const LINE_BYTES: u64 = 64;
    /// The longest buffer: 16 MiB.
    pub const MOST_BYTES: u64 = 16 << 20;

    /// Lines of the buffer.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.bytes / BufferHandoff::LINE_BYTES
    }

    /// Whether no cache has the lines at the beginning of a pass, because a device that caches listen to has written them.
    /// Where nobody can let a device do that within a sample, such a pass is a sample's only one.
    #[must_use]
    pub const fn finds_written_lines(&self) -> bool {
        matches!(self.verb, Verb::Load) && matches!(self.discipline, Discipline::Coherent | Discipline::Bounced)
    }

    /// Why nobody can share a buffer like that; `None` if it makes sense.
    ///
    /// ```
    /// use lanemark_machine::{Discipline, BufferHandoff, Verb};
    /// let line = BufferHandoff { verb: Verb::Load, discipline: Discipline::Coherent, bytes: 64 };
    /// assert_eq!(line.nonsense(), None);
    /// assert!(BufferHandoff { bytes: 65, ..line }.nonsense().is_some());
    /// assert!(BufferHandoff { discipline: Discipline::Streaming, ..line }.nonsense().is_some());
    /// ```
    #[must_use]
    pub const fn nonsense(&self) -> Option<&'static str> {
        if self.bytes == 0 {
            return Some("nothing would be shared");
        }
        if !self.bytes.is_multiple_of(BufferHandoff::LINE_BYTES) {
            return Some(
                "a buffer that is flushed is whole lines of 64 B: what else lies in its last line would go with it",
            );
        }
        if self.bytes > BufferHandoff::MOST_BYTES {
            return Some("one pass could not be ended when the time is over; ask for at most 16 MiB");
        }
        match (self.verb, self.discipline) {
            (Verb::Load, Discipline::Streaming) => Some("streaming loads of ordinary memory are loads like any other"),
            (Verb::Load, Discipline::Flushed(Flush::Clwb)) => {
                Some("CLWB leaves the line in the cache, and reads would find what was there before")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_whole_lines_and_not_too_many() {
        for discipline in Discipline::ALL {
            let most = BufferHandoff { verb: Verb::Store, discipline, bytes: BufferHandoff::MOST_BYTES };
            assert_eq!(most.nonsense(), None);
            for bytes in [0, 63, 65, BufferHandoff::MOST_BYTES + 64] {
                assert!(BufferHandoff { bytes, ..most }.nonsense().is_some(), "{discipline} {bytes}");
            }
        }
    }

    #[test]
    fn only_what_takes_lines_out_of_the_cache_lets_a_core_see_what_a_device_wrote() {
        let makes_sense = |discipline: &Discipline| {
            BufferHandoff { verb: Verb::Load, discipline: *discipline, bytes: 64 }.nonsense().is_none()
        };
        let refused: Vec<&str> = Discipline::ALL.iter().filter(|way| !makes_sense(way)).map(|way| way.name()).collect();
        assert_eq!(refused, ["flushed_by_clwb", "streaming_stores"]);
    }
}
