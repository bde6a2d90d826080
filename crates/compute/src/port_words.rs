//! What of a memory's words a kernel has to move.

/// How a kernel uses the words of a port: what moves at a time, and whether all of it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortWords {
    /// Bytes of a word: what a port moves at a time; a power of two, at least 8.
    pub port_bytes: u32,
    /// Whether a unit that goes over an array in order uses all of a word; if not, each access moves a word of its own.
    pub keeps: bool,
}

impl PortWords {
    /// How many elements of so many bytes come with one word of a unit that goes over them in order: a power of two.
    #[must_use]
    pub const fn elements(&self, bytes: u32) -> u32 {
        if self.keeps && bytes < self.port_bytes { self.port_bytes / bytes } else { 1 }
    }

    /// Words for so many elements in order.
    #[must_use]
    pub const fn of(&self, count: u64, bytes: u32) -> u64 {
        count.div_ceil(self.elements(bytes) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_serves_as_many_elements_as_fit_where_it_is_kept_and_one_where_it_is_not() {
        let kept = PortWords { port_bytes: 32, keeps: true };
        assert_eq!([4, 8, 32].map(|bytes| kept.elements(bytes)), [8, 4, 1]);
        assert_eq!([0, 1, 4, 5].map(|count| kept.of(count, 8)), [0, 1, 1, 2]);
        let discarded = PortWords { keeps: false, ..kept };
        assert_eq!((discarded.elements(8), discarded.of(5, 8)), (1, 5));
    }
}
