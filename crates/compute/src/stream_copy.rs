//! STREAM COPY: `to[i] = from[i]`.

use crate::PortWords;

/// Copies 8 B words, `to[i] = from[i]`, where both arrays are in the same port of a memory; a kernel for each port, all at once.
///
/// It moves twice as many bytes as an array has, one load and one store for each word, as STREAM counts them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamCopy {
    /// The first port, counted from 0.
    pub first_port: u32,
    /// How many ports, from that one on; at least 1.
    pub ports: u32,
    /// Bytes of words that are copied within each port; a multiple of 8.
    pub bytes_per_port: u64,
    /// From one word to the next, in bytes; a multiple of 8, at least 8, which is one behind the other.
    pub stride_bytes: u64,
    /// Words that a kernel loads at once, and stores at once; 1 is a plain loop.
    pub vector_words: u32,
}

impl StreamCopy {
    /// Bytes of a word.
    pub const WORD_BYTES: u64 = 8;
    /// The most that is copied, over all ports.
    pub const MOST_BYTES: u64 = 4 << 30;
    /// The most that is copied within one of them.
    pub const MOST_PORT_BYTES: u64 = 512 << 20;

    /// Bytes loaded and stored, over all ports.
    ///
    /// ```
    /// use lanemark_compute::StreamCopy;
    /// let copy = StreamCopy { first_port: 0, ports: 32, bytes_per_port: 1 << 20, stride_bytes: 8, vector_words: 4 };
    /// assert_eq!(copy.bytes(), 64 << 20);
    /// ```
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes_per_port.saturating_mul(2).saturating_mul(self.ports as u64)
    }

    /// The most that may be copied within each of so many ports.
    ///
    /// ```
    /// use lanemark_compute::StreamCopy;
    /// assert_eq!([1, 8, 32].map(StreamCopy::most_bytes_per_port), [512 << 20, 512 << 20, 128 << 20]);
    /// ```
    #[must_use]
    pub fn most_bytes_per_port(ports: u32) -> u64 {
        Self::MOST_PORT_BYTES.min(Self::MOST_BYTES / u64::from(ports.max(1)))
    }

    /// Why it is no copy; `None` if it is one.
    #[must_use]
    pub const fn nonsense(&self) -> Option<&'static str> {
        if self.ports == 0 || self.bytes_per_port == 0 || self.vector_words == 0 {
            return Some("it copies nothing: it takes a port, a word of 8 B and a word at once at the least");
        }
        if !self.bytes_per_port.is_multiple_of(Self::WORD_BYTES) || !self.stride_bytes.is_multiple_of(Self::WORD_BYTES)
        {
            return Some("its words have 8 B: their bytes and the stride must be multiples of that");
        }
        if self.stride_bytes == 0 {
            return Some("all its words are in one place: the stride must be 8 B at the least");
        }
        None
    }

    /// Words of 8 B that are copied within each port.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.bytes_per_port / Self::WORD_BYTES
    }

    /// Steps of each kernel's loop.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.count().div_ceil(self.vector_words as u64)
    }

    /// Bytes from the first word of an array to behind the last.
    #[must_use]
    pub const fn span_bytes(&self) -> u64 {
        self.count().saturating_sub(1).saturating_mul(self.stride_bytes).saturating_add(Self::WORD_BYTES)
    }

    /// Words of a port that the loads of this step take, and its stores: each once, and where they are kept, not the one that the step
    /// before has left.
    #[must_use]
    pub fn step_words(&self, step: u64, words: PortWords) -> u64 {
        let (bytes, vector) = (u64::from(words.port_bytes), u64::from(self.vector_words));
        let first = step * vector;
        let last = (first + vector).min(self.count()) - 1;
        if self.stride_bytes >= bytes {
            return last - first + 1;
        }
        let place = |nth: u64| nth * self.stride_bytes / bytes;
        let touched = place(last) - place(first) + 1;
        let has = words.keeps && first > 0 && place(first - 1) == place(first);
        touched - u64::from(has)
    }

    /// The same of all steps of one kernel.
    #[must_use]
    pub fn words(&self, words: PortWords) -> u64 {
        (0..self.steps()).map(|step| self.step_words(step, words)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: StreamCopy =
        StreamCopy { first_port: 0, ports: 1, bytes_per_port: 1024, stride_bytes: 8, vector_words: 1 };
    const DISCARDED: PortWords = PortWords { port_bytes: 32, keeps: false };

    #[test]
    fn a_plain_loop_takes_four_times_the_words_of_vectors_unless_words_are_kept() {
        assert_eq!(COPY.words(DISCARDED), 128);
        assert_eq!(StreamCopy { vector_words: 4, ..COPY }.words(DISCARDED), 32);
        assert_eq!(COPY.words(PortWords { keeps: true, ..DISCARDED }), 32);
        assert_eq!(StreamCopy { vector_words: 8, ..COPY }.words(DISCARDED), 32);
    }

    #[test]
    fn words_farther_apart_than_a_port_is_wide_are_each_one_of_it() {
        let strided = |stride_bytes, keeps| {
            let copy = StreamCopy { stride_bytes, vector_words: 4, ..COPY };
            copy.words(PortWords { keeps, ..DISCARDED })
        };
        assert_eq!([32, 64, 4096].map(|stride| strided(stride, true)), [128; 3]);
        assert_eq!(strided(16, true), 64);
        // Steps of 72 B begin inside a word of a port that the step before may have left.
        let uneven = StreamCopy { stride_bytes: 24, vector_words: 3, ..COPY };
        assert_eq!(uneven.words(PortWords { keeps: true, ..DISCARDED }), 96);
        assert!(uneven.words(DISCARDED) > 96);
    }

    #[test]
    fn the_last_step_is_as_long_as_what_is_left() {
        let copy = StreamCopy { bytes_per_port: 8 * 9, vector_words: 8, ..COPY };
        assert_eq!((copy.steps(), copy.step_words(0, DISCARDED), copy.step_words(1, DISCARDED)), (2, 2, 1));
        assert_eq!(copy.span_bytes(), 72);
    }

    #[test]
    fn a_copy_of_nothing_or_of_parts_of_words_is_refused() {
        assert_eq!(COPY.nonsense(), None);
        assert!(StreamCopy { bytes_per_port: 12, ..COPY }.nonsense().is_some());
        assert!(StreamCopy { stride_bytes: 0, ..COPY }.nonsense().is_some());
        assert!(StreamCopy { stride_bytes: 12, ..COPY }.nonsense().is_some());
        assert!(StreamCopy { vector_words: 0, ..COPY }.nonsense().is_some());
    }
}
