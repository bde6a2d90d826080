//! A switch: sends what comes in at one port out at another, by address or by who asked.
//!
//! Ports: port 0 looks up, the others down. What waits to go on waits at the port it leaves by, a queue for each port
//! it can have come in at, and gives the credits of that port back when it leaves; so nothing that goes elsewhere
//! waits behind it. [`Switch::ready`] says when a TLP can go on.

use crate::fabric::link::Sent;
use crate::fabric::route::Routes;
use crate::index::PortIndex;
use crate::tlp::{Tlp, TlpKind};
use lanemark_platform::Forwarding;
use lanemark_units::Ticks;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// From a header in to its first bit out, or from the last bit in to the first one out.
    pub latency: Ticks,
    /// Which of the two.
    pub forwarding: Forwarding,
    /// Of each port, whether requests that come in there go up whoever they are for: ACS P2P Request Redirect.
    pub redirects: Vec<bool>,
}

/// A switch; all that changes in it lies at its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    spec: Spec,
    /// Which port leads where.
    pub routes: Routes<PortIndex>,
}

impl Switch {
    /// With the routes that its place in the tree gives it.
    #[must_use]
    pub fn new(spec: Spec, routes: Routes<PortIndex>) -> Switch {
        Switch { spec, routes }
    }

    /// The port by which a TLP goes on that came in at another one; `None` if nowhere.
    #[inline]
    #[must_use]
    pub fn way_of(&self, tlp: &Tlp, came_in_at: PortIndex) -> Option<PortIndex> {
        let is_request = matches!(tlp.kind, TlpKind::MRd | TlpKind::MWr);
        if is_request && self.spec.redirects[came_in_at] {
            return Some(PortIndex::UPSTREAM);
        }
        // What is nowhere below goes up; what came from there has nowhere to go.
        let port = self.routes.below(tlp).unwrap_or(PortIndex::UPSTREAM);
        (port != came_in_at).then_some(port)
    }

    /// When a TLP that came so can go on by a link on which it takes `time_out`: cut through, no earlier than that its
    /// last bit is there when it is needed.
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
