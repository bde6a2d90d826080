//! Sparse byte storage: a generator for the initial content, and pages for the bytes written since.

use std::collections::BTreeMap;

const PAGE: u64 = 4096;
/// Bytes that are generated and copied together.
const LINE: u64 = 64;

/// Sparse storage of any size. Only written pages are allocated.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Memory {
    index: BTreeMap<u64, usize>,
    pages: Vec<Box<[u8; PAGE as usize]>>,
    last: Option<(u64, usize)>,
    /// The value combined with every byte of [`first_byte`] by exclusive or.
    first: u8,
}

/// Returns the initial value of the byte at `offset`.
#[must_use]
pub fn first_byte(offset: u64) -> u8 {
    (offset ^ (offset >> 8) ^ (offset >> 16)) as u8
}

/// Fills lines with the initial bytes from `offset` on, a multiple of 64, with an exclusive or by `flip`.
#[inline]
fn fill_lines(offset: u64, flip: u8, lines: &mut [[u8; LINE as usize]]) {
    for (line, at) in lines.iter_mut().zip((offset..).step_by(LINE as usize)) {
        // Within an aligned line only the lowest six bits of the offset differ.
        let first = first_byte(at) ^ flip;
        *line = std::array::from_fn(|place| first ^ place as u8);
    }
}

/// Fills `into` with the initial bytes from `offset` on, with an exclusive or by `flip`.
fn fill_first(offset: u64, flip: u8, into: &mut [u8]) {
    if offset.is_multiple_of(LINE) && into.len().is_multiple_of(LINE as usize) {
        return fill_lines(offset, flip, into.as_chunks_mut().0);
    }
    let until_line = (offset.wrapping_neg() % LINE) as usize;
    let (head, rest) = into.split_at_mut(until_line.min(into.len()));
    let of_lines = offset + head.len() as u64;
    let (lines, tail) = rest.as_chunks_mut::<{ LINE as usize }>();
    let of_tail = of_lines + LINE * lines.len() as u64;
    fill_lines(of_lines, flip, lines);
    for (part, from) in [(head, offset), (tail, of_tail)] {
        part.iter_mut().zip(from..).for_each(|(byte, at)| *byte = first_byte(at) ^ flip);
    }
}

/// Copies bytes of equal length; whole lines without a call.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    let (to_lines, to_rest) = to.as_chunks_mut::<{ LINE as usize }>();
    let (from_lines, from_rest) = from.as_chunks::<{ LINE as usize }>();
    to_lines.iter_mut().zip(from_lines).for_each(|(to, from)| *to = *from);
    if !to_rest.is_empty() {
        to_rest.copy_from_slice(from_rest);
    }
}

impl Memory {
    /// Creates a memory whose initial bytes are those of [`first_byte`] with an exclusive or by `first`; 0 is the default.
    #[must_use]
    pub fn holding(first: u8) -> Memory {
        Memory { first, ..Memory::default() }
    }

    #[inline]
    fn find(&mut self, number: u64) -> Option<usize> {
        if let Some((last, page)) = self.last
            && last == number
        {
            return Some(page);
        }
        let page = *self.index.get(&number)?;
        self.last = Some((number, page));
        Some(page)
    }

    #[inline]
    fn page_mut(&mut self, number: u64) -> &mut [u8; PAGE as usize] {
        let page = match self.find(number) {
            Some(page) => page,
            None => self.begin_page(number),
        };
        &mut self.pages[page]
    }

    #[cold]
    fn begin_page(&mut self, number: u64) -> usize {
        let mut fresh = Box::new([0; PAGE as usize]);
        fill_first(number * PAGE, self.first, fresh.as_mut_slice());
        self.pages.push(fresh);
        let page = self.pages.len() - 1;
        self.index.insert(number, page);
        self.last = Some((number, page));
        page
    }

