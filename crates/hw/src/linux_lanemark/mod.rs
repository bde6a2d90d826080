//! Loads, stores and driver calls to a card through the kernel module `lanemark` (`kmod/`).
//!
//! The module maps ranges of BARs as UC, WC, WT or WP, and its file copies by `pread` and `pwrite`, whose cost
//! `driver_call_overhead` measures. It reads the memory type of each mapping back from page table, PAT and MTRRs. It maps
//! host memory for the card by the kernel's DMA API, whose cost `dma_map_cost` measures. The plans are run by
//! [`CardMachine`]; only the file is another one.
//!
//! The card must be bound to the driver [`DRIVER`] ([`pci_driver`](crate::pci_driver)). Then the kernel maps its BARs through
//! nothing else, and one program at a time opens it. Bus mastering is off.
//!
//! | file | contents |
//! | --- | --- |
//! | `bars` | the file of the module, for the windows of `linux_sysfs` |
//! | `dma` | mappings of host memory for the card |
//! | `ioctl` | the ioctls, one function each |
//!
//! Verified on: QEMU's `ivshmem`, `edu` and `nvme` devices under Linux 6.1 (`checks/guest`), where memory types have no
//! effect. Not yet verified on a real card.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod bars;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod dma;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod ioctl;

use crate::linux_sysfs::{Address, Attachment, CardError, CardMachine, Consent, Range, Rehearsal, System};

/// Name of the driver.
pub const DRIVER: &str = "lanemark";

/// Opens a card that is bound to the module, and maps each range once with each memory type to find the supported ones.
///
/// # Errors
/// [`CardError`] of ranges, files, mappings and memory types.
pub fn open(system: &System, device: Address, ranges: &[Range], is_emulated: bool) -> Result<CardMachine, CardError> {
    let attachment = Attachment::new(system, device, ranges, Consent { owns_device: true, enable: false })?;
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    return CardMachine::through(&bars::files(), attachment, is_emulated);
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    return CardMachine::open(attachment, is_emulated);
}

/// Creates a dry run of a card that is, or will be, bound to the module; no file is opened.
///
/// # Errors
/// [`CardError`] if a range does not exist.
pub fn rehearse(system: &System, device: Address, ranges: &[Range]) -> Result<Rehearsal, CardError> {
    let consent = Consent { owns_device: true, enable: false };
    let rehearsed = Attachment::rehearsed(system, device, ranges, consent)?;
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    return Rehearsal::through(&bars::files(), rehearsed);
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    return Rehearsal::new(rehearsed);
}
