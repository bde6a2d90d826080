//! The root complex: requests of cores, root ports, routing, peer-to-peer forwarding and ingress.
//!
//! ```text
//!  cores --> core requests --+--> root port 0..n --> links
//!                            |
//!  memory, peers <-- [IOMMU] <-- ingress <-- root port 0..n <-- links
//! ```
//!
//! It owns these parts, in files of their own, and the completions in flight from root ports to cores. It forwards
//! peer-to-peer TLPs to the fabric. The board moves all other TLPs between it, the fabric, the IOMMU and the DMA memory.

use crate::critical_path::{Milestone, Place};
use crate::events::Events;
use crate::fabric::Fabric;
use crate::fabric::credit::Cost;
use crate::fabric::route::Routes;
use crate::host::core_requests::{self, CoreRequests};
use crate::host::peer_forwarder::{self, PeerForwarder};
use crate::host::rc_ingress::RcIngress;
use crate::host::root_port::RootPort;
use crate::index::RootPortIndex;
use crate::ports::{Port, root_input};
use crate::requester::ROOT_COMPLEX;
use crate::steady::Survey;
use crate::tlp::{Tlp, TlpKind};
use lanemark_engine::{Slab, Wire};
use lanemark_machine::Cause;
use lanemark_platform::Platform;
use lanemark_units::Ticks;

/// A root port without its link.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) port: RootPort,
    /// Completions for cores, in flight on the link.
    pub(crate) upstream: Wire<Tlp>,
}

/// State of the root complex.
#[derive(Debug)]
pub(crate) struct RootComplex {
    pub(crate) requests: CoreRequests,
    pub(crate) roots: Vec<Root>,
    pub(crate) routes: Routes<RootPortIndex>,
    pub(crate) peers: PeerForwarder,
    pub(crate) ingress: RcIngress,
}

impl RootComplex {
    /// Creates the idle root complex of a platform with these root ports and addresses below them.
    pub(crate) fn new(platform: &Platform, ports: Vec<RootPort>, routes: Routes<RootPortIndex>) -> RootComplex {
        RootComplex {
            requests: CoreRequests::new(core_requests::Spec::new(platform)),
            peers: PeerForwarder::new(peer_forwarder::Spec::new(platform), ports.len()),
            ingress: RcIngress::new(platform.root_complex.request_ns.value, ports.len()),
            roots: ports.into_iter().map(|port| Root { port, upstream: Wire::default() }).collect(),
            routes,
        }
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let RootComplex { requests, roots, routes: _, peers, ingress } = self;
        requests.visit(view);
        for Root { port, upstream } in roots {
            port.visit(view);
            upstream.visit(view, Survey::tlp);
        }
        peers.visit(view);
        ingress.visit(view);
    }

    /// Returns the root port above an address; the first one for an address that is below none.
    #[inline]
    pub(crate) fn port_above(&self, address: u64) -> RootPortIndex {
        let found = if self.roots.len() == 1 { None } else { self.routes.of_address(address) };
        found.unwrap_or(RootPortIndex::FIRST)
    }

    /// Returns the input of the peer reads that the root complex issues itself, on the link down from a root port.
    #[inline]
    pub(crate) fn own_input(&self) -> usize {
        root_input::own(self.roots.len())
    }

    /// Returns when every request now at root ports has reached memory.
    pub(crate) fn reached_at(&self) -> Option<Ticks> {
        self.roots.iter().map(|root| root.port.reached_at()).max()
    }

    /// Returns the time from which no past request delays a new one.
    pub(crate) fn quiet_at(&self) -> Ticks {
        self.roots.iter().map(|root| root.port.quiet_at()).fold(self.ingress.quiet_at(), Ticks::max)
    }

    /// Sets the extra one-way latency to memory of another socket.
    pub(crate) fn set_remote(&mut self, remote: Ticks) {
        self.roots.iter_mut().for_each(|root| root.port.set_remote(remote));
    }

    /// Returns whether the cache state of written lines affects the timing of a root port.
    pub(crate) fn is_held_by_lines(&self) -> bool {
        self.roots.iter().any(|root| root.port.is_held_by_lines())
    }

