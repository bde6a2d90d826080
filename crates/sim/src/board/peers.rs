//! What cards below a root complex send each other through it.

use super::Board;
use crate::fabric::credit::Cost;
use crate::index::RootPortIndex;
use crate::ports::{Port, root_input};
use crate::requester::ROOT_COMPLEX;
use crate::tlp::{Tlp, TlpKind};
use lanemark_machine::Cause;
use lanemark_units::Ticks;

impl Board {
    /// Whether a TLP that came up at root port `port` at `at` is for a card below, or answers what was asked for one: then it is on
    /// its way there.
    #[inline]
    pub(super) fn forward_at_root(&mut self, port: RootPortIndex, at: Ticks, tlp: &Tlp) -> bool {
        if tlp.requester == ROOT_COMPLEX {
            self.peers.receive(at, port, port, *tlp);
            self.set(Port::Peers, self.peers.due());
            return true;
        }
        let Some(other) = self.root_routes.below(tlp).filter(|_| self.peers.forwards(tlp.kind)) else { return false };
        if self.peers.splits(tlp.kind) {
            self.peers.receive(at, port, other, *tlp);
            self.set(Port::Peers, self.peers.due());
        } else {
            self.offer(other.down(), root_input::from(port), self.peers.ready(at), *tlp);
        }
        true
    }

    /// The root complex takes what came for its own reads.
    #[inline(never)]
    pub(super) fn take_peers(&mut self) {
        self.peers.step(self.now, &mut self.slab);
        while let Some(out) = self.peers.out.pop_front() {
            self.offer(out.port.down(), root_input::own(self.roots.len()), out.at, out.tlp);
        }
        self.return_peer_credits();
        self.set(Port::Peers, self.peers.due());
    }

    /// One of its own TLPs has left.
    pub(super) fn own_left(&mut self, tlp: &Tlp) {
        if tlp.kind == TlpKind::MRd {
            self.peers.left(tlp.tag);
            self.return_peer_credits();
        }
    }

    /// A read of its own below root port `port` ends with this refusal.
    pub(super) fn refuse_peer(&mut self, port: RootPortIndex, refusal: Tlp) {
        self.peers.refuse(self.now, port, refusal);
        self.set(Port::Peers, self.peers.due());
    }

    /// Reads whose last piece has left give their credits back.
    fn return_peer_credits(&mut self) {
        while let Some(port) = self.peers.freed.pop_front() {
            self.give_back(port.up(), Cost::of(&Tlp::of(TlpKind::MRd)), Cause::RootComplex);
        }
    }
}
