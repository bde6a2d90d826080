//! Errors of binding a PCI function to a driver.

use super::User;
use crate::linux_sysfs::Address;
use std::path::PathBuf;

/// Error of binding or restoring a driver.
///
/// Each message names the function and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// No function has this address.
    #[error("{function} does not exist (no {}): list the devices of this machine with lspci -D", path.display())]
    NotThere {
        /// Requested address.
        function: Address,
        /// Missing folder.
        path: PathBuf,
    },
    /// The function of a journal is gone.
    #[error("{function} is not there any more: if it was removed, delete {}", journal.display())]
    Removed {
        /// Function.
        function: Address,
        /// Its journal.
        journal: PathBuf,
    },
    /// The function is a bridge.
    #[error("{function} is a bridge (class {class}), whose driver the devices below it need: name one of those")]
    Bridge {
        /// Function.
        function: Address,
        /// Class code.
        class: String,
    },
    /// The driver is not loaded.
    #[error("the driver '{driver}' is not loaded (no {}): load it with: modprobe {driver}", path.display())]
    NoDriver {
        /// Driver.
        driver: String,
        /// Missing folder.
        path: PathBuf,
    },
    /// The name of the driver is not a file name.
    #[error(
        "'{driver}' is not the name of a driver: use one of the folders below /sys/bus/pci/drivers, such as vfio-pci"
    )]
    NotADriver {
        /// The name.
        driver: String,
    },
    /// The function has no IOMMU.
    #[error(
        "{function} is behind no IOMMU (no {}), and vfio-pci needs one: enable VT-d or AMD-Vi in the firmware setup, and boot with intel_iommu=on on Intel processors; or, if the device may reach all memory of this machine, on a kernel with CONFIG_VFIO_NOIOMMU: echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode, then --vfio no-iommu",
        path.display()
    )]
    NoIommu {
        /// Function.
        function: Address,
        /// Missing link.
        path: PathBuf,
    },
    /// The function changed between the checks and the first step.
    #[error("{function}: its driver, its users or its journal changed after the steps were printed: try again")]
    Changed {
        /// Function.
        function: Address,
    },
    /// A step failed, and so did the restoration of the former state.
    #[error(
        "{function}: {first}; restoring the former state failed too: {second}; retry with: lanemark unbind {function}"
    )]
    NotRolledBack {
        /// Function.
        function: Address,
        /// Error of the step.
        first: Box<DriverError>,
        /// Error of the restoration.
        second: Box<DriverError>,
    },
    /// Something uses the function.
    #[error("{function} is in use: {user}; {}", user.remedy())]
    InUse {
        /// Function.
        function: Address,
        /// User.
        user: User,
    },
    /// The function has been bound by an earlier command.
    #[error(
        "{function} was bound to '{to}' before and not restored ({}): restore it with: lanemark unbind {function}",
        journal.display()
    )]
    NotRestored {
        /// Function.
        function: Address,
        /// Driver that it was bound to.
        to: String,
        /// The journal.
        journal: PathBuf,
    },
    /// There is no journal.
    #[error("{function} was not bound by lanemark (no {}): nothing to restore", journal.display())]
    NoJournal {
        /// Function.
        function: Address,
        /// Missing journal.
        journal: PathBuf,
    },
    /// The journal is malformed.
    #[error("{}:{line}: {what}: restore the driver by hand and remove the file", journal.display())]
    Journal {
        /// The journal.
        journal: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// The problem.
        what: String,
    },
    /// Another function is at the address now.
    #[error(
        "{function} is another device now: {} in the journal, {} in the slot; remove {} if the former one is gone",
        journalled,
        found,
        journal.display()
    )]
    OtherDevice {
        /// Function.
        function: Address,
        /// Identity in the journal.
        journalled: String,
        /// Identity found.
        found: String,
        /// The journal.
        journal: PathBuf,
    },
    /// The function is bound to an unexpected driver.
    #[error("{function} is bound to '{found}' and not to '{expected}', as the journal says: {}", remedy)]
    OtherDriver {
        /// Function.
        function: Address,
        /// Driver found.
        found: String,
        /// Expected driver.
        expected: String,
        /// Remedy.
        remedy: String,
    },
    /// The kernel accepted every step, and the function still has another driver.
    #[error("{function}: after the last step it has {found} instead of '{expected}': see 'dmesg | tail'")]
    NotBound {
        /// Function.
        function: Address,
        /// Driver found, or none.
        found: String,
        /// Expected driver.
        expected: String,
    },
    /// Another process changes the driver of the function.
    #[error("{function} is being bound or restored by another process, which holds {}", lock.display())]
    Busy {
        /// Function.
        function: Address,
        /// The lock.
        lock: PathBuf,
    },
    /// The operating system refused.
    #[error("{function}: {doing} {}: {source}{}", path.display(), root_hint(source))]
    Os {
        /// Function.
        function: Address,
        /// The operation.
        doing: &'static str,
        /// File.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

/// Remedy for an error of the operating system.
fn root_hint(source: &std::io::Error) -> &'static str {
    if source.kind() == std::io::ErrorKind::PermissionDenied { "; run as root" } else { "" }
}
