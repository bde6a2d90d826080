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
//! | [`conventional`] | power management, MSI, MSI-X and what is older than PCIe |
//! | [`aer`] | which errors happened, and which are contained? |
//! | [`aer_error`] | how bad is each of them, and who notices it? |
//! | [`aer_register`] | which of its registers does software write? |
//! | [`isolation`], [`translation`] | who may reach whom, by which addresses? |
//! | [`virtual_function`], [`resizable_bar`] | how many functions, how large a BAR? |
//! | [`low_power`] | how long may it sleep? |
//! | [`physical`], [`flit`] | how did the link train? |
//! | [`traffic`] | virtual channels, multicast, hints, time |
//! | [`identity`], [`exchange`] | who made it, and what does it keep secret? |
//! | [`writer`] | which bytes say this? |
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

pub mod aer;
pub mod aer_error;
pub mod aer_register;
pub mod bar;
pub mod capability;
pub mod chain;
pub mod conventional;
pub mod exchange;
pub mod flit;
pub mod header;
pub mod identity;
pub mod isolation;
pub mod low_power;
pub mod pcie;
pub mod physical;
pub mod region;
pub mod resizable_bar;
mod space;
pub mod table;
pub mod traffic;
pub mod translation;
mod unknown;
pub mod virtual_function;
pub mod writer;

pub use aer::{ErrorReporting, Errors};
pub use aer_error::{AER_ERRORS, AerError, AerRow, Layer, Severity};
pub use aer_register::AerRegister;
pub use bar::{Bar, BarKind};
pub use capability::{Capability, CapabilityId, CapabilityRow, capability_row};
pub use chain::{BreakKind, ChainFault, ChainList};
pub use flit::FourteenBitTags;
pub use header::{BusNumbers, HeaderType, Windows};
pub use isolation::AccessControl;
pub use low_power::L1Substates;
pub use pcie::{Aspm, LinkSpeed, Pcie, PortType, TagBits};
pub use physical::Equalization;
pub use region::{FieldValue, Region};
pub use resizable_bar::ResizableBar;
pub use space::ConfigSpace;
pub use table::{Reading, Spot};
pub use unknown::Unknown;
pub use virtual_function::VirtualFunctions;
pub use writer::{Structure, WriteError, Writer};
