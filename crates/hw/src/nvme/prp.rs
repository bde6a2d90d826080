//! Data pointers of a command: PRP entries.

use super::memory::{DmaMemory, PAGE};

/// Bytes of an entry.
const ENTRY: u64 = 8;
/// Largest transfer whose list fits into one page, wherever it begins.
pub(crate) const MOST_BYTES: u64 = PAGE / ENTRY * PAGE;

/// Bytes that are set aside for the list of a transfer of `bytes` bytes: a power of two, so that no list crosses a page.
pub(crate) const fn list_bytes(bytes: u64) -> u64 {
    let entries = bytes.div_ceil(PAGE);
    let entries = if entries == 0 { 1 } else { entries };
    (entries * ENTRY).next_power_of_two()
}

/// PRP1 and PRP2 of the `bytes` bytes at this address of the controller; a list of more than one further page is stored at `list`.
///
/// Source: NVM Express Base Specification 2.0, 4.1.1: the first entry may begin within a page, all others begin at one;
/// PRP2 is 0, the second page, or the address of a list.
pub(crate) fn pointers(memory: &impl DmaMemory, address: u64, bytes: u64, list: u64) -> [u64; 2] {
    let next = (address / PAGE + 1) * PAGE;
    let further = (address + bytes).saturating_sub(next).div_ceil(PAGE);
    let second = match further {
        0 => 0,
        1 => next,
        _ => {
            for n in 0..further {
                memory.store(list + n * ENTRY, next + n * PAGE);
            }
            memory.iova(list)
        }
    };
    [address, second]
}

#[cfg(test)]
mod tests {
    use super::super::fake::FakeMemory;
    use super::*;

    #[test]
    fn one_page_two_pages_and_a_list_for_three() {
        let memory = FakeMemory::new(8 * PAGE);
        let list = 7 * PAGE;
        let of =
            |at, bytes| pointers(&memory, memory.iova(at), bytes, list).map(|iova| iova.wrapping_sub(FakeMemory::IOVA));
        assert_eq!(of(0, PAGE), [0, 0_u64.wrapping_sub(FakeMemory::IOVA)]);
        assert_eq!(of(512, PAGE), [512, PAGE]);
        assert_eq!(of(0, PAGE + 512), [0, PAGE]);
        assert_eq!(of(512, 2 * PAGE), [512, list]);
        assert_eq!([memory.load(list), memory.load(list + 8)].map(|iova| iova - FakeMemory::IOVA), [PAGE, 2 * PAGE]);
    }

    #[test]
    fn a_list_of_the_largest_transfer_fills_a_page() {
        assert_eq!(MOST_BYTES, 2 << 20);
        assert_eq!((list_bytes(512), list_bytes(3 * PAGE), list_bytes(MOST_BYTES)), (8, 32, PAGE));
    }
}
