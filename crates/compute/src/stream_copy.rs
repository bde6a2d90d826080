//! STREAM COPY: `to[i] = from[i]`.

use crate::PortWords;

/// Copies 8 B words, `to[i] = from[i]`, with both arrays in the same memory port; one kernel per port, all concurrent.
///
/// Traffic is twice the size of an array: one load and one store per word, as STREAM counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamCopy {
    /// First port, counted from 0.
    pub first_port: u32,
    /// Number of ports, at least 1.
    pub ports: u32,
    /// Bytes copied within each port; a multiple of 8.
    pub bytes_per_port: u64,
    /// Distance between words in bytes; a multiple of 8. The minimum of 8 means contiguous.
    pub stride_bytes: u64,
    /// Words that a kernel loads and stores per step; 1 is a plain loop.
    pub vector_words: u32,
}

impl StreamCopy {
    /// Size of a word in bytes.
    pub const WORD_BYTES: u64 = 8;
    /// Maximum number of bytes copied over all ports.
    pub const MOST_BYTES: u64 = 4 << 30;
    /// Maximum number of bytes copied within one port.
    pub const MOST_PORT_BYTES: u64 = 512 << 20;

    /// Bytes loaded and stored over all ports.
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

    /// Maximum number of bytes copied within each of `ports` ports.
    ///
    /// ```
    /// use lanemark_compute::StreamCopy;
    /// assert_eq!([1, 8, 32].map(StreamCopy::most_bytes_per_port), [512 << 20, 512 << 20, 128 << 20]);
    /// ```
    #[must_use]
    pub fn most_bytes_per_port(ports: u32) -> u64 {
        Self::MOST_PORT_BYTES.min(Self::MOST_BYTES / u64::from(ports.max(1)))
    }

    /// Checks whether this copy is possible.
    ///
    /// # Errors
    /// The rule that is broken.
    pub const fn check(&self) -> Result<(), &'static str> {
        if self.ports == 0 || self.bytes_per_port == 0 || self.vector_words == 0 {
            return Err("it copies nothing: it needs at least one port, one word of 8 B and one word per step");
        }
        if !self.bytes_per_port.is_multiple_of(Self::WORD_BYTES) || !self.stride_bytes.is_multiple_of(Self::WORD_BYTES)
        {
            return Err("words have 8 B: the bytes per port and the stride must be multiples of 8");
        }
        if self.stride_bytes == 0 {
            return Err("stride 0 puts all words in one place: it must be at least 8 B");
        }
        Ok(())
    }

    /// Number of 8 B words copied within each port.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.bytes_per_port / Self::WORD_BYTES
    }

    /// Number of steps of each kernel's loop.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.count().div_ceil(self.vector_words as u64)
    }

    /// Bytes from the start of the first word of an array to the end of the last.
    #[must_use]
    pub const fn span_bytes(&self) -> u64 {
        self.count().saturating_sub(1).saturating_mul(self.stride_bytes).saturating_add(Self::WORD_BYTES)
    }

    /// Port words loaded in step `step`, which equals those stored. A word kept from the previous step is not counted
    /// again.
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

    /// Port words loaded in all steps of a kernel.
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
    fn a_plain_loop_moves_four_times_the_words_of_vectors_unless_words_are_kept() {
        assert_eq!(COPY.words(DISCARDED), 128);
        assert_eq!(StreamCopy { vector_words: 4, ..COPY }.words(DISCARDED), 32);
        assert_eq!(COPY.words(PortWords { keeps: true, ..DISCARDED }), 32);
        assert_eq!(StreamCopy { vector_words: 8, ..COPY }.words(DISCARDED), 32);
    }

    #[test]
    fn words_at_least_a_port_width_apart_take_one_port_word_each() {
        let strided = |stride_bytes, keeps| {
            let copy = StreamCopy { stride_bytes, vector_words: 4, ..COPY };
            copy.words(PortWords { keeps, ..DISCARDED })
        };
        assert_eq!([32, 64, 4096].map(|stride| strided(stride, true)), [128; 3]);
        assert_eq!(strided(16, true), 64);
        // Steps of 72 B may start inside a port word of the previous step.
        let uneven = StreamCopy { stride_bytes: 24, vector_words: 3, ..COPY };
        assert_eq!(uneven.words(PortWords { keeps: true, ..DISCARDED }), 96);
        assert!(uneven.words(DISCARDED) > 96);
    }

    #[test]
    fn the_last_step_has_the_remaining_words() {
        let copy = StreamCopy { bytes_per_port: 8 * 9, vector_words: 8, ..COPY };
        assert_eq!((copy.steps(), copy.step_words(0, DISCARDED), copy.step_words(1, DISCARDED)), (2, 2, 1));
        assert_eq!(copy.span_bytes(), 72);
    }

    #[test]
    fn an_empty_copy_and_partial_words_are_refused() {
        assert_eq!(COPY.check(), Ok(()));
        assert!(StreamCopy { bytes_per_port: 12, ..COPY }.check().is_err());
        assert!(StreamCopy { stride_bytes: 0, ..COPY }.check().is_err());
        assert!(StreamCopy { stride_bytes: 12, ..COPY }.check().is_err());
        assert!(StreamCopy { vector_words: 0, ..COPY }.check().is_err());
    }
}
