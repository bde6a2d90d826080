//! Links of a machine: the ports at both ends.

use lanemark_inventory::{Inventory, Tree};
use lanemark_wire::config::PortType;

/// Link, as indices of functions in the inventory.
pub(crate) struct Edge {
    /// Downstream port at the upper end, if it was seen.
    pub(crate) upper: Option<usize>,
    /// First function of the device at the lower end.
    pub(crate) lower: usize,
}

/// All links with a device at the lower end, ordered by its address.
pub(crate) fn edges(inventory: &Inventory, tree: &Tree) -> Vec<Edge> {
    let functions = &inventory.functions;
    let mut edges = Vec::new();
    for (place, function) in functions.iter().enumerate() {
        let parent = tree.parent(place);
        let first = match parent {
            Some(parent) => tree.children(parent).first() == Some(&place),
            None => !has_link_before(inventory, tree, place),
        };
        let upper = parent.filter(|parent| functions[*parent].link().is_some());
        if first && function.link().is_some() && hangs_below(inventory, tree, place) {
            edges.push(Edge { upper, lower: place });
        }
    }
    edges
}

/// Whether a lower function of the same device reports the link; for a device without a visible port.
fn has_link_before(inventory: &Inventory, tree: &Tree, place: usize) -> bool {
    let device = |place: usize| {
        let address = inventory.functions[place].address;
        (address.domain, address.bus(), address.function.device())
    };
    let before = (0..place).rev().take_while(|other| device(*other) == device(place));
    before.into_iter().any(|other| tree.parent(other).is_none() && inventory.functions[other].link().is_some())
}

/// Whether the link that a function reports is the one above it. If the port type was not seen, the position decides: a
/// link is below a root port, the inside of a switch is below an upstream port.
fn hangs_below(inventory: &Inventory, tree: &Tree, place: usize) -> bool {
    let function = &inventory.functions[place];
    match function.pcie().and_then(|express| express.kind.get()) {
        Some(kind) => {
            matches!(kind, PortType::Endpoint | PortType::LegacyEndpoint | PortType::UpstreamPort | PortType::PciBridge)
        }
        None => (tree.path_up(place).count() - 1) % 2 == 1,
    }
}
