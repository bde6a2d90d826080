//! Keys of a runtime, through which programs use the card.

use crate::key::{HUGE, Kind};
use lanemark_units::Ticks;

section! {
    /// Costs of a runtime that launches kernels on the card and copies for programs: its library, and waiting for the
    /// card.
    Runtime ["runtime"] {
        /// From a program's call into the runtime until the command is at the driver or in flight to the card.
        submit_ns: Ticks = Kind::Ns(1e9), unknown 50.0 to 100_000.0;
        /// From the completion reported by the driver until the program continues.
        return_ns: Ticks = Kind::Ns(1e9), unknown 50.0 to 100_000.0;
        /// Processing of one buffer argument of a kernel at each launch; an address costs nothing.
        argument_ns: Ticks = Kind::Ns(1e9), default "0" because "no cost is known", unknown 10.0 to 100_000.0;
        /// Extra cost of copying to or from a buffer, in addition to submitting the command.
        buffer_copy_ns: Ticks = Kind::Ns(1e9), default "0" because "no cost is known", unknown 50.0 to 1_000_000.0;
        /// Extra cost per 64 B line of a buffer, if the runtime copies the program's bytes into memory of its own.
        buffer_line_ns: Ticks = Kind::Ns(1e6), default "0" because "the program's own memory is used", unknown 0.01 to 100.0;
        /// Extra cost of copying to or from a device address (USM), in addition to submitting the command.
        usm_copy_ns: Ticks = Kind::Ns(1e9), default "0" because "no cost is known", unknown 50.0 to 1_000_000.0;
        /// Extra cost of each piece when one call takes the list of all: a batch of copies, or a kernel that copies pieces.
        copy_entry_ns: Ticks = Kind::Ns(1e9), default "0" because "no cost is known", unknown 1.0 to 10_000.0;
        /// Cost of a wait for an empty queue, in addition to the waiting time.
        finish_ns: Ticks = Kind::Ns(1e9), default "0" because "no further cost is known", unknown 10.0 to 100_000.0;
        /// Cost of an event: creating it, waiting for it (in addition to the waiting time), and releasing it.
        event_ns: Ticks = Kind::Ns(1e9), default "0" because "no further cost is known", unknown 10.0 to 100_000.0;
        /// Copies shorter than this are staged through a pinned buffer of the runtime.
        staged_below_bytes: u64 = Kind::Size(0, 1 << 40), default "0" because "all copies are made in place";
        /// Length of that buffer; longer copies are staged in chunks.
        chunk_bytes: u64 = Kind::Size(64, 1 << 30), default "65536" because "a buffer that fits in a second-level cache";
        /// Time for a core to copy one 64 B line to or from that buffer.
        copy_line_ns: Ticks = Kind::Ns(1e6), default "6" because "a core copies 10 GB/s from memory to memory", unknown 0.5 to 100.0;
        /// A copy is made in place only if the program's buffer is aligned to this.
        alignment_bytes: u32 = Kind::OneOf(&[1, 4, 8, 16, 32, 64, 128, 256, 4096]), default "64" because "the DMA engine moves whole lines";
        /// Offset of a program's buffer in its page: 0 from `aligned_alloc`, 16 from a `malloc` that maps pages.
        buffer_offset_bytes: u64 = Kind::Size(0, 4095), default "0" because "programs for cards align their buffers";
        /// Maximum number of bytes that may be pinned for one copy, in whole pages; longer copies are staged.
        pinned_bytes: u64 = Kind::Size(4096, HUGE), default "1099511627776" because "such programs run without a limit on RLIMIT_MEMLOCK";
        /// From the acceptance of the doorbell write by the card until the kernel starts.
        kernel_start_ns: Ticks = Kind::Ns(1e9), unknown 10.0 to 100_000.0;
        /// From the end of a kernel until the card sends its message.
        kernel_end_ns: Ticks = Kind::Ns(1e9), unknown 10.0 to 100_000.0;
        /// Clock of a core that repeatedly waits in the runtime, as set by the frequency governor; 0 for
        /// `core.clock_ghz`.
        clock_ghz: f64 = Kind::ZeroOrNumber(0.1, 10.0), default "0" because "the frequency governor keeps all cores at full clock", unknown 0.5 to 6.0;
        /// Waiting time after which a core enters an idle state.
        idle_entry_ns: Ticks = Kind::Ns(1e9), default "0" because "a waiting core has nothing else to run", unknown 100.0 to 1_000_000.0;
        /// Time to leave that state before the handler runs; 0 without idle states.
        idle_exit_ns: Ticks = Kind::Ns(1e9), default "0" because "idle states are disabled", unknown 100.0 to 1_000_000.0;
    }
}
