//! Configuration space: what a function says about itself, from its bytes.
//!
//! [`ConfigSpace`] is a view over 64, 256 or 4096 bytes, or however many could be read; nothing is copied and
//! nothing unseen is guessed. (The packets that read and write it are [`crate::ConfigRequest`].)
//!
//! | module | question |
//! | --- | --- |
//! | [`table`] | how are registers written down? |
//! | [`region`] | what do the bytes of one structure say? |
//! | [`header`] | what is it, and where is it in the tree? |
//! | [`bar`] | which ranges does it answer to? |
//! | [`chain`] | which capabilities does it have, and where is the list broken? |
//! | [`capability`] | which capability is this? |
//! | [`pcie`] | link, payload, tags: the PCI Express capability |
//!
//! ```
//! use lanemark_wire::{Lanes, config::{ConfigSpace, LinkSpeed}};
//!
//! // A function with a PCI Express capability at 0x40: Gen3 x8, trained at Gen3 x4.
//! let mut bytes = [0u8; 256];
//! bytes[..4].copy_from_slice(&[0x86, 0x80, 0x34, 0x12]);
//! bytes[0x06] = 0x10; // Status: capability list
//! bytes[0x34] = 0x40;
//! bytes[0x40..0x44].copy_from_slice(&[0x10, 0x00, 0x02, 0x00]); // v2 endpoint
//! bytes[0x4c] = 0x83; // LnkCap: 8 GT/s, x8
//! bytes[0x52] = 0x43; // LnkSta: 8 GT/s, x4
//! let space = ConfigSpace::new(&bytes);
//! assert_eq!((space.vendor_id()?, space.device_id()?), (0x8086, 0x1234));
//! let pcie = space.pcie()?;
//! assert_eq!((pcie.max_link_speed()?, pcie.max_link_width()?), (LinkSpeed::Gt8, Lanes::X8));
//! assert_eq!((pcie.link_speed()?, pcie.link_width()?), (LinkSpeed::Gt8, Lanes::X4));
//! assert_eq!(space.chain_faults().count(), 0);
//! # Ok::<(), lanemark_wire::config::Unknown>(())
//! ```

pub mod bar;
pub mod capability;
pub mod chain;
pub mod conventional;
pub mod header;
pub mod pcie;
pub mod region;
mod space;
pub mod table;
mod unknown;

pub use bar::{Bar, BarKind};
pub use capability::{Capability, CapabilityId, CapabilityRow, capability_row};
pub use chain::{BreakKind, ChainFault, ChainList};
pub use header::{BusNumbers, HeaderType, Windows};
pub use pcie::{Aspm, LinkSpeed, Pcie, PortType, TagBits};
pub use region::{FieldValue, Region};
pub use space::ConfigSpace;
pub use table::{Reading, Spot};
pub use unknown::Unknown;
