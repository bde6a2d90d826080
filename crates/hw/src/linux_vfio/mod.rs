//! A device behind the real IOMMU, through VFIO: its address space, its BARs, interrupts and DMA engine, and DMA mappings of
//! this process's memory.
//!
//! ```text
//!  AddressSpace      an I/O address space, and the device in it, by one of three interfaces of the kernel:
//!    Container       /dev/vfio/vfio + /dev/vfio/GROUP          a container with a type 1 IOMMU
//!    Iommufd         /dev/iommu + /dev/vfio/devices/vfioN      iommufd, since Linux 6.6
//!    NoIommu         /dev/vfio/vfio + /dev/vfio/noiommu-GROUP  no IOMMU: physical addresses, nothing is mapped or blocked
//!  VfioDevice        the device file: configuration space, regions, reset, interrupts, bus mastering
//!  Iommu             the address space as a backend of `lanemark-dma`: map and unmap are one ioctl each
//!  VfioMachine       runs plans on it: mappings, loads and stores; DMA with a device file, and of an NVMe drive
//! ```
//!
//! The device must be bound to `vfio-pci` ([`pci_driver`](crate::pci_driver)). Opening resets it, if it can be reset: the
//! contents of its memory may be lost. Bus mastering is on only while a plan makes transfers, and while an NVMe drive is
//! identified. When the address space is closed, at the latest by the end of the process, the kernel turns it off, removes every
//! mapping and unpins every page.
//!
//! | file | contents |
//! | --- | --- |
//! | `interface` | [`VfioInterface`], and its choice |
//! | `address_space` | [`AddressSpace`]: opening, properties, map and unmap |
//! | `container`, `iommufd` | the same by each interface |
//! | `physical` | physical addresses, for devices without an IOMMU |
//! | `properties` | [`IommuProperties`] |
//! | `device`, `region`, `interrupt` | [`VfioDevice`], its regions, and interrupts as eventfds |
//! | `ioctl`, `capability` | the ioctls of VFIO, one function each, and the chains in their answers |
//! | `iommufd_ioctl` | those of iommufd |
//! | `iommu` | [`Iommu`], the backend of `lanemark-dma` |
//! | `bars` | BARs mapped through the device file, for the windows of `linux_sysfs` |
//! | `options` | [`VfioOptions`], and the checks before a device is opened |
//! | `machine` | [`VfioMachine`] |
//! | `dma_plan`, `transfers` | plans with DMA: what an engine can do, and its run |
//! | `engine`, `registers` | the engine of a device file, and accesses to its registers |
//! | `job` | one transfer of an engine, and why it did not end |
//! | `xdma` | an engine with descriptors in host memory, of the layout `xdma` |
//! | `drive`, `own_queue`, `drive_cmb` | an NVMe drive, by [`nvme`](crate::nvme): its runs, its queues, and its controller memory buffer |
//! | `cmb_space` | such a buffer as memory for loads and stores, or for another device |
//! | `facts` | facts of a device behind VFIO |
//! | `unmapped` | a read of a drive to memory that was unmapped just before |
//! | `peer` | [`PeerRange`]: memory of another device, mapped for an engine or a drive |
//! | `host_window` | host memory mapped for a device |
//! | `faults` | DMA faults in the kernel's log |
//! | `rehearsal` | dry run |
//! | `error` | errors, each with a remedy |
//!
//! Verified on: QEMU's `intel-iommu`, `edu`, `ivshmem` and `nvme` under Linux 6.1, its `virtio-iommu` under Linux 6.12, and
//! by iommufd under a Linux 6.12 built for it (`checks/guest`). Not yet verified on a real IOMMU. MSI by a drive has not been run.

mod address_space;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod bars;
mod capability;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod cmb_space;
mod container;
mod device;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod dma_plan;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod drive;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod drive_cmb;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod engine;
mod error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod facts;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod faults;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod host_window;
mod interface;
mod interrupt;
mod ioctl;
mod iommu;
mod iommufd;
mod iommufd_ioctl;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod job;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
mod nvme_class;
mod options;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod own_queue;
mod peer;
mod physical;
mod properties;
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

pub use address_space::{AddressSpace, Joined};
pub use device::{DRIVER, VfioDevice};
pub use error::VfioError;
pub use interface::VfioInterface;
pub use interrupt::VfioInterrupt;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use interrupt::VfioVectors;
pub use iommu::Iommu;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use machine::VfioMachine;
pub use options::VfioOptions;
pub use peer::{NotAPeer, PeerRange};
pub use properties::{IommuProperties, IovaSpan};
pub use region::VfioRegion;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use rehearsal::{VfioNotes, VfioRehearsal};
pub use unmapped::UnmappedRead;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use unsupported::{VfioMachine, VfioNotes, VfioRehearsal};
