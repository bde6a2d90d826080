//! One transfer of a DMA engine: its place in host memory, and why it did not end.

use super::host_window::HostWindow;
use lanemark_devices::xdma::{IDENTIFIER_STREAM, status};
use lanemark_machine::Verb;
use rustix::io::Errno;
use std::fmt;
use std::ops::Range;

/// One transfer between the device's own memory and host memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Job {
    /// Direction as seen by the device.
    pub(super) verb: Verb,
    /// Address of the host memory.
    pub(super) iova: u64,
    /// Address of the device's own memory.
    pub(super) own: u64,
    /// Length in bytes.
    pub(super) bytes: u64,
}

/// Host memory of a run.
pub(super) struct DmaMemory<'a> {
    /// The mapped memory.
    pub(super) window: &'a HostWindow<'a>,
    /// Offset of the memory for descriptors in the window.
    pub(super) list: u64,
    /// Addresses of the memory for data: of the host, and of another device.
    pub(super) data: [Range<u64>; 2],
}

/// Fails unless a transfer is within one part of the memory for data.
#[inline]
pub(super) fn within(data: &[Range<u64>], job: Job) -> Result<(), Stuck> {
    let end = job.iova.checked_add(job.bytes);
    let holds = |data: &Range<u64>| data.start <= job.iova && end.is_some_and(|end| end <= data.end);
    if data.iter().any(holds) { Ok(()) } else { Err(Stuck::Beyond(job.iova)) }
}

/// Why a transfer did not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stuck {
    /// The register did not show the end in time.
    Register,
    /// The word in host memory did not show the end in time.
    WriteBack,
    /// The interrupt did not arrive in time.
    Interrupt,
    /// The sample took longer than its plan permits.
    Plan,
    /// The run was interrupted.
    Interrupted,
    /// A system call failed.
    Os(Errno),
    /// The transfer would be outside of the mapped memory; it was not started.
    Beyond(u64),
    /// The identifier register at offset `at` has the value `found` instead of `expected`; nothing was stored.
    Identifier { at: u64, found: u32, expected: u32 },
    /// The engine ended a transfer in this direction with this status.
    Failed { verb: Verb, status: u32 },
    /// The register that shows the end has the value `found` with bits of `mask` after a transfer in this direction; before the
    /// first one, `verb` is `None`.
    FailedBits { verb: Option<Verb>, found: u64, mask: u64 },
    /// The engine counts `completed` descriptors of a list of `of` as completed.
    Count { completed: u32, of: u32 },
}

/// Direction of a transfer in words.
fn direction(verb: Verb) -> &'static str {
    if verb == Verb::Load { "to the card" } else { "to host memory" }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stuck::Register => f.write_str("the register that shows the end of a transfer"),
            Stuck::WriteBack => f.write_str("the word in host memory that shows the end of a transfer"),
            Stuck::Interrupt => f.write_str("the interrupt at the end of a transfer"),
            Stuck::Plan => f.write_str("the transfers of a sample"),
            Stuck::Interrupted => f.write_str("a transfer, until it was interrupted"),
            Stuck::Os(error) => write!(f, "a transfer: {error}"),
            Stuck::Beyond(iova) => {
                write!(f, "a transfer at {iova:#x}, which is outside of the mapped memory: not started")
            }
            Stuck::Identifier { at, found, expected } => {
                let is_stream = found & !expected & IDENTIFIER_STREAM != 0;
                let advice = if is_stream && (found ^ expected) & 0xfff0_0000 == 0 {
                    "the channel is one of AXI4-Stream, which is not supported"
                } else {
                    "check descriptors.bar and descriptors.channel"
                };
                write!(
                    f,
                    "the register at {at:#x} is {found:#010x}, and the identifier of the layout xdma is {expected:#010x} (its last \
                     byte, the version, is not compared): {advice}"
                )
            }
            Stuck::FailedBits { verb: None, found, mask } => write!(
                f,
                "the engine shows an error of an earlier transfer: done_register is {found:#x}, with bits of failed_mask, {mask:#x}; \
                 reset the card, or load its design again"
            ),
            Stuck::FailedBits { verb: Some(verb), found, mask } => write!(
                f,
                "the engine reports an error of a transfer {}: done_register is {found:#x}, with bits of failed_mask, {mask:#x}; check \
                 the addresses of the device file (host_start, address_bits, memory_start, memory_bytes) against those of the design",
                direction(*verb)
            ),
            Stuck::Failed { verb, status } => {
                let direction = direction(*verb);
                let words = status::in_words(*status);
                write!(f, "the engine ended with status {status:#010x} in a transfer {direction}: {words}")
            }
            Stuck::Count { completed, of } => {
                write!(f, "the engine counts {completed} of {of} descriptors as completed")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_within_the_memory_of_the_host_or_of_the_peer_up_to_its_last_byte() {
        let data = [0x20_0000..0x20_1000, 0x40_0000..0x40_0100];
        let of = |iova, bytes| within(&data, Job { verb: Verb::Store, iova, own: 0, bytes });
        assert_eq!((of(0x20_0000, 0x1000), of(0x40_0000, 0x100)), (Ok(()), Ok(())));
        for (iova, bytes) in [(0x20_0000, 0x1001), (0x20_0001, 0x1000), (0x1f_ffff, 2), (0x40_00ff, 2), (u64::MAX, 2)] {
            assert_eq!(of(iova, bytes), Err(Stuck::Beyond(iova)));
        }
        assert_eq!(within(&[0..0, 0..0], Job { verb: Verb::Load, iova: 0, own: 0, bytes: 1 }), Err(Stuck::Beyond(0)));
    }
}
