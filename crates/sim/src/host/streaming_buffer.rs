//! Streaming-load buffers: MOVNTDQA fetches a 64 B line of WC memory once and is served from it.
//!
//! A buffer holds a line, and supplies each byte once. It is free again when every byte was supplied, or after a
//! fence. It is not a coherent cache: a second load of the same bytes fetches the line again.

/// A streaming buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buffer {
    /// Bus address of its line; `None` if it is free.
    line: Option<u64>,
    /// Mask of the bytes not yet supplied.
    left: u64,
    /// Whether the line has arrived.
    filled: bool,
    data: [u8; 64],
    opened: u64,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Hit in this buffer, whose line has arrived or is being fetched.
    Buffered(usize),
    /// Miss; this buffer is free to fetch the line.
    Fetch(usize),
    /// Miss; every buffer is fetching a line.
    Wait,
}

/// The streaming buffers of a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamingBuffers {
    buffers: Vec<Buffer>,
    opened: u64,
}

impl StreamingBuffers {
    /// Creates `count` free buffers.
    #[must_use]
    pub fn new(count: usize) -> StreamingBuffers {
        let free = Buffer { line: None, left: 0, filled: false, data: [0; 64], opened: 0 };
        StreamingBuffers { buffers: vec![free; count], opened: 0 }
    }

    /// Looks up the bytes `mask` of `line`.
    pub fn find(&mut self, line: u64, mask: u64) -> Found {
        if let Some(place) = self.buffers.iter().position(|buffer| buffer.line == Some(line)) {
            if self.buffers[place].left & mask == mask {
                return Found::Buffered(place);
            }
            // Some of the bytes were supplied before: fetch the line again, into the same buffer.
            return if self.buffers[place].filled { Found::Fetch(place) } else { Found::Wait };
        }
        if let Some(place) = self.buffers.iter().position(|buffer| buffer.line.is_none()) {
            return Found::Fetch(place);
        }
        let filled = self.buffers.iter().enumerate().filter(|(_, buffer)| buffer.filled);
        filled.min_by_key(|(_, buffer)| buffer.opened).map_or(Found::Wait, |(place, _)| Found::Fetch(place))
    }

    /// Starts the fetch of `line` in buffer `place`.
    pub fn fetch(&mut self, place: usize, line: u64) {
        self.opened += 1;
        self.buffers[place] =
            Buffer { line: Some(line), left: u64::MAX, filled: false, data: [0; 64], opened: self.opened };
    }

    /// Completes the fetch of buffer `place`.
    pub fn fill(&mut self, place: usize, data: &[u8; 64]) {
        let buffer = &mut self.buffers[place];
        buffer.data = *data;
        buffer.filled = true;
        self.free_if_used_up(place);
    }

    /// Supplies the bytes `mask` of buffer `place`, if its line has arrived.
    pub fn give(&mut self, place: usize, mask: u64) -> Option<[u8; 64]> {
        let buffer = &mut self.buffers[place];
        buffer.left &= !mask;
        let data = buffer.filled.then_some(buffer.data);
        self.free_if_used_up(place);
        data
    }

    fn free_if_used_up(&mut self, place: usize) {
        let buffer = &mut self.buffers[place];
        if buffer.filled && buffer.left == 0 {
            buffer.line = None;
        }
    }

    /// Drops the buffer of `line` on a store, because a core sees its own stores.
    #[inline]
    pub fn drop_line(&mut self, line: u64) {
        if self.opened > 0 {
            self.buffers
                .iter_mut()
                .filter(|buffer| buffer.filled && buffer.line == Some(line))
                .for_each(|b| b.line = None);
        }
    }

    /// Frees the buffers whose lines have arrived, on a fence.
    pub fn empty(&mut self) {
        for buffer in &mut self.buffers {
            if buffer.filled {
                buffer.line = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fetch_serves_four_loads_of_16_bytes() {
        let mut buffers = StreamingBuffers::new(2);
        assert_eq!(buffers.find(0, 0xFFFF), Found::Fetch(0));
        buffers.fetch(0, 0);
        for quarter in 0..4 {
            assert_eq!(buffers.find(0, 0xFFFF << (quarter * 16)), Found::Buffered(0));
            buffers.give(0, 0xFFFF << (quarter * 16));
        }
        buffers.fill(0, &[7; 64]);
        assert_eq!(buffers.find(0, 0xFFFF), Found::Fetch(0));
    }

    #[test]
    fn a_line_beyond_the_buffers_waits() {
        let mut buffers = StreamingBuffers::new(2);
        buffers.fetch(0, 0);
        assert_eq!(buffers.find(64, 1), Found::Fetch(1));
        buffers.fetch(1, 64);
        assert_eq!(buffers.find(128, 1), Found::Wait);
        buffers.fill(0, &[0; 64]);
        assert_eq!(buffers.find(128, 1), Found::Fetch(0));
    }

    #[test]
    fn a_fence_empties_the_buffers_whose_lines_have_arrived() {
        let mut buffers = StreamingBuffers::new(1);
        buffers.fetch(0, 0);
        buffers.fill(0, &[1; 64]);
        assert_eq!(buffers.find(0, 1), Found::Buffered(0));
        buffers.empty();
        assert_eq!(buffers.find(0, 1), Found::Fetch(0));
    }
}
