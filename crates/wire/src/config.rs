//! Configuration space: registers and capabilities of a function, decoded from bytes.
//!
//! [`ConfigSpace`] is a view over 64, 256 or 4096 bytes, or as many as could be read. It copies nothing and guesses no
//! unread bytes. (The TLPs that access configuration space are [`crate::ConfigRequest`].)
//!
//! | module | contents |
//! | --- | --- |
//! | [`table`] | how registers and fields are described |
//! | [`region`] | reading a structure by its table |
//! | [`header`] | the header: IDs, class, bus numbers, windows |
//! | [`bar`] | base address registers |
//! | [`chain`] | the capability lists and their faults |
//! | [`capability`] | the capabilities known by name |
//! | [`pcie`] | the PCI Express capability: link, payload, tags |
//! | [`conventional`] | power management, MSI, MSI-X and capabilities older than PCIe |
//! | [`aer`] | Advanced Error Reporting and Downstream Port Containment |
//! | [`aer_error`] | severity and layer of each AER error |
//! | [`aer_register`] | the AER registers that software writes |
//! | [`isolation`], [`translation`] | ACS, ARI, ATS, PRI, PASID |
//! | [`virtual_function`], [`resizable_bar`] | SR-IOV, Resizable BAR |
//! | [`low_power`] | LTR, L1 substates, power budgeting |
//! | [`physical`], [`flit`] | equalization and lane status, flit mode |
//! | [`traffic`] | virtual channels, multicast, TPH, PTM |
//! | [`identity`], [`exchange`] | serial number and vendor-specific capabilities, DOE and IDE |
//! | [`writer`] | encoding registers into bytes |
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
mod capability_id;
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
mod structures;
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
pub use capability::{Capability, CapabilityRow, capability_row};
pub use capability_id::CapabilityId;
pub use chain::{BreakKind, ChainFault, ChainList};
pub use flit::FourteenBitTags;
pub use header::{BusNumbers, HeaderType, Windows};
pub use isolation::AccessControl;
pub use low_power::L1Substates;
pub use pcie::{Aspm, LinkSpeed, Pcie, PortType, TagBits};
pub use physical::Equalization;
pub use region::FieldValue;
pub use resizable_bar::ResizableBar;
pub use space::ConfigSpace;
pub use table::{Reading, Region, Spot};
pub use unknown::Unknown;
pub use virtual_function::VirtualFunctions;
pub use writer::{Structure, WriteError, Writer};
