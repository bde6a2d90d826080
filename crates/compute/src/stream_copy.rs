//! STREAM COPY: `to[i] = from[i]`.

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
}
