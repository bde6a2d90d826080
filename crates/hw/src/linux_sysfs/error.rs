//! What can go wrong between a user and a card.

use super::{Address, Bar, Range};
use lanemark_units::{BarOffset, MemoryType};
use std::path::PathBuf;

/// Why a card cannot be used, or can no longer be.
///
/// Each names the device, the BAR and the offset where there is one, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// Nothing is at that address.
    #[error("{device} is not there ({} does not exist): lspci -D lists the devices of this machine", path.display())]
    NotThere {
        /// Which.
        device: Address,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Nobody has said what may be touched.
    #[error(
        "{device}: nothing is touched that is not named: give --bar BAR:FROM..TO, for example --bar {example}; it has {}",
        bars(have)
    )]
    NoRange {
        /// Which device.
        device: Address,
        /// A range that could be named.
        example: String,
        /// What it has.
        have: Vec<Bar>,
    },
    /// A range in a BAR that is not there.
    #[error("{device} has no BAR{bar}; it has {}", bars(have))]
    NoSuchBar {
        /// Which device.
        device: Address,
        /// Which BAR.
        bar: u8,
        /// What it has.
        have: Vec<Bar>,
    },
    /// A range in a BAR of I/O ports.
    #[error(
        "{device}: BAR{bar} is one of I/O ports, which are not loaded and stored; name a memory BAR: {}",
        bars(have)
    )]
    NotMemory {
        /// Which device.
        device: Address,
        /// Which BAR.
        bar: u8,
        /// What it has.
        have: Vec<Bar>,
    },
    /// A BAR without an address.
    #[error(
        "{device}: BAR{bar} has no address, for there was no room for it: see 'dmesg | grep {device}', and try the firmware's setting for BARs above 4 GiB"
    )]
    Unassigned {
        /// Which device.
        device: Address,
        /// Which BAR.
        bar: u8,
    },
    /// A range that ends behind its BAR.
    #[error("{device}: {range} ends behind BAR{}, which is {len:#x} B long; end it at {} or before", range.bar, lanemark_units::format_size(*len))]
    BeyondBar {
        /// Which device.
        device: Address,
        /// Which range.
        range: Range,
        /// How long the BAR is.
        len: u64,
    },
    /// Two ranges with bytes in common.
    #[error("{device}: {one} and {other} overlap; name each byte once")]
    Overlap {
        /// Which device.
        device: Address,
        /// One of them.
        one: Range,
        /// The other.
        other: Range,
    },
    /// Somebody else drives the device.
    #[error(
        "{device} is driven by '{driver}': unbind it (echo {device} > /sys/bus/pci/drivers/{driver}/unbind), or say --i-own-this-device if nothing of the driver's can be disturbed"
    )]
    DriverBound {
        /// Which device.
        device: Address,
        /// By whom.
        driver: String,
    },
    /// The device does not answer to its BARs.
    #[error("{device}: memory decoding is off, so it does not answer: turn it on with --enable, or by: echo 1 > {}", path.display())]
    DecodingOff {
        /// Which device.
        device: Address,
        /// The file that turns it on.
        path: PathBuf,
    },
    /// The device sleeps.
    #[error("{device} sleeps ({state}) and would not answer: wake it by: echo on > {}", path.display())]
    Asleep {
        /// Which device.
        device: Address,
        /// Its power state.
        state: String,
        /// The file that wakes it.
        path: PathBuf,
    },
    /// The kernel offers no file for the BAR.
    #[error("{device}: there is no {}: this kernel maps no BAR to user space (CONFIG_PCI, HAVE_PCI_MMAP), or the device has just gone", path.display())]
    NoResourceFile {
        /// Which device.
        device: Address,
        /// Which file.
        path: PathBuf,
    },
    /// Not root.
    #[error("{device}: {} may not be opened: run as root, or give this user that file", path.display())]
    Permission {
        /// Which device.
        device: Address,
        /// Which file.
        path: PathBuf,
    },
    /// The kernel is locked down.
    #[error(
        "{device}: the kernel does not let BAR{bar} be mapped (EPERM): it is locked down, see /sys/kernel/security/lockdown; secure boot or lockdown=integrity does that. VFIO still works then"
    )]
    LockedDown {
        /// Which device.
        device: Address,
        /// Which BAR.
        bar: u8,
    },
    /// Somebody in the kernel claims the BAR.
    #[error("{device}: the kernel does not map {range} (EINVAL): a driver has claimed BAR{} and the kernel is strict about it (IO_STRICT_DEVMEM); unbind the driver, or boot with iomem=relaxed", range.bar)]
    Claimed {
        /// Which device.
        device: Address,
        /// Which range.
        range: Range,
    },
    /// No write-combining file.
    #[error("{device}: BAR{bar} cannot be mapped write-combining: there is no {}; the kernel makes it for prefetchable BARs", path.display())]
    NoWriteCombining {
        /// Which device.
        device: Address,
        /// Which BAR.
        bar: u8,
        /// The file that is missing.
        path: PathBuf,
    },
    /// A mapping with another memory type than asked for.
    #[error("{device}: a mapping of {range} asked for as {asked} is {found}: {because}")]
    OtherType {
        /// Which device.
        device: Address,
        /// Which range.
        range: Range,
        /// What was asked for.
        asked: MemoryType,
        /// What came.
        found: String,
        /// Why, as far as it is known.
        because: String,
    },
    /// The same BAR is mapped with another type by this program.
    #[error(
        "{device}: BAR{bar} is mapped as {held} by this program, and the kernel would silently give {asked} the same type: unmap that first"
    )]
    HeldOtherwise {
        /// Which device.
        device: Address,
        /// Which BAR.
        bar: u8,
        /// As what it is mapped.
        held: MemoryType,
        /// As what it is wanted too.
        asked: MemoryType,
    },
    /// The device does not answer any more.
    #[error(
        "{device} is gone ({seen}): it was removed, reset or lost its link; see 'dmesg | grep {device}', then rescan with: echo 1 > /sys/bus/pci/rescan"
    )]
    Gone {
        /// Which device.
        device: Address,
        /// What showed it.
        seen: String,
    },
    /// The memory behind a mapping vanished while it was used.
    #[error(
        "{device}: bus error at {at}: the BAR behind the mapping has vanished or was cut short; the device was removed or reset, see 'dmesg | grep {device}'"
    )]
    BusError {
        /// Which device.
        device: Address,
        /// Where the first faulting access went.
        at: BarOffset,
    },
    /// Loads that give ones only, where something else was stored.
    #[error(
        "{device}: {len} B at {at} read all ones, though something else was stored there: nothing answers there, or the range is not storage; see the error counters (aer_dev_nonfatal) and the device's manual"
    )]
    AllOnes {
        /// Which device.
        device: Address,
        /// Where.
        at: BarOffset,
        /// How many.
        len: u64,
    },
    /// A load or store that the range does not allow.
    #[error("{device}: a {what} at {at} is not allowed: {range} is {kind}; name the range otherwise if you are sure")]
    NotAllowed {
        /// Which device.
        device: Address,
        /// `load` or `store`.
        what: &'static str,
        /// Where.
        at: BarOffset,
        /// In which range.
        range: Range,
        /// What it was said to be.
        kind: super::Kind,
    },
    /// An access of a width that is none, or away from its multiples.
    #[error(
        "{device}: an access of {width} B at {at}: widths are 1, 2, 4 and 8 B, those of a burst 4 B, and an offset is a multiple of its width"
    )]
    Unaligned {
        /// Which device.
        device: Address,
        /// Where.
        at: BarOffset,
        /// How wide.
        width: u64,
    },
    /// An access outside the range that was named.
    #[error("{device}: {len} B at {at} lie outside {range}, which is all that was named")]
    OutOfRange {
        /// Which device.
        device: Address,
        /// Where.
        at: BarOffset,
        /// How many bytes.
        len: u64,
        /// What may be touched.
        range: Range,
    },
    /// A file of the kernel's that says something unexpected.
    #[error("{device}: {} says what is not understood: '{text}'", path.display())]
    NotUnderstood {
        /// Which device.
        device: Address,
        /// Which file.
        path: PathBuf,
        /// What it says, or how it starts.
        text: String,
    },
    /// The operating system refused.
    #[error("{device}: {doing} {}: {source}", path.display())]
    Os {
        /// Which device.
        device: Address,
        /// What was being done.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// This build has no way to a card.
    #[error("{device}: {because}")]
    Unsupported {
        /// Which device.
        device: Address,
        /// Why.
        because: String,
    },
}

fn bars(have: &[Bar]) -> String {
    if have.is_empty() {
        return "no BAR".to_owned();
    }
    have.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
