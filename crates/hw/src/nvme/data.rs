//! Data pointers of a command.

use super::memory::DmaMemory;
use super::{prp, sgl};
use crate::drive_options::DataPointers;

/// The data pointer of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DataPointer {
    /// PRP1 and PRP2, or an SGL descriptor.
    pub(super) words: [u64; 2],
    pub(super) is_sgl: bool,
}

impl DataPointer {
    /// No data.
    pub(super) const NONE: DataPointer = DataPointer::prp([0; 2]);

    /// PRP1 and PRP2.
    pub(crate) const fn prp(words: [u64; 2]) -> DataPointer {
        DataPointer { words, is_sgl: false }
    }

    /// The `bytes` bytes at this address of the controller; a list is stored at the offset `list` of `memory`, in [`list_bytes`]
    /// bytes.
    pub(crate) fn of(by: DataPointers, memory: &impl DmaMemory, address: u64, bytes: u64, list: u64) -> DataPointer {
        let sgl = |words| DataPointer { words, is_sgl: true };
        match by {
            DataPointers::Prp => DataPointer::prp(prp::pointers(memory, address, bytes, list)),
            DataPointers::Sgl => sgl(sgl::block(address, bytes)),
            DataPointers::SglList => sgl(sgl::pages(memory, address, bytes, list)),
        }
    }
}

/// Bytes that are set aside for the list of a transfer of `bytes` bytes, so that no part of a list crosses a page.
pub(crate) const fn list_bytes(by: DataPointers, bytes: u64) -> u64 {
    match by {
        DataPointers::Prp | DataPointers::Sgl => prp::list_bytes(bytes),
        DataPointers::SglList => sgl::segment_bytes(bytes),
    }
}
