//! Kernels that somebody else has built.

/// Finished kernels, as a compiler wrote them for a kind of device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FinishedKernels {
    /// The file, for messages.
    pub file: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}
