//! Progress of the transfers of a card or of a channel.

use super::Board;
use crate::critical_path::Milestone;
use crate::index::CardIndex;
use lanemark_machine::{DmaCall, Partner, Transfer, Verb};
use lanemark_units::Ticks;

impl Board {
    /// Returns the completed bytes of a card's transfers, and the time of the last completion.
    #[must_use]
    pub fn moved(&self, transfer: &Transfer) -> (u64, Ticks) {
        let card = CardIndex::from(transfer.card);
        let requester = card.requester();
        match (transfer.verb, transfer.partner) {
            (Verb::Load, _) => match self.compiled() {
                Some(card) => (card.received_bytes, card.received_at),
                None => self.endpoints.engine(card).map_or((0, Ticks::ZERO), |e| (e.received_bytes, e.received_at)),
            },
            (Verb::Store, Partner::Host) => self.root_complex.written_by(requester),
            (Verb::Store, Partner::Peer { card, .. }) => {
                self.card(card.into()).map_or((0, Ticks::ZERO), |card| card.accepted_from(requester))
            }
        }
    }

    /// Returns the time of the last completion of a card's transfers, and the milestone.
    pub(crate) fn last_moved(&self, transfer: &Transfer) -> (Ticks, Milestone) {
        let card = CardIndex::from(transfer.card);
        let requester = card.requester();
        let none = (Ticks::ZERO, Milestone::NONE);
        match (transfer.verb, transfer.partner) {
            (Verb::Load, _) => match self.compiled() {
                Some(card) => (card.received_at, card.received),
                None => self.endpoints.engine(card).map_or(none, |e| (e.received_at, e.received)),
            },
            (Verb::Store, Partner::Host) => self.root_complex.last_written_by(requester),
            (Verb::Store, Partner::Peer { card, .. }) => {
                self.card(card.into()).map_or(none, |card| card.last_from(requester))
            }
        }
    }

    /// Returns the completed bytes of a call's channel.
    #[must_use]
    pub fn moved_by(&self, call: &DmaCall) -> u64 {
        let (card, verb) = (CardIndex::from(call.transfer.card), call.transfer.verb);
        match verb {
            Verb::Load => self.endpoints.engine(card).map_or(0, |engine| engine.received_by(call.channel as usize)),
            Verb::Store => self.root_complex.written_on(card.requester(), call.channel as u16),
        }
    }
}
