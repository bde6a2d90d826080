//! Peer-to-peer TLPs of cards through the root complex.

use super::Board;
use crate::fabric::credit::Cost;
use crate::index::RootPortIndex;
use crate::ports::{Port, root_input};
use crate::requester::ROOT_COMPLEX;
use crate::tlp::{Tlp, TlpKind};
use lanemark_machine::Cause;
use lanemark_units::Ticks;

impl Board {
    /// Forwards a TLP that root port `port` checks at `at`, if it is for a card or completes a peer read; returns
    /// whether it did.
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

    /// Processes the arrivals of the root complex's own reads.
    #[inline(never)]
    pub(super) fn take_peers(&mut self) {
        self.peers.step(self.now, &mut self.slab);
        while let Some(out) = self.peers.out.pop_front() {
            self.offer(out.port.down(), root_input::own(self.roots.len()), out.at, out.tlp);
        }
        self.return_peer_credits();
        self.set(Port::Peers, self.peers.due());
    }

    /// Records that a TLP of the root complex has left.
    pub(super) fn own_left(&mut self, tlp: &Tlp) {
        if tlp.kind == TlpKind::MRd {
            self.peers.left(tlp.tag);
            self.return_peer_credits();
        }
    }

    /// Ends a read of the root complex below `port` by this UR completion.
    pub(super) fn refuse_peer(&mut self, port: RootPortIndex, refusal: Tlp) {
        self.peers.refuse(self.now, port, refusal);
        self.set(Port::Peers, self.peers.due());
    }

    /// Returns the credits of reads whose last piece has left.
    fn return_peer_credits(&mut self) {
        while let Some(port) = self.peers.freed.pop_front() {
            self.give_back(port.up(), Cost::of(&Tlp::of(TlpKind::MRd)), Cause::RootComplex);
        }
    }
}
