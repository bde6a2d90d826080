//! Backends that run plans on hardware instead of in a simulator.
//!
//! Each backend is a folder and implements [`Machine`](lanemark_machine::Machine):
//!
//! - [`host_memory`]: ordinary memory of this machine; always available, and no plan can damage anything. Start with
//!   [`HostMemory::open`].
//! - [`linux_sysfs`]: BARs of a PCI device, mapped through Linux sysfs. Also a small library for programs: start with
//!   `linux_sysfs::Card::attach`.
//! - [`linux_lanemark`]: BARs of a PCI device with any memory type, and driver calls, through our kernel module. Start with
//!   `linux_lanemark::open`.
//! - [`linux_vfio`]: a device behind the real IOMMU, through VFIO. Start with `linux_vfio::AddressSpace::open`.
//! - [`linux_nvme`]: a namespace of an NVMe drive, which is read through the kernel's driver. Start with
//!   `linux_nvme::DriveNode::find`.
//! - [`linux_xdma`]: a card with AMD's XDMA core, through the character devices of its driver. Start with
//!   `linux_xdma::XdmaCard::find`.
//! - [`pci_driver`]: no backend, but what one needs: binding of a PCI function to another driver, and back.
//! - [`cuda`]: GPUs through the CUDA driver: DMA by kernels, copies, launches. Start with `cuda::CudaMachine::open`.
//! - [`opencl`]: devices of an OpenCL runtime. Start with `opencl::OpenClMachine::open`.
//! - [`sycl`]: devices of a SYCL runtime. Start with `sycl::SyclMachine::open`.
//! - [`dut_library`]: no backend, but a device under test in a shared library, for `lanemark-adversary`.
//!
//! [`DeviceCopy`] is a memory copy for programs that chooses its instruction by measurement.
//!
//! Apart from the C interface, this is the only crate with hand-written `unsafe`. Nothing here prints.
//!
//! | path | contents |
//! | --- | --- |
//! | `x86/` | the instructions between two time stamps, and the sampling, for all backends |
//! | `copy_to_device.rs` | the copy for programs, made of the same routines |
//! | `map_unmap.rs` | timing of the library `lanemark-dma`, with and without an IOMMU |
//! | `runtime_common/` | what CUDA, OpenCL and SYCL share: supported plans, kernel arguments, verification of results |
//! | `nvme/` | registers, queues and commands of NVMe drives, and runs of their reads, for `linux_vfio` and `linux_nvme` |
//! | `drive_options.rs` | options of an NVMe drive behind VFIO |
//! | `host_page_size.rs` | size of the pages of host memory for DMA |
//! | `host_pages.rs` | memory of this process that devices write |
//! | `kernel_source.rs` | the source of every kernel |
//! | `lines.rs` | what a dry run has recorded |
//! | `watchdog.rs` | threads that wait for calls of a runtime, which cannot be cancelled |
//!
//! Libraries of runtimes are loaded at run time; nothing is linked.

pub mod copy_to_device;
pub mod cuda;
mod destination;
mod drive_options;
pub mod dut_library;
mod ending;
pub mod host_memory;
mod host_page_size;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod host_pages;
mod interpreter;
mod kernel_source;
mod lines;
pub mod linux_lanemark;
pub mod linux_nvme;
pub mod linux_sysfs;
pub mod linux_vfio;
pub mod linux_xdma;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod map_unmap;
mod no_host_memory;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod no_machine;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod nvme;
pub mod opencl;
pub mod pci_driver;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod runtime_common;
pub mod sycl;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod watchdog;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86;

pub use copy_to_device::DeviceCopy;
pub use destination::Destination;
pub use drive_options::{
    CompletionBy, DataPlace, DataPointers, Destructive, DriveOptions, NotADriveOption, NotDestructive, QueuePlace,
};
pub use ending::end_at_once;
pub use host_memory::HostMemory;
pub use host_page_size::HostPageSize;
pub use interpreter::interpreter;
pub use kernel_source::every_kernel;
pub use lines::Lines;
pub use no_host_memory::NoHostMemory;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[doc(hidden)]
pub use nvme::{SubmittedBy, submitted};
