//! Models of hard blocks for PCIe, as the design at their user interface sees them.
//!
//! An FPGA has a hard block between the link and the design of its user. The design has the ports of the block's user
//! interface; [`attach`] recognises them by name ([`INTERFACES`]) and makes a [`Block`]. The other side of a block is the
//! stream of TLPs of a [`Dut`](lanemark_dut::Dut): [`BehindBlock`] makes one of a [`Design`].
//!
//! | module | contents |
//! | --- | --- |
//! | `pins` | ports and their values |
//! | `interface` | what an interface is |
//! | `attach` | all interfaces, and the one that fits a design |
//! | `design` | a design with ports as a device under test |
//! | `stream` | no block: the plain stream of TLPs |
//! | `ultrascale` | AMD's UltraScale+ block |
//! | `series7` | AMD's 7-series block |
//! | `litepcie` | the PHY of `LitePCIe` |
//! | `raw` | common parts of blocks that exchange whole TLPs with the design |
//! | `link` | TLPs from beats and back, credits |
//! | `axi` | AXI4-Stream |
//!
//! A block is legal but inconvenient: its streams pause, and TLPs pass each other as far as its guide permits.
#![forbid(unsafe_code)]

mod attach;
mod axi;
mod design;
mod interface;
mod link;
mod litepcie;
mod pins;
mod raw;
mod series7;
mod stream;
mod ultrascale;

pub use attach::{AttachError, Attached, INTERFACES, attach, interface_of};
pub use design::{BehindBlock, Design};
pub use interface::{Block, Interface, PortRow};
pub use pins::{Pin, Pins, Port};
