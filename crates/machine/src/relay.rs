//! Data passed from card to card, from host memory and back.

use crate::{Partner, Transfer, Verb, Window};

/// The first card reads data from host memory, each card writes it to the next, and the last card writes it back to
/// host memory.
///
/// Data passes through the FIFOs of the cards; a card sends only data that it has received. A single card writes back
/// what it read. A sample ends when the last byte is in host memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relay {
    /// The cards in the order of the data flow, each once.
    pub cards: Vec<u32>,
    /// BAR of a card that receives the data of the previous card.
    pub bar: u8,
    /// Window in that BAR.
    pub at_peers: Window,
    /// Bytes of one transfer.
    pub bytes: u64,
    /// Transfers of one iteration.
    pub count: u64,
    /// Source window in host memory.
    pub from: Window,
    /// Destination window in host memory.
    pub to: Window,
    /// Store-and-forward: whether the last card starts to write a transfer back only after it has received all of it.
    pub is_stored: bool,
}

impl Relay {
    /// Bytes moved from end to end in one iteration.
    #[must_use]
    pub const fn bytes_per_pass(&self) -> u64 {
        self.bytes.saturating_mul(self.count)
    }

    /// The read of the first card, then the writes of each card, as single transfers; empty without cards.
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
