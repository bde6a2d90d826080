//! A switch: routes TLPs between its ports by address or requester ID.
//!
//! Ports: port 0 is the upstream port, the others are downstream. A TLP waits at its egress port, in a queue for each
//! ingress port, and returns the credits of the ingress port when it leaves. It therefore blocks no TLP to another
//! port. [`Switch::ready`] returns when a TLP can be forwarded.

use crate::fabric::link::Sent;
use crate::fabric::route::Routes;
use crate::index::PortIndex;
use crate::tlp::{Tlp, TlpKind};
use lanemark_platform::Forwarding;
use lanemark_units::Ticks;

/// Constants of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// From the header received (cut through) or the last bit received (store and forward) to the first bit sent.
    pub latency: Ticks,
    /// Cut through or store and forward.
    pub forwarding: Forwarding,
    /// For each port, whether requests that it receives are always sent upstream: ACS P2P Request Redirect.
    pub redirects: Vec<bool>,
}

/// A switch; its ports hold all of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    spec: Spec,
    /// The routing table.
    pub routes: Routes<PortIndex>,
}

impl Switch {
    /// Creates a switch with the routing table of its position in the tree.
    #[must_use]
    pub fn new(spec: Spec, routes: Routes<PortIndex>) -> Switch {
        Switch { spec, routes }
    }

    /// Returns the egress port of a TLP received at `came_in_at`; `None` if there is none.
    #[inline]
    #[must_use]
    pub fn way_of(&self, tlp: &Tlp, came_in_at: PortIndex) -> Option<PortIndex> {
        let is_request = matches!(tlp.kind, TlpKind::MRd | TlpKind::MWr);
        if is_request && self.spec.redirects[came_in_at] {
            return Some(PortIndex::UPSTREAM);
        }
        // A destination that is not below lies upstream; a TLP does not return to its ingress port.
        let port = self.routes.below(tlp).unwrap_or(PortIndex::UPSTREAM);
        (port != came_in_at).then_some(port)
    }

    /// Returns when a TLP can be forwarded to a link on which it takes `time_out`. With cut through, its last bit
    /// must arrive before it is needed.
    #[inline]
    #[must_use]
    pub fn ready(&self, sent: &Sent, time_out: Ticks) -> Ticks {
        let start = match self.spec.forwarding {
            Forwarding::StoreAndForward => sent.arrives,
            Forwarding::CutThrough => sent.header_arrives.max(Ticks(sent.arrives.0.saturating_sub(time_out.0))),
        };
        start + self.spec.latency
    }
}
