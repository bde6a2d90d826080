//! Real devices as data: identity, BARs, registers of the DMA engine, interrupts, and ranges that are harmless to access.
//!
//! A [`DeviceFile`] is read from TOML text. So a user's own card can make DMA without new code. The keys are declared once,
//! in `spec.rs`; the reader, its messages, the JSON Schema ([`schema`]) and the table in the guide ([`key_table`]) follow
//! from them. This crate opens no files and accesses no device.
//!
//! ```
//! let edu = lanemark_devices::built_in("edu").unwrap()?;
//! assert_eq!((edu.id.vendor, edu.engine.unwrap().limits.address_bits), (0x1234, 28));
//! # Ok::<(), lanemark_devices::DeviceFileError>(())
//! ```
//!
//! | file | contents |
//! | --- | --- |
//! | `device_file` | [`DeviceFile`]: the types, and the checks of several keys |
//! | `engine` | [`Engine`]: an engine that is started by registers |
//! | `descriptors` | [`DescriptorEngine`]: an engine that fetches descriptors, and [`DmaLimits`] of any engine |
//! | `xdma` | [`xdma`]: registers and descriptors of the layout `xdma` |
//! | `spec` | sections and keys, each declared once |
//! | `read` | reader, with file, line and key in each message |
//! | `schema` | JSON Schema and Markdown table of the keys |
//! | `built_in` | the files that come with the program |

#![forbid(unsafe_code)]

mod built_in;
mod descriptors;
mod device_file;
mod engine;
mod error;
mod read;
mod schema;
mod spec;
pub mod xdma;

pub use built_in::{BuiltIn, DEVICES, built_in};
pub use descriptors::{DescriptorEngine, DmaLimits, Layout, Polled};
pub use device_file::{BarOf, Design, DeviceFile, Harmless, Identifiers, Interrupt, InterruptKind};
pub use engine::{Direction, Engine, StartedBy};
pub use error::{DeviceFileError, FileProblem};
pub use schema::{key_table, schema};
pub use spec::SCHEMA;