    /// Returns the bytes that a device wrote to host memory, and the time of the last of them.
    pub(crate) fn written_by(&self, requester: u16) -> (u64, Ticks) {
        let bytes = self.roots.iter().map(|root| root.port.written_by(requester)).sum();
        let seen = self.roots.iter().map(|root| root.port.seen_at(requester)).max();
        (bytes, seen.unwrap_or(Ticks::ZERO))
    }

    /// Returns when the last write of a device became visible, and the milestone.
    pub(crate) fn last_written_by(&self, requester: u16) -> (Ticks, Milestone) {
        let seen = self.roots.iter().map(|root| root.port.last_seen(requester)).max_by_key(|seen| seen.0);
        seen.unwrap_or((Ticks::ZERO, Milestone::NONE))
    }

    /// Returns the bytes that a channel of a device wrote to host memory.
    pub(crate) fn written_on(&self, requester: u16, channel: u16) -> u64 {
        self.roots.iter().map(|root| root.port.written_on(requester, channel)).sum()
    }

    /// Returns whether a range is DMA memory.
    pub(crate) fn is_memory(&self, start: u64, bytes: u64) -> bool {
        self.roots.first().is_some_and(|root| root.port.lends(start, bytes))
    }

    /// Sends a completion from a root port to its core, or to the requester of an injected read, at `at`.
    #[inline]
    pub(crate) fn send_upstream(&mut self, events: &mut Events, port: RootPortIndex, at: Ticks, tlp: Tlp) {
        let upstream = &mut self.roots[port].upstream;
        upstream.send(at, tlp);
        events.set(Port::Return(port), upstream.due());
    }

    /// Forwards a TLP that root port `port` checks at `at`, if it is for a card or completes a peer read; returns
    /// whether it did.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    pub(crate) fn forward(
        &mut self,
        fabric: &mut Fabric,
        events: &mut Events,
        port: RootPortIndex,
        at: Ticks,
        tlp: &Tlp,
    ) -> bool {
        if tlp.requester == ROOT_COMPLEX {
            self.peers.receive(at, port, port, *tlp);
            events.set(Port::Peers, self.peers.due());
            return true;
        }
        let Some(other) = self.routes.below(tlp).filter(|_| self.peers.forwards(tlp.kind)) else { return false };
        if self.peers.splits(tlp.kind) {
            self.peers.receive(at, port, other, *tlp);
            events.set(Port::Peers, self.peers.due());
        } else {
            fabric.offer(events, other.down(), root_input::from(port), self.peers.ready(at), *tlp);
        }
        true
    }

    /// Processes the arrivals of the root complex's own reads.
    #[inline(never)]
    pub(crate) fn step_peers(&mut self, fabric: &mut Fabric, events: &mut Events, slab: &mut Slab) {
        self.peers.step(events.now, slab, &mut events.path);
        while let Some(out) = self.peers.out.pop_front() {
            let milestone = events.path.add(out.tlp.milestone, out.at, Place::ROOT_COMPLEX, Cause::Transit);
            fabric.offer(events, out.port.down(), self.own_input(), out.at, Tlp { milestone, ..out.tlp });
        }
        self.return_peer_credits(fabric, events);
        events.set(Port::Peers, self.peers.due());
    }

    /// Records that a TLP of the root complex has left.
    pub(crate) fn own_left(&mut self, fabric: &mut Fabric, events: &mut Events, tlp: &Tlp) {
        if tlp.kind == TlpKind::MRd {
            self.peers.left(tlp.tag);
            self.return_peer_credits(fabric, events);
        }
    }

    /// Ends a read of the root complex below `port` by this UR completion.
    pub(crate) fn refuse_peer(&mut self, events: &mut Events, port: RootPortIndex, refusal: Tlp) {
        self.peers.refuse(events.now, port, refusal);
        events.set(Port::Peers, self.peers.due());
    }

    /// Returns the credits of reads whose last piece has left.
    fn return_peer_credits(&mut self, fabric: &mut Fabric, events: &mut Events) {
        while let Some(port) = self.peers.freed.pop_front() {
            fabric.return_credits(
                events,
                port.up(),
                Cost::of(&Tlp::of(TlpKind::MRd)),
                Cause::RootComplex,
                events.path.latest(),
            );
        }
    }
}
