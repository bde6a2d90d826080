//! A machine as data: cores and their buffers, driver costs, root complex, links, endpoint.
//!
//! A [`Platform`] is read from TOML text by [`Platform::parse`]. Every value in it has an origin: a source, a stated
//! assumption, or the figures it was fitted to. The keys with their units, ranges and defaults are declared once, in
//! [`spec`]. The reader, the checks, the JSON Schema ([`schema`]) and the table in the guide ([`key_table`]) are
//! derived from them. This crate opens no files and computes no results.
//!
//! To add a section, see `sections.rs`; to add a key, add a line to its `section!` in [`spec`].

#![forbid(unsafe_code)]

mod built_in;
mod check;
mod document;
mod draft;
mod fault;
mod fifos;
mod insert;
mod iommu;
mod kernel;
mod key;
mod layers;
mod lesser;
mod loads;
mod mailbox;
pub mod memcpy;
pub mod memory_type;
mod msi_x;
mod notes;
mod occurrence;
mod param;
mod parameter;
mod part;
mod path;
mod place;
mod platform;
mod port;
mod preset;
mod problem;
mod read;
mod registers;
mod replaced;
mod retimer;
mod runtime;
mod schema;
mod section;
mod sections;
mod skeleton;
pub mod spec;
mod step;
mod text;
mod unknown;

pub use built_in::{CARDS, HOSTS, PRESETS, Preset};
pub use document::{Document, Open, is_path};
pub use draft::{Draft, ValueOf};
pub use lesser::Lesser;
pub use loads::Loads;
pub use mailbox::{KernelDoorbell, Mailbox};
pub use msi_x::VectorTable;
pub use param::{Counts, Origin, Origins, Param};
pub use parameter::Parameter;
pub use part::Part;
pub use path::{default_of, range_of, search_bounds};
pub use platform::{Platform, ROOT, SCHEMA};
pub use port::{CARD, LinkEnds, PeerRoute, upper_port};
pub use preset::{host_with_card, preset};
pub use problem::{PlatformError, Problem};
pub use schema::{key_table, schema};
pub use sections::SectionPart;
pub use skeleton::{Like, new_file};
pub use spec::{
    Bar, ChunkTiming, Coherence, Core, DeviceMemory, Dma, DmaRead, DmaWrite, Driver, Endpoint, Fault, FaultKind, Fifos,
    FlushLine, Forwarding, Iommu, Kernel, Link, Memory, Merging, MsiX, NoFault, OrderingChoice, Port, ReadData, Region,
    RegionKind, Registers, Retimer, RootComplex, Runtime, SectionRow, Slot, Switch, WcPartialFlush,
};
pub use step::Step;
pub use unknown::{Limits, Unknown};
