//! A card with AMD's XDMA core, through the character devices of its Linux driver.
//!
//! ```text
//!  XdmaCard::find      /dev/xdmaN_h2c_0 ... --sysfs--> channels, PCI function
//!  XdmaMachine::open   one file per channel, locked against other programs
//!    pwrite h2c        the card reads host memory: one call per transfer
//!    pread  c2h        the card writes host memory
//!    mmap   user       loads and stores to the user BAR, if ranges of it are named
//! ```
//!
//! A transfer reads or overwrites memory of the card at an AXI address. A run uses only the range that the user declares
//! overwritable ([`CardMemory`]). Streams (AXI4-Stream) have no addresses; their runs fail. The files of events are not used:
//! an event is an interrupt of the design's own logic, which no transfer raises.
//!
//! | file | contents |
//! | --- | --- |
//! | `card` | [`XdmaCard`]: the channels, and what sysfs says about them |
//! | `card_memory` | [`CardMemory`]: the range of the card's memory that may be overwritten |
//! | `plan` | check of plans: the streams of transfers, one per channel, and their places in the card's memory |
//! | `channel` | one call of the driver |
//! | `stream` | the calls of one channel, or of several at once |
//! | `user` | the user BAR, mapped through its file |
//! | `machine` | [`XdmaMachine`]: samples, and verification of the bytes |
//! | `rehearsal` | dry run |
//! | `error` | errors, each with a remedy |
//!
//! Source: the driver `xdma` of `github.com/Xilinx/dma_ip_drivers`, whose interface this is. Verified on: a test module with the
//! same device files and error codes under Linux 6.1 (`checks/guest/xdma`). Not yet verified on a real card.

mod card;
mod card_memory;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod channel;
mod error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod plan;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod rehearsal;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod stream;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod unsupported;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod user;

pub use card::XdmaCard;
pub use card_memory::{CardMemory, NotCardMemory};
pub use error::XdmaError;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use machine::XdmaMachine;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use rehearsal::XdmaRehearsal;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use unsupported::{XdmaMachine, XdmaRehearsal};
