//! Memory words that a kernel moves through a port.

/// How a kernel uses the words of a memory port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortWords {
    /// Word size in bytes, the unit of a transfer on a port: a power of two, at least 8.
    pub port_bytes: u32,
    /// Whether a unit with sequential accesses uses all elements of a word; if not, each access transfers its own word.
    pub keeps: bool,
}

impl PortWords {
    /// Elements of `bytes` B per word with sequential accesses: a power of two.
    #[must_use]
    pub const fn elements(&self, bytes: u32) -> u32 {
        if self.keeps && bytes < self.port_bytes { self.port_bytes / bytes } else { 1 }
    }

    /// Words for `count` elements accessed sequentially.
    #[must_use]
    pub const fn of(&self, count: u64, bytes: u32) -> u64 {
        count.div_ceil(self.elements(bytes) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_word_serves_all_its_elements_and_a_discarded_word_one() {
        let kept = PortWords { port_bytes: 32, keeps: true };
        assert_eq!([4, 8, 32].map(|bytes| kept.elements(bytes)), [8, 4, 1]);
        assert_eq!([0, 1, 4, 5].map(|count| kept.of(count, 8)), [0, 1, 1, 2]);
        let discarded = PortWords { keeps: false, ..kept };
        assert_eq!((discarded.elements(8), discarded.of(5, 8)), (1, 5));
    }
}
