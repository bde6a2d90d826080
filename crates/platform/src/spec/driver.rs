//! Keys of the driver and of the operating system below it.

use super::Kind;
use lanemark_units::Ticks;

section! {
    /// What a kernel driver costs.
    Driver ["driver"] {
        /// One call, entry to return, besides the copying.
        call_ns: Ticks = Kind::Ns(1e9), unknown 50.0 to 5000.0;
        /// Mapping a range of a BAR into a process and giving it back (mmap and munmap).
        map_ns: Ticks = Kind::Ns(1e9), default "2000" because "two system calls and the page tables of one page", unknown 500.0 to 20000.0;
        /// Width of the loads and stores it copies with.
        copy_bytes: u32 = Kind::OneOf(&[1, 2, 4, 8, 16, 32, 64]);
        /// Pinning a page of 4 KiB for a device.
        pin_page_ns: Ticks = Kind::Ns(1e6), default "100" because "a page that is there, with its reference count", unknown 10.0 to 2000.0;
        /// Unpinning a page of 4 KiB.
        unpin_page_ns: Ticks = Kind::Ns(1e6), default "50" because "half of pinning: no page table is walked", unknown 10.0 to 2000.0;
        /// Building one descriptor, besides writing it to the device.
        build_descriptor_ns: Ticks = Kind::Ns(1e6), default "20" because "an address and a length: some tens of instructions", unknown 1.0 to 2000.0;
        /// From an interrupt's message at the root complex to its handler.
        interrupt_ns: Ticks = Kind::Ns(1e9), default "1000" because "the core is told, stops what it does and enters the kernel", unknown 200.0 to 20000.0;
        /// What the handler does until it has woken the thread that waits.
        handler_ns: Ticks = Kind::Ns(1e9), default "500" because "a short handler", unknown 50.0 to 20000.0;
        /// From then until the thread runs.
        wake_ns: Ticks = Kind::Ns(1e9), default "1500" because "the scheduler and a switch of contexts on an awake core", unknown 200.0 to 50000.0;
    }
}
