//! Errors of attaching to a card, mapping it and accessing it.

use super::{Address, Bar, Range};
use lanemark_units::{BarOffset, MemoryType};
use std::path::PathBuf;

/// Error of a card.
///
/// Each message names the device, the BAR and offset where applicable, and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// No device has this address.
    #[error("{device} does not exist (no {}): list the devices of this machine with lspci -D", path.display())]
    NotThere {
        /// Requested address.
        device: Address,
        /// Missing sysfs folder.
        path: PathBuf,
    },
    /// No range was named.
    #[error(
        "{device}: no range named, and only named ranges are accessed: add --bar BAR:FROM..TO, for example --bar {example}; it has {}",
        bars(have)
    )]
    NoRange {
        /// Device.
        device: Address,
        /// Example of a range.
        example: String,
        /// BARs of the device.
        have: Vec<Bar>,
    },
    /// The BAR does not exist.
    #[error("{device} has no BAR{bar}; it has {}", bars(have))]
    NoSuchBar {
        /// Device.
        device: Address,
        /// BAR number.
        bar: u8,
        /// BARs of the device.
        have: Vec<Bar>,
    },
    /// The BAR is an I/O BAR.
    #[error(
        "{device}: BAR{bar} is an I/O BAR, which loads and stores cannot access; name a memory BAR: {}",
        bars(have)
    )]
    NotMemory {
        /// Device.
        device: Address,
        /// BAR number.
        bar: u8,
        /// BARs of the device.
        have: Vec<Bar>,
    },
    /// The BAR has no address.
    #[error(
        "{device}: BAR{bar} has no address, because no address space was left: see 'dmesg | grep {device}', and enable \"Above 4G Decoding\" in the firmware setup"
    )]
    Unassigned {
        /// Device.
        device: Address,
        /// BAR number.
        bar: u8,
    },
    /// The range ends beyond its BAR.
    #[error("{device}: {range} ends beyond BAR{}, which is {len:#x} B long; end it at {} or before", range.bar, lanemark_units::format_size(*len))]
    BeyondBar {
        /// Device.
        device: Address,
        /// Range.
        range: Range,
        /// Length of the BAR in bytes.
        len: u64,
    },
    /// Two ranges overlap.
    #[error("{device}: {one} and {other} overlap; name each byte once")]
    Overlap {
        /// Device.
        device: Address,
        /// First range.
        one: Range,
        /// Second range.
        other: Range,
    },
    /// A driver is bound to the device.
    #[error(
        "{device} is bound to the driver '{driver}': unbind it (echo {device} > /sys/bus/pci/drivers/{driver}/unbind), or add --i-own-this-device if nothing can disturb the driver"
    )]
    DriverBound {
        /// Device.
        device: Address,
        /// Driver name.
        driver: String,
    },
    /// Memory decoding is off.
    #[error("{device}: memory decoding is off, so it does not respond: enable it with --enable, or with: echo 1 > {}", path.display())]
    DecodingOff {
        /// Device.
        device: Address,
        /// Sysfs file that enables it.
        path: PathBuf,
    },
    /// The device is in a low-power state.
    #[error("{device} is in power state {state} and would not respond: wake it with: echo on > {}", path.display())]
    Asleep {
        /// Device.
        device: Address,
        /// Power state.
        state: String,
        /// Sysfs file that wakes it.
        path: PathBuf,
    },
    /// The kernel provides no file for the BAR.
    #[error("{device}: no {}: this kernel does not map BARs to user space (CONFIG_PCI, HAVE_PCI_MMAP), or the device was just removed", path.display())]
    NoResourceFile {
        /// Device.
        device: Address,
        /// Missing file.
        path: PathBuf,
    },
    /// Permission denied.
    #[error("{device}: no permission to open {}: run as root, or give this user access to the file", path.display())]
    Permission {
        /// Device.
        device: Address,
        /// File.
        path: PathBuf,
    },
    /// Kernel lockdown forbids the mapping.
    #[error(
        "{device}: mapping BAR{bar} is forbidden (EPERM) by kernel lockdown, see /sys/kernel/security/lockdown; secure boot or lockdown=integrity enables it. VFIO works under lockdown"
    )]
    LockedDown {
        /// Device.
        device: Address,
        /// BAR number.
        bar: u8,
    },
    /// A kernel driver has claimed the BAR.
    #[error("{device}: mapping {range} is refused (EINVAL): a driver has claimed BAR{} and the kernel is built with IO_STRICT_DEVMEM; unbind the driver, or boot with iomem=relaxed", range.bar)]
    Claimed {
        /// Device.
        device: Address,
        /// Range.
        range: Range,
    },
    /// VFIO does not map this part of the BAR.
    #[error(
        "{device}: VFIO maps no page of {range} into a program (mappable: {}): name another range; the pages of an MSI-X table and BARs shorter than a page cannot be mapped everywhere",
        areas(mappable)
    )]
    NotMappable {
        /// Device.
        device: Address,
        /// Range.
        range: Range,
        /// Parts that can be mapped, by first byte and length.
        mappable: Vec<(u64, u64)>,
    },
    /// The kernel provides no write-combining file.
    #[error("{device}: BAR{bar} cannot be mapped write-combining: no {}; the kernel creates it for prefetchable BARs only", path.display())]
    NoWriteCombining {
        /// Device.
        device: Address,
        /// BAR number.
        bar: u8,
        /// Missing file.
        path: PathBuf,
    },
    /// A mapping has another memory type than requested.
    #[error("{device}: the mapping of {range} was requested as {asked} but is {found}: {because}")]
    OtherType {
        /// Device.
        device: Address,
        /// Range.
        range: Range,
        /// Requested memory type.
        asked: MemoryType,
        /// Memory type of the mapping.
        found: String,
        /// Reason, as far as it is known.
        because: String,
    },
    /// This process has mapped the BAR with another memory type.
    #[error(
        "{device}: BAR{bar} is already mapped as {held} by this program, and the kernel would silently map it as {held} instead of {asked}: unmap it first"
    )]
    HeldOtherwise {
        /// Device.
        device: Address,
        /// BAR number.
        bar: u8,
        /// Memory type of the existing mapping.
        held: MemoryType,
        /// Requested memory type.
        asked: MemoryType,
    },
    /// The device no longer responds.
    #[error(
        "{device} is gone ({seen}): it was removed or reset, or its link is down; see 'dmesg | grep {device}', then rescan with: echo 1 > /sys/bus/pci/rescan"
    )]
    Gone {
        /// Device.
        device: Address,
        /// Observation that shows it.
        seen: String,
    },
    /// The slot has another device, or the device another driver.
    #[error(
        "{device} was {was} when it was opened and is {is} now: it was replaced or its driver was changed; open it again"
    )]
    Changed {
        /// Device.
        device: Address,
        /// Identity and driver at opening.
        was: String,
        /// Identity and driver now.
        is: String,
    },
    /// Another process has locked the device.
    #[error("{device} is locked by another process: wait until it ends, or end it; 'fuser -v {}' lists the processes that have the file open", path.display())]
    InUse {
        /// Device.
        device: Address,
        /// File that the other process has locked.
        path: PathBuf,
    },
    /// Another program has taken the device from our module during the run.
    #[error(
        "{device} was unbound from its driver during the run: {} has vanished; bind it with: lanemark bind {device} --to lanemark",
        path.display()
    )]
    Unbound {
        /// Device.
        device: Address,
        /// File of the module for this device.
        path: PathBuf,
    },
    /// The memory behind a mapping vanished.
    #[error(
        "{device}: bus error at {at}: the memory behind the mapping has vanished; the device was removed or reset, see 'dmesg | grep {device}'"
    )]
    BusError {
        /// Device.
        device: Address,
        /// Address of the first faulting access.
        at: BarOffset,
    },
    /// Loads return all ones although other data was stored.
    #[error(
        "{device}: {len} B at {at} read as all ones although other data was stored: nothing responds there, or the range is not storage; see the error counters (aer_dev_nonfatal) and the device's manual"
    )]
    AllOnes {
        /// Device.
        device: Address,
        /// Start of the loads.
        at: BarOffset,
        /// Length in bytes.
        len: u64,
    },
    /// The kind of the range forbids the access.
    #[error(
        "{device}: a {what} at {at} is not allowed: {range} is {kind}; name the range with another kind if this is safe"
    )]
    NotAllowed {
        /// Device.
        device: Address,
        /// `load`, `store`, `copy to` or `copy from`.
        what: &'static str,
        /// Address.
        at: BarOffset,
        /// Range.
        range: Range,
        /// Kind of the range.
        kind: super::Kind,
    },
    /// Invalid access width, or an offset that is not a multiple of it.
    #[error(
        "{device}: invalid access of {width} B at {at}: the width must be 1, 2, 4 or 8 B (4 B for bursts), and the offset a multiple of it"
    )]
    Unaligned {
        /// Device.
        device: Address,
        /// Address.
        at: BarOffset,
        /// Width in bytes.
        width: u64,
    },
    /// The access is outside the named range.
    #[error("{device}: {len} B at {at} are outside the named range {range}")]
    OutOfRange {
        /// Device.
        device: Address,
        /// Address.
        at: BarOffset,
        /// Length in bytes.
        len: u64,
        /// Named range.
        range: Range,
    },
    /// A kernel file has unexpected contents.
    #[error("{device}: unexpected contents of {}: '{text}'", path.display())]
    NotUnderstood {
        /// Device.
        device: Address,
        /// File.
        path: PathBuf,
        /// Start of its contents.
        text: String,
    },
    /// A system call failed.
    #[error("{device}: {doing} {}: {source}", path.display())]
    Os {
        /// Device.
        device: Address,
        /// Operation that failed.
        doing: &'static str,
        /// File.
        path: PathBuf,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// The operation is not supported.
    #[error("{device}: {because}")]
    Unsupported {
        /// Device.
        device: Address,
        /// Reason.
        because: String,
    },
}

fn areas(mappable: &[(u64, u64)]) -> String {
    if mappable.is_empty() {
        return "nothing".to_owned();
    }
    let area = |(first, len): &(u64, u64)| format!("{first:#x}..{:#x}", first.saturating_add(*len));
    mappable.iter().map(area).collect::<Vec<_>>().join(", ")
}

fn bars(have: &[Bar]) -> String {
    if have.is_empty() {
        return "no BAR".to_owned();
    }
    have.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
