//! Recovery of a card that no longer works, while the machine runs, planned from an inventory alone.
//!
//! Programming a card through a separate cable drops its link. The port above reports Surprise Down, a fatal error: a
//! message goes to the root port, and the system reacts, at worst by a panic; a port with Downstream Port Containment keeps
//! the link disabled. The plan therefore masks all errors of card and ports first, and restores the masks at the end. No
//! command is run here.
//!
//! Source: PCI Express Base Specification 6.0, sections 3.2.1 and 6.2.3.2.2; Linux, `Documentation/ABI/testing/sysfs-bus-pci` (`remove`,
//! `rescan`).

mod look;
mod masks;
mod steps;

pub use look::{differences, look, mask_differences};
pub use steps::{Programming, recovery};

use lanemark_inventory::{Address, Function, Inventory};
use lanemark_wire::config::PortType;

/// Reason why a card cannot be recovered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRecovery {
    /// No function has this address.
    #[error("no function {address} in {source_name}; it has {known}")]
    NoFunction {
        /// Requested address.
        address: Address,
        /// Source of the inventory.
        source_name: String,
        /// Available functions.
        known: String,
    },
    /// The function is a bridge.
    #[error("{address} is a bridge, not a card; {below}")]
    Bridge {
        /// Address of the bridge.
        address: Address,
        /// Functions below it, in words.
        below: String,
    },
    /// The function is a virtual function.
    #[error(
        "{address} is a virtual function, which is created by its physical function: recover that one, usually .0 of the same device"
    )]
    Virtual {
        /// Address of the function.
        address: Address,
    },
    /// The function has no link.
    #[error(
        "{address} is integrated into the root complex: there is no port above it and no link to it, so it cannot be removed and found by a rescan; reset it through its driver, or reboot"
    )]
    Integrated {
        /// Address of the function.
        address: Address,
    },
    /// The function is not PCI Express.
    #[error(
        "{address} is conventional PCI: it has no link that can be retrained, and no Advanced Error Reporting; reboot the machine"
    )]
    Conventional {
        /// Address of the function.
        address: Address,
    },
    /// The port above the card was not seen.
    #[error(
        "{source_name} contains no port above {address}, so the errors to mask and the bus to rescan are unknown; include all functions of the machine (lspci -xxxx without -s, or a tar made as in the guide)"
    )]
    NoPort {
        /// Address of the function.
        address: Address,
        /// Source of the inventory.
        source_name: String,
    },
}

/// Functions of a card, and the ports between it and the root complex, the nearest first.
pub(crate) struct Card<'a> {
    functions: Vec<&'a Function>,
    ports: Vec<&'a Function>,
}

/// Maximum number of addresses in a message.
const MOST_SHOWN: usize = 8;

fn listed(addresses: &[Address]) -> String {
    let shown = addresses.iter().take(MOST_SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match addresses.len() {
        0..=MOST_SHOWN => shown,
        more => format!("{shown} and {} more", more - MOST_SHOWN),
    }
}

impl<'a> Card<'a> {
    fn find(inventory: &'a Inventory, address: Address) -> Result<Card<'a>, NoRecovery> {
        let source_name = || inventory.source.to_string();
        let tree = inventory.tree();
        let all = &inventory.functions;
        let Some(place) = all.iter().position(|function| function.address == address) else {
            let known = listed(&all.iter().map(|function| function.address).collect::<Vec<_>>());
            return Err(NoRecovery::NoFunction { address, source_name: source_name(), known });
        };
        let function = &all[place];
        if function.is_bridge() || function.class.known().is_some_and(|class| class.base() == BRIDGES) {
            let below: Vec<Address> = tree.children(place).iter().map(|child| all[*child].address).collect();
            let below = match below.len() {
                0 => "no function is below it".to_owned(),
                _ => format!("below it: {}", listed(&below)),
            };
            return Err(NoRecovery::Bridge { address, below });
        }
        if function.is_virtual() {
            return Err(NoRecovery::Virtual { address });
        }
        if function.pcie().and_then(|express| express.kind.get()) == Some(PortType::IntegratedEndpoint) {
            return Err(NoRecovery::Integrated { address });
        }
        if function.express.is_absent() {
            return Err(NoRecovery::Conventional { address });
        }
        let above = tree.parent(place).ok_or_else(|| NoRecovery::NoPort { address, source_name: source_name() })?;
        let functions = tree.children(above).iter().map(|child| &all[*child]).filter(|child| !child.is_virtual());
        Ok(Card { functions: functions.collect(), ports: tree.path_up(above).map(|port| &all[port]).collect() })
    }

    /// Port directly above the card.
    fn port(&self) -> Address {
        self.ports[0].address
    }

    /// Functions and ports.
    fn all(&self) -> impl Iterator<Item = &'a Function> + '_ {
        self.functions.iter().chain(&self.ports).copied()
    }
}

/// Base class of bridges. Source: PCI Code and ID Assignment Specification 1.15, section 1.7.
const BRIDGES: u8 = 0x06;
