//! A namespace of an NVMe drive, through the kernel's driver: the drive keeps its driver, and its file systems stay mounted.
//!
//! ```text
//!  DriveNode::find     /dev/ngXnY --sysfs--> controller, PCI function, limits
//!  NvmeMachine::open   Identify; a first Read decides between both ways
//!    Ring              IORING_OP_URING_CMD with NVME_URING_CMD_IO: several outstanding commands
//!    Calls             NVME_IOCTL_IO_CMD, one command at a time, where io_uring is not permitted or not supported
//! ```
//!
//! **No command changes the medium, and no setting of the drive:** the only commands are Identify and Read, and the file is
//! opened for reading.
//!
//! | file | contents |
//! | --- | --- |
//! | `node` | [`DriveNode`]: the character device of a namespace, and what sysfs says about it |
//! | `passthrough` | commands as the kernel takes them, and the ioctls |
//! | `ring` | commands through `io_uring` |
//! | `queue` | both ways as a queue for [`nvme`](crate::nvme) |
//! | `machine` | [`NvmeMachine`] |
//! | `rehearsal` | dry run |
//! | `error` | errors, each with a remedy |
//!
//! Verified on: QEMU's `nvme` under Linux 6.1 (`checks/guest`). Not yet verified on a real drive.

mod error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
mod node;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod passthrough;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod queue;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod rehearsal;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod ring;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod unsupported;

pub use error::DriveError;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use machine::NvmeMachine;
pub use node::DriveNode;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use rehearsal::NvmeRehearsal;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use unsupported::{NvmeMachine, NvmeRehearsal};
