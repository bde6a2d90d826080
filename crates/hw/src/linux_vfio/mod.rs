//! A device behind the real IOMMU, through VFIO: its group, its container, its BARs, interrupts and DMA engine, and DMA
//! mappings of this process's memory.
//!
//! ```text
//!  Container::open   /dev/vfio/vfio + /dev/vfio/GROUP --type 1--> an I/O address space, and the device
//!  VfioDevice        the device file: configuration space, regions, reset, interrupts, bus mastering
//!  Iommu             the container as a backend of `lanemark-dma`: map and unmap are one ioctl each
//!  VfioMachine       runs plans on it: mappings, loads and stores; DMA with a device file, and of an NVMe drive
//! ```
//!
//! The device must be bound to `vfio-pci` ([`pci_driver`](crate::pci_driver)). Opening resets it, if it can be reset: the
//! contents of its memory may be lost. Bus mastering is on only while a plan makes transfers, and while an NVMe drive is
//! identified. When the container is closed, at the latest by the end of the process, the kernel turns it off, removes every
//! mapping and unpins every page.
//!
//! | file | contents |
//! | --- | --- |
//! | `container` | [`Container`]: opening, properties, map and unmap |
//! | `device`, `region`, `interrupt` | [`VfioDevice`], its regions, and an interrupt as an eventfd |
//! | `ioctl`, `capability` | the ioctls, one function each, and the chains in their answers |
//! | `iommu` | [`Iommu`], the backend of `lanemark-dma` |
//! | `bars` | BARs mapped through the device file, for the windows of `linux_sysfs` |
//! | `options` | [`VfioOptions`], and the checks before a device is opened |
//! | `machine` | [`VfioMachine`] |
//! | `dma_plan`, `transfers` | plans with DMA: what an engine can do, and its run |
//! | `engine`, `registers` | the engine of a device file, and accesses to its registers |
//! | `job` | one transfer of an engine, and why it did not end |
//! | `xdma` | an engine with descriptors in host memory, of the layout `xdma` |
//! | `drive` | reads of an NVMe drive, by [`nvme`](crate::nvme) |
//! | `unmapped` | a read of a drive to memory that was unmapped just before |
//! | `peer` | [`PeerRange`]: memory of another device, mapped for a device |
//! | `host_window` | host memory mapped for a device |
//! | `faults` | DMA faults in the kernel's log |
//! | `rehearsal` | dry run |
//! | `error` | errors, each with a remedy |
//!
//! Verified on: QEMU's `intel-iommu`, `edu`, `ivshmem` and `nvme` under Linux 6.1, and its `virtio-iommu` under Linux 6.12
//! (`checks/guest`). Not yet verified on a real IOMMU. MSI by a drive, and registers by system calls, have not been run.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod bars;
mod capability;
mod container;
mod device;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod dma_plan;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod drive;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod engine;
mod error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod faults;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod host_window;
mod interrupt;
mod ioctl;
mod iommu;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod job;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
mod options;
mod peer;
mod region;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod registers;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod rehearsal;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod transfers;
mod unmapped;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod unsupported;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod xdma;

pub use container::{Container, IommuProperties, IovaSpan, Joined};
pub use device::{DRIVER, VfioDevice};
pub use error::VfioError;
pub use interrupt::VfioInterrupt;
pub use iommu::Iommu;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use machine::VfioMachine;
pub use options::VfioOptions;
pub use peer::{NotAPeer, PeerRange};
pub use region::VfioRegion;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use rehearsal::{VfioNotes, VfioRehearsal};
pub use unmapped::UnmappedRead;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use unsupported::{VfioMachine, VfioNotes, VfioRehearsal};
