//! Data pointers of a command: SGL descriptors.
//!
//! Source: NVM Express Base Specification 2.0, 4.1.2: a descriptor has 16 B, whose last one has the type in bits 7:4 and the
//! subtype in bits 3:0; subtype 0 is an address in memory. A command holds one descriptor: of the data block, or of the first
//! segment. All other descriptors are in segments. The last descriptor of a segment describes the next segment, if any.

use super::memory::{DmaMemory, PAGE};

/// Bytes of a descriptor.
const DESCRIPTOR: u64 = 16;
/// Most descriptors of a segment, which fills a page.
const MOST: u64 = PAGE / DESCRIPTOR;

/// Types of descriptors.
mod kind {
    pub(super) const DATA_BLOCK: u64 = 0x0;
    pub(super) const SEGMENT: u64 = 0x2;
    pub(super) const LAST_SEGMENT: u64 = 0x3;
}

const fn descriptor(kind: u64, address: u64, bytes: u64) -> [u64; 2] {
    [address, bytes | kind << 60]
}

/// Bytes that are set aside for the segments of a transfer of `bytes` bytes, wherever it begins: whole pages, or a power of
/// two, so that no segment crosses a page.
pub(crate) const fn segment_bytes(bytes: u64) -> u64 {
    let blocks = bytes.div_ceil(PAGE) + 1;
    if blocks <= MOST {
        return (blocks * DESCRIPTOR).next_power_of_two();
    }
    // Each segment but the last has the descriptor of the next one.
    (1 + (blocks - MOST).div_ceil(MOST - 1)) * PAGE
}

/// The `bytes` bytes at this address of the controller as one data block, which the command itself describes.
pub(crate) const fn block(address: u64, bytes: u64) -> [u64; 2] {
    descriptor(kind::DATA_BLOCK, address, bytes)
}

/// The `bytes` bytes at this address of the controller as a data block for each page that they touch, as if the pages were scattered; the segments with
/// these descriptors are stored at `list`.
pub(crate) fn pages(memory: &impl DmaMemory, address: u64, bytes: u64, list: u64) -> [u64; 2] {
    let end = address + bytes;
    let mut blocks = Vec::new();
    let mut next = address;
    while next < end {
        let until = ((next / PAGE + 1) * PAGE).min(end);
        blocks.push(descriptor(kind::DATA_BLOCK, next, until - next));
        next = until;
    }
    let (mut segment, mut left) = (list, blocks.as_slice());
    while left.len() as u64 > MOST {
        let (here, rest) = left.split_at(MOST as usize - 1);
        let next = segment + PAGE;
        let further = self::segment(memory, next, rest.len() as u64);
        store(memory, segment, here.iter().copied().chain([further]));
        (segment, left) = (next, rest);
    }
    store(memory, segment, left.iter().copied());
    self::segment(memory, list, blocks.len() as u64)
}

/// The descriptor of the segment at `at`, when `left` data blocks are not yet described.
fn segment(memory: &impl DmaMemory, at: u64, left: u64) -> [u64; 2] {
    if left > MOST {
        descriptor(kind::SEGMENT, memory.iova(at), PAGE)
    } else {
        descriptor(kind::LAST_SEGMENT, memory.iova(at), left * DESCRIPTOR)
    }
}

fn store(memory: &impl DmaMemory, at: u64, descriptors: impl Iterator<Item = [u64; 2]>) {
    for (place, word) in (at..).step_by(8).zip(descriptors.flatten()) {
        memory.store(place, word);
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::FakeMemory;
    use super::*;

    /// The descriptors from `at` on: type, offset in the memory, bytes.
    fn stored(memory: &FakeMemory, at: u64, count: u64) -> Vec<(u64, u64, u64)> {
        let read = |nth: u64| parts([memory.load(at + 16 * nth), memory.load(at + 16 * nth + 8)]);
        (0..count).map(read).collect()
    }

    fn parts([address, second]: [u64; 2]) -> (u64, u64, u64) {
        (second >> 60, address - FakeMemory::IOVA, second & 0xffff_ffff)
    }

    #[test]
    fn one_block_needs_no_list_and_scattered_pages_have_one() {
        let memory = FakeMemory::new(8 * PAGE);
        assert_eq!(parts(block(memory.iova(512), 3 * PAGE)), (0, 512, 3 * PAGE));
        let list = 7 * PAGE;
        assert_eq!(parts(pages(&memory, memory.iova(512), 2 * PAGE, list)), (3, list, 48));
        assert_eq!(stored(&memory, list, 3), [(0, 512, PAGE - 512), (0, PAGE, PAGE), (0, 2 * PAGE, 512)]);
    }

    #[test]
    fn a_segment_has_a_page_of_descriptors_and_one_more_needs_another_segment() {
        let list = 520 * PAGE;
        let memory = FakeMemory::new(list + 4 * PAGE);
        assert_eq!(parts(pages(&memory, memory.iova(0), 256 * PAGE, list)), (3, list, PAGE));
        assert_eq!(parts(pages(&memory, memory.iova(0), 257 * PAGE, list)), (2, list, PAGE));
        assert_eq!(stored(&memory, list + 254 * 16, 2), [(0, 254 * PAGE, PAGE), (3, list + PAGE, 32)]);
        assert_eq!(stored(&memory, list + PAGE, 2), [(0, 255 * PAGE, PAGE), (0, 256 * PAGE, PAGE)]);
        // 512 pages and a part of one: 255 + 255 + 3 descriptors.
        assert_eq!(parts(pages(&memory, memory.iova(512), 512 * PAGE, list)), (2, list, PAGE));
        assert_eq!(stored(&memory, list + 255 * 16, 1), [(2, list + PAGE, PAGE)]);
        assert_eq!(stored(&memory, list + PAGE + 255 * 16, 1), [(3, list + 2 * PAGE, 48)]);
    }

    #[test]
    fn the_memory_of_segments_suffices_wherever_a_transfer_begins() {
        assert_eq!([512, PAGE, 3 * PAGE].map(segment_bytes), [32, 32, 64]);
        assert_eq!([255, 256, 510, 511].map(|pages| segment_bytes(pages * PAGE)), [PAGE, 2 * PAGE, 2 * PAGE, 3 * PAGE]);
    }
}