    /// Writes the bytes of `data` whose bit in `mask` is set, from `offset` on.
    #[inline]
    pub fn write_masked(&mut self, offset: u64, data: &[u8; 64], mask: u64, len: usize) {
        let at = (offset % PAGE) as usize;
        if at + len > PAGE as usize {
            for place in (0..len).filter(|place| mask >> place & 1 == 1) {
                self.write(offset + place as u64, &data[place..=place]);
            }
            return;
        }
        let page = self.page_mut(offset / PAGE);
        let full = if len == 64 { u64::MAX } else { (1 << len) - 1 };
        if mask == full {
            page[at..at + len].copy_from_slice(&data[..len]);
        } else {
            for place in 0..len {
                if mask >> place & 1 == 1 {
                    page[at + place] = data[place];
                }
            }
        }
    }

    /// Writes `data` at `offset`; it may cross pages.
    #[inline]
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let place = (offset % PAGE) as usize;
        if let Some(part) = self.page_mut(offset / PAGE).get_mut(place..place + data.len()) {
            return copy(part, data);
        }
        self.write_across(offset, data);
    }

    /// Writes `data` that crosses pages.
    #[cold]
    fn write_across(&mut self, offset: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let place = (at % PAGE) as usize;
            let len = (data.len() - done).min(PAGE as usize - place);
            self.page_mut(at / PAGE)[place..place + len].copy_from_slice(&data[done..done + len]);
            done += len;
        }
    }

    /// Reads `into.len()` bytes from `offset` on.
    #[inline]
    pub fn read(&mut self, offset: u64, into: &mut [u8]) {
        let place = (offset % PAGE) as usize;
        if place + into.len() > PAGE as usize {
            return self.read_across(offset, into);
        }
        match self.find(offset / PAGE) {
            Some(page) => copy(into, &self.pages[page][place..place + into.len()]),
            None => fill_first(offset, self.first, into),
        }
    }

    /// Reads bytes that cross pages.
    #[cold]
    fn read_across(&mut self, offset: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let (number, place) = (at / PAGE, (at % PAGE) as usize);
            let len = (into.len() - done).min(PAGE as usize - place);
            let part = &mut into[done..done + len];
            match self.find(number) {
                Some(page) => part.copy_from_slice(&self.pages[page][place..place + len]),
                None => fill_first(at, self.first, part),
            }
            done += len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritten_bytes_are_generated_at_any_offset_and_length() {
        for (offset, flip) in [(0, 0), (1, 0x5A), (7, 1), (0xFFF9, 0), (0x1_0003, 0x5A), (255, 0), (0x3_5640, 9)] {
            for len in (0..40).chain([64, 100, 128, 190, 4000]) {
                let mut bytes = vec![0; len];
                Memory::holding(flip).read(offset, &mut bytes);
                let meant: Vec<u8> = (offset..).take(len).map(|at| first_byte(at) ^ flip).collect();
                assert_eq!(bytes, meant, "{len} B at {offset}");
            }
        }
    }

    #[test]
    fn a_write_across_pages_leaves_its_neighbours_unwritten() {
        let mut memory = Memory::default();
        memory.write(4094, &[1, 2, 3, 4]);
        let mut bytes = [0; 8];
        memory.read(4092, &mut bytes);
        assert_eq!(bytes, [first_byte(4092), first_byte(4093), 1, 2, 3, 4, first_byte(4098), first_byte(4099)]);
    }

    #[test]
    fn a_masked_write_may_cross_a_page() {
        let mut memory = Memory::default();
        memory.write_masked(4090, &[9; 64], 0b1010_0000_0001, 12);
        let mut bytes = [0; 12];
        memory.read(4090, &mut bytes);
        let meant: [u8; 12] =
            std::array::from_fn(|place| if [0, 9, 11].contains(&place) { 9 } else { first_byte(4090 + place as u64) });
        assert_eq!(bytes, meant);
    }

    #[test]
    fn only_enabled_bytes_are_written() {
        let mut memory = Memory::default();
        memory.write_masked(64, &[9; 64], 0b101, 4);
        let mut bytes = [0; 4];
        memory.read(64, &mut bytes);
        assert_eq!(bytes, [9, first_byte(65), 9, first_byte(67)]);
    }
}
