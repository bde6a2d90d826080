//! Keys of the kernel driver and the operating system.

use crate::key::Kind;
use lanemark_units::Ticks;

section! {
    /// Costs of the kernel driver.
    Driver ["driver"] {
        /// One system call into the driver, from entry to return, without copying.
        call_ns: Ticks = Kind::Ns(1e9), unknown 50.0 to 5000.0;
        /// Mapping a range of a BAR into a process and unmapping it (mmap and munmap).
        map_ns: Ticks = Kind::Ns(1e9), default "2000" because "two system calls and the page tables of one page", unknown 500.0 to 20000.0;
        /// Width of the loads and stores with which the driver copies.
        copy_bytes: u32 = Kind::OneOf(&[1, 2, 4, 8, 16, 32, 64]);
        /// Pinning one 4 KiB page for DMA.
        pin_page_ns: Ticks = Kind::Ns(1e6), default "100" because "a present page: its reference count is incremented", unknown 10.0 to 2000.0;
        /// Unpinning one 4 KiB page.
        unpin_page_ns: Ticks = Kind::Ns(1e6), default "50" because "half of pinning: no page table is walked", unknown 10.0 to 2000.0;
        /// Building one descriptor, without writing it to the device.
        build_descriptor_ns: Ticks = Kind::Ns(1e6), default "20" because "an address and a length: some tens of instructions", unknown 1.0 to 2000.0;
        /// From the arrival of an interrupt message at the root complex to the start of its handler.
        interrupt_ns: Ticks = Kind::Ns(1e9), default "1000" because "the core is interrupted and enters the kernel", unknown 200.0 to 20000.0;
        /// From the start of the handler until it has woken the waiting thread.
        handler_ns: Ticks = Kind::Ns(1e9), default "500" because "a short handler", unknown 50.0 to 20000.0;
        /// From the wake-up until the thread runs.
        wake_ns: Ticks = Kind::Ns(1e9), default "1500" because "scheduler and context switch on a core that is not idle", unknown 200.0 to 50000.0;
    }
}
