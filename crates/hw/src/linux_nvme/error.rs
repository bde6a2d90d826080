//! Errors of opening a namespace.

use crate::linux_sysfs::CardError;
use std::io;
use std::path::PathBuf;

/// Error of opening a namespace through the kernel's driver.
///
/// Each message names the path and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The path is not the character device of a namespace.
    #[error("{} {is}: name the character device of a namespace, {hint}", path.display())]
    NotANamespace {
        /// The path given.
        path: PathBuf,
        /// What the path is: `is a block device`, for example.
        is: String,
        /// The namespaces of this machine, or how to get one.
        hint: String,
    },
    /// The user may not send commands.
    #[error(
        "{}: {doing}: permission denied: run as root; since Linux 6.2, read permission for this file is enough for drives \
         that have no other restriction",
        path.display()
    )]
    Permission {
        /// The path given.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
    },
    /// The PCI function of the drive cannot be used, because another process has locked it, for example.
    #[error(transparent)]
    Function(CardError),
    /// This drive or machine cannot do it.
    #[error("{}: {because}", path.display())]
    Unsupported {
        /// The path given.
        path: PathBuf,
        /// The reason.
        because: String,
    },
    /// The drive or the kernel's driver has failed.
    #[error("{}: {because}", path.display())]
    Failed {
        /// The path given.
        path: PathBuf,
        /// The error.
        because: String,
    },
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The operating system refused.
    #[error("{}: {doing} failed: {source}", path.display())]
    Os {
        /// The path given.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
}
