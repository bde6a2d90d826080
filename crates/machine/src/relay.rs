//! What cards hand on to each other, from host memory and back.

use crate::{Partner, Transfer, Verb, Window};

/// Bytes that the first card reads from host memory, each card writes to the next, and the last one writes back to host memory.
///
/// What a card sends is what came to it, through its queues: no card makes bytes of its own. One card alone sends back what it
/// read. A sample ends when the last byte is in host memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relay {
    /// The cards, in the order in which the bytes pass them; each once.
    pub cards: Vec<u32>,
    /// Which BAR of a card takes what the one before writes, and where in it.
    pub bar: u8,
    /// The window that is written to in that BAR.
    pub at_peers: Window,
    /// Bytes of one transfer.
    pub bytes: u64,
    /// Transfers of one pass.
    pub count: u64,
    /// Where in host memory is read.
    pub from: Window,
    /// Where in host memory is written.
    pub to: Window,
    /// Whether the last card begins to write a transfer back only when all of it has come to it.
    pub is_stored: bool,
}

impl Relay {
    /// Bytes moved from end to end in one pass.
    #[must_use]
    pub const fn bytes_of_pass(&self) -> u64 {
        self.bytes.saturating_mul(self.count)
    }

    /// What the first card reads, then what each card writes, as transfers of their own; empty without cards.
    ///
    /// ```
    /// use lanemark_machine::{Partner, Pattern, Relay, Verb, Window};
    /// let window = |offset| Window { offset, len: 4096, pattern: Pattern::Sequential };
    /// let (from, to, at_peers) = (window(0), window(4096), window(1 << 23));
    /// let relay = Relay { cards: vec![3, 5], bar: 0, at_peers, bytes: 4096, count: 1, from, to, is_stored: false };
    /// let transfers = relay.transfers();
    /// assert_eq!(transfers.iter().map(|one| (one.card, one.verb)).collect::<Vec<_>>(), [
    ///     (3, Verb::Load),
    ///     (3, Verb::Store),
    ///     (5, Verb::Store),
    /// ]);
    /// assert_eq!((transfers[1].partner, transfers[2].partner), (Partner::Peer { card: 5, bar: 0 }, Partner::Host));
    /// ```
    #[must_use]
    pub fn transfers(&self) -> Vec<Transfer> {
        let Relay { bar, at_peers, bytes, count, from, to, .. } = *self;
        let transfer =
            |card, verb, partner, window| Transfer { card, verb, partner, bytes, count, window, outstanding: None };
        let read = self.cards.first().map(|first| transfer(*first, Verb::Load, Partner::Host, from));
        let hop = |pair: &[u32]| transfer(pair[0], Verb::Store, Partner::Peer { card: pair[1], bar }, at_peers);
        let write = self.cards.last().map(|last| transfer(*last, Verb::Store, Partner::Host, to));
        read.into_iter().chain(self.cards.windows(2).map(hop)).chain(write).collect()
    }
}
