//! Prebuilt kernels.

/// Prebuilt kernels in the format of the device vendor's compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FinishedKernels {
    /// File name, for messages.
    pub file: String,
    /// Contents of the file.
    pub bytes: Vec<u8>,
}
