//! How a card that no longer works is brought back while the machine runs, from an inventory alone.
//!
//! A card that is programmed through another cable drops its link. The port above notices: Surprise Down is fatal, a message goes
//! to the root port, and the system acts on it, in the worst way by a panic, and a port with downstream port containment keeps
//! the link down. So card and ports are told to report nothing first, and what their masks held is put back at the end. No
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

/// Why there is nothing to be done for a card.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRecovery {
    /// Nothing is there.
    #[error("there is no function {address} in {source_name}; it has {known}")]
    NoFunction {
        /// Which was asked for.
        address: Address,
        /// Where.
        source_name: String,
        /// Which are there.
        known: String,
    },
    /// It is no card.
    #[error("{address} is a bridge and no card; {below}")]
    Bridge {
        /// Which.
        address: Address,
        /// What is below it, in words.
        below: String,
    },
    /// It is a virtual function.
    #[error(
        "{address} is a virtual function, which goes and comes with its physical one: ask about that, mostly .0 of the same device"
    )]
    Virtual {
        /// Which.
        address: Address,
    },
    /// It has no link.
    #[error(
        "{address} is integrated into the root complex: no port is above it and no link leads to it, so it cannot be taken out and found again; reset it through its driver, or restart the machine"
    )]
    Integrated {
        /// Which.
        address: Address,
    },
    /// It is no PCI Express.
    #[error(
        "{address} is conventional PCI: it has no link that comes up again, and no advanced error reporting; restart the machine"
    )]
    Conventional {
        /// Which.
        address: Address,
    },
    /// The port above it was not seen.
    #[error(
        "no port above {address} is in {source_name}: whose errors to mask and which bus to scan is not known; bring all functions of the machine (lspci -xxxx without -s, or the tar that the guide says how to make)"
    )]
    NoPort {
        /// Which.
        address: Address,
        /// Where.
        source_name: String,
    },
}

/// A card: its functions, and the ports between it and the processors, the nearest first.
pub(crate) struct Card<'a> {
    functions: Vec<&'a Function>,
    ports: Vec<&'a Function>,
}

/// Addresses that are shown where there are more.
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
                0 => "nothing is below it".to_owned(),
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

    /// The port right above it.
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
