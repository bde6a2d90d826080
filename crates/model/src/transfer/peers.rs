//! Reads between cards through a root complex.

use super::way::{Way, in_dws};
use crate::path::Path;
use lanemark_machine::{Partner, Verb};
use lanemark_platform::PeerRoute;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

impl Way<'_> {
    /// The reads that a root complex issues for a read of a peer; all other requests stay whole.
    pub(super) fn root_pieces(&self, chunk: Chunk) -> Vec<Chunk> {
        let root = &self.platform.root_complex;
        if !self.is_split_at_root() {
            return vec![chunk];
        }
        let most = u64::from(root.peer_read_bytes.value.max(self.platform.link.rcb_bytes.value));
        let end = chunk.address + u64::from(chunk.bytes);
        let ends = (chunk.address / most + 1..=(end - 1) / most).map(|place| place * most).chain([end]);
        let mut address = chunk.address;
        ends.map(|end| {
            let piece = Chunk { address, bytes: (end - address) as u32 };
            address = end;
            piece
        })
        .collect()
    }

    /// Whether these are reads from a peer below another root port, which the root complex splits.
    pub(super) fn is_split_at_root(&self) -> bool {
        let Partner::Peer { card, .. } = self.transfer.partner else { return false };
        let way = self.platform.peer_route(self.transfer.card as usize, card as usize);
        let splits = self.platform.root_complex.peer_read_bytes.value > 0;
        splits && self.transfer.verb == Verb::Load && way == Some(PeerRoute::ByRoot)
    }

    /// Whether these are reads from a peer through the root complex. Their parts, tags, credits and acknowledgments
    /// interact, which no term models completely.
    pub(super) fn goes_by_root(&self) -> bool {
        let (Partner::Peer { card, .. }, Verb::Load) = (self.transfer.partner, self.transfer.verb) else {
            return false;
        };
        self.platform.peer_route(self.transfer.card as usize, card as usize) == Some(PeerRoute::ByRoot)
    }

    /// From a read that the root complex issues for a card until the next one with the same tag.
    pub(super) fn root_loop(&self, piece: Chunk, at_end: Ticks) -> Option<Ticks> {
        let Partner::Peer { card, .. } = self.transfer.partner else { return Some(Ticks::ZERO) };
        let (down, up) = (Path::down(self.platform, card)?, Path::up(self.platform, card)?);
        let back = up.unloaded(3, in_dws(piece).min(self.payload_bytes));
        let until_answered = down.unloaded(self.header_dw, 0) + at_end + self.platform.endpoint.egress_ns.value + back;
        // Below the same root port, the next read follows the forwarded part of this one's completion.
        Some(until_answered + if self.turns_at_root(card) { self.forward() } else { Ticks::ZERO })
    }

    /// Time of the root complex to forward a packet.
    fn forward(&self) -> Ticks {
        self.platform.root_complex.peer_forward_ns.value
    }

    /// Whether the other card is below the same root port.
    fn turns_at_root(&self, other: u32) -> bool {
        let there = Path::between(self.platform, self.transfer.card, other);
        there.is_some_and(|there| (0..there.hops.len()).any(|place| there.turns_at(place)))
    }

    /// Parts of the path of a read before and after the root complex, with the minimum of its own data.
    pub(super) fn besides_root(&self) -> Ticks {
        if !self.is_split_at_root() {
            return Ticks::ZERO;
        }
        let Partner::Peer { card: other, .. } = self.transfer.partner else { return Ticks::ZERO };
        let card = self.transfer.card;
        let (Some(up), Some(down)) = (Path::up(self.platform, card), Path::down(self.platform, card)) else {
            return Ticks::ZERO;
        };
        let endpoint = &self.platform.endpoint;
        let there = endpoint.egress_ns.value + up.unloaded(self.header_dw, 0) + self.forward();
        // Forwarding before the next read is part of the time for which that one holds its tag.
        let sent_on = if self.turns_at_root(other) { Ticks::ZERO } else { self.forward() };
        there + sent_on + down.unloaded(3, 4) + endpoint.ingress_ns.value + self.beats(3, 4)
    }
}
