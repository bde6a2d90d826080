//! Keys of a runtime, through which programs give the card work.

use super::{HUGE, Kind};
use lanemark_units::Ticks;

section! {
    /// What a runtime costs that launches kernels on the card and copies for programs: the library, and how its core waits.
    Runtime ["runtime"] {
        /// A call of a program into the runtime, until its command is with the driver or on its way to the card.
        submit_ns: Ticks = Kind::Ns(1e9), unknown 50.0 to 100_000.0;
        /// From the end that the driver tells of until the program goes on.
        return_ns: Ticks = Kind::Ns(1e9), unknown 50.0 to 100_000.0;
        /// Looking at one buffer that a kernel is given, before each launch; an address costs nothing.
        argument_ns: Ticks = Kind::Ns(1e9), default "0" because "nothing is known of it", unknown 10.0 to 100_000.0;
        /// What a copy of a buffer costs besides submitting it.
        buffer_copy_ns: Ticks = Kind::Ns(1e9), default "0" because "nothing is known of it", unknown 50.0 to 1_000_000.0;
        /// What each line of 64 B of a buffer costs besides: where the runtime keeps the program's bytes in memory of its own, its core copies them.
        buffer_line_ns: Ticks = Kind::Ns(1e6), default "0" because "the program's own memory is used as it is", unknown 0.01 to 100.0;
        /// What a copy to or from an address of the device (explicit unified shared memory) costs besides submitting it.
        usm_copy_ns: Ticks = Kind::Ns(1e9), default "0" because "nothing is known of it", unknown 50.0 to 1_000_000.0;
        /// A wait until the queue is empty, besides waiting.
        finish_ns: Ticks = Kind::Ns(1e9), default "0" because "it is the wait", unknown 10.0 to 100_000.0;
        /// An event: making it with its command, waiting by it, besides waiting, and giving it back.
        event_ns: Ticks = Kind::Ns(1e9), default "0" because "it is the wait", unknown 10.0 to 100_000.0;
        /// Copies shorter than this go through a pinned buffer of the runtime.
        staged_below_bytes: u64 = Kind::Size(0, 1 << 40), default "0" because "no copy is too short to be made in place";
        /// Length of that buffer: what is longer goes through it in parts.
        chunk_bytes: u64 = Kind::Size(64, 1 << 30), default "65536" because "a buffer that a second-level cache holds";
        /// What a core takes to copy a line of 64 B to that buffer or from it.
        copy_line_ns: Ticks = Kind::Ns(1e6), default "6" because "a core copies 10 GB/s from memory to memory", unknown 0.5 to 100.0;
        /// A copy is made in place only where the program's buffer begins at a multiple of this.
        alignment_bytes: u32 = Kind::OneOf(&[1, 4, 8, 16, 32, 64, 128, 256, 4096]), default "64" because "a DMA engine that moves whole lines";
        /// Where in its page a program's own buffer begins: 0 from `aligned_alloc`, 16 from a `malloc` that maps pages.
        buffer_offset_bytes: u64 = Kind::Size(0, 4095), default "0" because "programs for cards align their buffers";
        /// Most bytes of whole pages that may be pinned for one copy: what needs more goes through the pinned buffer.
        pinned_bytes: u64 = Kind::Size(4096, HUGE), default "1099511627776" because "such programs run without RLIMIT_MEMLOCK";
        /// From a store to the kernels' doorbell, accepted by the card, until the kernel begins.
        kernel_start_ns: Ticks = Kind::Ns(1e9), unknown 10.0 to 100_000.0;
        /// From the end of a kernel until the card sends its message.
        kernel_end_ns: Ticks = Kind::Ns(1e9), unknown 10.0 to 100_000.0;
        /// Clock of a core that runs a runtime, as its governor leaves one that waits again and again; 0 for `core.clock_ghz`.
        clock_ghz: f64 = Kind::ZeroOrNumber(0.1, 10.0), default "0" because "the governor keeps every core at its clock", unknown 0.5 to 6.0;
        /// A core that has waited for longer than this is in an idle state.
        idle_entry_ns: Ticks = Kind::Ns(1e9), default "0" because "a core that waits has nothing else to do", unknown 100.0 to 1_000_000.0;
        /// What it takes to leave that state, before the handler; 0 if there is none.
        idle_exit_ns: Ticks = Kind::Ns(1e9), default "0" because "idle states are off", unknown 100.0 to 1_000_000.0;
    }
}
