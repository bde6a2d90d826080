//! NVM Express: the registers, queues and commands of a drive, without an operating system.
//!
//! ```text
//!  Controller::enable   CAP, AQA, ASQ, ACQ, CC.EN --> CSTS.RDY, within the time of CAP.TO
//!  Controller           Identify, Set Features (Number of Queues), Create I/O CQ and SQ; then reads, flushes and writes
//!  disable              CC.EN = 0 --> CSTS.RDY = 0: the controller makes no DMA afterwards
//! ```
//!
//! **Nothing is written to the medium unless the user names the namespace** (`--destructive`): of the NVM command set, the code
//! has Read and Flush, and Write for that case.
//!
//! Accesses go through two traits: [`Bar`] for registers, with [`Doorbell`], and [`DmaMemory`] for queues and data, with `Slots`
//! for the entries of a queue. `linux_vfio` implements them; the tests use a fake controller. Every wait is bounded. `linux_nvme` has no controller: it hands the same commands to the
//! kernel's driver. Both run plans by [`DriveRun`], each through its own [`DriveQueue`].
//!
//! | file | contents |
//! | --- | --- |
//! | `register` | the register table and the fields of CAP, CC and CSTS |
//! | `command` | the commands as submission queue entries |
//! | `status` | the status of a completion, by name |
//! | `queue` | a pair of a submission and a completion queue, in host memory or in the controller memory buffer |
//! | `ring` | positions in both, and completions |
//! | `polled` | the loop that is measured: one pair, whose completions are polled |
//! | `several` | several pairs, served by one core in turns |
//! | `cmb` | the controller memory buffer |
//! | `data`, `prp`, `sgl` | data pointers: PRP entries and lists, SGL descriptors and segments |
//! | `identify` | the data of Identify |
//! | `controller` | [`Controller`] |
//! | `limits` | properties of a drive that decide which plans it can run |
//! | `plan` | check of plans: the reads and writes that a plan asks for, or the reason for a refusal |
//! | `direction` | the transfers of one direction of a plan, and their blocks |
//! | `drive_queue` | what a run needs of a queue of commands |
//! | `run` | runs of these plans through any queue, and verification of the bytes |
//! | `host_entry` | entries of queues in host memory |
//! | `submission_path` | the commands of a queue pair and of a bare loop, for `make bench` |
//! | `error` | errors, each with a remedy |
//!
//! Verified on: QEMU's `nvme` under Linux 6.1 (`checks/guest`). Not yet verified on a real drive.

mod cmb;
mod command;
mod controller;
mod data;
mod direction;
mod drive_queue;
mod error;
#[cfg(test)]
mod fake;
mod host_entry;
mod identify;
mod limits;
mod memory;
mod plan;
mod polled;
mod prp;
mod queue;
mod register;
mod ring;
mod run;
mod several;
mod sgl;
mod status;
mod submission_path;

pub(crate) use cmb::{Cmb, CmbUses, EnabledSpace, MappedCmb, has_cmb_control};
pub(crate) use command::Command;
pub(crate) use controller::{Controller, IoInterrupts, IoQueues, is_stopped, queue_bytes};
pub(crate) use data::{DataPointer, list_bytes};
pub(crate) use drive_queue::{DataAt, DriveQueue, Spot};
pub(crate) use error::NvmeError;
pub(crate) use host_entry::HostSlots;
pub(crate) use identify::{ControllerData, Namespace};
pub(crate) use limits::{CmbData, CmbLimits, DriveLimits, Queues};
pub(crate) use memory::{Bar, DmaMemory, Doorbell, Interrupt, PAGE};
pub(crate) use plan::{DrivePlan, of as commands_of, whole};
pub(crate) use register::registers_end;
pub(crate) use run::{DataMemory, DriveRun, Places, deadline};
pub(crate) use several::MOST_PAIRS;
pub(crate) use status::Status;
pub use submission_path::{SubmittedBy, submitted};
