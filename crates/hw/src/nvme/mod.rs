//! NVM Express: the registers, queues and commands of a drive, without an operating system.
//!
//! ```text
//!  Controller::enable   CAP, AQA, ASQ, ACQ, CC.EN --> CSTS.RDY, within the time of CAP.TO
//!  Controller           Identify, Create I/O CQ and SQ; then reads, flushes and writes through one queue pair
//!  disable              CC.EN = 0 --> CSTS.RDY = 0: the controller makes no DMA afterwards
//! ```
//!
//! **Nothing is written to the medium unless the user names the namespace** (`--destructive`): of the NVM command set, the code
//! has Read and Flush, and Write for that case.
//!
//! Accesses go through two traits: [`Bar`] for registers, [`DmaMemory`] for queues and data. `linux_vfio` implements both;
//! the tests use a fake controller. Every wait is bounded. `linux_nvme` has no controller: it hands the same commands to the
//! kernel's driver. Both run plans by [`DriveRun`], each through its own [`DriveQueue`].
//!
//! | file | contents |
//! | --- | --- |
//! | `register` | the register table and the fields of CAP, CC and CSTS |
//! | `command` | the commands as submission queue entries |
//! | `status` | the status of a completion, by name |
//! | `queue` | a pair of a submission and a completion queue, in host memory or in the controller memory buffer |
//! | `cmb` | the controller memory buffer |
//! | `data`, `prp`, `sgl` | data pointers: PRP entries and lists, SGL descriptors and segments |
//! | `identify` | the data of Identify |
//! | `controller` | [`Controller`] |
//! | `plan` | check of plans: the reads or writes that a plan asks for, or the reason for a refusal |
//! | `run` | runs of these plans through any queue, and verification of the bytes |
//! | `error` | errors, each with a remedy |
//!
//! Verified on: QEMU's `nvme` under Linux 6.1 (`checks/guest`). Not yet verified on a real drive.

mod cmb;
mod command;
mod controller;
mod data;
mod error;
#[cfg(test)]
mod fake;
mod identify;
mod memory;
mod plan;
mod prp;
mod queue;
mod register;
mod run;
mod sgl;
mod status;

pub(crate) use cmb::{Cmb, MappedCmb};
pub(crate) use command::Command;
pub(crate) use controller::{Controller, IoInterrupt, IoQueues, QUEUE_BYTES, is_stopped};
pub(crate) use data::{DataPointer, list_bytes};
pub(crate) use error::NvmeError;
pub(crate) use identify::{ControllerData, Namespace};
pub(crate) use memory::{Bar, DmaMemory, Interrupt, PAGE};
pub(crate) use plan::{DriveLimits, DrivePlan, Queues, of as commands_of, whole};
pub(crate) use register::registers_end;
pub(crate) use run::{DriveQueue, DriveRun, Places, deadline};
pub(crate) use status::Status;
