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
            self.root_complex.peers.receive(at, port, port, *tlp);
            self.events.set(Port::Peers, self.root_complex.peers.due());
            return true;
        }
        let Some(other) = self.root_complex.peer_port(tlp) else { return false };
        if self.root_complex.peers.splits(tlp.kind) {
            self.root_complex.peers.receive(at, port, other, *tlp);
            self.events.set(Port::Peers, self.root_complex.peers.due());
        } else {
            self.fabric.offer(
                &mut self.events,
                other.down(),
                root_input::from(port),
                self.root_complex.peers.ready(at),
                *tlp,
            );
        }
        true
    }

    /// Processes the arrivals of the root complex's own reads.
    #[inline(never)]
    pub(super) fn take_peers(&mut self) {
        self.root_complex.peers.step(self.events.now, &mut self.slab);
        while let Some(out) = self.root_complex.peers.out.pop_front() {
            self.fabric.offer(&mut self.events, out.port.down(), self.root_complex.own_input(), out.at, out.tlp);
        }
        self.return_peer_credits();
        self.events.set(Port::Peers, self.root_complex.peers.due());
    }

    /// Records that a TLP of the root complex has left.
    pub(super) fn own_left(&mut self, tlp: &Tlp) {
        if tlp.kind == TlpKind::MRd {
            self.root_complex.peers.left(tlp.tag);
            self.return_peer_credits();
        }
    }

    /// Ends a read of the root complex below `port` by this UR completion.
    pub(super) fn refuse_peer(&mut self, port: RootPortIndex, refusal: Tlp) {
        self.root_complex.peers.refuse(self.events.now, port, refusal);
        self.events.set(Port::Peers, self.root_complex.peers.due());
    }

    /// Returns the credits of reads whose last piece has left.
    fn return_peer_credits(&mut self) {
        while let Some(port) = self.root_complex.peers.freed.pop_front() {
            self.fabric.return_credits(
                &mut self.events,
                port.up(),
                Cost::of(&Tlp::of(TlpKind::MRd)),
                Cause::RootComplex,
            );
        }
    }
}
